// JDBC (pgjdbc): what README.md's driver table says, on a live server. Behaviour: bodies and identifiers cross unchanged.
// setString sends varchar, which is neither jsonb nor interval nor uuid: JSON and durations go as Types.OTHER, or the
// connection says stringtype=unspecified. Both are checked, and server-prepared statements (after five executions).

import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.util.Arrays;
import java.util.Objects;
import java.util.UUID;
import org.postgresql.util.PGInterval;

public class WithJdbc {
    static final String CLAIM = "SELECT * FROM idem_claim(actor => ?, op => ?, key => ?, payload => ?)";
    static final String OP = "drivers.check";
    static final byte[] EVERY_BYTE = new byte[256];
    static String actor;
    static int keys = 0;

    interface Binder {
        void bind(PreparedStatement statement) throws SQLException;
    }

    record Json(String text) {}

    record Row(String outcome, boolean proceed, UUID id, long token, int status, String headers, String body, byte[] bytes) {}

    static void check(String name, boolean good) {
        System.out.println((good ? "ok" : "not ok") + " jdbc: " + name);
    }

    static Row row(Connection session, String sql, Binder binder) throws SQLException {
        try (PreparedStatement statement = session.prepareStatement(sql)) {
            binder.bind(statement);
            try (ResultSet r = statement.executeQuery()) {
                r.next();
                return new Row(r.getString("outcome"), r.getBoolean("proceed"), r.getObject("operation_id", UUID.class),
                    r.getLong("token"), r.getInt("status"), r.getString("headers"), r.getString("body"), r.getBytes("body_bytes"));
            }
        }
    }

    static Row claim(Connection session, String key, String payload) throws SQLException {
        return row(session, CLAIM, s -> {
            s.setString(1, actor);
            s.setString(2, OP);
            s.setString(3, key);
            s.setObject(4, payload, Types.OTHER);
        });
    }

    // answer completes a new key with a body and compares the first answer and the replay with what is expected.
    static Row answer(Connection session, String name, String sql, Object[] body, String text, byte[] bytes, byte[] wire)
            throws SQLException {
        String key = "key-" + ++keys;
        Row claimed = claim(session, key, "{\"amount\": 10}");
        Row first = row(session, "SELECT * FROM idem_complete(operation_id => ?, token => ?, status => ?" + sql + ")", s -> {
            s.setObject(1, claimed.id());
            s.setLong(2, claimed.token());
            s.setInt(3, 201);
            for (int i = 0; i < body.length; i++) {
                if (body[i] instanceof Json json) {
                    s.setObject(4 + i, json.text(), Types.OTHER);
                } else if (body[i] instanceof byte[] raw) {
                    s.setBytes(4 + i, raw);
                } else {
                    s.setString(4 + i, (String) body[i]);
                }
            }
        });
        Row again = claim(session, key, "{\"amount\": 10}");
        boolean sent;
        try (PreparedStatement s = session.prepareStatement(
                "SELECT h.* FROM idem_claim(?, ?, ?, ?) AS r, idem_http_response(r) AS h")) {
            s.setString(1, actor);
            s.setString(2, OP);
            s.setString(3, key);
            s.setObject(4, "{\"amount\": 10}", Types.OTHER);
            ResultSet r = s.executeQuery();
            r.next();
            sent = r.getInt("status") == 201 && Arrays.equals(r.getBytes("body"), wire);
        }
        check(name, claimed.proceed() && first.outcome().equals("completed") && again.outcome().equals("replay")
            && first.status() == 201 && again.status() == 201 && Objects.equals(first.headers(), again.headers())
            && Objects.equals(first.body(), text) && Objects.equals(again.body(), text)
            && Arrays.equals(first.bytes(), bytes) && Arrays.equals(again.bytes(), bytes) && sent);
        return again;
    }

    static void bodies(Connection session, String where) throws SQLException {
        String text = "gr\u00fc\u00dfe \u20ac";
        answer(session, "status only" + where, "", new Object[] {}, null, null, null);
        answer(session, "text body" + where, ", body => ?", new Object[] {text}, text, null, text.getBytes(StandardCharsets.UTF_8));
        answer(session, "empty text body" + where, ", body => ?", new Object[] {""}, "", null, new byte[0]);
        answer(session, "JSON body" + where, ", body_json => ?", new Object[] {new Json("{\"id\": \"ch_1\"}")},
            "{\"id\": \"ch_1\"}", null, "{\"id\": \"ch_1\"}".getBytes(StandardCharsets.UTF_8));
        answer(session, "JSON null body" + where, ", body_json => ?", new Object[] {new Json("null")}, "null", null, "null".getBytes());
        answer(session, "binary body" + where, ", body_bytes => ?", new Object[] {EVERY_BYTE}, null, EVERY_BYTE, EVERY_BYTE);
        String pairs = "[[\"Content-Type\", \"text/plain\"], [\"Link\", \"<a>\"], [\"Link\", \"<b>\"]]";
        Row again = answer(session, "body with headers" + where, ", body => ?, headers => ?",
            new Object[] {"x", new Json(pairs)}, "x", null, "x".getBytes());
        check("headers are pairs in order" + where, pairs.equals(again.headers()));
    }

