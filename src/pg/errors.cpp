// errors.cpp: the texts of errors.hpp. See there for the rules.
#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/errors.hpp"

namespace idem::pg {

namespace {

// id_text prints an operation id for a DETAIL line; palloc'd in the error's context.
const char* id_text(const core::OperationId& id) {
    pg_uuid_t uuid;
    std::memcpy(uuid.data, id.bytes, sizeof id.bytes);
    return DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(&uuid)));
}

// excerpt prints up to 64 bytes of what a user wrote, with control characters made visible as question marks.
const char* excerpt(std::string_view text) {
    const int size =
        text.size() > 64 ? pg_mbcliplen(text.data(), static_cast<int>(text.size()), 64) : static_cast<int>(text.size());
    char* copy = pnstrdup(text.data(), static_cast<Size>(size));
    for (char* c = copy; *c != '\0'; c++) {
        if (static_cast<unsigned char>(*c) < 0x20 || *c == 0x7f) {
            *c = '?';
        }
    }
    return copy;
}

} // namespace

void error_null_argument(const char* argument) {
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s must not be null", argument)));
    pg_unreachable();
}

void error_empty_argument(const char* argument) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s must not be empty", argument)));
    pg_unreachable();
}

void error_argument_too_long(const char* argument, std::size_t limit_bytes) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s is too long", argument),
                    errdetail("The limit is %zu bytes.", limit_bytes)));
    pg_unreachable();
}

void error_control_character(const char* argument) {
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s must not contain control characters", argument)));
    pg_unreachable();
}

void error_duration_range(const char* argument, const char* minimum, const char* maximum) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("%s must be an interval between %s and %s", argument, minimum, maximum),
                    errhint("An interval names its unit, as in %s => '30 seconds'.", argument)));
    pg_unreachable();
}

void error_two_payloads() {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("payload and payload_bytes exclude each other"),
                    errhint("Pass JSON as payload, anything else as payload_bytes.")));
    pg_unreachable();
}

void error_two_bodies() {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("body, body_json, body_bytes and body_ref exclude each other"),
                    errhint("Pass the one form in which the answer was sent.")));
    pg_unreachable();
}

void error_body_sha256_size() {
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("body_sha256 must be 32 bytes and goes with body_ref")));
    pg_unreachable();
}

void error_status_range(int status) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("status must be between 100 and 599"),
                    errdetail("The status given is %d.", status)));
    pg_unreachable();
}

void error_unknown_state(const char* function, const char* allowed) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("unknown state for %s", function),
                    errhint("The states are %s.", allowed)));
    pg_unreachable();
}

void error_evidence_required() {
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("evidence must not be null"),
                    errhint("Say how it is known what happened, as in evidence => '{\"charge\": \"ch_1\"}'.")));
    pg_unreachable();
}

void error_array_lengths(const char* first, int first_length, const char* second, int second_length) {
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s and %s must have the same length", first, second),
             errdetail("There are %d %s and %d %s.", first_length, first, second_length, second)));
    pg_unreachable();
}

void error_array_shape(const char* argument) {
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s must be an array of one dimension", argument)));
    pg_unreachable();
}

void error_too_large(const char* what, std::size_t size, std::size_t limit) {
    ereport(ERROR, (errcode(ERRCODE_ID_TOO_LARGE), errmsg("%s is too large", what),
                    errdetail("It has %zu, the limit is %zu.", size, limit)));
    pg_unreachable();
}

void error_stale_token(const core::OperationId& id) {
    ereport(ERROR, (errcode(ERRCODE_ID_STALE_TOKEN), errmsg("stale token"),
                    errdetail("Operation %s is not held by this token any more.", id_text(id)),
                    errhint("Stop the work of this attempt; another attempt holds or has ended the operation.")));
    pg_unreachable();
}

void error_other_response(const core::OperationId& id) {
    ereport(ERROR, (errcode(ERRCODE_ID_OTHER_RESPONSE), errmsg("operation is already completed with another response"),
                    errdetail("The first response of operation %s is kept.", id_text(id)),
                    errhint("Send the stored response; SELECT * FROM idem_lookup_id(operation_id) shows it.")));
    pg_unreachable();
}

