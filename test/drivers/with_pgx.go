// pgx: what README.md's driver table says, on a live server. Behaviour: bodies and identifiers cross unchanged.
// It prepares each statement and encodes parameters by their server types: maps and structs become JSON, a
// time.Duration becomes an interval, a uuid is a string or [16]byte. Not in the default run; see run.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
)

const op = "drivers.check"
const claimSQL = "SELECT outcome, proceed, operation_id::text, token, status, headers, body, body_bytes " +
	"FROM idem_claim(actor => $1, op => $2, key => $3, payload => $4)"

var (
	ctx       = context.Background()
	actor     = os.Getenv("IDEM_ACTOR") + "-pgx"
	everyByte = make([]byte, 256)
	keys      int
	failed    bool
)

type row struct {
	outcome string
	proceed bool
	id      string
	token   int64
	status  *int32
	headers [][]string
	body    *string
	bytes   []byte
}

func check(name string, good bool) {
	if good {
		fmt.Println("ok pgx: " + name)
		return
	}
	fmt.Println("not ok pgx: " + name)
	failed = true
}

func fetch(c *pgx.Conn, sql string, arguments ...interface{}) (row, error) {
	var r row
	err := c.QueryRow(ctx, sql, arguments...).Scan(&r.outcome, &r.proceed, &r.id, &r.token, &r.status, &r.headers, &r.body, &r.bytes)
	return r, err
}

// answer completes a new key with a body and compares the first answer and the replay with what is expected.
func answer(c *pgx.Conn, name, sql string, body []interface{}, text *string, raw, wire []byte) row {
	keys++
	key := fmt.Sprintf("key-%d", keys)
	payload := map[string]interface{}{"amount": 10}
	claimed, err := fetch(c, claimSQL, actor, op, key, payload)
	if err != nil {
		check(name+": "+err.Error(), false)
		return claimed
	}
	complete := "SELECT outcome, proceed, operation_id::text, token, status, headers, body, body_bytes " +
		"FROM idem_complete(operation_id => $1, token => $2, status => $3" + sql + ")"
	var token *int64
	var first row
	err = c.QueryRow(ctx, complete, append([]interface{}{claimed.id, claimed.token, 201}, body...)...).
		Scan(&first.outcome, &first.proceed, &first.id, &token, &first.status, &first.headers, &first.body, &first.bytes)
	if err != nil {
		check(name+": "+err.Error(), false)
		return first
	}
	var again row
	err = c.QueryRow(ctx, claimSQL, actor, op, key, payload).
		Scan(&again.outcome, &again.proceed, &again.id, &token, &again.status, &again.headers, &again.body, &again.bytes)
	if err != nil {
		check(name+": "+err.Error(), false)
		return again
	}
	var sent []byte
	err = c.QueryRow(ctx, "SELECT h.body FROM idem_claim($1, $2, $3, $4) AS r, idem_http_response(r) AS h", actor, op, key, payload).
		Scan(&sent)
	check(name, err == nil && claimed.proceed && first.outcome == "completed" && again.outcome == "replay" &&
		*first.status == 201 && *again.status == 201 && reflect.DeepEqual(first.headers, again.headers) &&
		reflect.DeepEqual(first.body, text) && reflect.DeepEqual(again.body, text) &&
		bytes.Equal(first.bytes, raw) && bytes.Equal(again.bytes, raw) && bytes.Equal(sent, wire))
	return again
}

func bodies(c *pgx.Conn) {
	text, empty, json, null, x := "gr\u00fc\u00dfe \u20ac", "", `{"id": "ch_1"}`, "null", "x"
	answer(c, "status only", "", nil, nil, nil, nil)
	answer(c, "text body", ", body => $4", []interface{}{text}, &text, nil, []byte(text))
	answer(c, "empty text body", ", body => $4", []interface{}{empty}, &empty, nil, []byte{})
	answer(c, "JSON body", ", body_json => $4", []interface{}{map[string]string{"id": "ch_1"}}, &json, nil, []byte(json))
	answer(c, "JSON null body", ", body_json => $4", []interface{}{"null"}, &null, nil, []byte(null))
	answer(c, "binary body", ", body_bytes => $4", []interface{}{everyByte}, nil, everyByte, everyByte)
	pairs := [][]string{{"Content-Type", "text/plain"}, {"Link", "<a>"}, {"Link", "<b>"}}
	again := answer(c, "body with headers", ", body => $4, headers => $5", []interface{}{x, pairs}, &x, nil, []byte(x))
	check("headers are pairs in order", reflect.DeepEqual(again.headers, pairs))
}

func parameters(c *pgx.Conn) {
	proceeds := func(key string, payload interface{}) bool {
		r, err := fetch(c, claimSQL, actor, op, key, payload)
		return err == nil && r.proceed
	}
	check("JSON as map", proceeds("map", map[string]interface{}{"a": []int{1, 2}}))
	check("JSON as string", proceeds("string", `{"a": 1}`))
	check("JSON as []byte", proceeds("bytes", []byte(`{"a": 1}`)))
	check("no JSON as nil", proceeds("nil", nil))
	durations := "SELECT outcome, proceed, operation_id::text, token, status, headers, body, body_bytes " +
		"FROM idem_claim($1, $2, $3, wait => $4, lease => $5, ttl => $6, attempt_id => $7)"
	attempt := "8e03978e-40d5-43e8-bc93-6894a57f9324"
	first, err := fetch(c, durations, actor, op, "durations", 0*time.Second, 30*time.Second, "2 days", attempt)
	check("durations as time.Duration or string", err == nil && first.outcome == "claimed")
	second, err := fetch(c, durations, actor, op, "durations", 0*time.Second, 30*time.Second, "2 days", attempt)
	check("attempt_id as string resumes", err == nil && second.outcome == "resumed" && second.token > first.token)
	var outcome string
	err = c.QueryRow(ctx, "SELECT outcome FROM idem_complete($1, $2)", first.id, first.token).Scan(&outcome)
	var problem *pgconn.PgError
	check("stale token is ID001", errors.As(err, &problem) && problem.Code == "ID001")
	rows, err := c.Query(ctx, "SELECT key || ' ' || outcome FROM idem_claim_many($1, $2, $3)", actor, op, []string{"m-1", "m-2"})
	var many []string
	for err == nil && rows.Next() {
		var line string
		err = rows.Scan(&line)
		many = append(many, line)
	}
	check("[]string for idem_claim_many", err == nil && reflect.DeepEqual(many, []string{"m-1 claimed", "m-2 claimed"}))
	err = c.QueryRow(ctx, "SELECT outcome FROM idem_claim($1, $2, $3, payload_bytes => $4)", actor, op, "raw", everyByte).Scan(&outcome)
	check("payload as []byte", err == nil && outcome == "claimed")
}

func main() {
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	c, err := pgx.Connect(ctx, "")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	parameters(c)
	bodies(c)
	if failed {
		os.Exit(1)
	}
}
