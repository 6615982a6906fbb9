-- idempotency--1.0.sql: types, tables, functions and views of the extension, in the order a newcomer reads them.
-- Everything lives in the schema CREATE EXTENSION is given; SQL bodies are BEGIN ATOMIC, so that they follow it.
\echo Use "CREATE EXTENSION idempotency" to load this file. \quit

------------------------------------------------------------------------------------------------------------------------
-- Types: frozen at 1.0. What comes later goes into detail.
------------------------------------------------------------------------------------------------------------------------

CREATE TYPE idem_result AS (
    outcome       text,
    proceed       boolean,
    replayed      boolean,
    operation_id  uuid,
    token         bigint,
    state         text,
    key           text,
    attempt       integer,
    status        integer,
    headers       jsonb,
    body          text,
    body_bytes    bytea,
    body_ref      text,
    checkpoint    jsonb,
    claimed_at    timestamptz,
    completed_at  timestamptz,
    expires_at    timestamptz,
    retry_after_s integer,
    reason        text,
    detail        jsonb
);
COMMENT ON TYPE idem_result IS
'day one: What every verb answers. Do the work if and only if proceed; in every other case send idem_http_response(result).
outcome: claimed, resumed (both proceed), completed, replay, in_progress, conflict, indeterminate, expired, rejected; verbs after the claim and lookups also name the state (released).
token: fencing token of this acquisition, below 2^53; only the holder ever sees it. headers: [[name, value], ...] in order. retry_after_s: seconds.';
COMMENT ON COLUMN idem_result.outcome IS 'What to do, in a word. NULL (as every column): a lookup found nothing.';
COMMENT ON COLUMN idem_result.proceed IS 'Do the work: outcome is claimed or resumed.';
COMMENT ON COLUMN idem_result.replayed IS 'The answer was stored by an earlier call: outcome is replay.';
COMMENT ON COLUMN idem_result.operation_id IS 'Derived from actor, op and key: the same for every retry. NULL: rejected, the key has more than 255 bytes.';
COMMENT ON COLUMN idem_result.token IS 'Fencing token that complete, fail, extend, checkpoint and release ask for. NULL: you do not hold the key.';
COMMENT ON COLUMN idem_result.state IS 'What the key is: in_progress, completed, failed, released, indeterminate. NULL: conflict, rejected.';
COMMENT ON COLUMN idem_result.key IS 'The client''s key, as it was given.';
COMMENT ON COLUMN idem_result.attempt IS 'How many times the key was acquired in this life, resumed not counted. NULL: conflict, rejected, or a claim met in_progress.';
COMMENT ON COLUMN idem_result.status IS 'HTTP status of the stored answer. NULL: no answer.';
COMMENT ON COLUMN idem_result.headers IS 'Headers of the stored answer, [[name, value], ...] in order. NULL: none.';
COMMENT ON COLUMN idem_result.body IS 'Body of the stored answer, given as text or JSON. NULL: bytes, kept elsewhere, omitted or none.';
COMMENT ON COLUMN idem_result.body_bytes IS 'Body of the stored answer, given as bytes. NULL: not bytes, omitted or none.';
COMMENT ON COLUMN idem_result.body_ref IS 'Where the body is kept. NULL: here, omitted or none.';
COMMENT ON COLUMN idem_result.checkpoint IS 'How far the work came, see idem_checkpoint. NULL: nothing was noted, or it is not for you.';
COMMENT ON COLUMN idem_result.claimed_at IS 'When the key was first acquired in this life. NULL: as attempt.';
COMMENT ON COLUMN idem_result.completed_at IS 'When the answer was stored. NULL: no answer.';
COMMENT ON COLUMN idem_result.expires_at IS 'When the answer, or the memory of a release, is over. NULL: neither.';
COMMENT ON COLUMN idem_result.retry_after_s IS 'Seconds after which asking again makes sense. NULL: not in_progress.';
COMMENT ON COLUMN idem_result.reason IS 'Why the outcome is what it is, in a word. NULL: the outcome says it all.';
COMMENT ON COLUMN idem_result.detail IS 'What has no column of its own, as an object. NULL: nothing.';

CREATE TYPE idem_response AS (
    status     integer,
    headers    jsonb,
    body       text,
    body_json  jsonb,
    body_bytes bytea
);
COMMENT ON TYPE idem_response IS
'key life: What a handler of idem_execute may return instead of jsonb: status (NULL = 200), headers ([[name, value], ...] or an object), and at most one of body, body_json, body_bytes.';
COMMENT ON COLUMN idem_response.status IS 'HTTP status, 100 to 599. NULL: 200.';
COMMENT ON COLUMN idem_response.headers IS '[[name, value], ...] or an object. NULL: none.';
COMMENT ON COLUMN idem_response.body IS 'Body as text. NULL: given otherwise, or none.';
COMMENT ON COLUMN idem_response.body_json IS 'Body as JSON; stored as text with a JSON content type. NULL: given otherwise, or none.';
COMMENT ON COLUMN idem_response.body_bytes IS 'Body as bytes. NULL: given otherwise, or none.';

CREATE TYPE idem_http AS (
    status  integer,
    headers jsonb,
    body    bytea
);
COMMENT ON TYPE idem_http IS
'http: An HTTP response: status, headers ([[name, value], ...] in order), body (bytes as sent).';
COMMENT ON COLUMN idem_http.status IS 'HTTP status to send. NULL (as every column): nothing is to be sent.';
COMMENT ON COLUMN idem_http.headers IS 'Headers to send, [[name, value], ...] in order.';
COMMENT ON COLUMN idem_http.body IS 'Body to send, bytes as they are. NULL: none, or body_ref of the result names where it is.';

------------------------------------------------------------------------------------------------------------------------
-- Tables
------------------------------------------------------------------------------------------------------------------------

CREATE TYPE idem_policy AS (
    op         text,
    preset     text,
    options    jsonb,
    version    integer,
    profile    integer,
    updated_at timestamptz,
    updated_by text
);
COMMENT ON TYPE idem_policy IS
'policy: A policy as idem_set_policy leaves it: every option with its value, its version, and the version of its profile.';
COMMENT ON COLUMN idem_policy.op IS 'The operation the policy is for, up to 128 bytes.';
COMMENT ON COLUMN idem_policy.preset IS 'The preset the options were copied from.';
COMMENT ON COLUMN idem_policy.options IS 'Every option with its value, as an object; see idem_policy_options.';
COMMENT ON COLUMN idem_policy.version IS 'Counts the changes of options, from 1.';
COMMENT ON COLUMN idem_policy.profile IS 'The version in idem_profiles under which new keys are hashed.';
COMMENT ON COLUMN idem_policy.updated_at IS 'When options or preset last changed.';
COMMENT ON COLUMN idem_policy.updated_by IS 'The session user who changed them.';

CREATE TABLE idem_keys (
    operation_id uuid        NOT NULL,
    token        bigint      NOT NULL,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    lease_until  timestamptz NOT NULL,
    attempt      integer     NOT NULL,
    profile      integer     NOT NULL,
    state        "char"      NOT NULL,
    actor        text COLLATE "C" NOT NULL,
    op           text COLLATE "C" NOT NULL,
    key          text COLLATE "C" NOT NULL,
    claimed_by   text COLLATE "C" NOT NULL,
    payload_hash bytea,
    completed_at timestamptz,
    expires_at   timestamptz,
    ttl_s        integer,
    attempt_id   uuid,
    parent       uuid,
    traceparent  text COLLATE "C",
    checkpoint   jsonb,
    evidence     jsonb,
    payload      text COLLATE "C",
    PRIMARY KEY (operation_id)
) USING heap WITH (
    fillfactor = 60,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);
COMMENT ON TABLE idem_keys IS
'internal: One row per (actor, op, key), narrow and hot. state: i in progress, c completed, f failed, r released, u indeterminate. ttl_s: seconds, where the claim asked for another ttl than the policy''s. Written by the idem_ functions only; every update is HOT as long as no other column is indexed.';
COMMENT ON COLUMN idem_keys.operation_id IS 'Derived from actor, op and key.';
COMMENT ON COLUMN idem_keys.token IS 'Fencing token of the last acquisition; a release moves it on. Grows, below 2^53.';
COMMENT ON COLUMN idem_keys.created_at IS 'When this life of the key began: its first acquisition.';
COMMENT ON COLUMN idem_keys.updated_at IS 'When the row last changed.';
COMMENT ON COLUMN idem_keys.lease_until IS 'Until when the holder is believed alive; the op''s grace comes on top.';
COMMENT ON COLUMN idem_keys.attempt IS 'Acquisitions in this life, from 1, resumed not counted.';
COMMENT ON COLUMN idem_keys.profile IS 'Version in idem_profiles under which payload_hash was made. 0: the op had no policy.';
COMMENT ON COLUMN idem_keys.state IS 'i in progress, c completed, f failed, r released, u indeterminate.';
COMMENT ON COLUMN idem_keys.actor IS 'Who asked, up to 255 bytes.';
COMMENT ON COLUMN idem_keys.op IS 'What was asked for, up to 128 bytes.';
COMMENT ON COLUMN idem_keys.key IS 'The client''s key, up to 255 bytes.';
COMMENT ON COLUMN idem_keys.claimed_by IS 'Session of the last acquisition, for people: application name (or user), slash, process id.';
COMMENT ON COLUMN idem_keys.payload_hash IS 'Hash of payload and target: 16 bytes (xxh3-128) or 32 (sha256, keyed). NULL: neither was given.';
COMMENT ON COLUMN idem_keys.completed_at IS 'When the answer was stored. NULL: no answer.';
COMMENT ON COLUMN idem_keys.expires_at IS 'When the answer, or the memory of a release, is over. NULL: in progress or indeterminate.';
COMMENT ON COLUMN idem_keys.ttl_s IS 'Seconds an answer of this attempt is replayed. NULL: what the policy says.';
COMMENT ON COLUMN idem_keys.attempt_id IS 'The uuid that resumes the claim, of the last acquisition. NULL: none was given.';
COMMENT ON COLUMN idem_keys.parent IS 'The operation on whose behalf this one runs; not checked. NULL: none was given.';
COMMENT ON COLUMN idem_keys.traceparent IS 'W3C trace context of the request that began this life. NULL: none, or not of that form.';
COMMENT ON COLUMN idem_keys.checkpoint IS 'How far the work came, up to 64 KiB. NULL: nothing noted, or answered.';
COMMENT ON COLUMN idem_keys.evidence IS 'What idem_fail or idem_resolve were told, up to 64 KiB. NULL: nothing.';
COMMENT ON COLUMN idem_keys.payload IS 'Canonical text of the payload. NULL: the policy''s store_payload does not ask for it, or no JSON was given.';

CREATE TABLE idem_responses (
    operation_id uuid    NOT NULL,
    token        bigint  NOT NULL,
    status       integer NOT NULL,
    body_omitted boolean NOT NULL,
    given_hash   bytea   NOT NULL,
    headers      jsonb,
    body         text,
    body_bytes   bytea,
    body_ref     text,
    body_sha256  bytea,
    PRIMARY KEY (operation_id, token)
) USING heap WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.05
);
COMMENT ON TABLE idem_responses IS
'internal: One row per finished acquisition of a key: the answer that is replayed. Wide and cold. given_hash (XXH3-128 of the answer as it was given) tells a repeated idem_complete from another answer. body_sha256 stands for a body that is kept elsewhere or was over the limit.';
COMMENT ON COLUMN idem_responses.operation_id IS 'The key that was answered.';
COMMENT ON COLUMN idem_responses.token IS 'The acquisition that answered it: the key''s token then.';
COMMENT ON COLUMN idem_responses.status IS 'HTTP status.';
COMMENT ON COLUMN idem_responses.body_omitted IS 'There was a body over the policy''s body_max: only its SHA-256 is kept.';
COMMENT ON COLUMN idem_responses.given_hash IS 'XXH3-128 (16 bytes) of status and body as given, before a policy left anything out.';
COMMENT ON COLUMN idem_responses.headers IS 'The headers that the policy keeps, [[name, value], ...] in order. NULL: none.';
COMMENT ON COLUMN idem_responses.body IS 'Body, given as text or JSON. NULL: given otherwise, omitted or none.';
COMMENT ON COLUMN idem_responses.body_bytes IS 'Body, given as bytes. NULL: given otherwise, omitted or none.';
COMMENT ON COLUMN idem_responses.body_ref IS 'Where the body is kept, up to 2048 bytes. NULL: here, omitted or none.';
COMMENT ON COLUMN idem_responses.body_sha256 IS 'SHA-256 (32 bytes) of a body omitted, or kept elsewhere. NULL: the body is here, none, or no hash was given.';

CREATE TABLE idem_leases (
    operation_id uuid        NOT NULL,
    token        bigint      NOT NULL,
    lease_until  timestamptz NOT NULL
) USING heap WITH (
    autovacuum_vacuum_scale_factor = 0.02
);
-- Without an index, and without this, rows could not be deleted where a publication has all tables.
ALTER TABLE idem_leases REPLICA IDENTITY FULL;
COMMENT ON TABLE idem_leases IS
'internal: Hints at claims that were committed unfinished. No index; a hint may be stale, never missing. idem_unfinished joins it with idem_keys.';
COMMENT ON COLUMN idem_leases.operation_id IS 'The key that was claimed.';
COMMENT ON COLUMN idem_leases.token IS 'The acquisition the hint was left for.';
COMMENT ON COLUMN idem_leases.lease_until IS 'Its lease when the hint was left; the one in idem_keys counts.';

CREATE TABLE idem_policies (
    op         text COLLATE "C" NOT NULL,
    preset     text COLLATE "C" NOT NULL,
    options    jsonb       NOT NULL,
    version    integer     NOT NULL,
    profile    integer     NOT NULL,
    updated_at timestamptz NOT NULL,
    updated_by text        NOT NULL,
    PRIMARY KEY (op)
) USING heap;
COMMENT ON TABLE idem_policies IS
'policy: The policy of each op as it is in force: every option with its value, the preset it was copied from, its version, and the version of its profile. Set by idem_set_policy.';
COMMENT ON COLUMN idem_policies.op IS 'The operation the policy is for, up to 128 bytes.';
COMMENT ON COLUMN idem_policies.preset IS 'The preset the options were copied from.';
COMMENT ON COLUMN idem_policies.options IS 'Every option with its value, as an object; see idem_policy_options.';
COMMENT ON COLUMN idem_policies.version IS 'Counts the changes of options, from 1.';
COMMENT ON COLUMN idem_policies.profile IS 'The version in idem_profiles under which new keys are hashed.';
COMMENT ON COLUMN idem_policies.updated_at IS 'When options or preset last changed.';
COMMENT ON COLUMN idem_policies.updated_by IS 'The session user who changed them.';

CREATE TABLE idem_profiles (
    op             text COLLATE "C" NOT NULL,
    version        integer     NOT NULL,
    hash_algorithm text COLLATE "C" NOT NULL,
    secret_version integer,
    options        jsonb       NOT NULL,
    created_at     timestamptz NOT NULL,
    PRIMARY KEY (op, version)
) USING heap;
COMMENT ON TABLE idem_profiles IS
'policy: The rules under which payloads of an op are hashed, one row a version, never changed. Each key remembers the version it was hashed under and is compared under that one. Made by idem_set_policy, removed by idem_admin_prune_profiles.';
COMMENT ON COLUMN idem_profiles.op IS 'The operation the rules are for.';
COMMENT ON COLUMN idem_profiles.version IS 'Counts the rules of an op, from 1; never used again.';
COMMENT ON COLUMN idem_profiles.hash_algorithm IS 'xxh3-128 or sha256.';
COMMENT ON COLUMN idem_profiles.secret_version IS 'The secret in idem_secrets that hashes are keyed with. NULL: they are not keyed.';
COMMENT ON COLUMN idem_profiles.options IS 'What may differ in payloads that mean the same, as an object; see the policy option profile.';
COMMENT ON COLUMN idem_profiles.created_at IS 'When the rules were made.';