void error_not_committed(const core::OperationId& id) {
    ereport(ERROR,
            (errcode(ERRCODE_ID_NOT_COMMITTED), errmsg("claim in lease mode must be committed before it is completed"),
             errdetail("Operation %s was claimed in this transaction.", id_text(id)),
             errhint("Commit after idem_claim and do the work then, or give the op a policy of mode "
                     "\"transaction\".")));
    pg_unreachable();
}

void error_left_open(const core::OperationId& id) {
    ereport(ERROR,
            (errcode(ERRCODE_ID_LEFT_OPEN), errmsg("claim in transaction mode is left open at commit"),
             errdetail("Operation %s was claimed in this transaction and not completed.", id_text(id)),
             errhint("Call idem_complete, idem_fail or idem_release before COMMIT, or give the op a policy of mode "
                     "\"lease\".")));
    pg_unreachable();
}

void error_no_operation(const core::OperationId& id) {
    ereport(ERROR, (errcode(ERRCODE_ID_NO_OPERATION), errmsg("no such operation"),
                    errdetail("Operation %s is not known.", id_text(id)),
                    errhint("The claim was rolled back, or its time is over.")));
    pg_unreachable();
}

void error_not_running(const core::OperationId& id, const char* state) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("operation is not running"),
                    errdetail("Operation %s is %s.", id_text(id), state)));
    pg_unreachable();
}

void error_not_resolvable(const core::OperationId& id, const char* state, bool running) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("only an indeterminate operation can be resolved"),
                    errdetail("Operation %s is %s.", id_text(id), state),
                    running ? errhint("Wait until its lease and grace are over, or complete it with its token.")
                            : errhint("It is decided; SELECT * FROM idem_lookup_id(operation_id) shows how.")));
    pg_unreachable();
}

void error_not_reopenable(const core::OperationId& id, const char* state) {
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("only work that ended can be forced again"),
         errdetail("Operation %s is %s.", id_text(id), state),
         errhint("A running one ends by its token, or when its lease and grace are over; a released one is free.")));
    pg_unreachable();
}

void error_seq_without_entity() {
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("entity and seq must be given together"),
                    errdetail("A sequence number counts the events of one entity.")));
    pg_unreachable();
}

void error_negative_argument(const char* argument) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s must not be negative", argument)));
    pg_unreachable();
}

void error_version_in_lease_mode() {
    ereport(ERROR, (errcode(ERRCODE_ID_NOT_COMMITTED), errmsg("idem_version_claim cannot serve an op in lease mode"),
                    errdetail("The version advances with the change, in one transaction."),
                    errhint("Give the op a policy of mode \"transaction\".")));
    pg_unreachable();
}

void error_claimed_twice_in_statement(const core::OperationId& id) {
    ereport(ERROR,
            (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("one statement claims the same key at two places"),
             errdetail("(idem_claim(...)).* calls the function once for each column; operation %s.", id_text(id)),
             errhint("Write SELECT * FROM idem_claim(...).")));
    pg_unreachable();
}

void error_serialization() {
    ereport(ERROR,
            (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE), errmsg("could not serialize access due to concurrent update"),
             errhint("The transaction might succeed if retried.")));
    pg_unreachable();
}

void error_deadlock() {
    ereport(ERROR, (errcode(ERRCODE_T_R_DEADLOCK_DETECTED), errmsg("deadlock detected"),
                    errdetail("The transaction that holds the key waits for this one."),
                    errhint("Claim keys before other locks are taken, and in the same order everywhere.")));
    pg_unreachable();
}

void error_lease_lapsed(const core::OperationId& message) {
    ereport(ERROR, (errcode(ERRCODE_ID_STALE_TOKEN), errmsg("stale token"),
                    errdetail("Message %s is not leased under this token any more.", id_text(message)),
                    errhint("The message is, or will be, delivered by another fetch; make the lease longer or the "
                            "batch smaller.")));
    pg_unreachable();
}

void error_no_message(const core::OperationId& message) {
    ereport(ERROR, (errcode(ERRCODE_ID_NO_OPERATION), errmsg("no such message"),
                    errdetail("Message %s is not in the outbox.", id_text(message))));
    pg_unreachable();
}

void error_number_range(const char* argument, int minimum, int maximum) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("%s must be between %d and %d", argument, minimum, maximum)));
    pg_unreachable();
}

