#include "base/tick_clock.hpp"

#include <algorithm>

namespace railmux::base {

namespace {
constexpr Nanoseconds millisecond = 1'000'000;
// A line serves for as long as the readings it was drawn from lie apart, up to this.
constexpr Nanoseconds longest_span = 10 * millisecond;
// A rate is measured over one to two of these.
constexpr Nanoseconds base_time = 1000 * millisecond;
// A clock that is ahead runs slower by one part in so many.
constexpr std::uint64_t catch_up = 1024;
// A rate that differs by more than one part in so many is none: one of the clocks was set, or stood still (suspended).
constexpr std::uint64_t credible = 256;
constexpr Nanoseconds shortest_span = millisecond / 20;

__extension__ using Wide = unsigned __int128;

/// 2^32 nanoseconds a tick.
std::uint64_t rate(std::uint64_t ticks, Nanoseconds ns) noexcept {
    return static_cast<std::uint64_t>((static_cast<Wide>(ns) << 32) / std::max<std::uint64_t>(ticks, 1));
}

std::uint64_t ticks_in(Nanoseconds ns, std::uint64_t scale) noexcept {
    return static_cast<std::uint64_t>((static_cast<Wide>(ns) << 32) / std::max<std::uint64_t>(scale, 1));
}
}  // namespace

TickClock::TickClock(std::uint64_t ticks_before, Nanoseconds before, std::uint64_t ticks, Nanoseconds now) noexcept
    : base_{ticks_before, before}, next_(base_), rate_(rate(ticks - ticks_before, now - before)) {
    draw(ticks, now, now);
}

void TickClock::adjust(std::uint64_t ticks, Nanoseconds now) noexcept {
    // Nobody has read a line beyond its end.
    const auto passed = std::min(ticks - line_.since, line_.span);
    const auto shown = std::max(now, line_.at(line_.since + passed));
    const auto measured = rate(ticks - base_.ticks, now - base_.ns);
    const auto change = measured > rate_ ? measured - rate_ : rate_ - measured;
    if (now <= base_.ns || change > rate_ / credible) {
        base_ = next_ = {ticks, now};
    } else {
        rate_ = measured;
        if (now - next_.ns >= base_time) {
            base_ = next_;
            next_ = {ticks, now};
        }
    }
    draw(ticks, now, shown);
}

void TickClock::draw(std::uint64_t ticks, Nanoseconds now, Nanoseconds shown) noexcept {
    line_ = {.since = ticks, .ns = shown, .scale = shown > now ? rate_ - rate_ / catch_up : rate_};
    line_.span = ticks_in(std::clamp(now - base_.ns, shortest_span, longest_span), line_.scale);
}

}  // namespace railmux::base
