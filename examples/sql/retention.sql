-- retention.sql: removes what no promise needs any more, where no worker does (the library is not preloaded). Run it in each
-- database that has the extension, hourly say: psql -X -d app -f examples/sql/retention.sql
-- With pg_cron: SELECT cron.schedule_in_database('sweep', '7 * * * *', 'CALL idem.idem_admin_sweep(''10 minutes'')', 'app');
-- It commits in batches, waits for nobody's row lock, and may be stopped at any time.

-- The extension may live in any schema.
SELECT format('%I, pg_catalog', n.nspname) AS path
  FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
 WHERE e.extname = 'idempotency' \gset
SET search_path = :path;

CALL idem_admin_sweep(budget => '1 hour');