CREATE TABLE idem_secrets (
    version    integer     NOT NULL,
    secret     bytea       NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (version)
) USING heap;
COMMENT ON TABLE idem_secrets IS
'internal: The secret of keyed payload hashes (hash_key per_actor), made when a policy first asks for it. Without it those ops raise XX001 until it is restored, or their policies are set again, which makes a new one for new keys; nothing runs twice.';
COMMENT ON COLUMN idem_secrets.version IS 'Number of the secret, from 1.';
COMMENT ON COLUMN idem_secrets.secret IS 'Key of the HMAC, 32 random bytes.';
COMMENT ON COLUMN idem_secrets.created_at IS 'When the secret was made.';

CREATE TABLE idem_outbox (
    id            uuid        NOT NULL,
    created_at    timestamptz NOT NULL,
    deliver_at    timestamptz NOT NULL,
    operation_id  uuid,
    aggregatetype text COLLATE "C" NOT NULL,
    aggregateid   text COLLATE "C",
    type          text COLLATE "C" NOT NULL,
    actor         text COLLATE "C" NOT NULL,
    dedup_id      text COLLATE "C",
    headers       jsonb       NOT NULL,
    payload       jsonb,
    payload_bytes bytea,
    PRIMARY KEY (id)
) USING heap WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.05
);
CREATE INDEX idem_outbox_created ON idem_outbox (created_at);
COMMENT ON TABLE idem_outbox IS
'internal: One row per message of the outbox, as Debezium''s outbox event router reads it. Rows are inserted, and deleted by idem_sweep_outbox; nothing updates them. What is still to be delivered is in idem_outbox_queue.';
COMMENT ON COLUMN idem_outbox.id IS 'The message. With a dedup_id derived from actor, topic and it, else made anew.';
COMMENT ON COLUMN idem_outbox.created_at IS 'Start of the transaction that put it.';
COMMENT ON COLUMN idem_outbox.deliver_at IS 'Not to be delivered before.';
COMMENT ON COLUMN idem_outbox.operation_id IS 'The operation that caused it; not checked. NULL: none was given.';
COMMENT ON COLUMN idem_outbox.aggregatetype IS 'The topic, up to 128 bytes.';
COMMENT ON COLUMN idem_outbox.aggregateid IS 'The ordering key, up to 255 bytes. NULL: none, the message has no order.';
COMMENT ON COLUMN idem_outbox.type IS 'The header type: what happened, in the consumer''s words.';
COMMENT ON COLUMN idem_outbox.actor IS 'Whose message it is, up to 255 bytes.';
COMMENT ON COLUMN idem_outbox.dedup_id IS 'Which intent it is, up to 255 bytes. NULL: none was given.';
COMMENT ON COLUMN idem_outbox.headers IS 'CloudEvents attributes and the caller''s own, as an object.';
COMMENT ON COLUMN idem_outbox.payload IS 'The message as JSON. NULL: given as bytes, or none.';
COMMENT ON COLUMN idem_outbox.payload_bytes IS 'The message as bytes. NULL: given as JSON, or none.';

CREATE SEQUENCE idem_outbox_seq AS bigint;
COMMENT ON SEQUENCE idem_outbox_seq IS
'internal: Places in the outbox''s order, and tokens of its leases.';

CREATE TABLE idem_outbox_queue (
    message_id uuid        NOT NULL,
    seq        bigint      NOT NULL,
    lane       bigint      NOT NULL,
    ready_at   timestamptz NOT NULL,
    token      bigint      NOT NULL,
    attempt    integer     NOT NULL,
    state      "char"      NOT NULL,
    topic      text COLLATE "C" NOT NULL,
    actor      text COLLATE "C" NOT NULL,
    relay      text COLLATE "C",
    last_error text COLLATE "C",
    PRIMARY KEY (message_id)
) USING heap WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_insert_scale_factor = 0.05
);
CREATE INDEX idem_outbox_queue_lanes ON idem_outbox_queue (topic, actor, lane, seq);
COMMENT ON TABLE idem_outbox_queue IS
'internal: One narrow row per message that is not delivered. state: q queued, l leased, x dead letter. Made when the transaction that put the message commits, deleted by idem_outbox_ack; a lease is a HOT update as long as no other column is indexed.';
COMMENT ON COLUMN idem_outbox_queue.message_id IS 'The message in idem_outbox.';
COMMENT ON COLUMN idem_outbox_queue.seq IS 'Its place in the order of its lane, drawn while its transaction commits.';
COMMENT ON COLUMN idem_outbox_queue.lane IS 'Below 0: hash of the ordering key. From 0: seq, the message has none. The greatest bigint: a dead letter that holds nobody up.';
COMMENT ON COLUMN idem_outbox_queue.ready_at IS 'Queued: not to be leased before. Leased: until when. Dead letter: since when.';
COMMENT ON COLUMN idem_outbox_queue.token IS 'Of the last lease. 0: never leased, or given back.';
COMMENT ON COLUMN idem_outbox_queue.attempt IS 'How many times it was leased.';
COMMENT ON COLUMN idem_outbox_queue.state IS 'q queued, l leased, x dead letter.';
COMMENT ON COLUMN idem_outbox_queue.topic IS 'Its topic.';
COMMENT ON COLUMN idem_outbox_queue.actor IS 'Whose message it is.';
COMMENT ON COLUMN idem_outbox_queue.relay IS 'Who leased it last, for people. NULL: nobody yet.';
COMMENT ON COLUMN idem_outbox_queue.last_error IS 'What the last idem_outbox_nack said, up to 1000 bytes. NULL: nothing.';

CREATE TABLE idem_outbox_topics (
    topic          text COLLATE "C" NOT NULL,
    max_attempts   integer NOT NULL,
    on_dead_letter text COLLATE "C" NOT NULL,
    PRIMARY KEY (topic)
) USING heap;
COMMENT ON TABLE idem_outbox_topics IS
'policy: Rules of topics that differ from the default, 20 attempts and hold. Set by idem_outbox_set_topic.';
COMMENT ON COLUMN idem_outbox_topics.topic IS 'The topic, up to 128 bytes.';
COMMENT ON COLUMN idem_outbox_topics.max_attempts IS 'A message leased so often without success becomes a dead letter.';
COMMENT ON COLUMN idem_outbox_topics.on_dead_letter IS 'hold: the rest of its ordering key waits. skip: the rest goes on.';

CREATE FUNCTION idem_policies_changed()
RETURNS trigger
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_policies_changed_v1';
COMMENT ON FUNCTION idem_policies_changed IS
'internal: Trigger of idem_policies: every session reads its policies again, however the table was changed.';

-- By row, and ENABLE ALWAYS, because a logical replication worker fires nothing else.
CREATE TRIGGER idem_policies_changed
    AFTER INSERT OR UPDATE OR DELETE ON idem_policies
    FOR EACH ROW EXECUTE FUNCTION idem_policies_changed();
CREATE TRIGGER idem_policies_truncated
    AFTER TRUNCATE ON idem_policies
    FOR EACH STATEMENT EXECUTE FUNCTION idem_policies_changed();
ALTER TABLE idem_policies ENABLE ALWAYS TRIGGER idem_policies_changed;
ALTER TABLE idem_policies ENABLE ALWAYS TRIGGER idem_policies_truncated;
COMMENT ON TRIGGER idem_policies_changed ON idem_policies IS
'internal: Every session reads its policies again after a row was changed, by a replication worker too.';
COMMENT ON TRIGGER idem_policies_truncated ON idem_policies IS
'internal: Every session reads its policies again after TRUNCATE.';

CREATE TABLE idem_children (
    parent       uuid NOT NULL,
    operation_id uuid NOT NULL,
    PRIMARY KEY (parent, operation_id)
) USING heap;
COMMENT ON TABLE idem_children IS
'internal: Which operations were claimed with a parent_operation_id. A row may be stale, never missing; idem_keys.parent counts.';
COMMENT ON COLUMN idem_children.parent IS 'The operation on whose behalf the other one runs.';
COMMENT ON COLUMN idem_children.operation_id IS 'The operation that named it.';

CREATE TABLE idem_effects (
    operation_id uuid        NOT NULL,
    name         text COLLATE "C" NOT NULL,
    token        bigint      NOT NULL,
    ref          text COLLATE "C",
    data         jsonb,
    recorded_at  timestamptz NOT NULL,
    PRIMARY KEY (operation_id, name)
) USING heap;
COMMENT ON TABLE idem_effects IS
'internal: What operations caused elsewhere, once by name. Written by idem_effect.';
COMMENT ON COLUMN idem_effects.operation_id IS 'The operation that caused it.';
COMMENT ON COLUMN idem_effects.name IS 'What the operation calls it, up to 255 bytes.';
COMMENT ON COLUMN idem_effects.token IS 'The acquisition that recorded it.';
COMMENT ON COLUMN idem_effects.ref IS 'Its name on the other side, up to 2048 bytes. NULL: none was given.';
COMMENT ON COLUMN idem_effects.data IS 'What else is worth keeping, up to 64 KiB. NULL: nothing.';
COMMENT ON COLUMN idem_effects.recorded_at IS 'When it was recorded.';

CREATE TABLE idem_inbox_entities (
    actor      text COLLATE "C" NOT NULL,
    source     text COLLATE "C" NOT NULL,
    entity     text COLLATE "C" NOT NULL,
    seq        bigint      NOT NULL,
    event_id   text COLLATE "C",
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (actor, source, entity)
) USING heap WITH (
    fillfactor = 60,
    autovacuum_vacuum_scale_factor = 0.02
);
COMMENT ON TABLE idem_inbox_entities IS
'internal: How far the events of each entity have come: its watermark.';
COMMENT ON COLUMN idem_inbox_entities.actor IS 'The tenant that receives.';
COMMENT ON COLUMN idem_inbox_entities.source IS 'Who sends.';
COMMENT ON COLUMN idem_inbox_entities.entity IS 'What the events are about.';
COMMENT ON COLUMN idem_inbox_entities.seq IS 'The watermark: the number of the last event that passed.';
COMMENT ON COLUMN idem_inbox_entities.event_id IS 'The event that moved it there. NULL: none did.';
COMMENT ON COLUMN idem_inbox_entities.updated_at IS 'When it last moved.';

CREATE TABLE idem_inbox_parked (
    actor        text COLLATE "C" NOT NULL,
    source       text COLLATE "C" NOT NULL,
    entity       text COLLATE "C" NOT NULL,
    seq          bigint      NOT NULL,
    event_id     text COLLATE "C" NOT NULL,
    dedup_id     text COLLATE "C",
    dedup_window interval,
    payload      jsonb,
    parked_at    timestamptz NOT NULL,
    PRIMARY KEY (actor, source, entity, seq)
) USING heap WITH (
    autovacuum_vacuum_scale_factor = 0.02
);
CREATE INDEX idem_inbox_parked_event ON idem_inbox_parked (actor, source, event_id);
COMMENT ON TABLE idem_inbox_parked IS
'internal: Events of ops in strict order that wait for their predecessor, and those whose work is under way with a lease.';
COMMENT ON COLUMN idem_inbox_parked.actor IS 'The tenant that receives.';
COMMENT ON COLUMN idem_inbox_parked.source IS 'Who sends.';
COMMENT ON COLUMN idem_inbox_parked.entity IS 'What the event is about.';
COMMENT ON COLUMN idem_inbox_parked.seq IS 'Its number.';
COMMENT ON COLUMN idem_inbox_parked.event_id IS 'Its delivery.';
COMMENT ON COLUMN idem_inbox_parked.dedup_id IS 'Its intent. NULL: none was given.';
COMMENT ON COLUMN idem_inbox_parked.dedup_window IS 'How long it is remembered. NULL: what the policy says.';
COMMENT ON COLUMN idem_inbox_parked.payload IS 'What it says. NULL: nothing was given.';
COMMENT ON COLUMN idem_inbox_parked.parked_at IS 'When it was parked.';

CREATE TABLE idem_versions (
    actor      text COLLATE "C" NOT NULL,
    op         text COLLATE "C" NOT NULL,
    target     text COLLATE "C" NOT NULL,
    version    bigint      NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (actor, op, target)
) USING heap WITH (
    fillfactor = 60,
    autovacuum_vacuum_scale_factor = 0.02
);
COMMENT ON TABLE idem_versions IS
'internal: The version of each resource that idem_version_claim was asked for; one that is not here has version 0. Never removed by itself.';
COMMENT ON COLUMN idem_versions.actor IS 'Whose resource it is.';
COMMENT ON COLUMN idem_versions.op IS 'The operation that changes it.';
COMMENT ON COLUMN idem_versions.target IS 'The resource.';
COMMENT ON COLUMN idem_versions.version IS 'How often it was changed.';
COMMENT ON COLUMN idem_versions.updated_at IS 'When it was last changed.';

CREATE TABLE idem_audit (
    id           bigint GENERATED BY DEFAULT AS IDENTITY,
    at           timestamptz NOT NULL,
    who          text        NOT NULL,
    what         text        NOT NULL,
    operation_id uuid,
    detail       jsonb,
    PRIMARY KEY (id)
) USING heap;
COMMENT ON TABLE idem_audit IS
'admin: Who overrode what the extension protects: messages forced, gaps skipped. Kept for a year.';
COMMENT ON SEQUENCE idem_audit_id_seq IS
'internal: Numbers of idem_audit.';
COMMENT ON COLUMN idem_audit.id IS 'Number of the entry.';
COMMENT ON COLUMN idem_audit.at IS 'When.';
COMMENT ON COLUMN idem_audit.who IS 'The session user.';
COMMENT ON COLUMN idem_audit.what IS 'What was done: the name of the function.';
COMMENT ON COLUMN idem_audit.operation_id IS 'To which operation. NULL: to none.';
COMMENT ON COLUMN idem_audit.detail IS 'With what arguments and reasons. NULL: nothing to say.';

SELECT pg_catalog.pg_extension_config_dump('idem_keys', '');
SELECT pg_catalog.pg_extension_config_dump('idem_responses', '');
SELECT pg_catalog.pg_extension_config_dump('idem_leases', '');
SELECT pg_catalog.pg_extension_config_dump('idem_policies', '');
SELECT pg_catalog.pg_extension_config_dump('idem_profiles', '');
SELECT pg_catalog.pg_extension_config_dump('idem_secrets', '');
SELECT pg_catalog.pg_extension_config_dump('idem_outbox', '');
SELECT pg_catalog.pg_extension_config_dump('idem_outbox_seq', '');
SELECT pg_catalog.pg_extension_config_dump('idem_outbox_queue', '');
SELECT pg_catalog.pg_extension_config_dump('idem_outbox_topics', '');
SELECT pg_catalog.pg_extension_config_dump('idem_children', '');
SELECT pg_catalog.pg_extension_config_dump('idem_effects', '');
SELECT pg_catalog.pg_extension_config_dump('idem_inbox_entities', '');
SELECT pg_catalog.pg_extension_config_dump('idem_inbox_parked', '');
SELECT pg_catalog.pg_extension_config_dump('idem_versions', '');
SELECT pg_catalog.pg_extension_config_dump('idem_audit', '');
SELECT pg_catalog.pg_extension_config_dump('idem_audit_id_seq', '');

