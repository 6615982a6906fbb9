// policy_options.cpp: jsonb to text forms, text forms to jsonb. See policy_options.hpp.
#include <cstring>
#include <string_view>

#include "core/policy.hpp"
#include "core/profile.hpp"
#include "pg/server.hpp"
#include "pg/errors.hpp"
#include "pg/policy_options.hpp"
#include "pg/profile_options.hpp"

namespace idem::pg {

namespace {

using core::Option;
using core::OPTION_COUNT;
using core::OptionFault;
using core::OPTIONS;
using core::OptionType;
using core::Policy;

std::string_view string_of(const JsonbValue& value) {
    return {value.val.string.val, static_cast<std::size_t>(value.val.string.len)};
}

// text_item returns a string inside an object or array; one with a separator of the text form in it cannot be meant.
std::string_view text_item(const Option& option, const JsonbValue& value) {
    if (value.type != jbvString) {
        error_policy_option_type(option);
    }
    const std::string_view text = string_of(value);
    if (text.empty() || std::memchr(text.data(), ',', text.size()) != nullptr ||
        std::memchr(text.data(), '=', text.size()) != nullptr) {
        error_policy_option_value(option, OptionFault::MALFORMED, text);
    }
    return text;
}

void append_text(StringInfo out, std::string_view text) {
    appendBinaryStringInfo(out, text.data(), static_cast<int>(text.size()));
}

// container_text joins the items of an object ("name=word,...") or an array ("item,...").
std::string_view container_text(const Option& option, JsonbContainer* container) {
    StringInfoData out;
    initStringInfo(&out);
    JsonbIterator* iterator = JsonbIteratorInit(container);
    JsonbValue value;
    JsonbIteratorToken token;
    while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE) {
        if (token == WJB_KEY || token == WJB_ELEM) {
            if (out.len > 0) {
                appendStringInfoChar(&out, ',');
            }
            append_text(&out, text_item(option, value));
        } else if (token == WJB_VALUE) {
            appendStringInfoChar(&out, '=');
            append_text(&out, text_item(option, value));
        }
    }
    return {out.data, static_cast<std::size_t>(out.len)};
}

std::string_view numeric_text(const JsonbValue& value) {
    const char* text = DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(value.val.numeric)));
    return {text};
}

// option_text returns the text form of a JSON value, or raises where the option has another JSON type.
std::string_view option_text(const Option& option, const JsonbValue& value) {
    switch (option.type) {
    case OptionType::ENUMERATION:
        // An HTTP status is as good as a number.
        if (value.type == jbvNumeric) {
            return numeric_text(value);
        }
        [[fallthrough]];
    case OptionType::INTERVAL:
    case OptionType::TEXT:
        if (value.type == jbvString) {
            return string_of(value);
        }
        break;
    case OptionType::INTEGER:
        if (value.type == jbvNumeric) {
            return numeric_text(value);
        }
        break;
    case OptionType::BOOLEAN:
        if (value.type == jbvBool) {
            return value.val.boolean ? "true" : "false";
        }
        break;
    case OptionType::OBJECT:
        if (value.type == jbvBinary && JsonContainerIsObject(value.val.binary.data)) {
            return container_text(option, value.val.binary.data);
        }
        break;
    case OptionType::ARRAY:
        if (value.type == jbvBinary && JsonContainerIsArray(value.val.binary.data) &&
            !JsonContainerIsScalar(value.val.binary.data)) {
            return container_text(option, value.val.binary.data);
        }
        break;
    case OptionType::DOCUMENT: break;
    }
    error_policy_option_type(option);
}

// Kept is what a Policy has no field for: texts as they were given, and the profile.
struct Kept {
    std::string_view texts[OPTION_COUNT];
    Jsonb* profile;
};

// take_profile checks a profile by compiling it.
Jsonb* take_profile(const Option& option, JsonbValue* value) {
    if (value->type != jbvBinary || !JsonContainerIsObject(value->val.binary.data)) {
        error_policy_option_type(option);
    }
    Jsonb* profile = JsonbValueToJsonb(value);
    core::Profile compiled;
    compile_profile(profile, &compiled);
    return profile;
}

// apply_options sets every option the object names. kept, unless null, gets what has no form of its own.
void apply_options(Policy* policy, Jsonb* options, Kept* kept) {
    if (!JB_ROOT_IS_OBJECT(options)) {
        error_policy_options_not_object();
    }
    JsonbIterator* iterator = JsonbIteratorInit(&options->root);
    JsonbValue value;
    JsonbIteratorToken token;
    const Option* option = nullptr;
    while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE) {
        if (token == WJB_KEY) {
            option = core::find_option(string_of(value));
            if (option == nullptr) {
                error_unknown_policy_option(string_of(value));
            }
        } else if (token == WJB_VALUE && option->type == OptionType::DOCUMENT) {
            Jsonb* profile = take_profile(*option, &value);
            if (kept != nullptr) {
                kept->profile = profile;
            }
        } else if (token == WJB_VALUE) {
            const std::string_view text = option_text(*option, value);
            const OptionFault fault = core::apply_option(*policy, *option, text);
            if (fault != OptionFault::NONE) {
                error_policy_option_value(*option, fault, option->type == OptionType::OBJECT ? "" : text);
            }
            if (kept != nullptr) {
                kept->texts[static_cast<std::size_t>(option->id)] = text;
            }
        }
    }
    if (policy->key_min > policy->key_max) {
        error_policy_key_lengths(policy->key_min, policy->key_max);
    }
}