void error_reserved_header(const char* name) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("header \"%s\" is set by the outbox", name)));
    pg_unreachable();
}

void error_event_headers() {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("headers must be an object of strings, numbers and booleans"),
                    errdetail("type and source must be strings that are not empty.")));
    pg_unreachable();
}

void error_on_dead_letter() {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("on_dead_letter must be hold or skip")));
    pg_unreachable();
}

void error_version(const char* installed, const char* library) {
    ereport(ERROR,
            (errcode(ERRCODE_ID_VERSION), errmsg("library and SQL script of idempotency are of different versions"),
             errdetail("The script is %s, the library is for %s.", installed, library),
             errhint("Run ALTER EXTENSION idempotency UPDATE, or restart the server after installing the library.")));
    pg_unreachable();
}

void error_not_installed(const char* relation) {
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("extension idempotency is not complete in this schema"),
                    errdetail("Relation \"%s\" is missing.", relation),
                    errhint("Run DROP EXTENSION and CREATE EXTENSION idempotency again.")));
    pg_unreachable();
}

void error_table_shape(const char* relation, const char* problem) {
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("table \"%s\" does not have the shape that idempotency needs", relation), errdetail("%s", problem),
             errhint("Undo the ALTER TABLE; triggers, foreign keys, indexes, CHECK "
                     "constraints and nullable columns may be added.")));
    pg_unreachable();
}

void error_row_skipped(const char* relation) {
    ereport(ERROR, (errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
                    errmsg("a trigger on table \"%s\" suppressed a row of idempotency", relation),
                    errhint("BEFORE ROW triggers on this table must return NEW.")));
    pg_unreachable();
}

void error_unique_violation(const char* index) {
    ereport(ERROR,
            (errcode(ERRCODE_UNIQUE_VIOLATION), errmsg("duplicate key value violates unique constraint \"%s\"", index),
             errdetail("The index is not part of the extension.")));
    pg_unreachable();
}

void error_null_column(Relation relation, const char* column) {
    ereport(ERROR, (errcode(ERRCODE_NOT_NULL_VIOLATION),
                    errmsg("null value in column \"%s\" of relation \"%s\" violates not-null constraint", column,
                           RelationGetRelationName(relation)),
                    errtable(relation)));
    pg_unreachable();
}

void error_check_violation(Relation relation, const char* constraint) {
    ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION),
                    errmsg("new row for relation \"%s\" violates check constraint \"%s\"",
                           RelationGetRelationName(relation), constraint),
                    errtableconstraint(relation, constraint)));
    pg_unreachable();
}

void error_retries_exhausted() {
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not claim the key: the row keeps changing")));
    pg_unreachable();
}

void error_identity_mismatch(const core::OperationId& id) {
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("stored identity does not match the operation id"),
                    errdetail("Operation %s is stored for another actor, op or key.", id_text(id))));
    pg_unreachable();
}

void error_profile_missing(std::int32_t version) {
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("version %d of the op's profile is missing", version),
                    errdetail("A key was hashed under it."),
                    errhint("Restore idem_profiles together with idem_keys and idem_policies.")));
    pg_unreachable();
}

void error_secret_missing(std::int32_t version) {
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("version %d of the secret is missing or damaged", version),
                    errhint("Restore idem_secrets together with idem_profiles.")));
    pg_unreachable();
}

void error_answer_missing(const core::OperationId& id) {
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("stored answer is missing"),
                    errdetail("Operation %s is completed, and its answer is not in idem_responses.", id_text(id)),
                    errhint("Restore idem_responses together with idem_keys.")));
    pg_unreachable();
}

void error_no_handler() {
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("handler must not be null"),
                    errdetail("Neither the argument nor the policy of the op names a handler.")));
    pg_unreachable();
}

void error_handler_not_found(const char* handler) {
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION), errmsg("handler \"%s\" does not exist", handler),
                    errhint("A handler is a function (jsonb) or (jsonb, idem_result).")));
    pg_unreachable();
}

void error_handler_kind(const char* handler) {
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("handler \"%s\" is not a plain function", handler),
                    errhint("Procedures, aggregates and set-returning functions cannot be handlers.")));
    pg_unreachable();
}

