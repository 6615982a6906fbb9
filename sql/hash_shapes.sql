-- hash_shapes: an object whose keys were met before has the text it would have as the first of its kind.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;

-- The same keys with other values, again and again: nested, escaped, beyond ASCII, of any size.
SELECT i, idem_canonical(jsonb_build_object('b', i, 'aa', jsonb_build_object('z', i, 'yy', i), E'c"\n', i, 'é', i, 'ｚ', i, '😀', i))
FROM generate_series(1, 5) AS i;
SELECT count(*) AS objects, count(*) FILTER (WHERE idem_canonical(v) <> text) AS wrong
FROM (SELECT jsonb_object_agg(key, i ORDER BY random()) AS v,
             '{' || string_agg(format('"%s":%s', key, i), ',' ORDER BY key COLLATE "C") || '}' AS text
      FROM generate_series(1, 6) AS i, unnest('{2,3,4,5,16,17,64,65,300,6000,9000}'::int[]) AS size,
           LATERAL (SELECT repeat('k', n % 7) || n FROM generate_series(1, size) AS n) AS keys(key)
      GROUP BY i, size) AS x;

-- Keys that together are the same bytes, cut elsewhere; and keys that differ in one byte alone, wherever it is.
SELECT count(*) AS objects, count(*) FILTER (WHERE idem_canonical(v) <> text) AS wrong
FROM (SELECT jsonb_build_object(substr(all_keys, 1, cut), i, substr(all_keys, cut + 1), i) AS v,
             format('{"%s":%s,"%s":%2$s}', substr(all_keys, 1, cut), i, substr(all_keys, cut + 1)) AS text
      FROM generate_series(1, 4) AS i, generate_series(1, 7) AS cut, (VALUES ('abcdefghijklmnopqrst')) AS y(all_keys)) AS x;
SELECT count(*) AS objects, count(*) FILTER (WHERE idem_canonical(v) <> text) AS wrong
FROM (SELECT jsonb_build_object('a', i, key, i) AS v, format('{"a":%s,"%s":%1$s}', i, key) AS text
      FROM generate_series(1, 4) AS i, generate_series(1, 60) AS at,
           LATERAL (SELECT overlay(repeat('x', 60) PLACING 'y' FROM at)) AS y(key)) AS x;

-- More kinds than are kept, each of them three times, in two orders.
SELECT count(*) AS objects, count(*) FILTER (WHERE idem_canonical(v) <> text) AS wrong
FROM (SELECT jsonb_build_object('b', i, 'key' || kind, i, repeat('c', 1 + kind % 50), jsonb_build_object('d' || kind, 1, 'e', i)) AS v,
             format('{"b":%s,"%s":{"d%s":1,"e":%1$s},"key%3$s":%1$s}', i, repeat('c', 1 + kind % 50), kind) AS text
      FROM generate_series(1, 3) AS i, generate_series(1, 4000) AS kind
      ORDER BY i = 2, kind % 7, kind * (i - 2)) AS x;
