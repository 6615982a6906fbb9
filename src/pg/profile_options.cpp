// profile_options.cpp: see profile_options.hpp.
#include "core/profile.hpp"

#include "pg/errors.hpp"
#include "pg/jsonb_tokens.hpp"
#include "pg/profile_options.hpp"
#include "pg/varlena.hpp"

namespace idem::pg {
namespace {

using core::PathUse;

std::string_view string_of(const JsonbValue& value) {
    return {value.val.string.val, static_cast<std::size_t>(value.val.string.len)};
}

// scale_of returns a JSON number as a scale, or raises.
std::int32_t scale_of(std::string_view path, const JsonbValue& value) {
    if (value.type != jbvNumeric) {
        error_scale(path);
    }
    const Datum number = NumericGetDatum(value.val.numeric);
    const Datum whole = DirectFunctionCall2(numeric_trunc, number, Int32GetDatum(0));
    const Datum lowest = NumericGetDatum(int64_to_numeric(core::MIN_SCALE));
    const Datum highest = NumericGetDatum(int64_to_numeric(core::MAX_SCALE));
    if (!DatumGetBool(DirectFunctionCall2(numeric_eq, number, whole)) ||
        DatumGetBool(DirectFunctionCall2(numeric_lt, number, lowest)) ||
        DatumGetBool(DirectFunctionCall2(numeric_gt, number, highest))) {
        error_scale(path);
    }
    return DatumGetInt32(DirectFunctionCall1(numeric_int4, number));
}

bool boolean_of(const char* option, const JsonbValue& value) {
    if (value.type != jbvBool) {
        error_profile_option_type(option, "true or false");
    }
    return value.val.boolean;
}

void add_json_paths(ProfileBuilder& builder, const char* option, PathUse use, const JsonbValue& value) {
    constexpr char FORM[] = "an array of paths";
    if (value.type != jbvBinary || !JsonContainerIsArray(value.val.binary.data) ||
        JsonContainerIsScalar(value.val.binary.data)) {
        error_profile_option_type(option, FORM);
    }
    JsonbIterator* iterator = JsonbIteratorInit(value.val.binary.data);
    JsonbValue path;
    JsonbIteratorToken token;
    while ((token = JsonbIteratorNext(&iterator, &path, true)) != WJB_DONE) {
        if (token == WJB_ELEM) {
            if (path.type != jbvString) {
                error_profile_option_type(option, FORM);
            }
            builder.add_path(option, use, string_of(path), 0);
        }
    }
}

// add_option takes one member of the options object.
void add_option(ProfileBuilder& builder, std::string_view name, const JsonbValue& value) {
    struct PathOption {
        const char* name;
        PathUse use;
    };
    static constexpr PathOption PATH_OPTIONS[] = {{"ignore_paths", PathUse::IGNORE},
                                                  {"intent_paths", PathUse::INTENT},
                                                  {"decimal_paths", PathUse::DECIMAL},
                                                  {"unordered_paths", PathUse::UNORDERED}};
    const bool is_given = value.type != jbvNull;
    for (const PathOption& option : PATH_OPTIONS) {
        if (name == option.name) {
            if (is_given) {
                add_json_paths(builder, option.name, option.use, value);
            }
            return;
        }
    }
    if (name == "trim_strings") {
        builder.trim_strings = is_given && boolean_of("trim_strings", value);
    } else if (name == "nfc_strings") {
        builder.nfc_strings = is_given && boolean_of("nfc_strings", value);
    } else if (name == "strip_nulls") {
        builder.strip_nulls = is_given && boolean_of("strip_nulls", value);
    } else if (name == "numbers") {
        if (is_given && value.type != jbvString) {
            error_profile_option_type("numbers", "\"exact\" or \"double\"");
        }
        builder.set_numbers(is_given ? string_of(value) : "exact");
    } else if (name == "round_paths") {
        if (is_given && (value.type != jbvBinary || !JsonContainerIsObject(value.val.binary.data))) {
            error_profile_option_type("round_paths", "an object of scales by path");
        }
        if (is_given) {
            builder.add_scales(value.val.binary.data);
        }
    } else {
        error_unknown_profile_option(name);
    }
}

} // namespace

void ProfileBuilder::set_numbers(std::string_view word) {
    if (word == "exact") {
        numbers_ = core::Numbers::EXACT;
    } else if (word == "double") {
        numbers_ = core::Numbers::DOUBLE;
    } else {
        error_unknown_numbers(word);
    }
}

void ProfileBuilder::add_paths(const char* option, PathUse use, ArrayType* paths) {
    if (ARR_NDIM(paths) > 1) {
        error_array_shape(option);
    }
    Datum* values;
    bool* nulls;
    int count;
    deconstruct_array(paths, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &count);
    for (int i = 0; i < count; ++i) {
        if (nulls[i]) {
            error_profile_option_type(option, "an array of paths without NULL");
        }
        add_path(option, use, bytes_of(PG_DETOAST_DATUM_PACKED(values[i])), 0);
    }
}

void ProfileBuilder::add_scales(JsonbContainer* scales) {
    JsonbIterator* iterator = JsonbIteratorInit(scales);
    JsonbValue value;
    JsonbIteratorToken token;
    std::string_view path;
    while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE) {
        if (token == WJB_KEY) {
            path = string_of(value);
        } else if (token == WJB_VALUE) {
            add_path("round_paths", PathUse::ROUND, path, scale_of(path, value));
        }
    }
}

void ProfileBuilder::add_path(const char* option, PathUse use, std::string_view path, std::int32_t scale) {
    if (count_ == capacity_) {
        capacity_ = capacity_ == 0 ? 16 : 2 * capacity_;
        const std::size_t size = capacity_ * sizeof(Path);
        paths_ = static_cast<Path*>(paths_ == nullptr ? palloc(size) : repalloc(paths_, size));
    }
    paths_[count_++] = {option, use, utf8_of(path), scale};
    size_ += paths_[count_ - 1].text.size();
}

core::Profile ProfileBuilder::compile() {
    core::Profile profile;
    profile.trim_strings = trim_strings;
    profile.nfc_strings = nfc_strings;
    profile.strip_nulls = strip_nulls;
    profile.numbers = numbers_;
    if (count_ == 0) {
        return profile;
    }
    using core::PathCompiler;
    auto* nodes = static_cast<core::PathNode*>(palloc(PathCompiler::max_nodes(size_) * sizeof(core::PathNode)));
    auto* names = static_cast<core::PathName*>(palloc(PathCompiler::max_names(size_) * sizeof(core::PathName)));
    PathCompiler compiler(size_, nodes, names, static_cast<char*>(palloc(PathCompiler::max_text(size_))));
    for (std::size_t i = 0; i < count_; ++i) {
        const Path& path = paths_[i];
        std::size_t position;
        const core::PathFault fault = compiler.add(path.text, path.use, path.scale, &position);
        if (fault != core::PathFault::NONE) {
            error_path(path.option, path.text, fault, position);
        }
    }
    profile.paths = compiler.set();
    pfree(paths_);
    return profile;
}

void compile_profile(Jsonb* options, core::Profile* out) {
    if (!JB_ROOT_IS_OBJECT(options)) {
        error_profile_not_object();
    }
    ProfileBuilder builder;
    JsonbIterator* iterator = JsonbIteratorInit(&options->root);
    JsonbValue value;
    JsonbIteratorToken token;
    std::string_view name;
    while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE) {
        if (token == WJB_KEY) {
            name = string_of(value);
        } else if (token == WJB_VALUE) {
            add_option(builder, name, value);
        }
    }
    *out = builder.compile();
}

} // namespace idem::pg
