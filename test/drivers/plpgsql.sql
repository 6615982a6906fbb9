-- PL/pgSQL: what README.md's driver table says. Behaviour: claim, work and complete in one function, replay by its
-- caller; the whole row is kept in a variable of type idem_result.
SELECT set_config('drivers.actor', :'actor', false) \g /dev/null

CREATE FUNCTION pg_temp.place(actor text, key text, payload jsonb) RETURNS idem_result LANGUAGE plpgsql AS $$
DECLARE
    r idem_result;
BEGIN
    r := idem_claim(actor, 'drivers.place', key, payload, wait => '2 seconds');
    IF NOT r.proceed THEN
        RETURN r;
    END IF;
    RETURN idem_complete(r.operation_id, r.token, 201, body_json => jsonb_build_object('order', payload -> 'sku'));
END
$$;

CREATE FUNCTION pg_temp.stale(actor text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r idem_result := idem_claim(actor, 'drivers.place', 'stale');
BEGIN
    PERFORM idem_complete(r.operation_id, r.token - 1);
    RETURN NULL;
EXCEPTION WHEN SQLSTATE 'ID001' THEN
    RETURN SQLSTATE;
END
$$;

SELECT CASE WHEN (a.r).outcome = 'completed' AND (b.r).outcome = 'replay' AND (a.r).body = (b.r).body
             AND (b.r).body = '{"order": "A1"}' THEN 'ok' ELSE 'not ok' END
       || ' plpgsql: claim, work and complete in one function, then replay'
  FROM (SELECT pg_temp.place(current_setting('drivers.actor'), 'k1', '{"sku": "A1"}') AS r OFFSET 0) a,
       LATERAL (SELECT pg_temp.place(current_setting('drivers.actor'), 'k1', '{"sku": "A1"}')
                 WHERE (a.r).outcome IS NOT NULL OFFSET 0) b (r);
SELECT CASE WHEN pg_temp.stale(current_setting('drivers.actor')) = 'ID001' THEN 'ok' ELSE 'not ok' END
       || ' plpgsql: stale token is caught as SQLSTATE ID001';
