// hash.cpp: idem_canonical, idem_hash, idem_hash_text and idem_payload_jcs_safe, the payload hash for everybody to
// call.
//
// All are IMMUTABLE and PARALLEL SAFE: their results are stored in generated columns and indexes, so the bytes never
// change under these names and options. A NULL payload, text or algorithm gives NULL; a NULL option is one that is not
// given. Options that are literals of a query are compiled once and kept with the call.
#include "core/profile.hpp"
#include "core/types.hpp"
#include "core/unicode.hpp"

#include "pg/boundary.hpp"
#include "pg/errors.hpp"
#include "pg/payload_hash.hpp"
#include "pg/profile_options.hpp"
#include "pg/profile_walk.hpp"
#include "pg/text_json.hpp"
#include "pg/varlena.hpp"

namespace idem::api {
namespace {

using core::PathUse;

// Options are the last arguments of every function, in this order.
enum OptionArgument : int {
    TRIM_STRINGS,
    NFC_STRINGS,
    IGNORE_PATHS,
    INTENT_PATHS,
    STRIP_NULLS,
    NUMBERS,
    DECIMAL_PATHS,
    ROUND_PATHS,
    UNORDERED_PATHS,
    OPTION_COUNT,
};

bool flag(FunctionCallInfo fcinfo, int argument) {
    return !PG_ARGISNULL(argument) && PG_GETARG_BOOL(argument);
}

// is_exact tells whether numbers are left as they are, as nearly always.
bool is_exact(FunctionCallInfo fcinfo, int argument) {
    return PG_ARGISNULL(argument) || pg::bytes_of(PG_GETARG_TEXT_PP(argument)) == "exact";
}

bool has_options(FunctionCallInfo fcinfo, int first) {
    return flag(fcinfo, first + TRIM_STRINGS) || flag(fcinfo, first + NFC_STRINGS) ||
           flag(fcinfo, first + STRIP_NULLS) || !PG_ARGISNULL(first + IGNORE_PATHS) ||
           !PG_ARGISNULL(first + INTENT_PATHS) || !PG_ARGISNULL(first + DECIMAL_PATHS) ||
           !PG_ARGISNULL(first + ROUND_PATHS) || !PG_ARGISNULL(first + UNORDERED_PATHS) ||
           !is_exact(fcinfo, first + NUMBERS);
}

void add_paths(pg::ProfileBuilder& builder, FunctionCallInfo fcinfo, int argument, const char* option, PathUse use) {
    if (!PG_ARGISNULL(argument)) {
        builder.add_paths(option, use, PG_GETARG_ARRAYTYPE_P(argument));
    }
}

core::Profile compile(FunctionCallInfo fcinfo, int first) {
    pg::ProfileBuilder builder;
    builder.trim_strings = flag(fcinfo, first + TRIM_STRINGS);
    builder.nfc_strings = flag(fcinfo, first + NFC_STRINGS);
    builder.strip_nulls = flag(fcinfo, first + STRIP_NULLS);
    if (!PG_ARGISNULL(first + NUMBERS)) {
        builder.set_numbers(pg::bytes_of(PG_GETARG_TEXT_PP(first + NUMBERS)));
    }
    add_paths(builder, fcinfo, first + IGNORE_PATHS, "ignore_paths", PathUse::IGNORE);
    add_paths(builder, fcinfo, first + INTENT_PATHS, "intent_paths", PathUse::INTENT);
    add_paths(builder, fcinfo, first + DECIMAL_PATHS, "decimal_paths", PathUse::DECIMAL);
    add_paths(builder, fcinfo, first + UNORDERED_PATHS, "unordered_paths", PathUse::UNORDERED);
    if (!PG_ARGISNULL(first + ROUND_PATHS)) {
        Jsonb* scales = PG_GETARG_JSONB_P(first + ROUND_PATHS);
        if (!JB_ROOT_IS_OBJECT(scales)) {
            pg::error_profile_option_type("round_paths", "an object of scales by path");
        }
        builder.add_scales(&scales->root);
    }
    return builder.compile();
}

// are_options_constant tells whether the options are literals of the query. A parameter will not do: PL/pgSQL evaluates
// one expression again and again with other values.
bool are_options_constant(const FmgrInfo* call, int first) {
    if (call == nullptr || call->fn_expr == nullptr || !IsA(call->fn_expr, FuncExpr)) {
        return false;
    }
    const List* arguments = reinterpret_cast<const FuncExpr*>(call->fn_expr)->args;
    if (list_length(arguments) != first + OPTION_COUNT) {
        return false;
    }
    for (int i = 0; i < OPTION_COUNT; ++i) {
        if (!IsA(list_nth(arguments, first + i), Const)) {
            return false;
        }
    }
    return true;
}

// profile_of returns the profile that the arguments from first on say.
core::Profile profile_of(FunctionCallInfo fcinfo, int first) {
    if (!has_options(fcinfo, first)) {
        return {};
    }
    FmgrInfo* call = fcinfo->flinfo;
    if (!are_options_constant(call, first)) {
        return compile(fcinfo, first);
    }
    if (call->fn_extra == nullptr) {
        MemoryContext caller = MemoryContextSwitchTo(call->fn_mcxt);
        auto* kept = static_cast<core::Profile*>(palloc(sizeof(core::Profile)));
        *kept = compile(fcinfo, first);
        call->fn_extra = kept;
        MemoryContextSwitchTo(caller);
    }
    return *static_cast<const core::Profile*>(call->fn_extra);
}

core::HashAlgorithm algorithm_of(const text* name) {
    const core::Bytes bytes = pg::bytes_of(name);
    core::HashAlgorithm algorithm;
    if (!pg::hash_algorithm_from_name(bytes, &algorithm)) {
        pg::error_unknown_hash_algorithm(bytes.data(), static_cast<int>(bytes.size()));
    }
    return algorithm;
}

Datum digest_datum(const core::Digest& digest) {
    return PointerGetDatum(
        cstring_to_text_with_len(reinterpret_cast<const char*>(digest.bytes), static_cast<int>(digest.size)));
}

} // namespace
} // namespace idem::api

