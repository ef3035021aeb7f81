#include "base/speeds.hpp"

#include <fmt/format.h>

#include <railmux/error.hpp>

#include "base/text.hpp"
#include "base/values.hpp"

namespace railmux::base {
namespace {

[[noreturn]] void refuse_speed(std::string_view item, std::string_view why) {
    throw Error(ErrorCode::invalid_config, fmt::format("item \"{}\" {}", item, why),
                "write e.g. tcp:eth0=1G,tcp:eth1=100M: a name, glob, address or network, =, and bits per second");
}

}  // namespace

Speeds Speeds::parse(std::string_view text) {
    Speeds result;
    if (trim(text).empty()) return result;
    for (const auto part : split(text, ',')) result.items_.push_back(parse_item(part));
    return result;
}

Speeds::Item Speeds::parse_item(std::string_view text) {
    const auto equals = text.rfind('=');
    if (equals == text.npos) refuse_speed(text, "says no speed");
    const auto what = trim(text.substr(0, equals));
    if (what.empty()) refuse_speed(text, "names nothing");
    if (what.starts_with('^')) refuse_speed(text, "excludes, which means nothing here");
    const auto bps = parse_speed(text.substr(equals + 1));
    if (!bps) refuse_speed(text, "has no speed such as 100M, 1G or 2500M behind the =");
    if (*bps < least_bps || *bps > most_bps) {
        refuse_speed(text,
                     fmt::format("is out of range: from {}K to {}G", least_bps / 1'000, most_bps / 1'000'000'000));
    }
    return {Selector::parse(what), *bps};
}

std::uint64_t Speeds::of(std::span<const std::string> names, std::span<const std::string> addresses) const {
    std::uint64_t said = 0;
    for (const auto& item : items_) {
        if (item.what.match(names, addresses) != Selector::Match::unlisted) said = item.bps;
    }
    return said;
}

std::vector<std::string> Speeds::unmatched(std::span<const std::string> candidates) const {
    std::vector<std::string> result;
    for (const auto& item : items_) {
        for (auto& name : item.what.unmatched(candidates)) result.push_back(std::move(name));
    }
    return result;
}

}  // namespace railmux::base
