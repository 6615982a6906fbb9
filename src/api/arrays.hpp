// arrays.hpp: reading SQL arrays whose elements belong together by their place.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::api {

// ElementType is how elements of an array lie in it.
struct ElementType {
    Oid type;
    std::int16_t length;
    bool by_value;
    char alignment;
};

inline constexpr ElementType TEXT_ELEMENTS = {TEXTOID, -1, false, TYPALIGN_INT};
inline constexpr ElementType JSONB_ELEMENTS = {JSONBOID, -1, false, TYPALIGN_INT};
inline constexpr ElementType BIGINT_ELEMENTS = {INT8OID, sizeof(std::int64_t), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE};

// Elements are an array, unpacked; one that was not given has NULL at every place.
struct Elements {
    Datum* values;
    bool* nulls;
    int count;
    bool given;
};

// elements_of unpacks an array of one dimension. Raises 22023 for more.
Elements elements_of(FunctionCallInfo fcinfo, int argument, const char* name, const ElementType& type);

// parallel_elements unpacks an array that may be NULL and else is as long as the one called `first`. Raises 22023.
Elements parallel_elements(FunctionCallInfo fcinfo, int argument, const char* name, const ElementType& type,
                           const char* first, int count);

// element, text_element and jsonb_element return one place.
NullableDatum element(const Elements& elements, int place);
text* text_element(const Elements& elements, int place);
Jsonb* jsonb_element(const Elements& elements, int place);

} // namespace idem::api
