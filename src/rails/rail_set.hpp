// RailSet: the local rails of one context: which there are, which are open, and why the others are not.
//
// Threads: one engine at a time.
// Lifetime: owns transports and rails; rails are closed before their transports.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/selector.hpp"
#include "base/speeds.hpp"
#include "rails/process_address.hpp"
#include "transports/transport.hpp"

namespace railmux::rails {

struct LocalRail {
    std::unique_ptr<transports::Rail> rail;
    std::string transport;
    RailInfo info;
    std::vector<std::byte> told_address;  // what others know
    std::string told_cure;                // of being merged with another; logged once
    std::uint64_t identity = 0;           // rail_identity.hpp
    bool up = true;
    bool polled = true;                // something may come of it; a rail that is down may come up again
    base::Nanoseconds down_since = 0;  // where it is not up
    bool copies = false;               // memory could not be registered for bulk at least once: said once
    bool inward = false;               // as its traits say

    [[nodiscard]] const transports::RailTraits& traits() const noexcept { return rail->traits(); }
    /// Nominal, in bits per second; 0: unknown. What is listed counts, because there the user has the last word (say_speeds);
    /// of some rails only opening them tells.
    [[nodiscard]] std::uint64_t speed_bps() const noexcept {
        return info.speed_bps != 0 ? info.speed_bps : traits().speed_bps;
    }
};

using Transports = std::vector<std::unique_ptr<transports::Transport>>;

/// Throws Error(invalid_config) when `selected` names a device that is not among these: misspelt, most likely.
void refuse_unknown(const base::Selector& selected, std::span<const RailInfo> devices);

/// The same of `told`, the parameter rail.speeds.
void refuse_unknown(const base::Speeds& told, std::span<const RailInfo> devices);

/// Devices that `told` knows have the speed that it says, whatever the system does.
void say_speeds(const base::Speeds& told, std::span<RailInfo> devices);

/// Makes the devices of transports that are not selected unusable, with the reason. Throws Error(invalid_config) when
/// `selected` names a transport that has no device here: misspelt, or not built in.
void select_transports(const base::Selector& selected, std::span<RailInfo> devices);

class RailSet {
public:
    /// Rails that may come while the context lives: a host seldom gets more interfaces than that, and each takes memory.
    static constexpr std::size_t spare = 8;

    struct Selection {
        base::Selector transports;
        base::Selector rails;
        base::Speeds speeds;
    };

    /// Opens every usable device of the given transports. A device that does not open is a warning, once, and is listed
    /// with its reason; no rail at all throws Error(no_rails), a selection of what there is not Error(invalid_config).
    RailSet(Transports transports, const Selection& selected, base::Logger& log);

    [[nodiscard]] std::size_t size() const noexcept { return rails_.size(); }
    /// How many there may ever be.
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    /// There may be devices that there were not when it was made: open_new() finds out.
    void look_for_new() noexcept;
    /// Opens them; they come behind the others. Puts of theirs take `least_put` bytes, at least. False: that is not all, call
    /// again in some tens of milliseconds.
    [[nodiscard]] bool open_new(std::uint64_t least_put);
    [[nodiscard]] LocalRail& operator[](std::size_t rail) noexcept { return rails_[rail]; }
    [[nodiscard]] const LocalRail& operator[](std::size_t rail) const noexcept { return rails_[rail]; }

    /// Every device, open or not.
    [[nodiscard]] std::vector<RailInfo> list() const;
    [[nodiscard]] std::vector<RailAddress> addresses() const;

private:
    void open(transports::Transport& transport, RailInfo device);
    void open_new_of(transports::Transport& transport, std::vector<RailInfo> devices);
    [[nodiscard]] LocalRail open_usable(transports::Transport& transport, const RailInfo& device) const;

    base::Logger& log_;
    std::string machine_;
    base::Selector selected_transports_;
    base::Speeds speeds_;
    std::size_t capacity_ = max_rails;
    std::uint64_t least_put_ = 0;
    Transports transports_;
    struct Search {  // of one of those
        bool wanted = false;
        bool under_way = false;  // begun before whatever it was wanted for
    };
    std::vector<Search> searches_;
    std::vector<LocalRail> rails_;
    std::vector<RailInfo> unusable_;
    // Of devices that do not open, and why: they are tried each time that devices are looked for.
    std::set<std::string> told_;
    std::set<std::string> hanging_;  // ... except those, by name
};

}  // namespace railmux::rails