void error_handler_strict(const char* handler) {
    ereport(ERROR,
            (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("handler \"%s\" is STRICT and payload is null", handler),
             errdetail("It would not be called, and the request would count as done.")));
    pg_unreachable();
}

void error_handler_result(const char* handler) {
    ereport(ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("handler \"%s\" must return jsonb or idem_response", handler)));
    pg_unreachable();
}

void error_execute_in_lease_mode() {
    ereport(ERROR,
            (errcode(ERRCODE_ID_NOT_COMMITTED), errmsg("idem_execute cannot serve an op in lease mode"),
             errdetail("It claims, works and completes in one transaction."),
             errhint("Give the op a policy of mode \"transaction\", or claim and complete in two transactions.")));
    pg_unreachable();
}

void error_sweep_in_transaction() {
    ereport(ERROR,
            (errcode(ERRCODE_ACTIVE_SQL_TRANSACTION), errmsg("idem_admin_sweep cannot run inside a transaction block"),
             errdetail("It commits after each batch."),
             errhint("CALL it as a statement of its own, in autocommit, and not from a function.")));
    pg_unreachable();
}

void error_not_preloaded(const char* function) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("%s needs the library to be preloaded", function),
                    errhint("Add idempotency to shared_preload_libraries and restart.")));
    pg_unreachable();
}

void error_malformed_headers() {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("malformed headers"),
                    errhint("Give an array of [name, value] pairs, or an object of names and values.")));
    pg_unreachable();
}

void error_header_name(int position) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("header name is not an HTTP token"),
                    errdetail("It is the name of header %d.", position)));
    pg_unreachable();
}

void error_header_value(int position) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("header value contains a line break"),
                    errdetail("It is the value of header %d.", position),
                    errhint("Remove carriage returns and line feeds from values that come from outside.")));
    pg_unreachable();
}

void error_headers_number(int limit) {
    ereport(ERROR, (errcode(ERRCODE_ID_TOO_LARGE), errmsg("too many headers"), errdetail("The limit is %d.", limit)));
    pg_unreachable();
}

void error_headers_size(std::size_t limit_bytes) {
    ereport(ERROR, (errcode(ERRCODE_ID_TOO_LARGE), errmsg("headers are too large"),
                    errdetail("The limit is %zu bytes of names and values.", limit_bytes)));
    pg_unreachable();
}

void error_type_shape(const char* type) {
    ereport(ERROR, (errcode(ERRCODE_ID_VERSION), errmsg("type %s does not have the shape this library expects", type),
                    errhint("Run ALTER EXTENSION idempotency UPDATE, and undo any ALTER TYPE.")));
    pg_unreachable();
}

void error_no_response() {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("outcome of the result is unknown"),
                    errhint("Pass what idem_claim, idem_execute, idem_complete, idem_fail or idem_lookup returned.")));
    pg_unreachable();
}

void error_unknown_hash_algorithm(const char* name, int size) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("unknown hash algorithm \"%s\"", excerpt({name, static_cast<std::size_t>(size)})),
                    errhint("The algorithms are \"xxh3-128\" and \"sha256\".")));
    pg_unreachable();
}

void error_canonical_not_utf8() {
    ereport(ERROR, (errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE),
                    errmsg("text with bytes above 127 has no canonical form in an SQL_ASCII database"),
                    errdetail("The canonical form is UTF-8, and the database does not say how its bytes are encoded."),
                    errhint("Use a database with a real encoding.")));
    pg_unreachable();
}

void error_canonical_too_long() {
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("canonical text of the value exceeds 1 GB"),
                    errhint("The hash of the value, idem_hash(), has no such limit.")));
    pg_unreachable();
}