------------------------------------------------------------------------------------------------------------------------
-- Day one
------------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION idem_claim(
    actor text, op text, key text, payload jsonb DEFAULT NULL, target text DEFAULT NULL, wait interval DEFAULT NULL,
    lease interval DEFAULT NULL, ttl interval DEFAULT NULL, attempt_id uuid DEFAULT NULL,
    parent_operation_id uuid DEFAULT NULL, traceparent text DEFAULT NULL, capabilities_version integer DEFAULT NULL,
    payload_bytes bytea DEFAULT NULL)
RETURNS idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_claim_v1';
CREATE FUNCTION idem_claim_plain(actor text, op text, key text, payload jsonb)
RETURNS idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_claim_plain_v1';
COMMENT ON FUNCTION idem_claim_plain IS
'internal: What the planner makes of an idem_claim that gives actor, op, key and payload only: the same, with fewer arguments to prepare.';

CREATE FUNCTION idem_claim_support(request internal)
RETURNS internal
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'idem_claim_support_v1';
COMMENT ON FUNCTION idem_claim_support IS
'internal: Planner support of idem_claim.';
ALTER FUNCTION idem_claim SUPPORT idem_claim_support;

COMMENT ON FUNCTION idem_claim IS
'day one: Ask once whether this request is the first (claimed), done (replay), running (in_progress), of unknown fate (indeterminate) or another request under the same key (conflict).
actor, op, key: who, what, which (up to 255, 128, 255 bytes). payload: the request as JSON, or payload_bytes as it is. wait: how long to wait for a running rival, 0 to 60 s. lease: how long a committed claim is believed alive. ttl: how long the answer is replayed after completion. attempt_id: uuid of this attempt; shown again it resumes the claim.
Errors: 22004, 22023, ID005, 25006 read only, 40001, 40P01. Example: SELECT * FROM idem_claim(''tenant-1'', ''payment.capture'', ''0a1b2c3d-retry-key'', ''{"amount": 10}'')';

CREATE FUNCTION idem_complete(
    operation_id uuid, token bigint, status integer DEFAULT 200, body text DEFAULT NULL, body_json jsonb DEFAULT NULL,
    body_bytes bytea DEFAULT NULL, headers jsonb DEFAULT NULL, body_ref text DEFAULT NULL,
    body_sha256 bytea DEFAULT NULL)
RETURNS idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_complete_v1';
COMMENT ON FUNCTION idem_complete IS
'day one: Store the answer of the work and return what every replay will return. Safe to repeat: the same token and answer give the same result.
At most one of body (text), body_json, body_bytes, body_ref (with body_sha256, 32 bytes, for a body kept elsewhere). headers: [[name, value], ...] or an object; only the policy''s replay_headers are kept.
Errors: ID001 stale token, ID002 another response, ID003 lease-mode claim not committed, ID007 no such operation. Example: SELECT * FROM idem_complete(:operation_id, :token, 201, body_json => ''{"id": "ch_1"}'')';

CREATE FUNCTION idem_fail(
    operation_id uuid, token bigint, state text DEFAULT NULL, status integer DEFAULT NULL, body text DEFAULT NULL,
    body_json jsonb DEFAULT NULL, body_bytes bytea DEFAULT NULL, headers jsonb DEFAULT NULL,
    evidence jsonb DEFAULT NULL)
RETURNS idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_fail_v1';
COMMENT ON FUNCTION idem_fail IS
'day one: End the work without success. state: failed (stored and replayed), released (the key may be claimed again at once), indeterminate (nobody knows whether it happened; see idem_resolve); NULL decides by the policy''s on_status for status, NULL status being a timeout.
Errors: as idem_complete. Example: SELECT * FROM idem_fail(:operation_id, :token, status => 503)';

CREATE FUNCTION idem_execute(
    actor text, op text, key text, payload jsonb DEFAULT NULL, handler text DEFAULT NULL, target text DEFAULT NULL,
    wait interval DEFAULT NULL, attempt_id uuid DEFAULT NULL, parent_operation_id uuid DEFAULT NULL,
    traceparent text DEFAULT NULL)
RETURNS idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_execute_v1';
COMMENT ON FUNCTION idem_execute IS
'day one: Claim, call the handler, store its answer: one round trip, one transaction. handler: name of a function (jsonb) or (jsonb, idem_result) that returns jsonb or idem_response; NULL takes the policy''s. It runs with the caller''s rights; an error in it leaves the key free, unless the policy''s handler_error is store. The first run answers completed, every other one as idem_claim does.
Errors: as idem_claim and idem_complete, 42883 no such handler, 42501 no right to call it. Example: SELECT * FROM idem_execute(''tenant-1'', ''order.place'', ''0a1b2c3d-retry-key'', ''{"sku": "A1"}'', ''shop.place_order'')';

CREATE FUNCTION idem_lookup(actor text, op text, key text)
RETURNS idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_lookup_v1';
COMMENT ON FUNCTION idem_lookup IS
'day one: What is known of a key, without claiming it; also on a standby. All columns NULL: nothing is known. Never shows the token. Example: SELECT outcome, status, body FROM idem_lookup(''tenant-1'', ''payment.capture'', ''0a1b2c3d-retry-key'')';

CREATE FUNCTION idem_policy_resolve(op text, preset text, options jsonb)
RETURNS jsonb
LANGUAGE c STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'idem_policy_resolve_v1';
COMMENT ON FUNCTION idem_policy_resolve IS
'internal: Check a policy and give back every option it would have, without setting it. Errors: 22004, 22023. Example: SELECT idem_policy_resolve(''order.place'', ''order'', ''{"ttl": "7 days"}'')';

CREATE FUNCTION idem_set_policy(op text, preset text, options jsonb DEFAULT '{}'::jsonb)
RETURNS idem_policy
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    INSERT INTO idem_policies AS p (op, preset, options, version, profile, updated_at, updated_by)
    SELECT idem_set_policy.op, idem_set_policy.preset, r.options, 1, 0, clock_timestamp(), session_user::text
      FROM idem_policy_resolve(idem_set_policy.op, idem_set_policy.preset, idem_set_policy.options) AS r (options)
        ON CONFLICT (op) DO UPDATE
       SET preset = excluded.preset,
           options = excluded.options,
           version = CASE WHEN p.options = excluded.options THEN p.version ELSE p.version + 1 END,
           updated_at = CASE WHEN p.options = excluded.options AND p.preset = excluded.preset
                             THEN p.updated_at ELSE excluded.updated_at END,
           updated_by = CASE WHEN p.options = excluded.options AND p.preset = excluded.preset
                             THEN p.updated_by ELSE excluded.updated_by END;

    -- One secret, and a lost one is not replaced under its number: sessions keep what they have read of it.
    INSERT INTO idem_secrets (version, secret, created_at)
    SELECT (SELECT coalesce(max(q.secret_version), 0) + 1 FROM idem_profiles q),
           sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())),
           clock_timestamp()
      FROM idem_policies p
     WHERE p.op = idem_set_policy.op AND p.options ->> 'hash_key' = 'per_actor'
       AND NOT EXISTS (SELECT FROM idem_secrets)
        ON CONFLICT (version) DO NOTHING;

    -- The row of idem_policies is locked by now, so two callers cannot make one version of two rules.
    INSERT INTO idem_profiles (op, version, hash_algorithm, secret_version, options, created_at)
    SELECT n.op, coalesce(l.version, 0) + 1, n.hash_algorithm, n.secret_version, n.options, clock_timestamp()
      FROM (SELECT p.op, p.options ->> 'hash_algorithm', p.options -> 'profile',
                   CASE WHEN p.options ->> 'hash_key' = 'per_actor' THEN (SELECT max(x.version) FROM idem_secrets x) END
              FROM idem_policies p
             WHERE p.op = idem_set_policy.op) AS n (op, hash_algorithm, options, secret_version)
      LEFT JOIN LATERAL (SELECT q.version, q.hash_algorithm, q.options, q.secret_version
                           FROM idem_profiles q
                          WHERE q.op = n.op
                          ORDER BY q.version DESC
                          LIMIT 1) AS l ON true
     WHERE l.version IS NULL
        OR (l.hash_algorithm, l.options) <> (n.hash_algorithm, n.options)
        OR l.secret_version IS DISTINCT FROM n.secret_version;

    UPDATE idem_policies p
       SET profile = (SELECT max(q.version) FROM idem_profiles q WHERE q.op = p.op)
     WHERE p.op = idem_set_policy.op
    RETURNING p.op, p.preset, p.options, p.version, p.profile, p.updated_at, p.updated_by;
END;
COMMENT ON FUNCTION idem_set_policy IS
'day one: Say what an op promises: a preset (default, payment, order, webhook, message, ephemeral) with options on top; returns the policy as it is now in force.
op: up to 128 bytes. options: see idem_policy_options; durations are strings with a unit, as in "30 seconds". The preset is copied now; setting a policy again starts from the preset, not from the old options. Other options than before make a new version; the same ones do not. A change of hash_algorithm, hash_key or profile makes a new version of the profile too: keys claimed before are still compared under theirs. Sessions follow from their next transaction.
Errors: 22004, 22023. Example: SELECT op, version FROM idem_set_policy(''payment.capture'', ''payment'', ''{"ttl": "7 days", "target": "payment intent"}'')';

CREATE FUNCTION idem_http_response(result idem_result)
RETURNS idem_http
LANGUAGE c STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'idem_http_response_v1';
COMMENT ON FUNCTION idem_http_response IS
'day one: The HTTP response to send for a result that does not proceed.
completed and replay: the stored status, headers and body; replays add Idempotent-Replayed: true, and a body too large to be kept is empty with Idempotent-Body-Omitted: true. Everything else is a problem document (application/problem+json) whose code is the outcome: in_progress 409 or 425 with Retry-After, conflict 409 or 422, indeterminate and expired 409, rejected 400, 403, 413 or 429. released 503, or the status given to idem_fail, with Retry-After. body is NULL when none is stored or body_ref names where it is. All NULL for what proceeds and for a lookup that found nothing, so that one statement can claim and answer.
Example: SELECT c.proceed, c.operation_id, c.token, h.* FROM idem_claim(''tenant-1'', ''order.place'', ''0a1b2c3d-retry-key'', ''{}'') AS c, idem_http_response(c) AS h';

------------------------------------------------------------------------------------------------------------------------
-- A key's life
------------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION idem_claim_many(
    actor text, op text, keys text[], payloads jsonb[] DEFAULT NULL, target text DEFAULT NULL,
    wait interval DEFAULT NULL, lease interval DEFAULT NULL, ttl interval DEFAULT NULL, attempt_id uuid DEFAULT NULL,
    parent_operation_id uuid DEFAULT NULL, traceparent text DEFAULT NULL, capabilities_version integer DEFAULT NULL)
RETURNS SETOF idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_claim_many_v1';
COMMENT ON FUNCTION idem_claim_many IS
'key life: Claim up to 10,000 keys of one actor and op in one call; rows come in the order of keys. Keys are locked in one global order, so two such calls cannot deadlock. wait bounds the call as a whole. A key given twice is claimed once; the second row answers in_progress (own_transaction).
Example: SELECT key, outcome FROM idem_claim_many(''tenant-1'', ''mail.import'', ARRAY[''m-1'', ''m-2''])';

CREATE FUNCTION idem_release(operation_id uuid, token bigint)
RETURNS idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_release_v1';
COMMENT ON FUNCTION idem_release IS
'key life: Give the key back unused: the next claim gets it at once with a greater token. Only when it is certain that nothing happened. Errors: ID001, ID007. Example: SELECT * FROM idem_release(:operation_id, :token)';

CREATE FUNCTION idem_extend(operation_id uuid, token bigint, lease interval DEFAULT NULL)
RETURNS idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_extend_v1';
COMMENT ON FUNCTION idem_extend IS
'key life: Heartbeat: the lease runs from now again (lease NULL takes the policy''s, at most 24 h). Call it at a third of the lease. Errors: ID001, ID007. Example: SELECT * FROM idem_extend(:operation_id, :token, ''30 s'')';

CREATE FUNCTION idem_checkpoint(operation_id uuid, token bigint, checkpoint jsonb)
RETURNS idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_checkpoint_v1';
COMMENT ON FUNCTION idem_checkpoint IS
'key life: Remember how far the work is; a later attempt of the same key gets it in checkpoint. NULL clears it. Up to 64 KiB. Errors: ID001, ID005, ID007. Example: SELECT * FROM idem_checkpoint(:operation_id, :token, ''{"charge": "ch_1"}'')';

CREATE FUNCTION idem_resolve(
    operation_id uuid, state text, evidence jsonb, status integer DEFAULT NULL, body text DEFAULT NULL,
    body_json jsonb DEFAULT NULL, body_bytes bytea DEFAULT NULL, headers jsonb DEFAULT NULL)
RETURNS idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_resolve_v1';
COMMENT ON FUNCTION idem_resolve IS
'key life: Decide an indeterminate operation after finding out what happened. state: completed or failed (with the answer to replay), released (it certainly did not happen). evidence: how it is known, kept with the key.
Errors: 22004, 22023, 55000 not indeterminate, ID007. Example: SELECT * FROM idem_resolve(:operation_id, ''completed'', ''{"psp": "charge ch_1 found"}'', 200, body_json => ''{"id": "ch_1"}'')';

CREATE FUNCTION idem_lookup_id(operation_id uuid)
RETURNS idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_lookup_id_v1';
COMMENT ON FUNCTION idem_lookup_id IS
'key life: idem_lookup by operation_id. Example: SELECT state, attempt, detail FROM idem_lookup_id(:operation_id)';

CREATE FUNCTION idem_call_handler(handler text, payload jsonb, claim idem_result, with_claim boolean, composite boolean)
RETURNS idem_response
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
    answer pg_catalog.jsonb;
    response pg_catalog.record;
    call pg_catalog.text := pg_catalog.concat(handler, CASE WHEN with_claim THEN '($1, $2)' ELSE '($1)' END);
BEGIN
    IF composite THEN
        EXECUTE pg_catalog.concat('SELECT r.* FROM ', call, ' AS r') INTO response USING payload, claim;
        response.status := coalesce(response.status, 200);
        RETURN response;
    END IF;
    EXECUTE pg_catalog.concat('SELECT ', call) INTO answer USING payload, claim;
    RETURN ROW(200, NULL::pg_catalog.jsonb, NULL::pg_catalog.text, answer, NULL::pg_catalog.bytea);
EXCEPTION
WHEN transaction_rollback OR insufficient_resources OR operator_intervention OR lock_not_available THEN
    RAISE; -- what a retry may cure is no answer
WHEN OTHERS THEN
    RETURN ROW(NULL::pg_catalog.int4, NULL::pg_catalog.jsonb, NULL::pg_catalog.text,
               pg_catalog.jsonb_build_object('code', 'handler_error', 'sqlstate', SQLSTATE), NULL::pg_catalog.bytea);
END
$$;
COMMENT ON FUNCTION idem_call_handler IS
'internal: Runs a handler inside an EXCEPTION block for ops whose handler_error is store; handler is a quoted, qualified name. An error becomes a response without a status whose body names its SQLSTATE, unless a retry may cure it (classes 40, 53, 57 and 55P03): that one propagates.';

------------------------------------------------------------------------------------------------------------------------
-- What an operation did
------------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION idem_check_holder(operation_id uuid, token bigint, held bigint, state "char")
RETURNS boolean
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'idem_check_holder_v1';
COMMENT ON FUNCTION idem_check_holder IS
'internal: True where token holds, or ended, a key whose token is held. Raises ID001, ID007 otherwise.';

