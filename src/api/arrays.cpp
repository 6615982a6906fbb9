// arrays.cpp: see arrays.hpp.
#include "core/types.hpp"
#include "api/arrays.hpp"
#include "pg/server.hpp"
#include "pg/errors.hpp"

namespace idem::api {

Elements elements_of(FunctionCallInfo fcinfo, int argument, const char* name, const ElementType& type) {
    ArrayType* array = PG_GETARG_ARRAYTYPE_P(argument);
    if (ARR_NDIM(array) > 1)
        pg::error_array_shape(name);
    Elements elements{};
    elements.given = true;
    deconstruct_array(array, type.type, type.length, type.by_value, type.alignment, &elements.values, &elements.nulls,
                      &elements.count);
    return elements;
}

Elements parallel_elements(FunctionCallInfo fcinfo, int argument, const char* name, const ElementType& type,
                           const char* first, int count) {
    if (PG_ARGISNULL(argument))
        return Elements{};
    const Elements elements = elements_of(fcinfo, argument, name, type);
    if (elements.count != count)
        pg::error_array_lengths(first, count, name, elements.count);
    return elements;
}

NullableDatum element(const Elements& elements, int place) {
    if (!elements.given || elements.nulls[place])
        return NullableDatum{0, true};
    return NullableDatum{elements.values[place], false};
}

text* text_element(const Elements& elements, int place) {
    const NullableDatum found = element(elements, place);
    return found.isnull ? nullptr : DatumGetTextPP(found.value);
}

Jsonb* jsonb_element(const Elements& elements, int place) {
    const NullableDatum found = element(elements, place);
    return found.isnull ? nullptr : DatumGetJsonbP(found.value);
}

} // namespace idem::api