// idem_canonical_v1(payload jsonb, options...) returns the canonical text.
IDEM_FUNCTION(idem_canonical_v1) {
    if (PG_ARGISNULL(0)) {
        PG_RETURN_NULL();
    }
    const idem::core::Profile profile = idem::api::profile_of(fcinfo, 1);
    PG_RETURN_TEXT_P(idem::pg::canonical_text_with_profile(PG_GETARG_JSONB_P(0), profile));
}

// idem_hash_v1(payload jsonb, algorithm text, options...) returns the digest, 16 or 32 bytes. Raises 22023 for an
// unknown algorithm.
IDEM_FUNCTION(idem_hash_v1) {
    if (PG_ARGISNULL(0) || PG_ARGISNULL(1)) {
        PG_RETURN_NULL();
    }
    const idem::core::HashAlgorithm algorithm = idem::api::algorithm_of(PG_GETARG_TEXT_PP(1));
    const idem::core::Profile profile = idem::api::profile_of(fcinfo, 2);
    return idem::api::digest_datum(
        idem::pg::hash_payload_with_profile(PG_GETARG_JSONB_P(0), nullptr, algorithm, profile));
}

// idem_hash_text_v1(payload text, strict boolean, algorithm text, options...) returns the digest of JSON text. NULL for
// strict is true.
IDEM_FUNCTION(idem_hash_text_v1) {
    if (PG_ARGISNULL(0) || PG_ARGISNULL(2)) {
        PG_RETURN_NULL();
    }
    const bool is_strict = PG_ARGISNULL(1) || PG_GETARG_BOOL(1);
    const idem::core::HashAlgorithm algorithm = idem::api::algorithm_of(PG_GETARG_TEXT_PP(2));
    const idem::core::Profile profile = idem::api::profile_of(fcinfo, 3);
    const Jsonb* payload = idem::pg::read_json_text(PG_GETARG_TEXT_PP(0), is_strict);
    return idem::api::digest_datum(idem::pg::hash_payload_with_profile(payload, nullptr, algorithm, profile));
}

// idem_payload_jcs_safe_v1(payload jsonb) tells whether any RFC 8785 library makes the same text of it.
IDEM_FUNCTION(idem_payload_jcs_safe_v1) {
    if (PG_ARGISNULL(0)) {
        PG_RETURN_NULL();
    }
    PG_RETURN_BOOL(idem::pg::is_jcs_safe(PG_GETARG_JSONB_P(0)));
}

// idem_unicode_version_v1() returns the version of the tables behind nfc_strings.
IDEM_FUNCTION(idem_unicode_version_v1) {
    (void)fcinfo;
    const idem::core::Bytes version = idem::core::UNICODE_VERSION;
    PG_RETURN_TEXT_P(cstring_to_text_with_len(version.data(), static_cast<int>(version.size())));
}
