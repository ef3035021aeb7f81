#include "rails/rail_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "rails/frame.hpp"
#include "rails/rail_identity.hpp"

namespace railmux::rails {

namespace {
std::string leave_out(std::string_view rail) {
    return fmt::format("its transport would have to; RAILMUX_RAILS='^{}' stops it from being tried", rail);
}

/// Of `list`, which the parameter of that name has.
template <typename List>
void refuse_unmatched(std::string_view parameter, const List& list, std::span<const RailInfo> devices) {
    std::vector<std::string> names;
    std::vector<std::string> known;
    for (const auto& device : devices) {
        names.push_back(device.name);
        known.insert(known.end(), {device.name, device.device});
        for (const auto& address : device.addresses) known.push_back(address.substr(0, address.find('/')));
    }
    const auto unknown = list.unmatched(known);
    if (unknown.empty()) return;
    throw Error(ErrorCode::invalid_config,
                fmt::format("{} names {}, which this host does not have{}", parameter, base::join(unknown),
                            base::did_you_mean(unknown.front(), known)),
                fmt::format("this host has {}", base::join(names)));
}

}  // namespace

void refuse_unknown(const base::Selector& selected, std::span<const RailInfo> devices) {
    refuse_unmatched("rails", selected, devices);
}

void refuse_unknown(const base::Speeds& told, std::span<const RailInfo> devices) {
    refuse_unmatched("rail.speeds", told, devices);
}

void say_speeds(const base::Speeds& told, std::span<RailInfo> devices) {
    for (auto& device : devices) {
        const std::array names{device.name, device.device};
        if (const auto speed = told.of(names, device.addresses); speed != 0) device.speed_bps = speed;
    }
}

namespace {

/// Those of transports that are not selected.
void deselect(const base::Selector& selected, std::span<RailInfo> devices) {
    using Match = base::Selector::Match;
    for (auto& device : devices) {
        const auto match = selected.match({&device.transport, 1}, {});
        if (!device.usable || (match != Match::excluded && match != Match::unlisted)) continue;
        device.usable = false;
        device.reason = "not selected by transports";
        device.cure.clear();
    }
}

}  // namespace

void select_transports(const base::Selector& selected, std::span<RailInfo> devices) {
    std::vector<std::string> known;
    for (const auto& device : devices) {
        if (std::ranges::find(known, device.transport) == known.end()) known.push_back(device.transport);
    }
    deselect(selected, devices);
    const auto unknown = selected.unmatched(known);
    if (unknown.empty()) return;
    throw Error(ErrorCode::invalid_config,
                fmt::format("transports names {}, which there is not{}", base::join(unknown),
                            base::did_you_mean(unknown.front(), known)),
                fmt::format("there are {}", base::join(known)));
}

RailSet::RailSet(Transports transports, const Selection& selected, base::Logger& log)
    : log_(log),
      machine_(machine_identity()),
      selected_transports_(selected.transports),
      speeds_(selected.speeds),
      transports_(std::move(transports)),
      searches_(transports_.size()) {
    std::vector<RailInfo> all;
    std::vector<transports::Transport*> owners;
    for (const auto& transport : transports_) {
        for (auto& device : transport->scan()) all.push_back(std::move(device));
        owners.resize(all.size(), transport.get());
    }
    refuse_unknown(selected.rails, all);
    refuse_unknown(speeds_, all);
    say_speeds(speeds_, all);
    select_transports(selected.transports, all);
    for (std::size_t i = 0; i < all.size(); ++i) open(*owners[i], std::move(all[i]));
    if (rails_.empty()) {
        std::string reasons;
        for (const auto& device : unusable_) reasons += "\n  " + device.name + ": " + device.reason;
        throw Error(ErrorCode::no_rails, "no rail can be used" + reasons,
                    "see `railmux info`, and select rails with RAILMUX_RAILS");
    }
    capacity_ = std::min(max_rails, rails_.size() + spare);
    rails_.reserve(capacity_);  // rails stay where they are
}

void RailSet::open(transports::Transport& transport, RailInfo device) {
    if (device.usable && rails_.size() == capacity_) {
        device.usable = false;
        device.reason = capacity_ == max_rails ? fmt::format("a process opens at most {} rails", max_rails)
                                               : fmt::format("{} rails have come since the context began", spare);
    }
    if (device.usable) {
        try {
            rails_.push_back(open_usable(transport, device));
            return;
        } catch (const Error& error) {
            if (told_.insert(device.name + ": " + error.what()).second) {
                log_.warning("rail {} is left out: {}{}{}", device.name, error.what(), error.cure().empty() ? "" : "; ",
                             error.cure());
            }
            if (error.code() == ErrorCode::timed_out) hanging_.insert(device.name);
            device.usable = false;
            device.reason = error.what();
            device.cure = error.cure();
        }
    }
    unusable_.push_back(std::move(device));
}

/// Throws Error.
LocalRail RailSet::open_usable(transports::Transport& transport, const RailInfo& device) const {
    LocalRail local{.rail = transport.open(device), .transport = std::string(transport.name()), .info = device};
    const auto& traits = local.traits();
    // The speed by which a rail is told again is that of the rail, not the user's word: what was measured of it stays what it
    // is whatever they say, and they may say so only now because it was found wanting.
    local.identity = rail_identity(machine_, traits);
    local.inward = traits.inward;
    local.told_address.assign(local.rail->address().begin(), local.rail->address().end());
    // Rendezvous closes each put by a frame on the same link; without one of these it could overtake the bytes.
    if (!traits.put || (!traits.ordered && !traits.done_is_delivered)) {
        throw Error(ErrorCode::no_rails, "it can neither order frames behind a put nor confirm one",
                    leave_out(device.name));
    }
    if (traits.max_segments < Frame::max_pieces) {
        throw Error(ErrorCode::no_rails, fmt::format("it gathers fewer than {} pieces", Frame::max_pieces),
                    leave_out(device.name));
    }
    if (traits.max_put < least_put_) {
        throw Error(ErrorCode::no_rails,
                    fmt::format("it puts {} bytes at most, and fragments may have {}", traits.max_put, least_put_),
                    leave_out(device.name));
    }
    return local;
}

void RailSet::look_for_new() noexcept {
    for (auto& search : searches_) search.wanted = true;
}

bool RailSet::open_new(std::uint64_t least_put) {
    least_put_ = least_put;
    bool all = true;
    for (std::size_t i = 0; i < transports_.size(); ++i) {
        auto& search = searches_[i];
        if (!search.under_way && !std::exchange(search.wanted, false)) continue;
        search.under_way = false;
        try {
            if (auto devices = transports_[i]->rescan(); devices) {
                open_new_of(*transports_[i], std::move(*devices));
            } else {
                search.under_way = true;
            }
        } catch (const Error& error) {  // of what was selected by name something is not there now
            log_.debug("{}: {}", transports_[i]->name(), error.what());
        }
        all = all && !search.under_way && !search.wanted;
    }
    return all;
}

void RailSet::open_new_of(transports::Transport& transport, std::vector<RailInfo> devices) {
    deselect(selected_transports_, devices);
    say_speeds(speeds_, devices);
    for (auto& device : devices) {
        const auto same = [&](const RailInfo& info) { return info.name == device.name; };
        if (std::ranges::any_of(rails_, same, &LocalRail::info) || hanging_.contains(device.name)) continue;
        std::erase_if(unusable_, same);
        open(transport, std::move(device));
    }
}

std::vector<RailInfo> RailSet::list() const {
    std::vector<RailInfo> all;
    for (const auto& rail : rails_) {
        all.push_back(rail.info);
        all.back().usable = rail.up;
    }
    all.insert(all.end(), unusable_.begin(), unusable_.end());
    return all;
}

std::vector<RailAddress> RailSet::addresses() const {
    std::vector<RailAddress> all;
    for (std::size_t i = 0; i < rails_.size(); ++i) {
        const auto address = rails_[i].rail->address();
        all.push_back(
            {static_cast<std::uint8_t>(i), rails_[i].transport, rails_[i].identity, {address.begin(), address.end()}});
    }
    return all;
}

}  // namespace railmux::rails
