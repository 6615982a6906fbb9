// decimals: which texts are decimals, against a grammar spelled out slowly.
#include "core/profile.hpp"

#include "fuzz.hpp"

namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// matches walks the grammar [+-]? digits ("." digits)? ([eE] [+-]? digits)? and returns the exponent's text in
// *exponent.
bool matches(const std::string& text, std::string* exponent) {
    std::size_t i = 0;
    const auto sign = [&] { i += i < text.size() && (text[i] == '+' || text[i] == '-') ? 1 : 0; };
    const auto digits = [&] {
        const std::size_t first = i;
        while (i < text.size() && is_digit(text[i])) {
            ++i;
        }
        return i > first;
    };
    sign();
    if (!digits()) {
        return false;
    }
    if (i < text.size() && text[i] == '.') {
        ++i;
        if (!digits()) {
            return false;
        }
    }
    if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
        const std::size_t first = ++i;
        sign();
        if (!digits()) {
            return false;
        }
        *exponent = text.substr(first, i - first);
    }
    return i == text.size();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string text(reinterpret_cast<const char*>(data), size);
    std::vector<std::int16_t> groups(idem::core::decimal_groups(text.size()));
    idem::core::Decimal value{};
    const bool is_decimal = idem::core::parse_decimal(text, groups.data(), &value);
    std::string exponent;
    const bool is_spelled = matches(text, &exponent);
    fuzz::expect(is_spelled || !is_decimal, "not a decimal: " + text);
    if (!is_spelled || exponent.size() > 8) {
        return 0;
    }
    const std::string json = text[0] == '+' ? text.substr(1) : text;
    const reference::Digits number = reference::parse_number(json);
    const int lowest = number.point - static_cast<int>(number.text.size());
    const bool fits = number.text.empty() || (number.point <= 131072 && lowest >= -16383);
    fuzz::expect(is_decimal == fits, "fits: " + text);
    if (is_decimal) {
        std::string out;
        idem::core::DecimalPrinter printer(value);
        while (!printer.is_done()) {
            char piece[idem::core::DecimalPrinter::PIECE];
            out.append(piece, printer.next(piece));
        }
        fuzz::expect_equal(out, reference::print_number(number), "decimal " + text);
    }
    return 0;
}
