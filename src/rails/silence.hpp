// Silence: whether a link over which nothing comes is lost, by what its network tells (transports::Pulse) at one look after
// the other. A process at the other end that computes is not silent: its network confirms for it.
//
// A network says that something went missing by sending it again; what is sent twice is confirmed at once by whoever is
// there. So a link is in doubt when something has been sent again and the next look finds it unanswered, still; and it is
// lost, if the same peer is heard over another link meanwhile: else it may be the peer, or its host, that is away. Without
// another link only long silence tells.
//
// Threads: one engine at a time. Pure: time is an argument.
// Lifetime: part of a Link.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/clock.hpp"
#include "transports/transport.hpp"

namespace railmux::rails {

class Silence {
public:
    /// What a look found.
    enum class Finding : std::uint8_t {
        settled,   // nothing is outstanding: no need to look again before something is sent
        waiting,   // look again
        overdue,   // ... and send something more, which makes the network ask what became of the first
        doubtful,  // lost, if the peer is heard elsewhere
        lost,
    };
    struct Limits {
        base::Nanoseconds overdue = 20 * base::millisecond;
        base::Nanoseconds doubtful = 50 * base::millisecond;
        base::Nanoseconds lost = 750 * base::millisecond;
    };
    /// Time between two looks: counted for at most twice that, as nobody knows what a process missed that did not look.
    static constexpr base::Nanoseconds period = 20 * base::millisecond;
    /// ... while it is silent.
    static constexpr base::Nanoseconds short_period = 10 * base::millisecond;

    [[nodiscard]] bool settled() const noexcept { return settled_; }
    /// Something is being sent over a settled link.
    void unsettle(base::Nanoseconds now) noexcept {
        settled_ = false;
        looked_ = now;
        fresh_ = true;
    }
    /// What is heard from now on is new: to be known already at the first look at what was settled until now. Something is
    /// sent over it only to hear of its peer: if it becomes overdue itself that asks nobody else.
    void expect(const transports::Pulse& pulse) noexcept {
        heard_ = pulse.heard;
        fresh_ = false;
        overdue_ = true;
    }
    [[nodiscard]] Finding look(const transports::Pulse& pulse, const Limits& limits, base::Nanoseconds now) noexcept;

    /// For how long nothing has been heard although something is outstanding.
    [[nodiscard]] base::Nanoseconds silent() const noexcept { return silent_; }
    /// When a look found that something had been heard since the one before.
    [[nodiscard]] base::Nanoseconds heard_at() const noexcept { return heard_at_; }

    /// An idle link at its turn: whether to send something, so that its death would show. `received` counts what the process at
    /// the other end sent. Who hears from the other side may leave turns out if he `may_rest`.
    [[nodiscard]] bool wants_keepalive(std::uint64_t received, bool may_rest) noexcept;
    /// In so many turns something is sent.
    static constexpr int longest_rest = 4;

private:
    // Whoever is sent keepalives need not send any, but for one in `longest_rest` turns, to show that it reads them ...
    static constexpr std::uint8_t rests = longest_rest - 1;
    // ... because unread ones pile up there: after so many turns without a sign of life only one in `seldom` is sent.
    static constexpr std::uint8_t patience = 8;
    static constexpr std::uint8_t seldom = 8;

    base::Nanoseconds looked_ = 0;
    base::Nanoseconds silent_ = 0;
    base::Nanoseconds heard_at_ = 0;
    std::uint64_t heard_ = 0;
    std::uint64_t asked_ = 0;
    std::uint64_t received_ = 0;
    std::uint8_t rested_ = 0;
    std::uint8_t unanswered_ = 0;
    bool settled_ = true;
    bool fresh_ = false;  // not looked at since it was settled: what was heard meanwhile is old
    bool repeated_ = false;
    bool overdue_ = false;  // found so once
};

inline Silence::Finding Silence::look(const transports::Pulse& pulse, const Limits& limits,
                                      base::Nanoseconds now) noexcept {
    const auto elapsed = std::min(now - looked_, 2 * period);
    // Nobody knows when what was heard came, if nobody looked for long: it shows that the link was there, not that it is.
    const bool known_when = !std::exchange(fresh_, false) && now - looked_ <= 2 * period;
    looked_ = now;
    const bool heard = pulse.heard != heard_;
    if (heard && known_when) heard_at_ = now;
    heard_ = pulse.heard;
    if (heard || !pulse.outstanding) {
        silent_ = 0;
        asked_ = pulse.asked;
        repeated_ = overdue_ = false;
        settled_ = !pulse.outstanding;
        return settled_ ? Finding::settled : Finding::waiting;
    }
    silent_ += elapsed;
    const bool unanswered = repeated_;
    repeated_ = pulse.asked != asked_;
    if (silent_ >= limits.lost) return Finding::lost;
    if (silent_ >= limits.doubtful && unanswered) return Finding::doubtful;
    if (silent_ < limits.overdue || overdue_) return Finding::waiting;
    overdue_ = true;
    return Finding::overdue;
}

inline bool Silence::wants_keepalive(std::uint64_t received, bool may_rest) noexcept {
    if (received != received_) {
        received_ = received;
        unanswered_ = 0;
        if (++rested_ <= rests && may_rest) return false;
        rested_ = 0;
        return true;
    }
    rested_ = 0;
    if (unanswered_ < patience) {
        ++unanswered_;
        return true;
    }
    unanswered_ = unanswered_ + 1 < patience + seldom ? unanswered_ + 1 : patience;
    return unanswered_ == patience;
}

}  // namespace railmux::rails