CREATE FUNCTION idem_required(value text, argument text, size_limit integer)
RETURNS text
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'idem_required_v1';
COMMENT ON FUNCTION idem_required IS
'internal: An argument of 1 to size_limit bytes, or 22004, 22023.';

CREATE FUNCTION idem_check_size(size integer, argument text, size_limit integer)
RETURNS boolean
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'idem_check_size_v1';
COMMENT ON FUNCTION idem_check_size IS
'internal: True where an argument is absent or within its limit in bytes, or ID005.';

CREATE FUNCTION idem_effect(operation_id uuid, token bigint, name text, ref text DEFAULT NULL, data jsonb DEFAULT NULL)
RETURNS TABLE (first boolean, recorded_ref text, recorded_data jsonb, recorded_at timestamptz)
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT idem_required(idem_effect.name, 'name', 255),
           idem_check_size(octet_length(idem_effect.ref), 'ref', 2048),
           idem_check_size(pg_column_size(idem_effect.data), 'data', 65536),
           idem_check_holder(idem_effect.operation_id, idem_effect.token, k.token, k.state)
      FROM (VALUES (1)) AS one (row)
      LEFT JOIN LATERAL (SELECT h.token, h.state FROM idem_keys h
                          WHERE h.operation_id = idem_effect.operation_id
                            FOR NO KEY UPDATE) AS k ON true;

    -- With the key's row locked nobody else records for this operation.
    WITH new AS (
        INSERT INTO idem_effects (operation_id, name, token, ref, data, recorded_at)
        VALUES (idem_effect.operation_id, idem_effect.name, idem_effect.token, idem_effect.ref, idem_effect.data,
                clock_timestamp())
            ON CONFLICT ON CONSTRAINT idem_effects_pkey DO NOTHING
        RETURNING idem_effects.ref, idem_effects.data, idem_effects.recorded_at)
    SELECT true, n.ref, n.data, n.recorded_at FROM new n
    UNION ALL
    SELECT false, e.ref, e.data, e.recorded_at
      FROM idem_effects e
     WHERE e.operation_id = idem_effect.operation_id AND e.name = idem_effect.name;
END;
COMMENT ON FUNCTION idem_effect IS
'key life: Record an effect of an operation on the outside, once by name: first tells whether this call recorded it, recorded_ref what the first one did, so that a resumed worker skips what is done.
name: up to 255 bytes. ref: its name on the other side, up to 2048 bytes. data: up to 64 KiB. To be called by the holder of the key. Errors: 22004, ID001, ID005, ID007. Example: SELECT * FROM idem_effect(:operation_id, :token, ''charge'', ''ch_1'')';

CREATE FUNCTION idem_child_key(operation_id uuid, op text, name text)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT encode(substr(sha256(uuid_send(idem_required(idem_child_key.operation_id::text, 'operation_id', 36)::uuid)
                         || int4send(octet_length(o.bytes)) || o.bytes
                         || int4send(octet_length(n.bytes)) || n.bytes), 1, 16), 'hex')
      FROM convert_to(idem_required(idem_child_key.op, 'op', 128), 'UTF8') AS o (bytes),
           convert_to(idem_required(idem_child_key.name, 'name', 255), 'UTF8') AS n (bytes);
END;
COMMENT ON FUNCTION idem_child_key IS
'key life: The key of a child operation, 32 hexadecimal digits: the same for the same parent, op and name, so a parent that is retried meets its children again. Errors: 22004. Example: SELECT idem_child_key(:operation_id, ''payment.capture'', ''deposit'')';

CREATE FUNCTION idem_tree(operation_id uuid)
RETURNS TABLE (depth integer, operation uuid, parent uuid, kind text, name text, state text, at timestamptz, data jsonb)
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH RECURSIVE tree (operation_id, parent, depth, path) AS (
        SELECT k.operation_id, k.parent, 0, ARRAY[k.operation_id]
          FROM idem_keys k
         WHERE k.operation_id = idem_required(idem_tree.operation_id::text, 'operation_id', 36)::uuid
        UNION ALL
        SELECT k.operation_id, k.parent, t.depth + 1, t.path || k.operation_id
          FROM tree t
          JOIN idem_children c ON c.parent = t.operation_id
          JOIN idem_keys k ON k.operation_id = c.operation_id AND k.parent = t.operation_id
         WHERE t.depth < 100 AND k.operation_id <> ALL (t.path)
    )
    SELECT t.depth, t.operation_id, t.parent, x.kind, x.name, x.state, x.at, x.data
      FROM tree t
      JOIN idem_keys k ON k.operation_id = t.operation_id
     CROSS JOIN LATERAL (
           SELECT 0, 'operation', k.op,
                  CASE k.state WHEN 'i' THEN 'in_progress' WHEN 'c' THEN 'completed' WHEN 'f' THEN 'failed'
                               WHEN 'r' THEN 'released' ELSE 'indeterminate' END,
                  k.created_at,
                  jsonb_strip_nulls(jsonb_build_object(
                      'actor', k.actor, 'key', k.key, 'attempts', k.attempt, 'claimed_by', k.claimed_by,
                      'completed_at', k.completed_at, 'evidence', k.evidence))
           UNION ALL
           SELECT 1, 'checkpoint', NULL, NULL, k.updated_at, k.checkpoint WHERE k.checkpoint IS NOT NULL
           UNION ALL
           SELECT 2, 'effect', e.name, NULL, e.recorded_at,
                  jsonb_strip_nulls(jsonb_build_object('ref', e.ref, 'data', e.data))
             FROM idem_effects e
            WHERE e.operation_id = t.operation_id) AS x (place, kind, name, state, at, data)
     ORDER BY t.path, x.place, x.at, x.name;
END;
COMMENT ON FUNCTION idem_tree IS
'key life: What an operation did: itself, its checkpoint, its effects, and the same of its children, as rows; parents come before children. No row: no such operation. Errors: 22004. Example: SELECT depth, kind, name, state, data FROM idem_tree(:operation_id)';

CREATE FUNCTION idem_tree_json(operation_id uuid)
RETURNS jsonb
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
               'depth', t.depth, 'operation_id', t.operation, 'parent', t.parent, 'kind', t.kind, 'name', t.name,
               'state', t.state, 'at', t.at, 'data', t.data)) ORDER BY t.place)
      FROM idem_tree(idem_tree_json.operation_id) WITH ORDINALITY
           AS t (depth, operation, parent, kind, name, state, at, data, place);
END;
COMMENT ON FUNCTION idem_tree_json IS
'key life: idem_tree as one JSON array, an object a row. NULL: no such operation. Errors: 22004. Example: SELECT jsonb_pretty(idem_tree_json(:operation_id))';

CREATE FUNCTION idem_lock_resource(resource text, wait interval DEFAULT NULL)
RETURNS boolean
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_lock_resource_v1';
COMMENT ON FUNCTION idem_lock_resource IS
'key life: Take a lock on a resource until the transaction ends; false when it was not free within wait (NULL: 5 s; 0: do not wait; at most 60 s, and lock_timeout). An advisory lock on 64 bits of a hash, so that many sessions do not prepare the same work at once; what must not happen twice still needs a claim. Errors: 22004, 22023. Example: SELECT idem_lock_resource(''order/1001'', ''2 s'')';

CREATE FUNCTION idem_version_claim(
    actor text, op text, target text, expected_version bigint, payload jsonb DEFAULT NULL)
RETURNS idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_version_claim_v1';
COMMENT ON FUNCTION idem_version_claim IS
'key life: Claim the right to change a resource from expected_version (0: never changed) to the next one, in the transaction that changes it and completes the claim. The same payload at the same version is a retry: replay. Another one, or another version, is a conflict; detail.current_version tells where the resource is, for claimed where it is after the commit.
Errors: 22004, 22023, ID003 for an op in mode lease, ID004 when left open at commit, 40001. Example: SELECT outcome, detail FROM idem_version_claim(''tenant-1'', ''order.set_address'', ''order-1001'', 0, ''{"street": "Main 1"}'')';

CREATE FUNCTION idem_version_current(actor text, op text, target text)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT coalesce((SELECT v.version FROM idem_versions v
                      WHERE (v.actor, v.op, v.target)
                          = (idem_version_current.actor, idem_version_current.op, idem_version_current.target)), 0);
END;
COMMENT ON FUNCTION idem_version_current IS
'internal: The version of a resource, 0 for one that was never changed.';

CREATE FUNCTION idem_version_advance(actor text, op text, target text, expected_version bigint)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    INSERT INTO idem_versions AS v (actor, op, target, version, updated_at)
    VALUES (idem_version_advance.actor, idem_version_advance.op, idem_version_advance.target, 0, clock_timestamp())
        ON CONFLICT DO NOTHING;
    UPDATE idem_versions v
       SET version = v.version + 1, updated_at = clock_timestamp()
     WHERE (v.actor, v.op, v.target)
         = (idem_version_advance.actor, idem_version_advance.op, idem_version_advance.target)
       AND v.version = idem_version_advance.expected_version
    RETURNING v.version;
END;
COMMENT ON FUNCTION idem_version_advance IS
'internal: Move a resource from a version to the next. NULL: it is at another one.';

------------------------------------------------------------------------------------------------------------------------
-- Inbox and messages
------------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION idem_inbox_claim(
    actor text, source text, event_id text, payload jsonb DEFAULT NULL, entity text DEFAULT NULL,
    seq bigint DEFAULT NULL, dedup_id text DEFAULT NULL, dedup_window interval DEFAULT NULL,
    lease interval DEFAULT NULL)
RETURNS idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_inbox_claim_v1';
COMMENT ON FUNCTION idem_inbox_claim IS
'families: Receive an event once, in the transaction that handles it: when that commits, it is done. Outcomes as of idem_claim, and stale (older than what its entity has seen) and gap (its predecessor is missing; it is parked, see idem_inbox_ready).
actor: the tenant that receives. source: who sends, up to 120 bytes; the policy is that of op inbox:SOURCE, preset webhook where there is none. event_id: the delivery. dedup_id: the intent, where several deliveries mean one; give it for all events of a source or for none. entity, seq: what the event is about, and its number from 0; see the policy option entity_order. dedup_window: how long it is remembered at least, at most 90 days. lease: the work goes on after the commit, until idem_inbox_complete.
Errors: 22004, 22023, 25006, 40001, 40P01. Example: SELECT outcome, proceed FROM idem_inbox_claim(''tenant-1'', ''stripe'', ''evt_1'', ''{"type": "charge.succeeded"}'')';

CREATE FUNCTION idem_inbox_claim_many(
    actor text, source text, event_ids text[], payloads jsonb[] DEFAULT NULL, entities text[] DEFAULT NULL,
    seqs bigint[] DEFAULT NULL, dedup_ids text[] DEFAULT NULL, dedup_window interval DEFAULT NULL,
    lease interval DEFAULT NULL)
RETURNS SETOF idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_inbox_claim_many_v1';
COMMENT ON FUNCTION idem_inbox_claim_many IS
'families: idem_inbox_claim of up to 10,000 events of one source in one call; rows come in the order of event_ids. Events of one entity pass in the order of their numbers, whatever their places. An event given twice is claimed once; the second row answers in_progress (own_transaction).
Example: SELECT key, outcome FROM idem_inbox_claim_many(''tenant-1'', ''kafka.orders'', ARRAY[''0-17'', ''0-18''])';

CREATE FUNCTION idem_inbox_complete(
    actor text, source text, event_id text, token bigint, effect_ref text DEFAULT NULL, dedup_id text DEFAULT NULL)
RETURNS idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_inbox_complete_v1';
COMMENT ON FUNCTION idem_inbox_complete IS
'families: End the work on an event that was claimed with a lease. effect_ref: what came of it, up to 2048 bytes; replays have it in body_ref. dedup_id: as it was claimed. Errors: 22004, ID001, ID002, ID003 in the transaction that claimed it, ID007. Example: SELECT outcome FROM idem_inbox_complete(''tenant-1'', ''stripe'', ''evt_1'', :token, ''order-1001'')';

CREATE FUNCTION idem_inbox_advance(
    actor text, source text, entity text, seq bigint, in_order boolean, held boolean, event_id text, dedup_id text,
    dedup_window interval, payload jsonb)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    INSERT INTO idem_inbox_entities (actor, source, entity, seq, updated_at)
    VALUES (idem_inbox_advance.actor, idem_inbox_advance.source, idem_inbox_advance.entity,
            CASE WHEN in_order THEN 0 ELSE -1 END, clock_timestamp())
        ON CONFLICT DO NOTHING;
    -- Waits here, so that the next statement sees what it waited for.
    SELECT FROM idem_inbox_entities e
     WHERE (e.actor, e.source, e.entity)
         = (idem_inbox_advance.actor, idem_inbox_advance.source, idem_inbox_advance.entity)
       FOR NO KEY UPDATE;
    WITH mark AS (
        -- A handler that died is not overtaken by itself.
        SELECT e.actor, e.source, e.entity,
               e.seq - CASE WHEN e.seq = idem_inbox_advance.seq AND e.event_id = idem_inbox_advance.event_id
                            THEN 1 ELSE 0 END AS before
          FROM idem_inbox_entities e
         WHERE (e.actor, e.source, e.entity)
             = (idem_inbox_advance.actor, idem_inbox_advance.source, idem_inbox_advance.entity)
    ), moved AS (
        UPDATE idem_inbox_entities e
           SET seq = idem_inbox_advance.seq, event_id = idem_inbox_advance.event_id, updated_at = clock_timestamp()
          FROM mark m
         WHERE (e.actor, e.source, e.entity) = (m.actor, m.source, m.entity)
           AND CASE WHEN in_order THEN m.before = idem_inbox_advance.seq - 1 AND NOT held
                                  ELSE m.before < idem_inbox_advance.seq END
    ), parked AS (
        INSERT INTO idem_inbox_parked (actor, source, entity, seq, event_id, dedup_id, dedup_window, payload, parked_at)
        SELECT m.actor, m.source, m.entity, idem_inbox_advance.seq, idem_inbox_advance.event_id,
               idem_inbox_advance.dedup_id, idem_inbox_advance.dedup_window, idem_inbox_advance.payload,
               clock_timestamp()
          FROM mark m
         WHERE in_order
           AND (m.before < idem_inbox_advance.seq - 1 OR held AND m.before = idem_inbox_advance.seq - 1)
            ON CONFLICT DO NOTHING
    ), passed AS (
        DELETE FROM idem_inbox_parked p
         USING mark m
         WHERE in_order AND (p.actor, p.source, p.entity, p.seq) = (m.actor, m.source, m.entity, idem_inbox_advance.seq)
           AND (m.before = idem_inbox_advance.seq - 1 AND NOT held OR m.before >= idem_inbox_advance.seq)
    )
    SELECT m.before FROM mark m;
END;
COMMENT ON FUNCTION idem_inbox_advance IS
'internal: Lock an entity, move its watermark where an event may pass, park the event where it may not yet. Returns the watermark before.';

