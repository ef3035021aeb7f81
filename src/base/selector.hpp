// Selector: the one grammar for choosing rails, interfaces and devices, the same everywhere.
//
//   selector  = "" | "all" | item { "," item }
//   item      = [ "^" ] ( name | glob | address | network )
//   name      = eth0, tcp:eth0, mlx5_0:1          exactly this one
//   glob      = eth*, tcp:eth?, eth[02]           as in the shell
//   address   = 10.77.0.1, fe80::1                whatever has this address
//   network   = 10.77.0.0/16, fd00::/8            whatever has an address in it
//
// "^" excludes. With excludes only, everything else is included; with any include, only what is included. An exclude
// beats every include, whatever the order. "all" and "*" include everything, but not explicitly: what is off by default
// stays off unless it is named, so "all,docker0" means the usual ones and docker0.
//
// Threads: immutable after parse; use it from anywhere.
// Lifetime: owns its texts.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace railmux::base {

class Selector {
public:
    /// Everything, by default.
    Selector() = default;

    /// Throws Error(invalid_config) that names the item and what is wrong with it.
    [[nodiscard]] static Selector parse(std::string_view text);

    enum class Match { unlisted, excluded, included_by_default, included_explicitly };

    /// Judges a thing with these names ("tcp:eth0", "eth0") and addresses ("10.77.0.1"; a "/24" or "%eth0" behind an
    /// address is ignored).
    [[nodiscard]] Match match(std::span<const std::string> names, std::span<const std::string> addresses) const;

    /// Included plain names, addresses and networks (not globs) that match none of the candidates' names and addresses:
    /// misspelt, most likely. Excludes may name what is not there, so that all hosts can share one setting.
    [[nodiscard]] std::vector<std::string> unmatched(std::span<const std::string> candidates) const;

private:
    struct Name {
        std::string text;
    };
    struct Glob {
        std::string pattern;
    };
    struct Network {
        int family = 0;
        std::array<unsigned char, 16> address{};
        unsigned prefix_bits = 0;
    };
    struct Everything {};
    struct Item {
        std::string text;
        bool exclude = false;
        std::variant<Name, Glob, Network, Everything> what;
    };

    static Item parse_item(std::string_view text);
    static bool parse_network(std::string_view text, Network& network);
    static bool contains(const Network& network, std::string_view address);
    static bool matches(const Item& item, std::span<const std::string> names, std::span<const std::string> addresses);

    std::vector<Item> items_;
};

}  // namespace railmux::base
