// tokens: a stream of tokens, made of the input, has the canonical text of the reference, whatever the size of the
// buffer it is written through; texts that were made before come out as they are.
#include "fuzz.hpp"

namespace {

using reference::Value;

std::string text_of(fuzz::Input& input) {
    return fuzz::as_utf8(input.bytes(input.below(8) == 0 ? input.below(600) : input.below(12)));
}

std::string number_of(fuzz::Input& input) {
    std::string json = input.below(2) == 0 ? "-" : "";
    json += std::to_string(input.word());
    if (input.below(3) == 0) {
        json += '.';
        for (std::uint32_t digits = 1 + input.below(40); digits > 0; --digits) {
            json += static_cast<char>('0' + input.below(10));
        }
    }
    if (input.below(3) == 0) {
        json += "e" + std::to_string(static_cast<int>(input.below(600)) - 300);
    }
    return json;
}

Value value_of(fuzz::Input& input, int depth) {
    Value value;
    switch (input.below(depth > 20 ? 4 : 6)) {
    case 0: break;
    case 1:
        value.kind = Value::Kind::BOOLEAN;
        value.boolean = input.below(2) == 0;
        break;
    case 2:
        value.kind = Value::Kind::NUMBER;
        value.text = number_of(input);
        break;
    case 3:
        value.kind = Value::Kind::STRING;
        value.text = text_of(input);
        break;
    case 4:
        value.kind = Value::Kind::ARRAY;
        for (std::uint32_t count = input.below(6); count > 0 && !input.is_empty(); --count) {
            value.items.push_back(value_of(input, depth + 1));
        }
        break;
    default:
        value.kind = Value::Kind::OBJECT;
        for (std::uint32_t count = input.below(input.below(4) == 0 ? 60 : 6); count > 0 && !input.is_empty(); --count) {
            reference::Member member{text_of(input), value_of(input, depth + 1)};
            bool is_new = true;
            for (const auto& other : value.members) {
                is_new = is_new && other.first != member.first;
            }
            if (is_new) {
                value.members.push_back(std::move(member));
            }
        }
    }
    return value;
}

void append(void* context, const char* text, std::size_t size) {
    static_cast<std::string*>(context)->append(text, size);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::size_t capacity = idem::core::CanonicalWriter::MIN_CAPACITY + input.below(1024);
    const Value value = value_of(input, 0);
    const std::string expected = reference::print(value);

    std::vector<char> buffer(capacity);
    std::string out;
    idem::core::CanonicalWriter writer(buffer.data(), buffer.size(), append, &out);
    reference::feed(value, writer);
    writer.flush();
    fuzz::expect_equal(out, expected, "tokens");

    std::string raw;
    idem::core::CanonicalWriter again(buffer.data(), buffer.size(), append, &raw);
    again.begin_array();
    again.raw(out);
    again.raw(out);
    again.end_array();
    again.flush();
    fuzz::expect_equal(raw, "[" + expected + "," + expected + "]", "raw texts");
    return 0;
}
