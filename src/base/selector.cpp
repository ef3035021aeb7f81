#include "base/selector.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstring>

#include <railmux/error.hpp>

#include "base/text.hpp"
#include "base/values.hpp"

namespace railmux::base {
namespace {

[[noreturn]] void refuse(std::string_view item, std::string_view why) {
    throw Error(
        ErrorCode::invalid_config, fmt::format("selector item \"{}\" {}", item, why),
        "write names, globs (eth*), addresses or networks (10.77.0.0/16), separated by commas, ^ in front excludes");
}

// Something that can only be meant as an address: a digits-and-dots word, or anything with "::".
bool looks_like_address(std::string_view text) {
    const bool dotted = text.find('.') != text.npos && text.find_first_not_of("0123456789.") == text.npos;
    return dotted || text.find("::") != text.npos;
}

bool same_prefix(const unsigned char* a, const unsigned char* b, unsigned bits) {
    const unsigned whole = bits / 8;
    if (std::memcmp(a, b, whole) != 0) return false;
    const auto mask = static_cast<unsigned char>(0xff00u >> (bits % 8));
    return bits % 8 == 0 || ((a[whole] ^ b[whole]) & mask) == 0;
}

}  // namespace

Selector Selector::parse(std::string_view text) {
    Selector result;
    if (trim(text).empty()) return result;
    for (const auto part : split(text, ',')) result.items_.push_back(parse_item(part));
    return result;
}

Selector::Item Selector::parse_item(std::string_view text) {
    Item item{std::string(text), text.starts_with('^'), Everything{}};
    const auto word = item.exclude ? trim(text.substr(1)) : text;
    if (word.empty()) refuse(text, "is empty");
    if (word.find_first_of(" \t^") != word.npos) refuse(text, "has a blank or ^ inside: a comma missing?");
    if (word == "all" || word == "*") {
        if (item.exclude) refuse(text, "would exclude everything");
        return item;
    }
    Network network;
    if (parse_network(word, network)) {
        item.what = network;
    } else if (word.find('/') != word.npos) {
        refuse(text, "is not a network: an address, /, and a prefix of at most 32 (IPv4) or 128 (IPv6) bits");
    } else if (looks_like_address(word)) {
        refuse(text, "is not an IPv4 or IPv6 address (leave out a %interface behind it)");
    } else if (word.find_first_of("*?[") != word.npos) {
        item.what = Glob{std::string(word)};
    } else {
        item.what = Name{std::string(word)};
    }
    return item;
}

bool Selector::parse_network(std::string_view text, Network& network) {
    const auto slash = text.find('/');
    const std::string address(text.substr(0, slash));
    unsigned most = 0;
    if (inet_pton(AF_INET, address.c_str(), network.address.data()) == 1) {
        network.family = AF_INET;
        most = 32;
    } else if (inet_pton(AF_INET6, address.c_str(), network.address.data()) == 1) {
        network.family = AF_INET6;
        most = 128;
    } else {
        return false;
    }
    network.prefix_bits = most;
    if (slash == text.npos) return true;
    const auto bits = parse_count(text.substr(slash + 1));
    if (!bits || *bits > most) return false;
    network.prefix_bits = static_cast<unsigned>(*bits);
    return true;
}

bool Selector::contains(const Network& network, std::string_view address) {
    Network one;
    if (!parse_network(address.substr(0, address.find_first_of("/%")), one)) return false;
    return one.family == network.family && same_prefix(one.address.data(), network.address.data(), network.prefix_bits);
}

bool Selector::matches(const Item& item, std::span<const std::string> names, std::span<const std::string> addresses) {
    if (const auto* name = std::get_if<Name>(&item.what)) {
        return std::find(names.begin(), names.end(), name->text) != names.end();
    }
    if (const auto* glob = std::get_if<Glob>(&item.what)) {
        return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
            return fnmatch(glob->pattern.c_str(), name.c_str(), 0) == 0;
        });
    }
    if (const auto* network = std::get_if<Network>(&item.what)) {
        return std::any_of(addresses.begin(), addresses.end(),
                           [&](const std::string& address) { return contains(*network, address); });
    }
    return true;
}

Selector::Match Selector::match(std::span<const std::string> names, std::span<const std::string> addresses) const {
    bool any_include = false, by_default = false, explicitly = false;
    for (const auto& item : items_) {
        const bool hit = matches(item, names, addresses);
        if (item.exclude) {
            if (hit) return Match::excluded;
            continue;
        }
        any_include = true;
        if (std::holds_alternative<Everything>(item.what)) {
            by_default = true;
        } else {
            explicitly = explicitly || hit;
        }
    }
    if (explicitly) return Match::included_explicitly;
    return by_default || !any_include ? Match::included_by_default : Match::unlisted;
}

std::vector<std::string> Selector::unmatched(std::span<const std::string> candidates) const {
    std::vector<std::string> result;
    for (const auto& item : items_) {
        const bool open = item.exclude || std::holds_alternative<Glob>(item.what);
        if (!open && !matches(item, candidates, candidates)) result.push_back(item.text);
    }
    return result;
}

}  // namespace railmux::base
