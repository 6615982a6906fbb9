// http.cpp: idem_http_key and idem_http_response, the two ends of a request for those who speak HTTP.
//
// Purpose: the key out of the request's header, and the whole response out of an idem_result, so that an application's
// middleware holds no table of status codes. An answer that exists is sent as it was stored; every other outcome
// becomes a problem document (RFC 9457) whose `code` is the outcome. An outcome that means "do the work" has no
// response and gives NULL. Data layout: idem_result is read by position after its shape is checked; idem_http is
// (status, headers, body). Bodies leave as UTF-8 bytes whatever the server's encoding. Lifetime: the result's
// descriptor is kept for one FmgrInfo, never longer.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/http_key.hpp"
#include "core/words.hpp"
#include "pg/boundary.hpp"
#include "pg/errors.hpp"
#include "pg/headers.hpp"
#include "pg/shapes.hpp"

namespace idem::api {
namespace {

using core::Outcome;

// Stored headers of these names would contradict what this answer itself says.
constexpr std::string_view OWN_HEADERS = "idempotency-operation-id,idempotent-replayed,idempotent-body-omitted";

constexpr std::size_t UUID_TEXT_SIZE = 36;
constexpr std::size_t INT_TEXT_SIZE = 12;

struct ResultRow {
    Datum value[pg::RESULT_COLUMNS];
    bool null[pg::RESULT_COLUMNS];
};

// Response is one row of idem_http; without_body means NULL, not empty.
struct Response {
    std::int32_t status;
    Jsonb* headers;
    Datum body;
    bool without_body;
};

// ReasonRule gives the status of a rejection whose reason begins or ends with a word. The first match counts; no match
// is 400, a request the client has to correct.
struct ReasonRule {
    std::string_view word;
    bool at_end;
    std::int32_t status;
};

constexpr ReasonRule REASON_RULES[] = {
    {"_format", true, 400},      {"_required", true, 400}, {"too_large", true, 413}, {"quota", false, 429},
    {"rate_limited", true, 429}, {"actor", false, 403},    {"forbidden", true, 403}, {"not_allowed", true, 403},
    {"permission", false, 403},  {"denied", true, 403},
};

struct StatusTitle {
    std::int32_t status;
    const char* title;
};

constexpr StatusTitle STATUS_TITLES[] = {
    {400, "Bad Request"},           {403, "Forbidden"}, {409, "Conflict"},          {413, "Content Too Large"},
    {422, "Unprocessable Content"}, {425, "Too Early"}, {429, "Too Many Requests"}, {503, "Service Unavailable"},
};

bool begins_with(std::string_view text, std::string_view word) {
    return text.size() >= word.size() && std::memcmp(text.data(), word.data(), word.size()) == 0;
}

bool ends_with(std::string_view text, std::string_view word) {
    return text.size() >= word.size() &&
           std::memcmp(text.data() + (text.size() - word.size()), word.data(), word.size()) == 0;
}

std::string_view view_of(Datum datum) {
    text* packed = DatumGetTextPP(datum);
    return std::string_view(VARDATA_ANY(packed), static_cast<std::size_t>(VARSIZE_ANY_EXHDR(packed)));
}

// read_result unpacks the composite; the values point into it.
void read_result(HeapTupleHeader header, ResultRow* result) {
    TupleDesc desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
    HeapTupleData tuple;

    if (!pg::has_shape(desc, pg::RESULT_SHAPE))
        pg::error_type_shape("idem_result");
    tuple.t_len = HeapTupleHeaderGetDatumLength(header);
    ItemPointerSetInvalid(&tuple.t_self);
    tuple.t_tableOid = InvalidOid;
    tuple.t_data = header;
    heap_deform_tuple(&tuple, desc, result->value, result->null);
    ReleaseTupleDesc(desc);
}

// outcome_of reads the outcome; raises when it is NULL or no word of ours.
Outcome outcome_of(const ResultRow& result) {
    if (result.null[pg::RESULT_OUTCOME])
        pg::error_no_response();
    std::string_view name = view_of(result.value[pg::RESULT_OUTCOME]);
    for (std::uint8_t i = 0; core::outcome_word(static_cast<Outcome>(i)) != nullptr; ++i)
        if (name == core::outcome_word(static_cast<Outcome>(i)))
            return static_cast<Outcome>(i);
    pg::error_no_response();
}

Jsonb* jsonb_of(const ResultRow& result, pg::ResultColumn column) {
    return result.null[column] ? nullptr : DatumGetJsonbP(result.value[column]);
}

// detail_member looks one member of `detail` up; false when detail is no object or has none.
bool detail_member(Jsonb* detail, std::string_view name, JsonbValue* value) {
    if (detail == nullptr || !JB_ROOT_IS_OBJECT(detail))
        return false;
    return getKeyJsonValueFromContainer(&detail->root, name.data(), static_cast<int>(name.size()), value) != nullptr;
}

// detail_status returns detail.http_status when it is an error status, else `usual`.
std::int32_t detail_status(Jsonb* detail, std::int32_t usual) {
    JsonbValue value;
    bool overflow = false;

    if (!detail_member(detail, "http_status", &value) || value.type != jbvNumeric)
        return usual;
    std::int32_t status = numeric_int4_opt_error(value.val.numeric, &overflow);
    return !overflow && status >= 400 && status <= 599 ? status : usual;
}

bool body_is_omitted(Jsonb* detail) {
    JsonbValue value;
    return detail_member(detail, "body_omitted", &value) && value.type == jbvBool && value.val.boolean;
}

std::int32_t rejected_status(const ResultRow& result) {
    if (result.null[pg::RESULT_REASON])
        return 400;
    std::string_view reason = view_of(result.value[pg::RESULT_REASON]);
    for (const ReasonRule& rule : REASON_RULES)
        if (rule.at_end ? ends_with(reason, rule.word) : begins_with(reason, rule.word))
            return rule.status;
    return 400;
}

const char* title_of(std::int32_t status) {
    for (const StatusTitle& known : STATUS_TITLES)
        if (known.status == status)
            return known.title;
    return "Request not processed";
}

const char* sentence_of(Outcome outcome, std::int32_t status) {
    switch (outcome) {
    case Outcome::IN_PROGRESS:
        return "A request with this idempotency key is being processed; repeat it unchanged later.";
    case Outcome::CONFLICT:
        return "This idempotency key was used for a different request; use a new key for a new request.";
    case Outcome::INDETERMINATE:
        return "It is not known whether an earlier attempt took effect; it is not run again until that is settled.";
    case Outcome::EXPIRED: return "This idempotency key was used before and its answer is no longer kept.";
    case Outcome::REJECTED:
        if (status == 403)
            return "The caller may not make this request.";
        if (status == 413)
            return "The request is larger than this operation accepts.";
        if (status == 429)
            return "The limit for such requests is reached; repeat the request unchanged later.";
        return "The request was rejected before any work was done; correct it before sending it again.";
    case Outcome::CLAIMED:
    case Outcome::RESUMED:
    case Outcome::COMPLETED:
    case Outcome::REPLAY:
    case Outcome::STALE:
    case Outcome::GAP: break;
    case Outcome::RELEASED: return "The attempt did not take effect; repeat the request unchanged.";
    }
    return "The request was not processed.";
}

// utf8_of converts text in the server's encoding. SQL_ASCII has no encoding to convert from: its bytes go as they are.
std::string_view utf8_of(std::string_view text) {
    if (GetDatabaseEncoding() == PG_UTF8 || GetDatabaseEncoding() == PG_SQL_ASCII || text.empty())
        return text;
    const char* converted = pg_server_to_any(text.data(), static_cast<int>(text.size()), PG_UTF8);
    return converted == text.data() ? text : std::string_view(converted);
}

Datum bytea_of(std::string_view bytes) {
    return PointerGetDatum(cstring_to_text_with_len(bytes.data(), static_cast<int>(bytes.size())));
}

// text_as_bytea returns a text value's bytes in UTF-8; the common encodings need no copy, text and bytea are laid out
// alike.
Datum text_as_bytea(Datum datum) {
    if (GetDatabaseEncoding() == PG_UTF8 || GetDatabaseEncoding() == PG_SQL_ASCII)
        return datum;
    return bytea_of(utf8_of(view_of(datum)));
}

// uuid_text writes the 36 characters of a uuid, without a terminator.
std::string_view uuid_text(Datum uuid, char* out) {
    constexpr char digits[] = "0123456789abcdef";
    const pg_uuid_t* id = DatumGetUUIDP(uuid);
    std::size_t size = 0;

    for (int i = 0; i < UUID_LEN; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            out[size++] = '-';
        out[size++] = digits[id->data[i] >> 4];
        out[size++] = digits[id->data[i] & 0x0f];
    }
    return std::string_view(out, size);
}

// retry_text writes retry_after_s as text: empty when there is none, one second for work that runs or may run again.
std::string_view retry_text(const ResultRow& result, Outcome outcome, char* out) {
    std::int32_t seconds = 1;
    if (!result.null[pg::RESULT_RETRY_AFTER_S])
        seconds = DatumGetInt32(result.value[pg::RESULT_RETRY_AFTER_S]);
    else if (outcome != Outcome::IN_PROGRESS && outcome != Outcome::RELEASED)
        return std::string_view();
    return std::string_view(out, static_cast<std::size_t>(pg_ltoa(seconds < 0 ? 0 : seconds, out)));
}

void append_view(StringInfo out, std::string_view text) {
    appendBinaryStringInfo(out, text.data(), static_cast<int>(text.size()));
}

void append_winner(StringInfo out, Jsonb* detail) {
    JsonbValue winner;
    if (!detail_member(detail, "winner", &winner) || winner.type == jbvNull)
        return;
    Jsonb* document = JsonbValueToJsonb(&winner);
    appendStringInfoString(out, ",\"winner\":");
    JsonbToCString(out, &document->root, static_cast<int>(VARSIZE(document)));
}

// Problem gathers what a problem document says beside the result itself.
struct Problem {
    Outcome outcome;
    std::int32_t status;
    std::string_view operation_id;
    std::string_view retry_after;
};

Datum problem_body(const ResultRow& result, const Problem& problem, Jsonb* detail) {
    StringInfoData out;
    initStringInfo(&out);
    appendStringInfo(&out, "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,\"code\":\"",
                     title_of(problem.status), problem.status);
    append_view(&out, view_of(result.value[pg::RESULT_OUTCOME]));
    appendStringInfoChar(&out, '"');
    if (!result.null[pg::RESULT_REASON]) {
        appendStringInfoString(&out, ",\"reason\":");
        escape_json(&out, TextDatumGetCString(result.value[pg::RESULT_REASON]));
    }
    appendStringInfo(&out, ",\"detail\":\"%s\"", sentence_of(problem.outcome, problem.status));
    if (!problem.operation_id.empty()) {
        appendStringInfoString(&out, ",\"operation_id\":\"");
        append_view(&out, problem.operation_id);
        appendStringInfoChar(&out, '"');
    }
    if (!problem.retry_after.empty()) {
        appendStringInfoString(&out, ",\"retry_after_s\":");
        append_view(&out, problem.retry_after);
    }
    append_winner(&out, detail);
    appendStringInfoChar(&out, '}');
    return bytea_of(utf8_of(std::string_view(out.data, static_cast<std::size_t>(out.len))));
}

// problem_response answers every outcome that has no stored response.
Response problem_response(const ResultRow& result, Outcome outcome, std::int32_t status) {
    char uuid_space[UUID_TEXT_SIZE];
    char retry_space[INT_TEXT_SIZE];
    Problem problem = {outcome, status, std::string_view(), retry_text(result, outcome, retry_space)};
    pg::HeaderList list = pg::headers_begin();

    if (!result.null[pg::RESULT_OPERATION_ID])
        problem.operation_id = uuid_text(result.value[pg::RESULT_OPERATION_ID], uuid_space);
    pg::headers_add(&list, "Content-Type", "application/problem+json");
    if (!problem.operation_id.empty())
        pg::headers_add(&list, "Idempotency-Operation-Id", problem.operation_id);
    if (!problem.retry_after.empty())
        pg::headers_add(&list, "Retry-After", problem.retry_after);
    return Response{status, pg::headers_end(&list), problem_body(result, problem, jsonb_of(result, pg::RESULT_DETAIL)),
                    false};
}

// stored_status returns the stored status; without one, 200 for success and 500 for a stored failure, so that no client
// takes a failure for done. An event that was parked is accepted: 202.
std::int32_t stored_status(const ResultRow& result, Outcome outcome) {
    if (!result.null[pg::RESULT_STATUS])
        return DatumGetInt32(result.value[pg::RESULT_STATUS]);
    if (outcome == Outcome::GAP)
        return 202;
    if (!result.null[pg::RESULT_STATE] && view_of(result.value[pg::RESULT_STATE]) == "failed")
        return 500;
    return 200;
}

// stored_response answers completed and replay with what was stored.
Response stored_response(const ResultRow& result, Outcome outcome) {
    char uuid_space[UUID_TEXT_SIZE];
    Response response = {stored_status(result, outcome), nullptr, 0, false};
    pg::HeaderList list = pg::headers_begin();
    bool omitted = body_is_omitted(jsonb_of(result, pg::RESULT_DETAIL));

    pg::headers_add_stored(&list, jsonb_of(result, pg::RESULT_HEADERS), OWN_HEADERS);
    if (!result.null[pg::RESULT_OPERATION_ID])
        pg::headers_add(&list, "Idempotency-Operation-Id",
                        uuid_text(result.value[pg::RESULT_OPERATION_ID], uuid_space));
    if (outcome == Outcome::REPLAY ||
        (!result.null[pg::RESULT_REPLAYED] && DatumGetBool(result.value[pg::RESULT_REPLAYED])))
        pg::headers_add(&list, "Idempotent-Replayed", "true");
    if (omitted)
        pg::headers_add(&list, "Idempotent-Body-Omitted", "true");
    response.headers = pg::headers_end(&list);
    if (omitted)
        response.body = bytea_of(std::string_view("", 0));
    else if (!result.null[pg::RESULT_BODY_REF])
        response.without_body = true;
    else if (!result.null[pg::RESULT_BODY])
        response.body = text_as_bytea(result.value[pg::RESULT_BODY]);
    else if (!result.null[pg::RESULT_BODY_BYTES])
        response.body = result.value[pg::RESULT_BODY_BYTES];
    else
        response.without_body = true;
    return response;
}

Response response_of(const ResultRow& result) {
    Outcome outcome = outcome_of(result);
    switch (outcome) {
    case Outcome::COMPLETED:
    case Outcome::REPLAY:
    case Outcome::STALE:
    case Outcome::GAP: return stored_response(result, outcome);
    case Outcome::IN_PROGRESS:
    case Outcome::CONFLICT:
        return problem_response(result, outcome, detail_status(jsonb_of(result, pg::RESULT_DETAIL), 409));
    case Outcome::RELEASED:
        return problem_response(result, outcome, detail_status(jsonb_of(result, pg::RESULT_DETAIL), 503));
    case Outcome::INDETERMINATE:
    case Outcome::EXPIRED: return problem_response(result, outcome, 409);
    case Outcome::REJECTED: return problem_response(result, outcome, rejected_status(result));
    case Outcome::CLAIMED:
    case Outcome::RESUMED: break;
    }
    pg::error_no_response();
}

// has_no_response tells of a result that nothing can be sent for: the work is still to be done, or nothing is known.
bool has_no_response(const ResultRow& result) {
    return result.null[pg::RESULT_OUTCOME] || core::proceeds(outcome_of(result));
}

// http_descriptor returns idem_http's descriptor, looked up once per FmgrInfo.
TupleDesc http_descriptor(FunctionCallInfo fcinfo) {
    if (fcinfo->flinfo->fn_extra != nullptr)
        return static_cast<TupleDesc>(fcinfo->flinfo->fn_extra);
    TupleDesc desc = nullptr;
    MemoryContext caller = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
    if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE || !pg::has_shape(desc, pg::HTTP_SHAPE))
        pg::error_type_shape("idem_http");
    desc = BlessTupleDesc(desc);
    MemoryContextSwitchTo(caller);
    fcinfo->flinfo->fn_extra = desc;
    return desc;
}

} // namespace
} // namespace idem::api

