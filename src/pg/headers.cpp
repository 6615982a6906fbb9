// headers.cpp: reading, filtering and writing arrays of header pairs.
//
// Every input passes through read_headers, which walks the jsonb without copying it and raises before it allocates more
// than the limits allow. Messages name the position of a bad pair, never its text: header values can be secrets.
#include <cstddef>
#include <string_view>

#include "pg/errors.hpp"
#include "pg/headers.hpp"

namespace idem::pg {
namespace {

constexpr std::string_view NEVER_STORED = "set-cookie,www-authenticate";

constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

bool same_name(std::string_view a, std::string_view b) {
    if (a.size() != b.size())
        return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (lower(a[i]) != lower(b[i]))
            return false;
    return true;
}

bool is_token_char(char c) {
    constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
    if ((c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z'))
        return true;
    for (char mark : marks)
        if (c == mark)
            return true;
    return false;
}

bool is_token(std::string_view name) {
    for (char c : name)
        if (!is_token_char(c))
            return false;
    return !name.empty();
}

bool breaks_line(std::string_view value) {
    for (char c : value)
        if (c == '\r' || c == '\n' || c == '\0')
            return true;
    return false;
}

// Filter says which names a reader keeps: those in the list, or those not in it.
enum class Filter { ONLY, EXCEPT };

// Reader carries one walk: where pairs go, what is kept, and how much has been seen.
struct Reader {
    HeaderList* list;
    Filter filter;
    std::string_view names;
    int seen;
    std::size_t bytes;
};

bool is_kept(const Reader& reader, std::string_view name) {
    if (core::lists_header(NEVER_STORED, name))
        return false;
    return core::lists_header(reader.names, name) == (reader.filter == Filter::ONLY);
}

std::string_view string_of(const JsonbValue& value) {
    return std::string_view(value.val.string.val, static_cast<std::size_t>(value.val.string.len));
}

// text_of returns a scalar header value as text; anything nested is malformed. The caller has dropped JSON null.
std::string_view text_of(const JsonbValue& value) {
    if (value.type == jbvString)
        return string_of(value);
    if (value.type == jbvBool)
        return value.val.boolean ? "true" : "false";
    if (value.type == jbvNumeric)
        return DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(value.val.numeric)));
    error_malformed_headers();
}

void read_pair(Reader* reader, const JsonbValue& name, const JsonbValue& value) {
    CHECK_FOR_INTERRUPTS();
    if (++reader->seen > HEADER_PAIRS_MAX)
        error_headers_number(HEADER_PAIRS_MAX);
    if (name.type != jbvString)
        error_malformed_headers();
    std::string_view name_text = string_of(name);
    if (name_text.size() > HEADER_BYTES_MAX)
        error_headers_size(HEADER_BYTES_MAX);
    if (!is_token(name_text))
        error_header_name(reader->seen);
    if (value.type == jbvNull)
        return;
    std::string_view value_text = text_of(value);
    reader->bytes += name_text.size() + value_text.size();
    if (reader->bytes > HEADER_BYTES_MAX)
        error_headers_size(HEADER_BYTES_MAX);
    if (breaks_line(value_text))
        error_header_value(reader->seen);
    if (is_kept(*reader, name_text))
        headers_add(reader->list, name_text, value_text);
}

// read_pairs reads [[name, value], …]; the iterator has just entered the outer array.
void read_pairs(Reader* reader, JsonbIterator* it) {
    JsonbValue outer;
    JsonbValue name;
    JsonbValue value;
    JsonbIteratorToken token;

    while ((token = JsonbIteratorNext(&it, &outer, false)) != WJB_END_ARRAY) {
        if (token != WJB_BEGIN_ARRAY || outer.val.array.nElems != 2)
            error_malformed_headers();
        JsonbIteratorNext(&it, &name, true);
        JsonbIteratorNext(&it, &value, true);
        read_pair(reader, name, value);
        JsonbIteratorNext(&it, &outer, true);
    }
}

// read_object reads {name: value | [values]}; the iterator has just entered the object.
void read_object(Reader* reader, JsonbIterator* it) {
    JsonbValue name;
    JsonbValue value;

    while (JsonbIteratorNext(&it, &name, true) != WJB_END_OBJECT) {
        JsonbIteratorToken token = JsonbIteratorNext(&it, &value, false);
        CHECK_FOR_INTERRUPTS();
        if (token == WJB_VALUE) {
            read_pair(reader, name, value);
            continue;
        }
        if (token != WJB_BEGIN_ARRAY)
            error_malformed_headers();
        while (JsonbIteratorNext(&it, &value, true) != WJB_END_ARRAY)
            read_pair(reader, name, value);
    }
}

void read_headers(HeaderList* list, Jsonb* given, Filter filter, std::string_view names) {
    Reader reader = {list, filter, names, 0, 0};
    JsonbValue root;
    JsonbIterator* it;

    if (JB_ROOT_IS_SCALAR(given))
        error_malformed_headers();
    it = JsonbIteratorInit(&given->root);
    if (JsonbIteratorNext(&it, &root, false) == WJB_BEGIN_OBJECT)
        read_object(&reader, it);
    else
        read_pairs(&reader, it);
}

void push_string(HeaderList* list, std::string_view text) {
    JsonbValue element;
    element.type = jbvString;
    element.val.string.val = const_cast<char*>(text.data());
    element.val.string.len = static_cast<int>(text.size());
    pushJsonbValue(&list->state, WJB_ELEM, &element);
}

} // namespace

HeaderList headers_begin() {
    HeaderList list = {nullptr, 0};
    pushJsonbValue(&list.state, WJB_BEGIN_ARRAY, nullptr);
    return list;
}

void headers_add(HeaderList* list, std::string_view name, std::string_view value) {
    pushJsonbValue(&list->state, WJB_BEGIN_ARRAY, nullptr);
    push_string(list, name);
    push_string(list, value);
    pushJsonbValue(&list->state, WJB_END_ARRAY, nullptr);
    ++list->pairs;
}

void headers_add_stored(HeaderList* list, Jsonb* stored, std::string_view except) {
    if (stored != nullptr)
        read_headers(list, stored, Filter::EXCEPT, except);
}

Jsonb* headers_end(HeaderList* list) {
    return JsonbValueToJsonb(pushJsonbValue(&list->state, WJB_END_ARRAY, nullptr));
}

Jsonb* normalise_headers(Jsonb* given, std::string_view allow_list) {
    if (given == nullptr)
        return nullptr;
    HeaderList list = headers_begin();
    read_headers(&list, given, Filter::ONLY, allow_list);
    return list.pairs == 0 ? nullptr : headers_end(&list);
}

bool headers_have(Jsonb* headers, std::string_view name) {
    JsonbValue value;
    JsonbIterator* it;
    JsonbIteratorToken token;
    bool at_name = false;

    if (headers == nullptr || !JB_ROOT_IS_ARRAY(headers) || JB_ROOT_IS_SCALAR(headers))
        return false;
    it = JsonbIteratorInit(&headers->root);
    while ((token = JsonbIteratorNext(&it, &value, false)) != WJB_DONE) {
        if (at_name && token == WJB_ELEM && value.type == jbvString && same_name(string_of(value), name))
            return true;
        at_name = token == WJB_BEGIN_ARRAY;
    }
    return false;
}

const char* header_names(Jsonb* headers) {
    StringInfoData names;
    JsonbValue value;
    JsonbIterator* it = JsonbIteratorInit(&headers->root);
    JsonbIteratorToken token;
    bool at_name = false;

    initStringInfo(&names);
    while ((token = JsonbIteratorNext(&it, &value, false)) != WJB_DONE) {
        if (at_name && token == WJB_ELEM && value.type == jbvString) {
            if (names.len > 0)
                appendStringInfoChar(&names, ',');
            appendBinaryStringInfo(&names, value.val.string.val, value.val.string.len);
        }
        at_name = token == WJB_BEGIN_ARRAY;
    }
    return names.data;
}

Jsonb* headers_append(Jsonb* headers, std::string_view name, std::string_view value) {
    HeaderList list = headers_begin();
    headers_add_stored(&list, headers, std::string_view());
    headers_add(&list, name, value);
    return headers_end(&list);
}

} // namespace idem::pg
