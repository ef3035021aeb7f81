// Bytes that tell where they come from, and whether others are the same: by words and blocks, because sanitizers slow down
// what is done byte by byte, of which the tests have gigabytes.
//
// Threads: functions without state.
// Lifetime: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace railmux::test {

/// `bytes` bytes that no other seed has: words of SplitMix64 (Steele, Lea and Flood, 2014).
inline std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed = 1) {
    std::vector<std::byte> data(bytes);
    std::uint64_t state = seed * 0xD1342543DE82EF95ULL;  // far from where another seed starts
    for (std::size_t at = 0; at < bytes; at += sizeof state) {
        state += 0x9E3779B97F4A7C15ULL;
        auto word = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9ULL;
        word = (word ^ (word >> 27)) * 0x94D049BB133111EBULL;
        word ^= word >> 31;
        std::memcpy(data.data() + at, &word, bytes - at < sizeof word ? bytes - at : sizeof word);
    }
    return data;
}

inline bool same(std::span<const std::byte> one, std::span<const std::byte> other) {
    return one.size() == other.size() && (one.empty() || std::memcmp(one.data(), other.data(), one.size()) == 0);
}

}  // namespace railmux::test