// idem_http_key(header text) returns the key in an Idempotency-Key field; NULL for NULL and for no usable key. Never
// raises.
IDEM_FUNCTION(idem_http_key_v1) {
    if (PG_ARGISNULL(0))
        PG_RETURN_NULL();
    text* header = PG_GETARG_TEXT_PP(0);
    std::size_t room = static_cast<std::size_t>(VARSIZE_ANY_EXHDR(header));
    text* key = static_cast<text*>(palloc(VARHDRSZ + room));
    std::size_t size = 0;

    if (!idem::core::parse_http_key(std::string_view(VARDATA_ANY(header), room), VARDATA(key), &size))
        PG_RETURN_NULL();
    SET_VARSIZE(key, VARHDRSZ + size);
    PG_RETURN_TEXT_P(key);
}

// idem_http_response(result idem_result) returns the idem_http to send: stored answers as stored, other outcomes as a
// problem document. NULL for NULL, for what proceeds and for a lookup that found nothing. Raises 22023 for outcomes
// that are not ours, ID006 for altered types.
IDEM_FUNCTION(idem_http_response_v1) {
    if (PG_ARGISNULL(0))
        PG_RETURN_NULL();
    idem::api::ResultRow result;
    idem::api::read_result(PG_GETARG_HEAPTUPLEHEADER(0), &result);
    if (idem::api::has_no_response(result))
        PG_RETURN_NULL();
    idem::api::Response response = idem::api::response_of(result);
    Datum values[] = {Int32GetDatum(response.status), JsonbPGetDatum(response.headers), response.body};
    bool nulls[] = {false, false, response.without_body};
    HeapTuple tuple = heap_form_tuple(idem::api::http_descriptor(fcinfo), values, nulls);
    PG_RETURN_DATUM(HeapTupleGetDatum(tuple));
}