CREATE FUNCTION idem_inbox_settle(actor text, source text, event_id text, dedup_id text)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM idem_inbox_entities e
      JOIN idem_inbox_parked p ON (p.actor, p.source, p.entity) = (e.actor, e.source, e.entity)
     WHERE (p.actor, p.source, p.event_id)
         = (idem_inbox_settle.actor, idem_inbox_settle.source, idem_inbox_settle.event_id)
       FOR NO KEY UPDATE OF e;
    WITH ended AS (
        DELETE FROM idem_inbox_parked p
         WHERE (p.actor, p.source, p.event_id)
             = (idem_inbox_settle.actor, idem_inbox_settle.source, idem_inbox_settle.event_id)
           AND p.dedup_id IS NOT DISTINCT FROM idem_inbox_settle.dedup_id
           AND p.seq <= (SELECT e.seq + 1 FROM idem_inbox_entities e
                          WHERE (e.actor, e.source, e.entity) = (p.actor, p.source, p.entity))
        RETURNING p.entity, p.seq)
    UPDATE idem_inbox_entities e
       SET seq = n.seq, event_id = idem_inbox_settle.event_id, updated_at = clock_timestamp()
      FROM ended n
     WHERE (e.actor, e.source, e.entity) = (idem_inbox_settle.actor, idem_inbox_settle.source, n.entity)
       AND e.seq = n.seq - 1
    RETURNING e.seq;
END;
COMMENT ON FUNCTION idem_inbox_settle IS
'internal: Move the watermark past an event whose work ended. Returns it; NULL: it did not move.';

CREATE FUNCTION idem_inbox_ready(
    actor text, source text, entity text DEFAULT NULL, batch integer DEFAULT 100, lease interval DEFAULT NULL)
RETURNS TABLE (
    event_id text, dedup_id text, event_entity text, seq bigint, payload jsonb, operation_id uuid, token bigint)
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT idem_required(idem_inbox_ready.actor, 'actor', 255), idem_required(idem_inbox_ready.source, 'source', 120);
    -- OFFSET keeps the order in which the lateral claims run: entity by entity, number by number.
    SELECT n.event_id, n.dedup_id, n.entity, n.seq, n.payload, c.operation_id, c.token
      FROM (SELECT q.*
              FROM (SELECT p.*, e.seq AS mark, row_number() OVER (PARTITION BY p.entity ORDER BY p.seq) AS place
                      FROM idem_inbox_parked p
                      JOIN idem_inbox_entities e ON (e.actor, e.source, e.entity) = (p.actor, p.source, p.entity)
                     WHERE (p.actor, p.source) = (idem_inbox_ready.actor, idem_inbox_ready.source)
                       AND (idem_inbox_ready.entity IS NULL OR p.entity = idem_inbox_ready.entity)
                       AND p.seq > e.seq) AS q
             WHERE q.seq = q.mark + q.place
             ORDER BY q.entity, q.seq
             LIMIT least(greatest(coalesce(idem_inbox_ready.batch, 100), 0), 10000)
            OFFSET 0) AS n
     CROSS JOIN LATERAL idem_inbox_claim(n.actor, n.source, n.event_id, n.payload, n.entity, n.seq, n.dedup_id,
                                         n.dedup_window, idem_inbox_ready.lease) AS c
     WHERE c.proceed;
END;
COMMENT ON FUNCTION idem_inbox_ready IS
'families: Claim the parked events whose turn has come, in order, up to batch (100, at most 10,000), to be handled in this transaction; with a lease, one of each entity, to be ended by idem_inbox_complete. entity NULL: of all. Also finds events whose handler died with its lease over. Errors: 22004, 22023. Example: SELECT event_id, event_entity, seq, payload FROM idem_inbox_ready(''tenant-1'', ''stripe'')';

CREATE FUNCTION idem_inbox_skip(actor text, source text, entity text, seq bigint, evidence jsonb)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    INSERT INTO idem_audit (at, who, what, detail)
    SELECT clock_timestamp(), session_user::text, 'idem_inbox_skip',
           jsonb_build_object('actor', idem_required(idem_inbox_skip.actor, 'actor', 255),
                              'source', idem_required(idem_inbox_skip.source, 'source', 120),
                              'entity', idem_required(idem_inbox_skip.entity, 'entity', 255),
                              'seq', idem_required(idem_inbox_skip.seq::text, 'seq', 20)::bigint,
                              'evidence', idem_required(idem_inbox_skip.evidence::text, 'evidence', 65536)::jsonb);
    INSERT INTO idem_inbox_entities AS e (actor, source, entity, seq, updated_at)
    VALUES (idem_inbox_skip.actor, idem_inbox_skip.source, idem_inbox_skip.entity, idem_inbox_skip.seq,
            clock_timestamp())
        ON CONFLICT ON CONSTRAINT idem_inbox_entities_pkey DO UPDATE
       SET seq = greatest(e.seq, excluded.seq), event_id = NULL, updated_at = excluded.updated_at
    RETURNING e.seq;
END;
COMMENT ON FUNCTION idem_inbox_skip IS
'admin: Let the events of an entity in strict order go on after number seq, because what is missing will not come, or because its count begins there. evidence: how it is known, kept in idem_audit. Returns the watermark, which never goes back. Errors: 22004. Example: SELECT idem_inbox_skip(''tenant-1'', ''stripe'', ''order-1001'', 4, ''{"provider": "event 4 was deleted"}'')';

CREATE FUNCTION idem_message_claim(
    actor text, channel text, message_id text, recipient text, payload jsonb DEFAULT NULL,
    dedup_window interval DEFAULT NULL, parent_operation_id uuid DEFAULT NULL)
RETURNS idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_message_claim_v1';
COMMENT ON FUNCTION idem_message_claim IS
'families: Ask whether a message is to be sent: claim, commit, send, idem_message_complete. A replay tells the first send: body_ref is the provider''s id, completed_at the time. The policy is that of op message:CHANNEL, preset message where there is none: whose send was not confirmed (idem_fail without status, or a sender that died) is indeterminate and is never sent again by itself.
recipient: up to 1024 bytes; another recipient or payload under the same message_id is a conflict. dedup_window: runs from the first send, at most 90 days. Errors: 22004, 22023, 25006, 40001, 40P01. Example: SELECT outcome, operation_id, token FROM idem_message_claim(''tenant-1'', ''email'', ''welcome-7'', ''ann@example.com'', ''{"template": "welcome"}'')';

CREATE FUNCTION idem_message_complete(operation_id uuid, token bigint, provider_id text)
RETURNS idem_result
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT idem_complete(operation_id => idem_message_complete.operation_id, token => idem_message_complete.token,
                         status => 200,
                         body_ref => idem_required(idem_message_complete.provider_id, 'provider_id', 2048));
END;
COMMENT ON FUNCTION idem_message_complete IS
'families: The message was sent: keep the id its provider gave it, up to 2048 bytes. Errors: 22004, ID001, ID002, ID003, ID007. Example: SELECT outcome FROM idem_message_complete(:operation_id, :token, ''<17@mx.example.com>'')';

CREATE FUNCTION idem_message_reopen(actor text, channel text, message_id text, evidence jsonb)
RETURNS idem_result
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_message_reopen_v1';
COMMENT ON FUNCTION idem_message_reopen IS
'internal: Free the key of a message whose sending ended or is of unknown fate. Errors: 22004, ID007, 55000.';

CREATE FUNCTION idem_message_force(actor text, channel text, message_id text, evidence jsonb)
RETURNS idem_result
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH reopened AS MATERIALIZED (
        SELECT idem_message_reopen(idem_message_force.actor, idem_message_force.channel, idem_message_force.message_id,
                                   idem_message_force.evidence) AS result
    ), noted AS (
        INSERT INTO idem_audit (at, who, what, operation_id, detail)
        SELECT clock_timestamp(), session_user::text, 'idem_message_force', (r.result).operation_id,
               jsonb_build_object('actor', idem_message_force.actor, 'channel', idem_message_force.channel,
                                  'evidence', idem_message_force.evidence)
          FROM reopened r
    )
    SELECT r.result FROM reopened r;
END;
COMMENT ON FUNCTION idem_message_force IS
'admin: Let a message be sent again although it was sent, or may have been: the next idem_message_claim of the same message gets it. evidence: why, kept in idem_audit with who did it. Errors: 22004, ID005, ID007 no such message, 55000 it is being sent or is free. Example: SELECT outcome FROM idem_message_force(''tenant-1'', ''email'', ''welcome-7'', ''{"ticket": 812}'')';

CREATE FUNCTION idem_sweep_inbox(batch integer)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH passed AS (
        DELETE FROM idem_inbox_parked p
         WHERE p.ctid = ANY (ARRAY(
               SELECT q.ctid
                 FROM idem_inbox_parked q
                 JOIN idem_inbox_entities e ON (e.actor, e.source, e.entity) = (q.actor, q.source, q.entity)
                WHERE q.seq <= e.seq
                LIMIT idem_sweep_inbox.batch
                  FOR UPDATE OF q SKIP LOCKED))
        RETURNING 1
    )
    SELECT count(*) FROM passed;
END;
COMMENT ON FUNCTION idem_sweep_inbox IS
'internal: Remove up to batch parked events that their entity''s watermark has passed; returns how many. Watermarks stay: without its mark an old event would pass. Example: SELECT idem_sweep_inbox(1000)';

CREATE FUNCTION idem_sweep_effects(batch integer)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    -- Each call looks at one stretch of ids from a random place on, so that none costs more than its batch.
    WITH start AS MATERIALIZED (
        SELECT gen_random_uuid() AS id
    ), effects AS (
        DELETE FROM idem_effects e
         WHERE e.operation_id = ANY (ARRAY(
               SELECT s.operation_id
                 FROM (SELECT DISTINCT o.operation_id
                         FROM (SELECT w.operation_id FROM idem_effects w
                                WHERE w.operation_id >= (SELECT a.id FROM start a)
                                ORDER BY w.operation_id, w.name
                                LIMIT idem_sweep_effects.batch) o) s
                WHERE NOT EXISTS (SELECT FROM idem_keys k WHERE k.operation_id = s.operation_id)))
        RETURNING 1
    ), children AS (
        DELETE FROM idem_children c
         USING (SELECT w.parent, w.operation_id FROM idem_children w
                 WHERE w.parent >= (SELECT a.id FROM start a)
                 ORDER BY w.parent, w.operation_id
                 LIMIT idem_sweep_effects.batch) s
         WHERE (c.parent, c.operation_id) = (s.parent, s.operation_id)
           AND NOT EXISTS (SELECT FROM idem_keys k WHERE k.operation_id = s.operation_id AND k.parent = s.parent)
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM effects) + (SELECT count(*) FROM children);
END;
COMMENT ON FUNCTION idem_sweep_effects IS
'internal: Look at up to batch effects, and as many links to children, from a random place on, and remove those whose operation is gone; returns how many. Example: SELECT idem_sweep_effects(1000)';

CREATE FUNCTION idem_sweep_audit(batch integer)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH old AS (
        DELETE FROM idem_audit a
         WHERE a.id = ANY (ARRAY(
               SELECT w.id FROM (SELECT v.id, v.at FROM idem_audit v ORDER BY v.id LIMIT idem_sweep_audit.batch) w
                WHERE w.at < clock_timestamp() - interval '365 days'))
        RETURNING 1
    )
    SELECT count(*) FROM old;
END;
COMMENT ON FUNCTION idem_sweep_audit IS
'internal: Remove up to batch entries of idem_audit that are older than a year; returns how many. Example: SELECT idem_sweep_audit(1000)';

------------------------------------------------------------------------------------------------------------------------
-- HTTP, hashes, policies
------------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION idem_http_key(header text)
RETURNS text
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'idem_http_key_v1';
COMMENT ON FUNCTION idem_http_key IS
'http: The key in an Idempotency-Key request header; NULL when the header is absent or holds no single usable key. Example: SELECT idem_http_key(''"8e03978e-40d5-43e8-bc93-6894a57f9324"'')
Reads the structured-field string of the IETF draft ("8e03978e", parameters ignored) and the bare word most clients send (8e03978e); both give the same key. Never raises: NULL for empty, broken quoting, several values, controls and non-ASCII.';

CREATE FUNCTION idem_canonical(
    payload jsonb,
    trim_strings boolean DEFAULT false, nfc_strings boolean DEFAULT false,
    ignore_paths text[] DEFAULT NULL, intent_paths text[] DEFAULT NULL, strip_nulls boolean DEFAULT false,
    numbers text DEFAULT 'exact', decimal_paths text[] DEFAULT NULL, round_paths jsonb DEFAULT NULL,
    unordered_paths text[] DEFAULT NULL)
RETURNS text
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'idem_canonical_v1';
COMMENT ON FUNCTION idem_canonical IS
'families: The canonical text of a JSON value: RFC 8785 (JCS) with exact numbers. Two values have the same text if and only if they are equal as jsonb: member order, white space and spellings such as 10.00 for 10 leave no trace. Example: SELECT idem_canonical(''{"b": 1.50, "a": [1e2]}'')
Options, by name, say what else means the same; NULL: not given. In the order in which they work: ignore_paths (members that mean nothing), intent_paths (keep only what is there; what such a path does not fit stays whole), strip_nulls (as jsonb_strip_nulls), trim_strings (White_Space at both ends of string values), nfc_strings (NFC of string values, Unicode idem_unicode_version()), decimal_paths (strings that are decimals become numbers: "10.00" is 10), round_paths (path to digits after the point, halves away from zero), numbers (exact, or double: RFC 8785 to the letter), unordered_paths (arrays whose elements are sorted by their canonical text, in the order of members).
A path is $ and steps .name, ."any name", .* (every member), [*] (every element), as in $.items[*].note. The form is frozen. Errors: 22023 for an option, 22003 for a number beyond double, 54000 if the text would exceed 1 GB, 22021.';

CREATE FUNCTION idem_hash(
    payload jsonb, algorithm text DEFAULT 'xxh3-128',
    trim_strings boolean DEFAULT false, nfc_strings boolean DEFAULT false,
    ignore_paths text[] DEFAULT NULL, intent_paths text[] DEFAULT NULL, strip_nulls boolean DEFAULT false,
    numbers text DEFAULT 'exact', decimal_paths text[] DEFAULT NULL, round_paths jsonb DEFAULT NULL,
    unordered_paths text[] DEFAULT NULL)
RETURNS bytea
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'idem_hash_v1';
COMMENT ON FUNCTION idem_hash IS
'families: The hash of a JSON value''s canonical text (UTF-8). algorithm: xxh3-128 (16 bytes, fast, for trusted data) or sha256 (32 bytes, for data somebody may have crafted); another name raises 22023. Example: SELECT idem_hash(''{"amount": 10.00}'') = idem_hash(''{"amount": 10}'')
xxhsum -H128 and sha256sum over idem_canonical(payload) print the same. Options as for idem_canonical. NULL for a NULL payload. Frozen, so it may be stored and indexed.';

CREATE FUNCTION idem_hash_text(
    payload text, strict boolean DEFAULT true, algorithm text DEFAULT 'xxh3-128',
    trim_strings boolean DEFAULT false, nfc_strings boolean DEFAULT false,
    ignore_paths text[] DEFAULT NULL, intent_paths text[] DEFAULT NULL, strip_nulls boolean DEFAULT false,
    numbers text DEFAULT 'exact', decimal_paths text[] DEFAULT NULL, round_paths jsonb DEFAULT NULL,
    unordered_paths text[] DEFAULT NULL)
RETURNS bytea
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'idem_hash_text_v1';
COMMENT ON FUNCTION idem_hash_text IS
'families: idem_hash of JSON text as it came over the wire, before jsonb drops anything; equal to idem_hash of the same value. Example: SELECT idem_hash_text(''{"amount": 10.00}'')
strict refuses what I-JSON (RFC 7493) forbids: a member name twice in an object (22030), noncharacters (22023). strict => false: the last of two members wins, as in jsonb. Either way text that is not JSON, lone surrogates too, raises 22P02 and U+0000 22P05. Numbers beyond double are kept exact: I-JSON only advises against them, idem_payload_jcs_safe finds them. Errors name a position and never show the payload; also as idem_canonical.';

