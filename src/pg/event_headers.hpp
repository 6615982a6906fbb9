// event_headers.hpp: the headers of an outbox message: CloudEvents 1.0 attributes and the caller's own.
//
// Purpose: a consumer finds id, source, specversion, type, time and, for JSON, datacontenttype in every message, and
// traceparent where it is known, whatever the caller gave. Data layout: a jsonb object of strings, numbers and
// booleans; JSON nulls are dropped. Lifetime: results are palloc'd in the current memory context.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::pg {

inline constexpr int EVENT_HEADERS_MAX = 64;
inline constexpr std::size_t EVENT_HEADER_BYTES_MAX = 16 * 1024;

// EventDefaults is what is filled in where the caller says nothing; traceparent is empty where it is unknown.
struct EventDefaults {
    core::OperationId id;
    core::Bytes topic;
    core::Bytes actor;
    core::Bytes traceparent;
    core::Timestamp time;
    bool is_json;
};

// EventHeaders is the completed object, and its type once more.
struct EventHeaders {
    Jsonb* object;
    text* type;
};

// complete_event_headers checks the given headers (null: none) and completes them. Raises 22023 where they are not of
// that form or name id or specversion, ID005 over the limits.
EventHeaders complete_event_headers(Jsonb* given, const EventDefaults& defaults);

} // namespace idem::pg
