#include "base/values.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <utility>

#include "base/text.hpp"

namespace railmux::base {
namespace {

// A leading number and what follows it.
struct Quantity {
    std::uint64_t number = 0;
    std::string_view suffix;
};

std::optional<Quantity> parse_quantity(std::string_view text) noexcept {
    text = trim(text);
    Quantity result;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result.number);
    if (error != std::errc{}) return std::nullopt;
    result.suffix = trim(text.substr(static_cast<std::size_t>(end - text.data())));
    return result;
}

std::optional<std::uint64_t> multiply(std::uint64_t a, std::uint64_t b) noexcept {
    if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) return std::nullopt;
    return a * b;
}

bool same_word(std::string_view a, std::string_view b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

std::optional<std::uint64_t> parse_count(std::string_view text) noexcept {
    const auto quantity = parse_quantity(text);
    if (!quantity || !quantity->suffix.empty()) return std::nullopt;
    return quantity->number;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept {
    const auto quantity = parse_quantity(text);
    if (!quantity) return std::nullopt;
    const auto suffix = quantity->suffix;
    if (suffix.empty() || same_word(suffix, "B")) return quantity->number;
    constexpr std::string_view letters = "KMGT";
    const auto letter = static_cast<char>(std::toupper(static_cast<unsigned char>(suffix.front())));
    const auto power = letters.find(letter);
    const auto rest = suffix.substr(1);
    if (power == std::string_view::npos) return std::nullopt;
    if (!rest.empty() && !same_word(rest, "i") && !same_word(rest, "iB")) return std::nullopt;
    return multiply(quantity->number, std::uint64_t{1} << (10 * (power + 1)));
}

std::optional<std::uint64_t> parse_speed(std::string_view text) noexcept {
    const auto quantity = parse_quantity(text);
    if (!quantity) return std::nullopt;
    if (quantity->suffix.empty()) return quantity->number;
    constexpr std::array<std::pair<std::string_view, std::uint64_t>, 3> units{
        {{"K", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}}};
    for (const auto& [name, factor] : units) {
        if (same_word(quantity->suffix, name)) return multiply(quantity->number, factor);
    }
    return std::nullopt;
}

std::optional<std::uint64_t> parse_duration(std::string_view text, std::string_view plain_unit) noexcept {
    const auto quantity = parse_quantity(text);
    if (!quantity) return std::nullopt;
    constexpr std::array<std::pair<std::string_view, std::uint64_t>, 5> units{
        {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}, {"min", 60'000'000'000}}};
    const auto unit = quantity->suffix.empty() ? plain_unit : quantity->suffix;
    for (const auto& [name, nanoseconds] : units) {
        if (unit == name) return multiply(quantity->number, nanoseconds);
    }
    return std::nullopt;
}

std::optional<bool> parse_flag(std::string_view text) noexcept {
    text = trim(text);
    for (const std::string_view yes : {"1", "yes", "on", "true"}) {
        if (same_word(text, yes)) return true;
    }
    for (const std::string_view no : {"0", "no", "off", "false"}) {
        if (same_word(text, no)) return false;
    }
    return std::nullopt;
}

std::optional<PortRange> parse_ports(std::string_view text) noexcept {
    const auto dash = text.find('-');
    const auto first = parse_count(text.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_count(text.substr(dash + 1));
    if (!first || !last || *last > 65535 || *first > *last) return std::nullopt;
    if (*first == 0 && *last != 0) return std::nullopt;
    return PortRange{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
}

}  // namespace railmux::base