    static void parameters(Connection session) throws SQLException {
        check("JSON as Types.OTHER", claim(session, "json", "{\"a\": [1, \"x\", null]}").proceed());
        check("no JSON as null", claim(session, "no json", null).proceed());
        check("no JSON as setNull(n, Types.NULL)", row(session, CLAIM, s -> {
            s.setString(1, actor);
            s.setString(2, OP);
            s.setString(3, "setNull");
            s.setNull(4, Types.NULL);
        }).proceed());
        UUID attempt = UUID.randomUUID();
        Binder binder = s -> {
            s.setString(1, actor);
            s.setString(2, OP);
            s.setString(3, "durations");
            s.setObject(4, "0 s", Types.OTHER);
            s.setObject(5, new PGInterval("30 seconds"));
            s.setObject(6, "2 days", Types.OTHER);
            s.setObject(7, attempt);
        };
        String durations = "SELECT * FROM idem_claim(?, ?, ?, wait => ?, lease => ?, ttl => ?, attempt_id => ?)";
        Row first = row(session, durations, binder);
        Row second = row(session, durations, binder);
        check("durations as Types.OTHER or PGInterval", first.outcome().equals("claimed"));
        check("attempt_id as UUID resumes", second.outcome().equals("resumed") && second.token() > first.token());
        try {
            row(session, "SELECT * FROM idem_complete(?, ?)", s -> {
                s.setObject(1, first.id());
                s.setLong(2, first.token());
            });
            check("stale token is ID001", false);
        } catch (SQLException e) {
            check("stale token is ID001", "ID001".equals(e.getSQLState()));
        }
        try (PreparedStatement s = session.prepareStatement(
                "SELECT string_agg(key || ' ' || outcome, ', ') FROM idem_claim_many(?, ?, ?, ?)")) {
            s.setString(1, actor);
            s.setString(2, OP);
            s.setArray(3, session.createArrayOf("text", new String[] {"m-1", "m-2"}));
            s.setArray(4, session.createArrayOf("jsonb", new String[] {"{\"a\": 1}", "2"}));
            ResultSet r = s.executeQuery();
            r.next();
            check("arrays for idem_claim_many", "m-1 claimed, m-2 claimed".equals(r.getString(1)));
        }
        check("payload as bytes", row(session, "SELECT * FROM idem_claim(?, ?, ?, payload_bytes => ?)", s -> {
            s.setString(1, actor);
            s.setString(2, OP);
            s.setString(3, "bytes");
            s.setBytes(4, EVERY_BYTE);
        }).proceed());
        try {
            row(session, CLAIM, s -> {
                s.setString(1, actor);
                s.setString(2, OP);
                s.setString(3, "varchar");
                s.setString(4, "{}");
            });
            check("JSON as setString is refused (42883), not misread", false);
        } catch (SQLException e) {
            check("JSON as setString is refused (42883), not misread", "42883".equals(e.getSQLState()));
        }
    }

    static void unspecified(Connection session) throws SQLException {
        check("stringtype=unspecified: JSON, durations and uuid as setString",
            row(session, "SELECT * FROM idem_claim(?, ?, ?, ?, wait => ?, attempt_id => ?)", s -> {
                s.setString(1, actor);
                s.setString(2, OP);
                s.setString(3, "unspecified");
                s.setString(4, "{\"a\": 1}");
                s.setString(5, "2 seconds");
                s.setString(6, UUID.randomUUID().toString());
            }).proceed());
    }

    static Connection connect(String options) throws SQLException {
        String host = System.getenv().getOrDefault("PGHOST", "127.0.0.1");
        String url = "jdbc:postgresql://" + (host.startsWith("/") ? "127.0.0.1" : host) + ":"
            + System.getenv().getOrDefault("PGPORT", "5432") + "/" + System.getenv("PGDATABASE") + options;
        return DriverManager.getConnection(url, System.getenv("PGUSER"), System.getenv().getOrDefault("PGPASSWORD", ""));
    }

    public static void main(String[] arguments) throws SQLException {
        actor = System.getenv("IDEM_ACTOR") + "-jdbc";
        for (int i = 0; i < EVERY_BYTE.length; i++) {
            EVERY_BYTE[i] = (byte) i;
        }
        try (Connection session = connect("")) {
            parameters(session);
            bodies(session, "");
        }
        try (Connection session = connect("?prepareThreshold=1")) {
            bodies(session, ", server-prepared");
        }
        try (Connection session = connect("?stringtype=unspecified")) {
            unspecified(session);
            bodies(session, ", stringtype=unspecified");
        }
    }
}