CREATE FUNCTION idem_payload_jcs_safe(payload jsonb)
RETURNS boolean
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'idem_payload_jcs_safe_v1';
COMMENT ON FUNCTION idem_payload_jcs_safe IS
'families: Whether every RFC 8785 library makes the same canonical text of a JSON value as idem_canonical: each number is the shortest decimal of a double, no string or name has a noncharacter. Example: SELECT idem_payload_jcs_safe(''{"id": 9007199254740993}'')';

CREATE FUNCTION idem_unicode_version()
RETURNS text
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'idem_unicode_version_v1';
COMMENT ON FUNCTION idem_unicode_version IS
'families: The version of Unicode whose tables nfc_strings uses: the library''s own, the same whatever the server or its ICU. Example: SELECT idem_unicode_version()';

CREATE FUNCTION idem_payload_form(
    op text, payload jsonb, actor text, OUT canonical text, OUT hash bytea, OUT hash_algorithm text, OUT profile integer)
LANGUAGE c STABLE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_payload_form_v1';
COMMENT ON FUNCTION idem_payload_form IS
'internal: The canonical text and hash of a payload under the present profile of an op. hash is NULL where it is keyed and actor is NULL.';

CREATE FUNCTION idem_json_leaves(value jsonb, OUT path text, OUT leaf jsonb)
RETURNS SETOF record
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH RECURSIVE walk (path, value) AS (
        SELECT '$', idem_json_leaves.value
        UNION ALL
        SELECT w.path || c.step, c.value
          FROM walk w
         CROSS JOIN LATERAL (
               SELECT '.' || to_json(o.key)::text, o.value
                 FROM jsonb_each(CASE WHEN jsonb_typeof(w.value) = 'object' THEN w.value ELSE '{}'::jsonb END) o
               UNION ALL
               SELECT '[' || (a.place - 1)::text || ']', a.value
                 FROM jsonb_array_elements(CASE WHEN jsonb_typeof(w.value) = 'array' THEN w.value ELSE '[]'::jsonb END)
                      WITH ORDINALITY a (value, place)) AS c (step, value)
    )
    SELECT w.path, w.value
      FROM walk w
     WHERE jsonb_typeof(w.value) NOT IN ('object', 'array') OR w.value IN ('{}'::jsonb, '[]'::jsonb);
END;
COMMENT ON FUNCTION idem_json_leaves IS
'internal: The scalars and empty containers of a JSON value, each with its jsonpath.';

CREATE FUNCTION idem_json_diff(value_a jsonb, value_b jsonb, OUT path text, OUT a jsonb, OUT b jsonb)
RETURNS SETOF record
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT coalesce(x.path, y.path), x.leaf, y.leaf
      FROM idem_json_leaves(value_a) x
      FULL JOIN idem_json_leaves(value_b) y ON y.path = x.path
     WHERE x.leaf IS DISTINCT FROM y.leaf
     ORDER BY coalesce(x.path, y.path) COLLATE "C";
END;
COMMENT ON FUNCTION idem_json_diff IS
'internal: Where two JSON values differ: path, value in a, value in b; NULL where one has nothing there.';

CREATE FUNCTION idem_payload_explain(op text, payload jsonb, actor text DEFAULT NULL)
RETURNS TABLE (canonical text, hash bytea, hash_algorithm text, profile integer, dropped jsonb)
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT f.canonical, f.hash, f.hash_algorithm, f.profile,
           (SELECT coalesce(jsonb_agg(jsonb_build_object('path', d.path)
                                      || CASE WHEN d.a IS NULL THEN '{}' ELSE jsonb_build_object('given', d.a) END
                                      || CASE WHEN d.b IS NULL THEN '{}' ELSE jsonb_build_object('hashed', d.b) END
                                      ORDER BY d.path COLLATE "C"), '[]'::jsonb)
              FROM idem_json_diff(payload, f.canonical::jsonb) d)
      FROM idem_payload_form(op, payload, actor) f;
END;
COMMENT ON FUNCTION idem_payload_explain IS
'families: What of a payload is hashed for an op, now: the canonical text, its hash, the algorithm, the version of the profile, and dropped: every place that the profile removed (given only), changed (given and hashed) or emptied (hashed only).
hash is NULL where the op''s hash_key is per_actor and no actor is given. Errors: 22004, 22021. Example: SELECT canonical, dropped FROM idem_payload_explain(''order.place'', ''{"sku": "A1", "memo": "now"}'')';

CREATE FUNCTION idem_payload_diff(op text, payload_a jsonb, payload_b jsonb)
RETURNS TABLE (path text, a jsonb, b jsonb)
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT d.path, d.a, d.b
      FROM idem_payload_form(op, payload_a, NULL) x,
           idem_payload_form(op, payload_b, NULL) y,
           idem_json_diff(x.canonical::jsonb, y.canonical::jsonb) d;
END;
COMMENT ON FUNCTION idem_payload_diff IS
'families: Why two payloads of an op conflict: each place where they differ after the op''s profile was applied; no row means they are the same request. NULL: nothing there. Example: SELECT * FROM idem_payload_diff(''order.place'', ''{"sku": "A1", "n": 1}'', ''{"sku": "A1", "n": 2}'')';

CREATE FUNCTION idem_policy_options_rows()
RETURNS TABLE (
    name text, type text, default_value text, payment text, order_preset text, webhook text, message text,
    ephemeral text, min_value text, max_value text, choices text, meaning text)
LANGUAGE c IMMUTABLE PARALLEL SAFE ROWS 32
AS 'MODULE_PATHNAME', 'idem_policy_options_rows_v1';
COMMENT ON FUNCTION idem_policy_options_rows IS
'internal: The rows of idem_policy_options. Example: SELECT name, meaning FROM idem_policy_options_rows()';

CREATE VIEW idem_policy_options AS
SELECT o.name, o.type, o.default_value, o.payment, o.order_preset, o.webhook, o.message, o.ephemeral, o.min_value,
       o.max_value, o.choices, o.meaning
  FROM idem_policy_options_rows() AS o;
COMMENT ON VIEW idem_policy_options IS
'policy: Every option of idem_set_policy: type, its value without a policy and in each preset (order is in order_preset), bounds, choices, meaning. NULL: empty, or has none. An object is shown as name=word, an array as its items. Example: SELECT name, payment, meaning FROM idem_policy_options';
COMMENT ON COLUMN idem_policy_options.name IS 'Name of the option.';
COMMENT ON COLUMN idem_policy_options.type IS 'enum, interval, integer, boolean, text, object, array or document.';
COMMENT ON COLUMN idem_policy_options.default_value IS 'Its value in an op without a policy, and in preset default. NULL: empty.';
COMMENT ON COLUMN idem_policy_options.payment IS 'Its value in preset payment. NULL: empty.';
COMMENT ON COLUMN idem_policy_options.order_preset IS 'Its value in preset order. NULL: empty.';
COMMENT ON COLUMN idem_policy_options.webhook IS 'Its value in preset webhook. NULL: empty.';
COMMENT ON COLUMN idem_policy_options.message IS 'Its value in preset message. NULL: empty.';
COMMENT ON COLUMN idem_policy_options.ephemeral IS 'Its value in preset ephemeral. NULL: empty.';
COMMENT ON COLUMN idem_policy_options.min_value IS 'Least value, with its unit. NULL: has none.';
COMMENT ON COLUMN idem_policy_options.max_value IS 'Greatest value, with its unit. NULL: has none.';
COMMENT ON COLUMN idem_policy_options.choices IS 'The words it takes, separated by commas. NULL: not a choice of words.';
COMMENT ON COLUMN idem_policy_options.meaning IS 'What it does.';

------------------------------------------------------------------------------------------------------------------------
-- Outbox
------------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION idem_outbox_enqueue()
RETURNS trigger
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_outbox_enqueue_v1';
COMMENT ON FUNCTION idem_outbox_enqueue IS
'internal: Trigger of idem_outbox: queues the message while its transaction commits.';

-- Deferred, so that seq is drawn when every row lock of the transaction is held: who waits for one of its rows draws
-- later. A restored row is not queued again: its transaction began long ago.
CREATE CONSTRAINT TRIGGER idem_outbox_enqueue
    AFTER INSERT ON idem_outbox
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (new.created_at = CURRENT_TIMESTAMP)
    EXECUTE FUNCTION idem_outbox_enqueue();
COMMENT ON TRIGGER idem_outbox_enqueue ON idem_outbox IS
'internal: Queues the message while its transaction commits.';

CREATE FUNCTION idem_outbox_put(
    actor text, topic text, payload jsonb DEFAULT NULL, payload_bytes bytea DEFAULT NULL,
    ordering_key text DEFAULT NULL, dedup_id text DEFAULT NULL, headers jsonb DEFAULT NULL,
    operation_id uuid DEFAULT NULL, delay interval DEFAULT NULL, OUT id uuid, OUT outcome text)
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_outbox_put_v1';
COMMENT ON FUNCTION idem_outbox_put IS
'families: Put a message into the outbox; it is delivered if and only if this transaction commits. Example: SELECT id, outcome FROM idem_outbox_put(''tenant-1'', ''order'', ''{"order": 7}'', ordering_key => ''order-7'', headers => ''{"type": "order.placed"}'')
outcome: queued; duplicate (actor, topic and dedup_id were put before, id is that message); dead (so they were, and it is a dead letter now, see idem_outbox_requeue). Messages of one actor, topic and ordering_key are delivered one after the other, in the order in which transactions that wait for each other''s rows commit. headers: an object of strings, numbers and booleans; type (default the topic), source, time, traceparent and datacontenttype are filled in where absent, id and specversion always. delay: 0 to 90 days; later messages of the ordering key wait too.
Errors: 22004, 22023, ID005 (payload over 1 MiB, headers over 64 or 16 KiB), 25006. A repeated dedup_id waits for the transaction that put it first.';

CREATE FUNCTION idem_outbox_fetch(
    relay text, batch integer DEFAULT 100, lease interval DEFAULT NULL, topics text[] DEFAULT NULL,
    wait interval DEFAULT NULL)
RETURNS TABLE (
    id uuid, topic text, actor text, type text, ordering_key text, payload jsonb, payload_bytes bytea, headers jsonb,
    operation_id uuid, created_at timestamptz, seq bigint, attempt integer, token bigint, lease_until timestamptz)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 100
AS 'MODULE_PATHNAME', 'idem_outbox_fetch_v1';
COMMENT ON FUNCTION idem_outbox_fetch IS
'families: Lease up to batch messages to a relay; commit, publish them in the order given, then ack. Example: SELECT * FROM idem_outbox_fetch(''relay-1'', 100, ''30 s'', wait => ''5 s'')
relay: name for people, up to 255 bytes. batch: 1 to 10,000. lease: 1 s to 24 h, 30 s by default; after it the messages go to whoever asks. topics: NULL takes all. wait: 0 to 60 s, how long to wait for a first message. Every (topic, actor) that has messages gets a like share. Nobody waits for another relay.
Errors: 22004, 22023, 25006.';

CREATE FUNCTION idem_outbox_ack(ids uuid[], token bigint)
RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_outbox_ack_v1';
COMMENT ON FUNCTION idem_outbox_ack IS
'families: Say that messages were published: they are never leased again. Returns how many were still to be delivered, so that it is safe to repeat. All or nothing. Errors: 22004, ID001 lease lapsed or given back, ID007 no such message. Example: SELECT idem_outbox_ack(ARRAY[:id]::uuid[], :token)';

CREATE FUNCTION idem_outbox_nack(
    id uuid, token bigint, retry_in interval DEFAULT NULL, error text DEFAULT NULL,
    OUT outcome text, OUT ready_at timestamptz)
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_outbox_nack_v1';
COMMENT ON FUNCTION idem_outbox_nack IS
'families: Say that a message could not be published: it is leased again at ready_at (outcome retry), or becomes a dead letter after max_attempts (outcome dead, or held where the rest of its ordering key waits). Later messages of its ordering key under the same token are given back with it. Example: SELECT * FROM idem_outbox_nack(:id, :token, error => ''broker says no'')
retry_in: 0 to 24 h; NULL: doubling from 1 s to 5 min, less up to a half by chance, never below 1 s. error: kept up to 1000 bytes.
Errors: 22004, 22023, ID001, ID007.';

CREATE FUNCTION idem_outbox_requeue(ids uuid[])
RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_outbox_requeue_v1';
COMMENT ON FUNCTION idem_outbox_requeue IS
'families: Deliver dead letters after all, from their old places; attempts count from the start. Returns how many were dead. Errors: 22004, ID007. Example: SELECT idem_outbox_requeue(ARRAY[:id]::uuid[])';

CREATE FUNCTION idem_outbox_skip(ids uuid[])
RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_outbox_skip_v1';
COMMENT ON FUNCTION idem_outbox_skip IS
'families: Let the rest of their ordering keys go on without these dead letters, which stay and may be requeued. Returns how many held something up. Errors: 22004, ID007. Example: SELECT idem_outbox_skip(ARRAY[:id]::uuid[])';

CREATE FUNCTION idem_outbox_set_topic(topic text, max_attempts integer DEFAULT 20, on_dead_letter text DEFAULT 'hold')
RETURNS text
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_outbox_set_topic_v1';
COMMENT ON FUNCTION idem_outbox_set_topic IS
'families: Say when messages of a topic become dead letters (1 to 1,000 attempts), and whether the rest of their ordering key waits for somebody (hold) or goes on (skip). Returns the topic. Errors: 22004, 22023. Example: SELECT idem_outbox_set_topic(''mail'', 5, ''skip'')';

CREATE FUNCTION idem_sweep_outbox(batch integer)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH over AS MATERIALIZED (
        SELECT o.id
          FROM idem_outbox o
         WHERE o.created_at < clock_timestamp() - interval '7 days'
           AND NOT EXISTS (SELECT FROM idem_outbox_queue q WHERE q.message_id = o.id)
         ORDER BY o.created_at
         LIMIT greatest(coalesce(idem_sweep_outbox.batch, 0), 0)
           FOR UPDATE OF o SKIP LOCKED
    ), gone AS (
        DELETE FROM idem_outbox o USING over WHERE o.id = over.id RETURNING o.id
    )
    SELECT count(*) FROM gone;
END;
COMMENT ON FUNCTION idem_sweep_outbox IS
'internal: Remove up to batch delivered messages put more than 7 days ago, with the memory of their dedup_ids; returns how many. Locked ones are left for the next time. To be called by the owner of the extension. Example: SELECT idem_sweep_outbox(1000)';

CREATE VIEW idem_outbox_backlog AS
SELECT q.topic,
       q.actor,
       count(*) FILTER (WHERE q.state = 'q' AND q.ready_at <= clock_timestamp()) AS queued,
       count(*) FILTER (WHERE q.state = 'q' AND q.ready_at > clock_timestamp()) AS postponed,
       count(*) FILTER (WHERE q.state = 'l' AND q.ready_at > clock_timestamp()) AS leased,
       count(*) FILTER (WHERE q.state = 'l' AND q.ready_at <= clock_timestamp()) AS lapsed,
       count(*) FILTER (WHERE q.state = 'x') AS dead,
       clock_timestamp() - min(o.created_at) FILTER (WHERE q.state <> 'x') AS oldest_age
  FROM idem_outbox_queue q
  JOIN idem_outbox o ON o.id = q.message_id
 GROUP BY q.topic, q.actor;
