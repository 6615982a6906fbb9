// families.cpp: see families.hpp.
#include "core/policy.hpp"
#include "core/types.hpp"
#include "api/arguments.hpp"
#include "api/families.hpp"
#include "pg/server.hpp"
#include "pg/varlena.hpp"

namespace idem::api {

text* family_op(std::string_view family, const text* name) {
    const core::Bytes part = pg::bytes_of(name);
    const std::size_t size = family.size() + part.size();
    auto* op = static_cast<text*>(palloc(VARHDRSZ + size));
    SET_VARSIZE(op, VARHDRSZ + size);
    std::memcpy(VARDATA(op), family.data(), family.size());
    std::memcpy(VARDATA(op) + family.size(), part.data(), part.size());
    return op;
}

core::Duration optional_dedup_window(FunctionCallInfo fcinfo, int argument) {
    return optional_duration(fcinfo, argument, "dedup_window", core::MIN_TTL, core::MAX_TTL, "1 second", "90 days");
}

} // namespace idem::api
