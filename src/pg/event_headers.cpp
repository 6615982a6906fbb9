// event_headers.cpp: see event_headers.hpp.
#include <string_view>

#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/errors.hpp"
#include "pg/event_headers.hpp"

namespace idem::pg {

namespace {

JsonbValue string_value(std::string_view text) {
    JsonbValue value{};
    value.type = jbvString;
    value.val.string.val = const_cast<char*>(text.data());
    value.val.string.len = static_cast<int>(text.size());
    return value;
}

std::string_view view(const JsonbValue& value) {
    return std::string_view{value.val.string.val, static_cast<std::size_t>(value.val.string.len)};
}

const JsonbValue* find(Jsonb* given, std::string_view name) {
    if (given == nullptr)
        return nullptr;
    JsonbValue key = string_value(name);
    const JsonbValue* value = findJsonbValueFromContainer(&given->root, JB_FOBJECT, &key);
    return value != nullptr && value->type == jbvNull ? nullptr : value;
}

// given_text returns a string that must not be empty, or `fallback` where there is none.
std::string_view given_text(Jsonb* given, std::string_view name, std::string_view fallback) {
    const JsonbValue* value = find(given, name);
    if (value == nullptr)
        return fallback;
    if (value->type != jbvString || value->val.string.len == 0)
        error_event_headers();
    return view(*value);
}

void check(Jsonb* given) {
    if (!JB_ROOT_IS_OBJECT(given))
        error_event_headers();
    if (JB_ROOT_COUNT(given) > EVENT_HEADERS_MAX)
        error_too_large("headers", JB_ROOT_COUNT(given), EVENT_HEADERS_MAX);
    if (VARSIZE_ANY_EXHDR(given) > EVENT_HEADER_BYTES_MAX)
        error_too_large("headers", VARSIZE_ANY_EXHDR(given), EVENT_HEADER_BYTES_MAX);
    if (find(given, "id") != nullptr)
        error_reserved_header("id");
    if (find(given, "specversion") != nullptr)
        error_reserved_header("specversion");
}

// ObjectWriter writes an object member by member.
struct ObjectWriter {
    JsonbParseState* state;

    void member(std::string_view name, JsonbValue value) {
        JsonbValue key = string_value(name);
        pushJsonbValue(&state, WJB_KEY, &key);
        pushJsonbValue(&state, WJB_VALUE, &value);
    }
};

void copy_given(ObjectWriter& writer, Jsonb* given) {
    JsonbIterator* iterator = JsonbIteratorInit(&given->root);
    JsonbValue name{};
    JsonbValue value{};
    (void)JsonbIteratorNext(&iterator, &value, false);
    while (JsonbIteratorNext(&iterator, &name, true) == WJB_KEY) {
        (void)JsonbIteratorNext(&iterator, &value, true);
        if (value.type == jbvBinary)
            error_event_headers();
        if (value.type != jbvNull)
            writer.member(view(name), value);
    }
}

// source_of makes a relative URI of an actor.
std::string_view source_of(core::Bytes actor) {
    constexpr std::string_view PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    constexpr char HEX[] = "0123456789ABCDEF";
    char* out = static_cast<char*>(palloc(actor.size() * 3 + 1));
    std::size_t size = 0;
    out[size++] = '/';
    for (const char c : actor) {
        const auto byte = static_cast<unsigned char>(c);
        if (PLAIN.find(c) != std::string_view::npos) {
            out[size++] = c;
        } else {
            out[size++] = '%';
            out[size++] = HEX[byte >> 4];
            out[size++] = HEX[byte & 15];
        }
    }
    return std::string_view{out, size};
}

std::string_view time_text(core::Timestamp time) {
    struct pg_tm parts;
    fsec_t fraction;
    if (timestamp2tm(time, nullptr, &parts, &fraction, nullptr, nullptr) != 0)
        ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE), errmsg("timestamp out of range")));
    char* out = static_cast<char*>(palloc(MAXDATELEN + 2));
    EncodeDateTime(&parts, fraction, false, 0, nullptr, USE_XSD_DATES, out);
    std::strcat(out, "Z");
    return out;
}

std::string_view id_text(const core::OperationId& id) {
    pg_uuid_t uuid;
    std::memcpy(uuid.data, id.bytes, sizeof uuid.data);
    return DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(&uuid)));
}

} // namespace

EventHeaders complete_event_headers(Jsonb* given, const EventDefaults& defaults) {
    if (given != nullptr)
        check(given);
    ObjectWriter writer{};
    pushJsonbValue(&writer.state, WJB_BEGIN_OBJECT, nullptr);
    const auto missing = [&](std::string_view name) { return find(given, name) == nullptr; };
    const std::string_view type = given_text(given, "type", defaults.topic);
    (void)given_text(given, "source", "/");
    writer.member("specversion", string_value("1.0"));
    writer.member("id", string_value(id_text(defaults.id)));
    if (missing("type"))
        writer.member("type", string_value(type));
    if (missing("source"))
        writer.member("source", string_value(source_of(defaults.actor)));
    if (missing("time"))
        writer.member("time", string_value(time_text(defaults.time)));
    if (defaults.is_json && missing("datacontenttype"))
        writer.member("datacontenttype", string_value("application/json"));
    if (!defaults.traceparent.empty() && missing("traceparent"))
        writer.member("traceparent", string_value(defaults.traceparent));
    if (given != nullptr)
        copy_given(writer, given);
    EventHeaders headers{};
    headers.object = JsonbValueToJsonb(pushJsonbValue(&writer.state, WJB_END_OBJECT, nullptr));
    headers.type = cstring_to_text_with_len(type.data(), static_cast<int>(type.size()));
    return headers;
}

} // namespace idem::pg
