// policy.cpp: the C functions behind idem_set_policy, idem_policy_options and the trigger on idem_policies.
//
// Purpose: unpack, call, return. The INSERT into idem_policies is SQL (a BEGIN ATOMIC body); only the checking is here.
#include <string_view>

#include "core/policy.hpp"
#include "pg/server.hpp"
#include "pg/boundary.hpp"
#include "pg/errors.hpp"
#include "pg/policy_options.hpp"

namespace idem::api {

namespace {

using core::Option;
using core::OPTIONS;

std::string_view view_of(const text* value) {
    return {VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)};
}

// check_op raises unless op is a name a policy can be given to: 1 to 128 bytes without control characters.
void check_op(std::string_view op) {
    if (op.empty()) {
        pg::error_empty_argument("op");
    }
    if (op.size() > core::MAX_OP_BYTES) {
        pg::error_argument_too_long("op", core::MAX_OP_BYTES);
    }
    for (char c : op) {
        const auto byte = static_cast<std::uint8_t>(c);
        if (byte < 0x20 || byte == 0x7f) {
            pg::error_control_character("op");
        }
    }
}

Datum text_datum(std::string_view value) {
    return PointerGetDatum(cstring_to_text_with_len(value.data(), static_cast<int>(value.size())));
}

// set_column stores a text column, NULL for "".
void set_column(Datum* values, bool* nulls, int number, std::string_view value) {
    nulls[number] = value.empty();
    values[number] = value.empty() ? Datum{0} : text_datum(value);
}

constexpr int OPTION_COLUMNS = 12;

// option_row fills one row of idem_policy_options: name, type, the presets, bounds, choices, meaning.
void option_row(const Option& option, Datum* values, bool* nulls) {
    char buffer[core::SHORT_TEXT_MAX];
    int number = 0;
    set_column(values, nulls, number++, option.name);
    set_column(values, nulls, number++, core::option_type_name(option.type));
    for (const std::string_view& text : option.defaults) {
        set_column(values, nulls, number++, text);
    }
    set_column(values, nulls, number++, core::format_bound(option, option.min, buffer));
    set_column(values, nulls, number++, core::format_bound(option, option.max, buffer));
    set_column(values, nulls, number++, option.words);
    set_column(values, nulls, number++, option.meaning);
    Assert(number == OPTION_COLUMNS);
}

} // namespace

// idem_policy_resolve(op text, preset text, options jsonb) returns the effective options; raises 22004 and 22023.
IDEM_FUNCTION(idem_policy_resolve_v1) {
    if (PG_ARGISNULL(0)) {
        pg::error_null_argument("op");
    }
    if (PG_ARGISNULL(1)) {
        pg::error_null_argument("preset");
    }
    check_op(view_of(PG_GETARG_TEXT_PP(0)));
    Jsonb* options = PG_ARGISNULL(2) ? nullptr : PG_GETARG_JSONB_P(2);
    PG_RETURN_JSONB_P(pg::resolve_policy_options(view_of(PG_GETARG_TEXT_PP(1)), options));
}

// idem_policy_options_rows() returns one row per option of core's table.
IDEM_FUNCTION(idem_policy_options_rows_v1) {
    InitMaterializedSRF(fcinfo, 0);
    auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    if (result->setDesc->natts != OPTION_COLUMNS) {
        elog(ERROR, "idem_policy_options_rows has %d columns, expected %d", result->setDesc->natts, OPTION_COLUMNS);
    }
    for (const Option& option : OPTIONS) {
        Datum values[OPTION_COLUMNS];
        bool nulls[OPTION_COLUMNS];
        option_row(option, values, nulls);
        tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
    }
    return Datum{0};
}

// idem_policies_changed() is the trigger that tells every backend to forget the policies it has cached.
IDEM_FUNCTION(idem_policies_changed_v1) {
    if (!CALLED_AS_TRIGGER(fcinfo)) {
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("idem_policies_changed is called by a trigger only")));
    }
    const auto* trigger = reinterpret_cast<const TriggerData*>(fcinfo->context);
    CacheInvalidateRelcacheByRelid(RelationGetRelid(trigger->tg_relation));
    return PointerGetDatum(nullptr);
}

} // namespace idem::api