COMMENT ON VIEW idem_outbox_backlog IS
'families: What is to be delivered, by topic and actor. Reads the whole queue. Example: SELECT * FROM idem_outbox_backlog ORDER BY oldest_age DESC';
COMMENT ON COLUMN idem_outbox_backlog.topic IS 'The topic.';
COMMENT ON COLUMN idem_outbox_backlog.actor IS 'Whose messages they are.';
COMMENT ON COLUMN idem_outbox_backlog.queued IS 'Messages that are due; some may wait for an earlier one of their ordering key.';
COMMENT ON COLUMN idem_outbox_backlog.postponed IS 'Messages that are delayed or backing off.';
COMMENT ON COLUMN idem_outbox_backlog.leased IS 'Messages that a relay has.';
COMMENT ON COLUMN idem_outbox_backlog.lapsed IS 'Messages whose relay kept them too long.';
COMMENT ON COLUMN idem_outbox_backlog.dead IS 'Dead letters.';
COMMENT ON COLUMN idem_outbox_backlog.oldest_age IS 'Age of the oldest message that is no dead letter. NULL: there is none.';

CREATE VIEW idem_outbox_dead AS
SELECT q.message_id AS id, q.topic, q.actor, o.aggregateid AS ordering_key, q.attempt, q.ready_at AS dead_since,
       q.lane < 0 AS holds, q.relay, q.last_error
  FROM idem_outbox_queue q
  JOIN idem_outbox o ON o.id = q.message_id
 WHERE q.state = 'x';
COMMENT ON VIEW idem_outbox_dead IS
'families: Dead letters, for idem_outbox_requeue and idem_outbox_skip. Reads the whole queue. Example: SELECT * FROM idem_outbox_dead ORDER BY dead_since';
COMMENT ON COLUMN idem_outbox_dead.id IS 'The message.';
COMMENT ON COLUMN idem_outbox_dead.topic IS 'The topic.';
COMMENT ON COLUMN idem_outbox_dead.actor IS 'Whose message it is.';
COMMENT ON COLUMN idem_outbox_dead.ordering_key IS 'Its ordering key. NULL: none.';
COMMENT ON COLUMN idem_outbox_dead.attempt IS 'How many times it was leased.';
COMMENT ON COLUMN idem_outbox_dead.dead_since IS 'When it was given up.';
COMMENT ON COLUMN idem_outbox_dead.holds IS 'The rest of its ordering key waits for it.';
COMMENT ON COLUMN idem_outbox_dead.relay IS 'Who leased it last.';
COMMENT ON COLUMN idem_outbox_dead.last_error IS 'What the last idem_outbox_nack said. NULL: nothing.';

------------------------------------------------------------------------------------------------------------------------
-- What is unfinished, and help
------------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION idem_family_options(op text)
RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT CASE WHEN starts_with(op, 'message:') THEN '{"grace": "1 minute", "ttl": "1 day"}'::jsonb
                WHEN starts_with(op, 'inbox:') THEN '{"on_stale": "retry", "grace": "30 seconds", "ttl": "30 days"}'::jsonb
                WHEN starts_with(op, 'intent:')
                THEN coalesce((SELECT p.options FROM idem_policies p
                                WHERE p.op = 'inbox:' || substr(idem_family_options.op, 8)),
                              '{"on_stale": "retry", "grace": "30 seconds", "ttl": "30 days"}'::jsonb) END;
END;
COMMENT ON FUNCTION idem_family_options IS
'internal: What an event or a message whose op has no policy of its own has of the options that time depends on: those of preset webhook and message. NULL for other ops.';

CREATE VIEW idem_unfinished AS
SELECT DISTINCT ON (k.operation_id)
       k.operation_id,
       k.actor,
       k.op,
       k.key,
       CASE WHEN k.state = 'u' THEN 'indeterminate'
            WHEN clock_timestamp() < k.lease_until THEN 'running'
            WHEN clock_timestamp() < k.lease_until + g.grace THEN 'lapsed'
            WHEN p.options ->> 'on_stale' = 'retry' THEN 'retryable'
            ELSE 'indeterminate' END AS state,
       k.attempt,
       k.claimed_by,
       k.created_at,
       k.lease_until,
       CASE WHEN k.state = 'u' THEN k.updated_at ELSE k.lease_until + g.grace END AS resolvable_at,
       clock_timestamp() - k.created_at AS age,
       k.parent,
       k.checkpoint,
       k.evidence
  FROM idem_leases l
  JOIN idem_keys k ON k.operation_id = l.operation_id
  CROSS JOIN LATERAL (SELECT coalesce((SELECT q.options FROM idem_policies q WHERE q.op = k.op),
                                              idem_family_options(k.op)) AS options) p
 CROSS JOIN LATERAL (SELECT coalesce((p.options ->> 'grace')::interval, interval '10 seconds')) AS g (grace)
 WHERE k.state IN ('i', 'u')
 ORDER BY k.operation_id;
COMMENT ON VIEW idem_unfinished IS
'key life: Committed claims that were not finished. state: running; lapsed (lease over, grace not); indeterminate (a person or a reconciler resolves it, see idem_resolve); retryable (dead, and the op lets the next claim run it again). resolvable_at: when it becomes, or became, what can be resolved. Found through idem_leases, so its cost follows the claims made since its last clean-up, not the keys there are. Example: SELECT * FROM idem_unfinished WHERE state = ''indeterminate'' ORDER BY age DESC';
COMMENT ON COLUMN idem_unfinished.operation_id IS 'The key that was claimed; what idem_resolve takes.';
COMMENT ON COLUMN idem_unfinished.actor IS 'Who asked.';
COMMENT ON COLUMN idem_unfinished.op IS 'What was asked for.';
COMMENT ON COLUMN idem_unfinished.key IS 'The client''s key.';
COMMENT ON COLUMN idem_unfinished.state IS 'running, lapsed, indeterminate or retryable, now.';
COMMENT ON COLUMN idem_unfinished.attempt IS 'Acquisitions in this life, from 1, resumed not counted.';
COMMENT ON COLUMN idem_unfinished.claimed_by IS 'Session of the last acquisition: application name (or user), slash, process id.';
COMMENT ON COLUMN idem_unfinished.created_at IS 'When the key was first acquired in this life.';
COMMENT ON COLUMN idem_unfinished.lease_until IS 'Until when the holder is believed alive; the op''s grace comes on top.';
COMMENT ON COLUMN idem_unfinished.resolvable_at IS 'When it becomes, or became, what can be resolved.';
COMMENT ON COLUMN idem_unfinished.age IS 'Time since created_at.';
COMMENT ON COLUMN idem_unfinished.parent IS 'The operation on whose behalf this one runs. NULL: none was given.';
COMMENT ON COLUMN idem_unfinished.checkpoint IS 'How far the work came, see idem_checkpoint. NULL: nothing was noted.';
COMMENT ON COLUMN idem_unfinished.evidence IS 'What idem_fail or idem_resolve were told. NULL: nothing.';

CREATE VIEW idem_help AS
SELECT substring(d.description FROM '^([a-z ]+): ') AS topic,
       c.name,
       substring(d.description FROM '^[a-z ]+: ([^\n]*?)(?: Example: [^\n]*)?(?:\n|$)') AS summary,
       substring(d.description FROM 'Example: ([^\n]*)') AS example
  FROM (SELECT p.oid, 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid AS class, p.proname AS name
          FROM pg_catalog.pg_proc p
        UNION ALL
        SELECT r.oid, 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid, r.relname
          FROM pg_catalog.pg_class r
         WHERE r.relkind IN ('r', 'v')) c
  JOIN pg_catalog.pg_depend e ON e.objid = c.oid AND e.classid = c.class AND e.deptype = 'e'
                             AND e.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass::pg_catalog.oid
  JOIN pg_catalog.pg_extension x ON x.oid = e.refobjid AND x.extname = 'idempotency'
  JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.classoid = c.class AND d.objsubid = 0
 ORDER BY pg_catalog.array_position(ARRAY['day one', 'key life', 'http', 'families', 'policy', 'admin', 'internal'],
                                    substring(d.description FROM '^([a-z ]+): ')),
          pg_catalog.array_position(ARRAY['idem_claim', 'idem_complete', 'idem_fail', 'idem_execute', 'idem_lookup',
                                          'idem_set_policy', 'idem_http_response']::name[], c.name),
          c.name;
COMMENT ON VIEW idem_help IS
'policy: This reference as a table: topic, name, summary, example; the seven of day one first. Example: SELECT name, summary, example FROM idem_help WHERE topic = ''day one''';
COMMENT ON COLUMN idem_help.topic IS 'day one, key life, http, families, policy, admin or internal.';
COMMENT ON COLUMN idem_help.name IS 'Function, table or view.';
COMMENT ON COLUMN idem_help.summary IS 'What it is for, in a line.';
COMMENT ON COLUMN idem_help.example IS 'A statement to try; :operation_id, :id and :token are what a claim or a fetch answered. NULL: none.';

------------------------------------------------------------------------------------------------------------------------
-- The sweep: what ages goes, a bounded step a transaction. Called by idem_admin_sweep() and the worker only.
------------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION idem_sweep_place(place bigint)
RETURNS tid
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT format('(%s,%s)', place / 2048, place % 2048)::tid;
END;
COMMENT ON FUNCTION idem_sweep_place IS
'internal: The row address (block, line) of a place: block * 2048 + line. Example: SELECT idem_sweep_place(4097)';

CREATE FUNCTION idem_sweep_next(relation regclass, place bigint, width bigint)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT CASE WHEN place + width < pg_relation_size(relation) / current_setting('block_size')::bigint * 2048
                THEN place + width END;
END;
COMMENT ON FUNCTION idem_sweep_next IS
'internal: The place after a range, NULL at the end of the table. Example: SELECT idem_sweep_next(''pg_class'', 0, 2048)';

CREATE FUNCTION idem_sweep_keys(place bigint, width bigint, batch integer, OUT removed bigint, OUT next_place bigint)
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH other_ttl AS MATERIALIZED (
        SELECT k.operation_id, k.completed_at + o.ttl AS expires_at
          FROM idem_keys k
          JOIN idem_policies p ON p.op = k.op AND p.updated_at > k.completed_at
         CROSS JOIN LATERAL (
               SELECT make_interval(secs => extract(epoch FROM (p.options ->> 'ttl')::interval)::double precision)) o (ttl)
         WHERE k.ctid >= idem_sweep_place(place) AND k.ctid < idem_sweep_place(place + width)
           AND k.state IN ('c', 'f') AND k.ttl_s IS NULL AND k.expires_at <> k.completed_at + o.ttl
         LIMIT batch FOR UPDATE OF k SKIP LOCKED
    ), changed AS (
        UPDATE idem_keys k
           SET expires_at = n.expires_at, updated_at = clock_timestamp()
          FROM other_ttl n
         WHERE k.operation_id = n.operation_id
        RETURNING k.operation_id
    ), due AS (
        SELECT k.operation_id
          FROM idem_keys k
          CROSS JOIN LATERAL (SELECT coalesce((SELECT q.options FROM idem_policies q WHERE q.op = k.op),
                                              idem_family_options(k.op)) AS options) p
         CROSS JOIN LATERAL (
               SELECT coalesce((p.options ->> 'tombstone_ttl')::interval, '0') AS tombstone_ttl,
                      coalesce((p.options ->> 'grace')::interval, '10 seconds') AS grace,
                      coalesce(make_interval(secs => k.ttl_s), (p.options ->> 'ttl')::interval, '1 day') AS ttl) o
         WHERE k.ctid >= idem_sweep_place(place) AND k.ctid < idem_sweep_place(place + width)
           AND (k.state IN ('c', 'f', 'r') AND k.expires_at + o.tombstone_ttl < clock_timestamp()
                OR k.state = 'i' AND p.options ->> 'on_stale' = 'retry'
                   AND k.lease_until + o.grace + o.ttl < clock_timestamp())
           AND k.token < (extract(epoch FROM clock_timestamp() - interval '1 hour') - 946684800) * 1000000
           AND NOT EXISTS (SELECT FROM other_ttl n WHERE n.operation_id = k.operation_id)
         LIMIT batch FOR UPDATE OF k SKIP LOCKED
    ), answers AS (
        DELETE FROM idem_responses r USING due WHERE r.operation_id = due.operation_id
    ), gone AS (
        DELETE FROM idem_keys k USING due WHERE k.operation_id = due.operation_id RETURNING k.operation_id
    )
    SELECT c.changed + c.gone,
           CASE WHEN c.changed >= batch OR c.gone >= batch THEN place
                ELSE idem_sweep_next('idem_keys'::regclass, place, width) END
      FROM (SELECT (SELECT count(*) FROM changed), (SELECT count(*) FROM gone)) AS c (changed, gone);
END;
COMMENT ON FUNCTION idem_sweep_keys IS
'internal: In a range of places, give answers the ttl their op has now, where it changed since and the claim asked for no other; remove keys whose ttl and tombstone are over, with their answers, and dead claims of ops with on_stale retry a ttl after they died. What has a token of the last hour stays: without its row the token could be issued again by a clock set back. Example: SELECT * FROM idem_sweep_keys(0, 2048, 1000)';

CREATE FUNCTION idem_sweep_answers(place bigint, width bigint, batch integer, OUT removed bigint, OUT next_place bigint)
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH due AS (
        SELECT r.operation_id, r.token
          FROM idem_responses r
         WHERE r.ctid >= idem_sweep_place(place) AND r.ctid < idem_sweep_place(place + width)
           AND NOT EXISTS (SELECT FROM idem_keys k WHERE k.operation_id = r.operation_id AND k.token = r.token)
         LIMIT batch FOR UPDATE OF r SKIP LOCKED
    ), gone AS (
        DELETE FROM idem_responses r USING due
         WHERE r.operation_id = due.operation_id AND r.token = due.token
        RETURNING r.operation_id
    )
    SELECT count(*),
           CASE WHEN count(*) >= batch THEN place
                ELSE idem_sweep_next('idem_responses'::regclass, place, width) END
      FROM gone;
END;
COMMENT ON FUNCTION idem_sweep_answers IS
'internal: Remove answers of a former life of a key, in a range of places. Example: SELECT * FROM idem_sweep_answers(0, 2048, 1000)';

CREATE FUNCTION idem_sweep_leases(place bigint, width bigint, batch integer, OUT removed bigint, OUT next_place bigint)
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH hints AS MATERIALIZED (
        SELECT l.ctid AS place, l.operation_id
          FROM idem_leases l
         WHERE l.ctid >= idem_sweep_place(place) AND l.ctid < idem_sweep_place(place + width)
    ), lapsed AS (
        SELECT k.operation_id
          FROM (SELECT DISTINCT h.operation_id FROM hints h) h
          JOIN idem_keys k ON k.operation_id = h.operation_id
          CROSS JOIN LATERAL (SELECT coalesce((SELECT q.options FROM idem_policies q WHERE q.op = k.op),
                                              idem_family_options(k.op)) AS options) p
         WHERE k.state = 'i'
           AND k.lease_until + coalesce((p.options ->> 'grace')::interval, '10 seconds') < clock_timestamp()
           AND p.options ->> 'on_stale' IS DISTINCT FROM 'retry'
         LIMIT batch FOR UPDATE OF k SKIP LOCKED
    ), unknown AS (
        UPDATE idem_keys k
           SET state = 'u', updated_at = clock_timestamp(), evidence = coalesce(k.evidence, '{"lease_over": true}')
          FROM lapsed
         WHERE k.operation_id = lapsed.operation_id
        RETURNING k.operation_id
    ), stale AS (
        SELECT h.place
          FROM hints h
         WHERE NOT EXISTS (SELECT FROM idem_keys k WHERE k.operation_id = h.operation_id AND k.state IN ('i', 'u'))
         LIMIT batch
    ), gone AS (
        DELETE FROM idem_leases l
         WHERE l.ctid = ANY (ARRAY(SELECT s.place FROM stale s))
        RETURNING l.operation_id
    )
    SELECT c.unknown + c.gone,
           CASE WHEN c.unknown >= batch OR c.gone >= batch THEN place
                ELSE idem_sweep_next('idem_leases'::regclass, place, width) END
      FROM (SELECT (SELECT count(*) FROM unknown), (SELECT count(*) FROM gone)) AS c (unknown, gone);
