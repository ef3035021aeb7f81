#include "tools/pattern.hpp"

#include <algorithm>
#include <cstring>

namespace railmux::tools {
namespace {

constexpr std::size_t word = sizeof(std::uint64_t);

// The finalizer of splitmix64 (Steele, Lea, Flood 2014): every bit of the result depends on every bit of x.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

constexpr std::uint64_t body_word(std::uint64_t seed, std::uint64_t place) noexcept {
    return mix(seed + place * 0x9e3779b97f4a7c15u);
}

// Odd and even places in the sequence of body words never meet the stamps: those are mixed with the complement.
constexpr std::uint64_t stamp_word(std::uint64_t seed, std::uint64_t index) noexcept { return mix(~seed ^ index); }

// Calls with each whole or partial word of the message: its place, its offset, its size.
template <typename Visit>
void each_word(std::size_t size, Visit&& visit) noexcept {
    for (std::size_t at = 0; at < size; at += word) {
        if (!visit(at / word, at, std::min(word, size - at))) return;
    }
}

std::size_t differs_at(const std::byte* bytes, std::uint64_t expected, std::size_t size) noexcept {
    std::byte right[word];
    std::memcpy(right, &expected, word);
    return static_cast<std::size_t>(std::mismatch(right, right + size, bytes).first - right);
}

}  // namespace

void fill(std::span<std::byte> message, std::uint64_t seed) noexcept {
    each_word(message.size(), [&](std::uint64_t place, std::size_t at, std::size_t size) {
        const auto value = body_word(seed, place);
        std::memcpy(message.data() + at, &value, size);
        return true;
    });
}

void stamp(std::span<std::byte> message, std::uint64_t seed, std::uint64_t index) noexcept {
    if (message.empty()) return;
    const auto value = stamp_word(seed, index);
    if (message.size() >= 2 * word) std::memcpy(message.data() + message.size() - word, &value, word);
    std::memcpy(message.data(), &value, std::min(message.size(), word));
}

bool stamped(std::span<const std::byte> message, std::uint64_t seed, std::uint64_t index) noexcept {
    if (message.empty()) return true;
    const auto value = stamp_word(seed, index);
    if (message.size() < 2 * word) return std::memcmp(message.data(), &value, std::min(message.size(), word)) == 0;
    return std::memcmp(message.data(), &value, word) == 0 &&
           std::memcmp(message.data() + message.size() - word, &value, word) == 0;
}

std::optional<std::size_t> first_difference(std::span<const std::byte> message, std::uint64_t seed,
                                            std::uint64_t index) noexcept {
    if (message.empty()) return std::nullopt;
    const auto head = std::min(message.size(), word);
    const auto tail = message.size() >= 2 * word ? message.size() - word : message.size();
    const auto mark = stamp_word(seed, index);
    if (const auto at = differs_at(message.data(), mark, head); at < head) return at;
    std::optional<std::size_t> found;
    each_word(tail, [&](std::uint64_t place, std::size_t at, std::size_t size) {
        if (at == 0) return true;  // under the stamp
        if (const auto off = differs_at(message.data() + at, body_word(seed, place), size); off < size)
            found = at + off;
        return !found;
    });
    if (found || tail == message.size()) return found;
    if (const auto at = differs_at(message.data() + tail, mark, word); at < word) return tail + at;
    return std::nullopt;
}

}  // namespace railmux::tools
