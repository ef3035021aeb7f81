#include "rails/recovery.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace railmux::rails {

Recovery::Recovery(Options options, std::uint64_t seed)
    : options_(options), random_(static_cast<std::minstd_rand::result_type>(seed ^ seed >> 32)) {}

Recovery::Lost* Recovery::find(const Pair& pair) noexcept {
    const auto found = std::ranges::find(all_, pair, &Lost::pair);
    return found == all_.end() ? nullptr : &*found;
}

void Recovery::missed(Lost link, base::Nanoseconds now) {
    if (find(link.pair) != nullptr) return;
    link.missed = true;
    link.since = now;
    link.back_off = options_.longest * rarer;
    link.next = now + jittered(link.back_off);
    all_.push_back(std::move(link));
}

/// A quarter more or less, so that many who lost the same switch do not come back to it in step.
base::Nanoseconds Recovery::jittered(base::Nanoseconds time) {
    const auto quarter = std::max<base::Nanoseconds>(time / 4, 1);
    return time - quarter + static_cast<base::Nanoseconds>(random_()) % (2 * quarter);
}

/// Of the try that has just begun.
base::Nanoseconds Recovery::limit_of(const Lost& lost) noexcept {
    const auto limit = lost.limit << std::countr_zero(lost.tries) / longer_each;
    return std::max(lost.limit, std::min(limit, longest_try));
}

void Recovery::lost(Lost link, base::Nanoseconds now) {
    link.since = now;
    link.back_off = options_.first;
    auto* known = find(link.pair);
    if (known == nullptr) known = &all_.emplace_back();
    // One that does not stay goes on doubling.
    const bool again = known->up && !known->missed && now - known->up_since < steady;
    if (again) link.back_off = std::min(known->back_off * 2, options_.longest * rarer);
    link.next = now + jittered(link.back_off);
    link.rests_until = link.corrupted ? link.next : now;
    *known = std::move(link);
}

std::optional<Recovery::Lost> Recovery::back(const Pair& pair, base::Nanoseconds now) {
    Lost* lost = find(pair);
    if (lost == nullptr || lost->up) return std::nullopt;
    lost->up = true;
    lost->up_since = now;
    lost->trying = lost->once = false;
    return *lost;
}

void Recovery::failed(const Pair& pair, base::Nanoseconds now) {
    Lost* lost = find(pair);
    if (lost == nullptr || lost->up) return;
    const auto began = lost->trying ? lost->began : now;  // now: the connector had tried by itself
    lost->back_off = std::min(lost->back_off * 2, longest_wait(*lost, now));
    lost->next = std::max(began + jittered(lost->back_off), now);
    lost->trying = lost->once = false;
}

/// From one try to the next, without jitter.
base::Nanoseconds Recovery::longest_wait(const Lost& lost, base::Nanoseconds now) const noexcept {
    const bool early = now - lost.since < rare_after;
    if (lost.missed) return options_.longest * (early ? rarer : rarest);
    if (early) return options_.longest;
    const auto count = std::ranges::count_if(all_, [](const Lost& other) { return !other.up && !other.missed; });
    return std::clamp(count * apart, options_.longest, options_.longest * rarer);
}

void Recovery::rail_up(std::uint32_t rail, base::Nanoseconds now) {
    for (auto& lost : all_) {
        if (lost.pair.rail != rail || lost.up) continue;
        lost.once = true;
        lost.next = lost.rests_until = now;
        lost.back_off = options_.first;
    }
}

void Recovery::connected(std::uint32_t peer, base::Nanoseconds now) {
    for (auto& lost : all_) {
        if (lost.pair.peer == peer && lost.next == never) lost.next = now + jittered(options_.first);
    }
}

void Recovery::forget(const Pair& pair) {
    std::erase_if(all_, [&](const Lost& lost) { return lost.pair == pair; });
}

void Recovery::forget(std::uint32_t peer) {
    std::erase_if(all_, [&](const Lost& lost) { return lost.pair.peer == peer; });
}

base::Nanoseconds Recovery::next_due() const noexcept {
    auto next = never;
    for (const auto& lost : all_) {
        if (waits(lost)) next = std::min(next, lost.next);
    }
    return next;
}

bool Recovery::resting(const Pair& pair, base::Nanoseconds now) const noexcept {
    const auto lost = std::ranges::find(all_, pair, &Lost::pair);
    return lost != all_.end() && !lost->up && now < lost->rests_until;
}

bool Recovery::is_lost(const Pair& pair) const noexcept {
    const auto lost = std::ranges::find(all_, pair, &Lost::pair);
    return lost != all_.end() && !lost->up && !lost->missed;
}

std::vector<Recovery::Lost> Recovery::of(std::uint32_t peer) const {
    std::vector<Lost> found;
    for (const auto& lost : all_) {
        if (lost.pair.peer == peer && !lost.up && !lost.missed) found.push_back(lost);
    }
    return found;
}

}  // namespace railmux::rails