namespace {

// spaced prints a list of words with a blank after each comma.
const char* spaced(std::string_view words) {
    StringInfoData out;
    initStringInfo(&out);
    for (char c : words) {
        appendStringInfoChar(&out, c);
        if (c == ',') {
            appendStringInfoChar(&out, ' ');
        }
    }
    return out.data;
}

const char* json_form(const core::Option& option) {
    switch (option.type) {
    case core::OptionType::ENUMERATION: return psprintf("one of %s", spaced(option.words));
    case core::OptionType::INTERVAL: return "a JSON string with a duration and its unit";
    case core::OptionType::INTEGER: return "a JSON number";
    case core::OptionType::BOOLEAN: return "true or false";
    case core::OptionType::TEXT: return "a JSON string";
    case core::OptionType::OBJECT: return "a JSON object of strings";
    case core::OptionType::ARRAY: return "a JSON array of strings";
    case core::OptionType::DOCUMENT: return "an object";
    }
    return "";
}

// value_form says what a well-formed value looks like, in a sentence.
const char* value_form(const core::Option& option) {
    switch (option.id) {
    case core::OptionId::KEY_CHARS:
        return "It is the inside of a character class in printable ASCII, as in A-Za-z0-9_.:- without brackets; a "
               "backslash before punctuation means that character.";
    case core::OptionId::HANDLER: return "It is a schema-qualified function name, as in shop.place_order.";
    case core::OptionId::ON_STATUS:
        return "It names classes (\"2xx\" to \"5xx\"), statuses (\"503\") or \"timeout\", each with store, release or "
               "indeterminate.";
    case core::OptionId::REPLAY_HEADERS: return "Each item is one header name.";
    default: break;
    }
    switch (option.type) {
    case core::OptionType::ENUMERATION: return psprintf("It must be one of %s.", spaced(option.words));
    case core::OptionType::INTERVAL: return "It is a number with its unit, as in \"30 seconds\".";
    case core::OptionType::INTEGER: return "It must be a whole number.";
    default: return "It must not have control characters.";
    }
}

const char* bounds(const core::Option& option) {
    char minimum[core::SHORT_TEXT_MAX];
    char maximum[core::SHORT_TEXT_MAX];
    const std::string_view low = core::format_bound(option, option.min, minimum);
    const std::string_view high = core::format_bound(option, option.max, maximum);
    return psprintf("It must be between %.*s and %.*s.", static_cast<int>(low.size()), low.data(),
                    static_cast<int>(high.size()), high.data());
}

} // namespace

void error_unknown_preset(std::string_view preset) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("unknown policy preset \"%s\"", excerpt(preset)),
                    errhint("The presets are default, payment, order, webhook, message and ephemeral.")));
    pg_unreachable();
}

void error_policy_options_not_object() {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("policy options must be a JSON object"),
                    errhint("Write them as in '{\"ttl\": \"2 days\"}'; SELECT * FROM idem_policy_options shows all.")));
    pg_unreachable();
}

void error_unknown_policy_option(std::string_view name) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("unknown policy option \"%s\"", excerpt(name)),
                    errhint("SELECT * FROM idem_policy_options shows every option.")));
    pg_unreachable();
}

void error_policy_option_type(const core::Option& option) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("policy option \"%s\" must be %s", option.name.data(), json_form(option)),
                    option.type == core::OptionType::INTERVAL
                        ? errhint("Write the unit, as in {\"%s\": \"30 seconds\"}.", option.name.data())
                        : 0));
    pg_unreachable();
}

void error_policy_option_value(const core::Option& option, core::OptionFault fault, std::string_view text) {
    const char* name = option.name.data();
    switch (fault) {
    case core::OptionFault::OUT_OF_RANGE:
        if (option.type == core::OptionType::INTERVAL || option.type == core::OptionType::INTEGER) {
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                            errmsg("policy option \"%s\" is out of range: %s", name, excerpt(text)),
                            errdetail("%s", bounds(option))));
        }
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("policy option \"%s\" is too long", name),
                        errdetail("The limit is %lld bytes.", static_cast<long long>(option.max))));
    case core::OptionFault::NO_UNIT:
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("policy option \"%s\" names no unit: \"%s\"", name, excerpt(text)),
                        errhint("Write the unit, as in {\"%s\": \"30 seconds\"}.", name)));
    case core::OptionFault::UNSTEADY_UNIT:
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("policy option \"%s\" must not count months or years: \"%s\"", name, excerpt(text)),
                        errdetail("They have no fixed length."), errhint("Write days, as in \"30 days\".")));
    case core::OptionFault::FORBIDDEN:
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("policy option \"%s\" must not name a header that belongs to one client", name),
                        errdetail("Set-Cookie, Set-Cookie2, WWW-Authenticate and Proxy-Authenticate are never "
                                  "replayed.")));
    case core::OptionFault::NONE:
    case core::OptionFault::MALFORMED: break;
    }
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    text.empty() ? errmsg("invalid value for policy option \"%s\"", name)
                                 : errmsg("invalid value for policy option \"%s\": \"%s\"", name, excerpt(text)),
                    errdetail("%s", value_form(option))));
    pg_unreachable();
}

