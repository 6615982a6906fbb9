// execute.cpp: see execute.hpp.
//
// Rights: the handler runs as the caller and is found by the caller's search_path unless it is qualified; a policy's
// handler always is. EXECUTE on it is checked as SQL would.
// Errors: a handler's error leaves by longjmp and takes the claim with it. Only where the policy says store does the
// handler run inside a PL/pgSQL EXCEPTION block (idem_call_handler), so that the hot path needs no subtransaction.
#include "core/policy.hpp"
#include "core/types.hpp"
#include "core/words.hpp"
#include "engine/claim.hpp"
#include "engine/execute.hpp"
#include "engine/finish.hpp"
#include "engine/result.hpp"
#include "pg/server.hpp"
#include "pg/compat.hpp"
#include "pg/errors.hpp"
#include "pg/shapes.hpp"

namespace idem::engine {

namespace {

// Handler is a resolved handler function.
struct Handler {
    Oid function;
    const char* name;
    bool wants_claim; // (jsonb, idem_result) instead of (jsonb)
    bool composite;   // returns idem_response instead of jsonb
};

Oid type_in(const pg::Installation& installation, const char* name) {
    return GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(name), ObjectIdGetDatum(installation.schema));
}

Oid find_function(const pg::Installation& installation, const char* name, bool* wants_claim) {
    List* qualified = pg::qualified_name_list(name);
    const Oid types[2] = {JSONBOID, installation.result_type};
    for (int arguments = 1; arguments <= 2; ++arguments) {
        const Oid function = LookupFuncName(qualified, arguments, types, true);
        if (!OidIsValid(function))
            continue;
        *wants_claim = arguments == 2;
        return function;
    }
    return InvalidOid;
}

Handler resolve_handler(const pg::Installation& installation, const char* name) {
    Handler handler{};
    handler.name = name;
    handler.function = find_function(installation, name, &handler.wants_claim);
    if (!OidIsValid(handler.function))
        pg::error_handler_not_found(name);
    if (!pg::may_execute(handler.function))
        aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, name);
    if (get_func_prokind(handler.function) != PROKIND_FUNCTION || get_func_retset(handler.function))
        pg::error_handler_kind(name);
    const Oid returns = get_func_rettype(handler.function);
    handler.composite = returns == type_in(installation, "idem_response");
    if (!handler.composite && returns != JSONBOID)
        pg::error_handler_result(name);
    return handler;
}

struct Call {
    Datum value;
    bool isnull;
};

// call runs a function with a snapshot that sees the claim.
Call call(Oid function, const NullableDatum* arguments, int count) {
    FmgrInfo info;
    fmgr_info(function, &info);
    LOCAL_FCINFO(fcinfo, 5);
    InitFunctionCallInfoData(*fcinfo, &info, static_cast<short>(count), InvalidOid, nullptr, nullptr);
    for (int i = 0; i < count; ++i)
        fcinfo->args[i] = arguments[i];
    PushActiveSnapshot(GetTransactionSnapshot());
    const Datum value = FunctionCallInvoke(fcinfo);
    PopActiveSnapshot();
    CommandCounterIncrement();
    return Call{value, fcinfo->isnull};
}

Call call_directly(const Handler& handler, const Jsonb* payload, Datum claim) {
    const NullableDatum arguments[2] = {{PointerGetDatum(payload), payload == nullptr}, {claim, false}};
    return call(handler.function, arguments, handler.wants_claim ? 2 : 1);
}

// call_caught runs the handler inside idem_call_handler: always an idem_response, with status NULL where it raised.
Call call_caught(const pg::Installation& installation, const Handler& handler, const Jsonb* payload, Datum claim) {
    const Oid types[5] = {TEXTOID, JSONBOID, installation.result_type, BOOLOID, BOOLOID};
    const Oid wrapper = LookupFuncName(
        list_make2(makeString(get_namespace_name(installation.schema)), makeString(pstrdup("idem_call_handler"))), 5,
        types, false);
    const char* qualified = quote_qualified_identifier(get_namespace_name(get_func_namespace(handler.function)),
                                                       get_func_name(handler.function));
    const NullableDatum arguments[5] = {{PointerGetDatum(cstring_to_text(qualified)), false},
                                        {PointerGetDatum(payload), payload == nullptr},
                                        {claim, false},
                                        {BoolGetDatum(handler.wants_claim), false},
                                        {BoolGetDatum(handler.composite), false}};
    return call(wrapper, arguments, 5);
}

// answer_of_composite reads an idem_response.
GivenAnswer answer_of_composite(Datum value) {
    HeapTupleHeader header = DatumGetHeapTupleHeader(value);
    TupleDesc desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
    if (!pg::has_shape(desc, pg::ANSWER_SHAPE))
        pg::error_type_shape("idem_response");
    HeapTupleData tuple{};
    tuple.t_len = HeapTupleHeaderGetDatumLength(header);
    tuple.t_data = header;
    Datum values[pg::ANSWER_COLUMNS];
    bool isnull[pg::ANSWER_COLUMNS];
    heap_deform_tuple(&tuple, desc, values, isnull);
    ReleaseTupleDesc(desc);
    GivenAnswer given{};
    given.has_status = !isnull[pg::ANSWER_STATUS];
    given.status = given.has_status ? DatumGetInt32(values[pg::ANSWER_STATUS]) : 0;
    given.headers = isnull[pg::ANSWER_HEADERS] ? nullptr : DatumGetJsonbP(values[pg::ANSWER_HEADERS]);
    given.body = isnull[pg::ANSWER_BODY] ? nullptr : DatumGetTextPP(values[pg::ANSWER_BODY]);
    given.body_json = isnull[pg::ANSWER_BODY_JSON] ? nullptr : DatumGetJsonbP(values[pg::ANSWER_BODY_JSON]);
    given.body_bytes = isnull[pg::ANSWER_BODY_BYTES] ? nullptr : DatumGetByteaPP(values[pg::ANSWER_BODY_BYTES]);
    return given;
}

GivenAnswer answer_of(bool composite, const Call& returned) {
    GivenAnswer given{};
    if (returned.isnull)
        return given;
    if (composite)
        given = answer_of_composite(returned.value);
    else
        given.body_json = DatumGetJsonbP(returned.value);
    check_answer(given);
    return given;
}

} // namespace

Result execute(ClaimSession& session, const ClaimRequest& request, const core::OperationId& id,
               const text* handler_name) {
    if (session.policy.mode == core::Mode::LEASE)
        pg::error_execute_in_lease_mode();
    const char* name = handler_name != nullptr ? text_to_cstring(handler_name) : pstrdup(session.policy.handler);
    if (name[0] == '\0')
        pg::error_no_handler();
    const Handler handler = resolve_handler(session.installation, name);
    if (request.payload == nullptr && func_strict(handler.function))
        pg::error_handler_strict(name);
    const Result claimed = claim(session, request, id);
    if (!core::proceeds(claimed.outcome))
        return claimed;
    const Datum claim_row = result_datum(session.installation, claimed);
    if (session.policy.handler_error == core::HandlerError::PROPAGATE) {
        const Call returned = call_directly(handler, request.payload, claim_row);
        return complete(session.installation, id, claimed.token, answer_of(handler.composite, returned));
    }
    const Call returned = call_caught(session.installation, handler, request.payload, claim_row);
    const GivenAnswer given = answer_of(true, returned);
    if (given.has_status)
        return complete(session.installation, id, claimed.token, given);
    return fail(session.installation, id, claimed.token, Failure::FAILED, given, nullptr);
}

} // namespace idem::engine
