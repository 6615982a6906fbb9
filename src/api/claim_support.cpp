// claim_support.cpp: planner support for idem_claim.
//
// Purpose: idem_claim has thirteen arguments, most callers give four. A function scan prepares and evaluates each
// argument on each execution, also those that are constant NULLs, which is a twentieth of a claim's time. Where the
// last nine are NULL constants the planner is handed idem_claim_plain, the same function without them. The result type,
// the rights (idem_admin_grant gives both) and the code behind are the same.
#include "pg/server.hpp"
#include "pg/boundary.hpp"
#include "pg/compat.hpp"

namespace {

constexpr int PLAIN_ARGUMENTS = 4;

bool is_null_constant(const Node* node) {
    return IsA(node, Const) && castNode(Const, const_cast<Node*>(node))->constisnull;
}

bool has_only_plain_arguments(const List* arguments) {
    for (int i = PLAIN_ARGUMENTS; i < list_length(arguments); ++i)
        if (!is_null_constant(static_cast<const Node*>(list_nth(arguments, i))))
            return false;
    return list_length(arguments) > PLAIN_ARGUMENTS;
}

Oid plain_function(Oid claim) {
    const Oid types[PLAIN_ARGUMENTS] = {TEXTOID, TEXTOID, TEXTOID, JSONBOID};
    oidvector* vector = buildoidvector(types, PLAIN_ARGUMENTS);
    return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum("idem_claim_plain"),
                           PointerGetDatum(vector), ObjectIdGetDatum(get_func_namespace(claim)));
}

} // namespace

// idem_claim_support(internal) answers SupportRequestSimplify; NULL for every other request.
IDEM_FUNCTION(idem_claim_support_v1) {
    auto* request = reinterpret_cast<Node*>(PG_GETARG_POINTER(0));
    if (!IsA(request, SupportRequestSimplify))
        PG_RETURN_POINTER(nullptr);
    const FuncExpr* call = castNode(SupportRequestSimplify, request)->fcall;
    const Oid plain = has_only_plain_arguments(call->args) ? plain_function(call->funcid) : InvalidOid;
    if (!OidIsValid(plain) || !idem::pg::may_execute(plain)) // so that a refusal names the function that was called
        PG_RETURN_POINTER(nullptr);
    PG_RETURN_POINTER(makeFuncExpr(plain, call->funcresulttype, list_copy_head(call->args, PLAIN_ARGUMENTS),
                                   call->funccollid, call->inputcollid, call->funcformat));
}
