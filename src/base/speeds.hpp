// Speeds: how fast networks are, as the user says. Virtual adapters tell no speed, and a pair of virtual interfaces tells the
// same for whatever shapes it.
//
//   speeds = "" | item { "," item }
//   item   = what "=" speed
//   what   = name | glob | address | network | "all"     as of a Selector, without "^"
//   speed  = 100M, 1G, 2500000000                        bits per second; K, M and G are powers of 1000, as networks count
//
// Of several items that match a network the last one counts: "tcp:*=1G,tcp:eth3=100M".
//
// Threads: immutable after parse; use it from anywhere.
// Lifetime: owns its texts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/selector.hpp"

namespace railmux::base {

class Speeds {
public:
    // Slower ones are none that anybody would use as a rail. Of faster ones a byte takes less than half a tick of the
    // scheduler (1/1024 ns), and nothing at all when that is rounded.
    static constexpr std::uint64_t least_bps = 1'000;
    static constexpr std::uint64_t most_bps = 10'000'000'000'000;

    /// Nothing is said, by default.
    Speeds() = default;

    /// Throws Error(invalid_config) that names the item and what is wrong with it.
    [[nodiscard]] static Speeds parse(std::string_view text);

    /// Of a thing with these names and addresses, as Selector::match takes them, in bits per second; 0: nothing is said of it.
    [[nodiscard]] std::uint64_t of(std::span<const std::string> names, std::span<const std::string> addresses) const;

    /// Names, addresses and networks (not globs) that match none of the candidates: misspelt, most likely.
    [[nodiscard]] std::vector<std::string> unmatched(std::span<const std::string> candidates) const;

private:
    struct Item {
        Selector what;
        std::uint64_t bps = 0;
    };

    static Item parse_item(std::string_view text);

    std::vector<Item> items_;
};

}  // namespace railmux::base
