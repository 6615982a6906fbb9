// detail.cpp: see detail.hpp.
#include "core/types.hpp"
#include "engine/detail.hpp"
#include "pg/server.hpp"

namespace idem::engine {

namespace {

JsonbValue string_value(core::Bytes bytes) {
    JsonbValue value{};
    value.type = jbvString;
    value.val.string.val = const_cast<char*>(bytes.data());
    value.val.string.len = static_cast<int>(bytes.size());
    return value;
}

void push(Detail& detail, const char* name, JsonbValue* value) {
    if (detail.state == nullptr)
        (void)pushJsonbValue(&detail.state, WJB_BEGIN_OBJECT, nullptr);
    JsonbValue key = string_value(name);
    (void)pushJsonbValue(&detail.state, WJB_KEY, &key);
    (void)pushJsonbValue(&detail.state, WJB_VALUE, value);
}

} // namespace

void add_text(Detail& detail, const char* name, core::Bytes value) {
    JsonbValue json = string_value(value);
    push(detail, name, &json);
}

void add_text(Detail& detail, const char* name, const text* value) {
    if (value != nullptr)
        add_text(detail, name, core::Bytes{VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)});
}

void add_integer(Detail& detail, const char* name, std::int64_t value) {
    JsonbValue json{};
    json.type = jbvNumeric;
    json.val.numeric = int64_to_numeric(value);
    push(detail, name, &json);
}

void add_bool(Detail& detail, const char* name, bool value) {
    JsonbValue json{};
    json.type = jbvBool;
    json.val.boolean = value;
    push(detail, name, &json);
}

void add_time(Detail& detail, const char* name, core::Timestamp value) {
    char buffer[MAXDATELEN + 1];
    (void)JsonEncodeDateTime(buffer, TimestampTzGetDatum(value), TIMESTAMPTZOID, nullptr);
    add_text(detail, name, core::Bytes{pstrdup(buffer)});
}

void add_hex(Detail& detail, const char* name, core::Bytes bytes) {
    char* hex = static_cast<char*>(palloc(bytes.size() * 2));
    (void)hex_encode(bytes.data(), bytes.size(), hex);
    add_text(detail, name, core::Bytes{hex, bytes.size() * 2});
}

void add_json(Detail& detail, const char* name, Jsonb* value) {
    if (value == nullptr)
        return;
    JsonbValue json{};
    if (JB_ROOT_IS_SCALAR(value)) {
        (void)JsonbExtractScalar(&value->root, &json);
    } else {
        json.type = jbvBinary;
        json.val.binary.data = &value->root;
        json.val.binary.len = static_cast<int>(VARSIZE(value) - VARHDRSZ);
    }
    push(detail, name, &json);
}

Jsonb* finish(Detail& detail) {
    if (detail.state == nullptr)
        return nullptr;
    return JsonbValueToJsonb(pushJsonbValue(&detail.state, WJB_END_OBJECT, nullptr));
}

} // namespace idem::engine