END;
COMMENT ON FUNCTION idem_sweep_leases IS
'internal: Write down as indeterminate what lapsed, unless its op has on_stale retry, and remove hints at what is finished, in a range of places. A hint of a key that runs, or whose fate is unknown, stays. Example: SELECT * FROM idem_sweep_leases(0, 2048, 1000)';

CREATE FUNCTION idem_admin_prune_profiles()
RETURNS TABLE (op text, version integer)
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    DELETE FROM idem_profiles p
     WHERE EXISTS (SELECT FROM idem_profiles n
                    WHERE n.op = p.op AND n.version > p.version
                      AND n.created_at < clock_timestamp() - interval '1 day')
       AND NOT EXISTS (SELECT FROM idem_policies c WHERE c.op = p.op AND c.profile = p.version)
       AND NOT EXISTS (SELECT FROM idem_keys k WHERE k.op = p.op AND k.profile = p.version)
    RETURNING p.op, p.version;
END;
COMMENT ON FUNCTION idem_admin_prune_profiles IS
'admin: Remove versions of profiles that no key uses, and return them. A version is kept for a day after its successor was made, because a transaction that is still open may have claimed under it. Reads all of idem_keys. To be called by the owner of the extension. Example: SELECT * FROM idem_admin_prune_profiles()';

CREATE FUNCTION idem_sweep_profiles(batch integer)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT count(*) FROM idem_admin_prune_profiles();
END;
COMMENT ON FUNCTION idem_sweep_profiles IS
'internal: Remove versions of payload rules that no key uses; there are few, whatever batch says. Example: SELECT idem_sweep_profiles(1000)';

CREATE FUNCTION idem_sweep_step(
    task text, ranged boolean, place bigint, width bigint, batch integer,
    OUT removed bigint, OUT next_place bigint, OUT failed boolean)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    here name := (SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                   WHERE e.extname = 'idempotency');
BEGIN
    failed := false;
    IF ranged THEN
        EXECUTE format('SELECT s.removed, s.next_place FROM %I.%I($1, $2, $3) s', here, 'idem_sweep_' || task)
           INTO removed, next_place USING place, width, batch;
    ELSE
        EXECUTE format('SELECT %I.%I($1)', here, 'idem_sweep_' || task) INTO removed USING batch;
        next_place := CASE WHEN removed >= batch THEN 0 END;
    END IF;
EXCEPTION
WHEN transaction_rollback OR insufficient_resources OR operator_intervention OR lock_not_available
     OR read_only_sql_transaction THEN
    RAISE; -- no row is to blame
WHEN OTHERS THEN
    removed := 0;
    failed := true;
END
$$;
COMMENT ON FUNCTION idem_sweep_step IS
'internal: One step of the sweep, inside an EXCEPTION block, so that a row whose trigger raises holds up no other: failed says that nothing was changed. Runs with the rights of the owner of the extension. Example: SELECT * FROM idem_sweep_step(''keys'', true, 0, 2048, 1000)';

CREATE PROCEDURE idem_admin_sweep(
    budget interval DEFAULT NULL,
    INOUT removed bigint DEFAULT NULL, INOUT failed bigint DEFAULT NULL, INOUT finished boolean DEFAULT NULL,
    INOUT detail jsonb DEFAULT NULL)
LANGUAGE c
AS 'MODULE_PATHNAME', 'idem_admin_sweep_v1';
COMMENT ON PROCEDURE idem_admin_sweep IS
'admin: Remove what no promise needs any more, and write down as indeterminate what lapsed: the worker''s work, by hand or from pg_cron. Commits after each batch (idempotency.batch_size rows), waits for no row, and stops at the end or after budget (NULL: 10 seconds; up to 1 day).
removed: rows removed or changed. failed: rows that could not go, because a trigger or a foreign key of yours refused. finished: the end was reached. detail: rows by task. Errors: 25001 inside a transaction block, 22023, 25006. Example: CALL idem_admin_sweep(budget => ''1 minute'')';

CREATE FUNCTION idem_worker_rows()
RETURNS TABLE (
    database oid, launcher integer, state text, pid integer, started_at timestamptz, ended_at timestamptz,
    next_run timestamptz, passes bigint, rows bigint, last_rows bigint, failed_rows bigint, errors integer, task text,
    block bigint, clean_until timestamptz, last_error text)
LANGUAGE c VOLATILE PARALLEL RESTRICTED ROWS 10
AS 'MODULE_PATHNAME', 'idem_worker_rows_v1';
COMMENT ON FUNCTION idem_worker_rows IS
'internal: What idem_worker_status() and idem_sweep_progress show, by database OID. Errors: 55000 without preload. Example: SELECT database, state FROM idem_worker_rows()';

CREATE FUNCTION idem_worker_status()
RETURNS TABLE (
    database name, launcher integer, state text, started_at timestamptz, ended_at timestamptz, duration interval,
    next_run timestamptz, passes bigint, rows bigint, last_rows bigint, failed_rows bigint, errors integer,
    last_error text, clean_until timestamptz)
LANGUAGE sql VOLATILE PARALLEL RESTRICTED SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT d.datname, w.launcher, w.state, w.started_at, w.ended_at,
           CASE WHEN w.ended_at >= w.started_at THEN w.ended_at - w.started_at END,
           w.next_run, w.passes, w.rows, w.last_rows, w.failed_rows, w.errors,
           w.last_error, w.clean_until
      FROM idem_worker_rows() w
      JOIN pg_database d ON d.oid = w.database
     ORDER BY d.datname;
END;
COMMENT ON FUNCTION idem_worker_status IS
'admin: What the background worker did in each database since the server started, and when it comes again. launcher: its process, NULL when it is not alive. state: idle, starting, sweeping, failed, not visited, not served (no extension there when it looked). duration: of the last visit; passes: how often it reached the end; rows, last_rows: removed or changed in all and in the last visit; failed_rows: that could not go in the last pass; errors: failed visits in a row; last_error: SQLSTATE of the last one; clean_until: what was due then is gone, but for failed_rows (NULL: no pass was finished). Errors: 55000 without preload. Example: SELECT database, state, ended_at, rows, next_run FROM idem_worker_status()';

CREATE VIEW idem_sweep_progress AS
SELECT w.pid, d.datname, w.task, w.block, w.last_rows AS rows, w.started_at
  FROM idem_worker_rows() w
  JOIN pg_catalog.pg_database d ON d.oid = w.database
 WHERE w.state = 'sweeping';
COMMENT ON VIEW idem_sweep_progress IS
'admin: The sweepers that work now. Errors: 55000 without preload. Example: SELECT datname, task, block, rows FROM idem_sweep_progress';
COMMENT ON COLUMN idem_sweep_progress.pid IS 'Process of the sweeper.';
COMMENT ON COLUMN idem_sweep_progress.datname IS 'Database it is in.';
COMMENT ON COLUMN idem_sweep_progress.task IS 'What it removes: leases, keys, answers, profiles.';
COMMENT ON COLUMN idem_sweep_progress.block IS 'Block of the task''s table where it is.';
COMMENT ON COLUMN idem_sweep_progress.rows IS 'Rows removed or changed in this visit.';
COMMENT ON COLUMN idem_sweep_progress.started_at IS 'When the visit began.';

CREATE FUNCTION idem_sweep_actor(actor text, OUT removed bigint, OUT kept bigint)
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH due AS (
        SELECT k.operation_id, k.state IN ('c', 'f', 'r')
               AND k.token < (extract(epoch FROM clock_timestamp() - interval '1 hour') - 946684800) * 1000000 AS over
          FROM idem_keys k
         WHERE k.actor = idem_sweep_actor.actor
           FOR UPDATE OF k
    ), answers AS (
        DELETE FROM idem_responses r USING due WHERE r.operation_id = due.operation_id AND due.over
    ), gone AS (
        DELETE FROM idem_keys k USING due WHERE k.operation_id = due.operation_id AND due.over
        RETURNING k.operation_id
    )
    SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM due WHERE NOT due.over);
END;
COMMENT ON FUNCTION idem_sweep_actor IS
'internal: What idem_admin_forget() does. Example: SELECT removed, kept FROM idem_sweep_actor(''tenant-7'')';

CREATE FUNCTION idem_admin_forget(actor text, OUT removed bigint, OUT kept bigint)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    here name := (SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                   WHERE e.extname = 'idempotency');
BEGIN
    IF actor IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'actor must not be null';
    END IF;
    EXECUTE format('SELECT s.removed, s.kept FROM %I.idem_sweep_actor($1) s', here) INTO removed, kept USING actor;
END
$$;
COMMENT ON FUNCTION idem_admin_forget IS
'admin: Remove all finished keys and answers of an actor before their time: each of its requests is a new one afterwards. Reads all of idem_keys, in one transaction.
kept: keys that stay, because they run, their fate is unknown (resolve them first), or their token is of the last hour (call again later). Example: SELECT removed, kept FROM idem_admin_forget(''tenant-7'')';

------------------------------------------------------------------------------------------------------------------------
-- Rights
------------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION idem_admin_grant(grantee name, level text)
RETURNS SETOF text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    here name := (SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                   WHERE e.extname = 'idempotency');
    everybody text[] := ARRAY['idem_http_key', 'idem_http_response', 'idem_canonical', 'idem_hash',
                              'idem_hash_text', 'idem_payload_jcs_safe', 'idem_unicode_version',
                              'idem_policy_options_rows',
                              'idem_payload_explain', 'idem_payload_diff', 'idem_payload_form', 'idem_json_diff',
                              'idem_json_leaves', 'idem_required', 'idem_child_key'];
    client text[] := ARRAY['idem_claim', 'idem_claim_plain', 'idem_claim_many', 'idem_complete', 'idem_fail', 'idem_execute',
                           'idem_release', 'idem_extend', 'idem_checkpoint', 'idem_lookup', 'idem_lookup_id',
                           'idem_outbox_put', 'idem_effect', 'idem_lock_resource', 'idem_version_claim', 'idem_inbox_claim',
                           'idem_inbox_claim_many', 'idem_inbox_complete', 'idem_inbox_ready', 'idem_message_claim',
                           'idem_message_complete'];
    admin text[] := ARRAY['idem_set_policy', 'idem_policy_resolve', 'idem_resolve', 'idem_admin_sweep', 'idem_sweep_step',
                          'idem_admin_forget', 'idem_outbox_requeue', 'idem_outbox_skip', 'idem_outbox_set_topic',
                          'idem_inbox_skip', 'idem_message_force', 'idem_tree', 'idem_tree_json'];
    relay text[] := ARRAY['idem_outbox_fetch', 'idem_outbox_ack', 'idem_outbox_nack'];
    functions text[] := everybody;
    relations text[] := ARRAY['idem_help', 'idem_policy_options'];
    statement text;
BEGIN
    IF grantee IS NULL OR level IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'grantee and level must not be null';
    END IF;
    IF level NOT IN ('client', 'relay', 'monitor', 'admin') THEN
        RAISE invalid_parameter_value USING MESSAGE = 'unknown level',
              HINT = 'The levels are client, relay, monitor and admin.';
    END IF;
    IF level IN ('client', 'admin') THEN
        functions := functions || client;
    END IF;
    IF level IN ('relay', 'admin') THEN
        functions := functions || relay;
    END IF;
    IF level IN ('monitor', 'admin') THEN
        relations := relations || ARRAY['idem_policies', 'idem_profiles', 'idem_unfinished', 'idem_sweep_progress',
                                        'idem_outbox_backlog', 'idem_outbox_dead', 'idem_outbox_topics'];
        functions := functions || ARRAY['idem_worker_status', 'idem_worker_rows', 'idem_family_options'];
    END IF;
    IF level = 'admin' THEN
        functions := functions || admin;
        relations := relations || ARRAY['idem_audit'];
    END IF;
    FOR statement IN
        SELECT format('GRANT USAGE ON SCHEMA %I TO %I', here, grantee)
        UNION ALL
        SELECT format('GRANT USAGE ON TYPE %I.%I TO %I', here, t, grantee)
          FROM unnest(ARRAY['idem_result', 'idem_response', 'idem_http', 'idem_policy']) AS t
        UNION ALL
        SELECT format('GRANT EXECUTE ON ROUTINE %I.%I TO %I', here, f, grantee) FROM unnest(functions) AS f
        UNION ALL
        SELECT format('GRANT SELECT ON %I.%I TO %I', here, r, grantee) FROM unnest(relations) AS r
    LOOP
        EXECUTE statement;
        RETURN NEXT statement;
    END LOOP;
END
$$;
COMMENT ON FUNCTION idem_admin_grant IS
'admin: Give a role what its level needs, and nothing on the tables that hold requests and answers; returns the statements it ran. To be called by the owner of the extension.
level: client (claim and finish, put messages), relay (fetch, ack, nack), monitor (policies, what is unfinished or undelivered), admin (all of these, set policies and topics, resolve, requeue, sweep, forget). Errors: 22004, 22023, 42501. Example: SELECT * FROM idem_admin_grant(''payments_api'', ''client'')';

REVOKE ALL ON TYPE idem_result, idem_response, idem_http, idem_policy FROM PUBLIC;
REVOKE ALL ON FUNCTION
    idem_claim, idem_complete, idem_fail, idem_execute, idem_lookup, idem_set_policy, idem_http_response,
    idem_claim_many, idem_release, idem_extend, idem_checkpoint, idem_resolve, idem_lookup_id, idem_call_handler,
    idem_http_key, idem_canonical, idem_hash, idem_hash_text, idem_payload_jcs_safe, idem_unicode_version,
    idem_policy_resolve, idem_policies_changed, idem_policy_options_rows, idem_payload_form, idem_payload_explain,
    idem_payload_diff, idem_json_leaves, idem_json_diff, idem_admin_prune_profiles, idem_admin_grant,
    idem_claim_plain, idem_claim_support, idem_sweep_place, idem_sweep_next, idem_sweep_keys, idem_sweep_answers,
    idem_sweep_leases, idem_sweep_profiles, idem_sweep_step, idem_sweep_actor,
    idem_admin_forget, idem_worker_rows, idem_worker_status,
    idem_outbox_enqueue, idem_outbox_put, idem_outbox_fetch, idem_outbox_ack, idem_outbox_nack, idem_outbox_requeue,
    idem_outbox_skip, idem_outbox_set_topic, idem_sweep_outbox,
    idem_check_holder, idem_required, idem_check_size, idem_effect, idem_child_key,
    idem_tree, idem_tree_json, idem_lock_resource, idem_version_claim, idem_version_current, idem_version_advance,
    idem_inbox_claim, idem_inbox_claim_many, idem_inbox_complete, idem_inbox_advance, idem_inbox_settle,
    idem_inbox_ready, idem_inbox_skip, idem_message_claim, idem_message_complete, idem_message_reopen,
    idem_message_force, idem_sweep_inbox, idem_sweep_effects, idem_sweep_audit, idem_family_options
FROM PUBLIC;
REVOKE ALL ON PROCEDURE idem_admin_sweep FROM PUBLIC;