JsonbValue string_value(std::string_view text) {
    JsonbValue value;
    value.type = jbvString;
    value.val.string.val = const_cast<char*>(text.data());
    value.val.string.len = static_cast<int>(text.size());
    return value;
}

JsonbValue number_value(std::string_view text) {
    JsonbValue value;
    std::int64_t number = 0;
    for (char c : text) {
        number = number * 10 + (c - '0');
    }
    value.type = jbvNumeric;
    value.val.numeric = int64_to_numeric(number);
    return value;
}

// push_items pushes the items of a text form, which may be empty, as an object or an array.
void push_items(JsonbParseState** state, std::string_view text, bool object) {
    pushJsonbValue(state, object ? WJB_BEGIN_OBJECT : WJB_BEGIN_ARRAY, nullptr);
    while (!text.empty()) {
        std::size_t end = 0;
        std::size_t equals = 0;
        while (end < text.size() && text[end] != ',') {
            if (text[end] == '=') {
                equals = end;
            }
            end++;
        }
        JsonbValue item = string_value({text.data(), object ? equals : end});
        pushJsonbValue(state, object ? WJB_KEY : WJB_ELEM, &item);
        if (object) {
            item = string_value({text.data() + equals + 1, end - equals - 1});
            pushJsonbValue(state, WJB_VALUE, &item);
        }
        text.remove_prefix(end < text.size() ? end + 1 : end);
    }
    pushJsonbValue(state, object ? WJB_END_OBJECT : WJB_END_ARRAY, nullptr);
}

// push_document pushes a whole object, an empty one for null.
void push_document(JsonbParseState** state, Jsonb* document) {
    if (document == nullptr) {
        push_items(state, {}, true);
        return;
    }
    JsonbValue value;
    value.type = jbvBinary;
    value.val.binary.data = &document->root;
    value.val.binary.len = static_cast<int>(VARSIZE(document) - VARHDRSZ);
    pushJsonbValue(state, WJB_VALUE, &value);
}

// push_option pushes the value of an option from its normal text form.
void push_option(JsonbParseState** state, const Option& option, std::string_view text) {
    JsonbValue value;
    switch (option.type) {
    case OptionType::OBJECT: push_items(state, text, true); return;
    case OptionType::ARRAY: push_items(state, text, false); return;
    case OptionType::INTEGER: value = number_value(text); break;
    case OptionType::BOOLEAN:
        value.type = jbvBool;
        value.val.boolean = text == "true";
        break;
    case OptionType::ENUMERATION:
        value = text.front() >= '0' && text.front() <= '9' ? number_value(text) : string_value(text);
        break;
    case OptionType::INTERVAL:
    case OptionType::TEXT: value = string_value(text); break;
    case OptionType::DOCUMENT: return;
    }
    pushJsonbValue(state, WJB_VALUE, &value);
}

} // namespace

Jsonb* resolve_policy_options(std::string_view preset, Jsonb* options) {
    core::Preset column{};
    if (!core::find_preset(preset, &column)) {
        error_unknown_preset(preset);
    }
    Policy policy = core::preset_policy(column);
    Kept kept{};
    for (std::size_t i = 0; i < OPTION_COUNT; i++) {
        kept.texts[i] = OPTIONS[i].defaults[static_cast<std::size_t>(column)];
    }
    if (options != nullptr) {
        apply_options(&policy, options, &kept);
    }

    JsonbParseState* state = nullptr;
    pushJsonbValue(&state, WJB_BEGIN_OBJECT, nullptr);
    for (const Option& option : OPTIONS) {
        // jsonb values point at their text until the whole object is serialised, so each text has its own memory.
        auto* buffer = static_cast<char*>(palloc(core::OPTION_TEXT_MAX));
        JsonbValue name = string_value(option.name);
        pushJsonbValue(&state, WJB_KEY, &name);
        if (option.type == OptionType::DOCUMENT) {
            push_document(&state, kept.profile);
            continue;
        }
        push_option(&state, option,
                    core::keeps_text(option.id) ? kept.texts[static_cast<std::size_t>(option.id)]
                                                : core::format_option(policy, option, buffer));
    }
    return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, nullptr));
}

void parse_policy(Jsonb* effective, core::Policy* out) {
    Policy policy;
    apply_options(&policy, effective, nullptr);
    *out = policy;
}

} // namespace idem::pg