void error_policy_key_lengths(int key_min, int key_max) {
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("policy option \"key_min\" is greater than \"key_max\""),
             errdetail("key_min is %d bytes, key_max is %d bytes.", key_min, key_max)));
    pg_unreachable();
}

void error_profile_not_object() {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("payload options must be a JSON object")));
    pg_unreachable();
}

void error_unknown_profile_option(std::string_view name) {
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("unknown payload option \"%s\"", excerpt(name)),
             errhint("The options are trim_strings, nfc_strings, ignore_paths, intent_paths, strip_nulls, numbers, "
                     "decimal_paths, round_paths and unordered_paths.")));
    pg_unreachable();
}

void error_profile_option_type(const char* option, const char* form) {
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("payload option \"%s\" must be %s", option, form)));
    pg_unreachable();
}

void error_unknown_numbers(std::string_view word) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("invalid value for payload option \"numbers\": \"%s\"", excerpt(word)),
                    errdetail("It is \"exact\" or \"double\".")));
    pg_unreachable();
}

void error_path(const char* option, std::string_view path, core::PathFault fault, std::size_t position) {
    const char* detail = "";
    switch (fault) {
    case core::PathFault::NONE:
    case core::PathFault::SYNTAX: detail = psprintf("Byte %zu is where it stops to be a path.", position + 1); break;
    case core::PathFault::INDEX:
        detail = "Elements cannot be named by number, for the number changes with its neighbours.";
        break;
    case core::PathFault::NOT_A_MEMBER: detail = "Only members of objects can be ignored."; break;
    case core::PathFault::OTHER_SCALE: detail = "Another path to the same place has another scale."; break;
    }
    ereport(
        ERROR,
        (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid path in %s: \"%s\"", option, excerpt(path)),
         errdetail("%s", detail),
         errhint("A path is $ and steps such as .name, .\"any name\", .* (every member) and [*] (every element).")));
    pg_unreachable();
}

void error_scale(std::string_view path) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("invalid scale in round_paths for path \"%s\"", excerpt(path)),
                    errdetail("A scale is an integer from -131072 to 16383: digits after the point.")));
    pg_unreachable();
}

void error_beyond_double() {
    ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("a number is beyond the range of a double"),
                    errhint("numbers => 'exact' has no such limit.")));
    pg_unreachable();
}

void error_json_text(core::JsonFault fault, std::size_t position) {
    const char* detail = "";
    switch (fault) {
    case core::JsonFault::ZERO:
        ereport(ERROR, (errcode(ERRCODE_UNTRANSLATABLE_CHARACTER), errmsg("JSON text with \\u0000 has no hash"),
                        errdetail("Character %zu begins it, and jsonb cannot hold it.", position)));
    case core::JsonFault::NONE:
    case core::JsonFault::SYNTAX: detail = "Character %zu does not belong there."; break;
    case core::JsonFault::UNFINISHED:
        detail = "It ends after %zu characters.";
        position--;
        break;
    case core::JsonFault::CONTROL: detail = "Character %zu is a control character inside a string."; break;
    case core::JsonFault::ESCAPE: detail = "Character %zu begins an escape that JSON does not have."; break;
    case core::JsonFault::SURROGATE: detail = "Character %zu begins one half of a surrogate pair, alone."; break;
    }
    ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION), errmsg("text is not valid JSON"),
                    errdetail_internal(detail, position)));
    pg_unreachable();
}

void error_json_member_twice(std::size_t position) {
    ereport(ERROR,
            (errcode(ERRCODE_DUPLICATE_JSON_OBJECT_KEY_VALUE), errmsg("a member name occurs twice in one JSON object"),
             errdetail("Its second occurrence begins at character %zu.", position),
             errhint("strict => false lets the last one win, as jsonb does.")));
    pg_unreachable();
}

void error_json_noncharacter(std::size_t position) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("a JSON string has a noncharacter"),
                    errdetail("The string begins at character %zu. I-JSON (RFC 7493) forbids it.", position),
                    errhint("strict => false accepts it.")));
    pg_unreachable();
}

} // namespace idem::pg
