// helpers.cpp: see helpers.hpp.
#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/helpers.hpp"

namespace idem::pg {

Helper prepare_helper(Oid schema, const char* name, const Oid* types, int count) {
    List* qualified = list_make2(makeString(get_namespace_name(schema)), makeString(pstrdup(name)));
    const Oid function = LookupFuncName(qualified, count, types, false);
    Helper helper{};
    helper.function = static_cast<FmgrInfo*>(palloc0(sizeof(FmgrInfo)));
    helper.arguments = static_cast<short>(count);
    fmgr_info(function, helper.function);
    return helper;
}

NullableDatum call_helper(const Helper& helper, const NullableDatum* arguments) {
    LOCAL_FCINFO(fcinfo, HELPER_ARGUMENTS_MAX);
    InitFunctionCallInfoData(*fcinfo, helper.function, helper.arguments, InvalidOid, nullptr, nullptr);
    for (int i = 0; i < helper.arguments; ++i)
        fcinfo->args[i] = arguments[i];
    PushActiveSnapshot(GetTransactionSnapshot());
    const Datum value = FunctionCallInvoke(fcinfo);
    PopActiveSnapshot();
    CommandCounterIncrement();
    return NullableDatum{value, fcinfo->isnull};
}

} // namespace idem::pg
