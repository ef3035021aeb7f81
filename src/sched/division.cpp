#include "sched/division.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace railmux::sched {

bool Division::begin(std::span<const Candidate> candidates, std::span<const std::uint64_t> shares, const Heard& heard,
                     base::Nanoseconds now) {
    const auto largest = std::ranges::max_element(shares);
    const auto place = static_cast<std::size_t>(largest - shares.begin());
    const auto peers = way_of_peer(heard.received, place);
    bytes_ = left_ = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
    lone_ = *largest < bytes_;  // else there is nothing to choose
    if (!lone_) return false;
    rail_ = candidates[place].rail;
    const auto loss_permille = (bytes_ - *largest) * 1000 / *largest;
    auto& sizes = sizes_of(bytes_, loss_permille);
    lone_ = as_before(sizes, rail_, loss_permille);
    if (!lone_) return false;
    const auto last = std::exchange(sizes.begun, 0);
    if (last > 0 && now - last <= pause * sizes.took) count(sizes, now - last);
    heard.follow&& peers ? follow(sizes, *peers) : lead(sizes);
    whole_ = sizes.way() == undivided;
    at_ = static_cast<std::size_t>(&sizes - sizes_.data());
    begun_ = now;
    const auto known = std::max(sizes.known[divided], sizes.known[undivided]);
    patience_ = known > 0 ? now + 2 * known : base::never;
    return whole_;
}

/// By what has come since it was asked last; nothing, where that is little beside what we send. What has come over another rail
/// than most of ours is to go over, is no example: one of the two knows too little.
std::optional<Division::Way> Division::way_of_peer(std::span<const std::uint64_t> received, std::size_t largest) {
    received_.resize(received.size());
    std::uint64_t all = 0;
    std::uint64_t here = 0;
    for (std::size_t i = 0; i < received.size(); ++i) {
        const auto more = received[i] - std::exchange(received_[i], received[i]);
        all += more;
        if (i == largest) here = more;
    }
    if (8 * all < bytes_) return {};
    return here >= all - all / 16 ? undivided : divided;
}

Division::Sizes& Division::sizes_of(std::uint64_t bytes, std::uint64_t loss_permille) {
    const auto octave = static_cast<std::uint32_t>(std::bit_width(bytes));
    auto sizes = std::ranges::find(sizes_, octave, &Sizes::octave);
    if (sizes == sizes_.end()) sizes = sizes_.insert(sizes_.end(), {.octave = octave});
    // The first plans go by guesses.
    if (sizes->known[other(sizes->home)] == 0)
        sizes->wait = std::min(sizes->wait, wait_for(loss_permille, first_cost_permille));
    return *sizes;
}

/// Whether the plan is about what it always was. A rail that others are preferred to for long is thought better and better of,
/// and is given some as planned, to be known again: that is no trial of ours. What lasts is another plan, and nothing is known.
bool Division::as_before(Sizes& sizes, std::uint32_t rail, std::uint64_t loss_permille) noexcept {
    if (sizes.rail == rail && (sizes.way() == divided || loss_permille <= 2 * sizes.loss_permille)) {
        if (sizes.way() == divided) sizes.loss_permille = loss_permille;
        sizes.others = 0;
        return true;
    }
    sizes.begun = 0;
    if (sizes.rail != none && ++sizes.others < window) return false;
    sizes = {.octave = sizes.octave, .rail = rail, .loss_permille = loss_permille};
    return true;
}

void Division::lead(Sizes& sizes) noexcept {
    if (sizes.wait > 0) --sizes.wait;
    if (!sizes.trying && sizes.wait == 0 && sizes.known[sizes.home] > 0) turn(sizes, true);
}

/// A peer that has never divided them may have had no plan to.
void Division::follow(Sizes& sizes, Way way) noexcept {
    if (sizes.known[divided] == 0) way = divided;
    if (!sizes.trying && sizes.home == way) return;
    sizes.home = way;
    turn(sizes, false);
}

/// Messages after which a trial that loses so much has cost no more than that.
std::uint32_t Division::wait_for(std::uint64_t loss_permille, std::uint64_t permille) noexcept {
    const auto wait = std::min<std::uint64_t>((settling + trial) * loss_permille / permille, longest_wait);
    return std::max(static_cast<std::uint32_t>(wait), shortest_wait);
}

void Division::turn(Sizes& sizes, bool trying) noexcept {
    sizes.trying = trying;
    sizes.skip = settling;
    sizes.count = 0;
    sizes.time = sizes.before = 0;
}

void Division::arrived(base::Nanoseconds now) noexcept {
    lone_ = false;
    auto& sizes = sizes_[at_];
    sizes.begun = begun_;
    sizes.took = now - begun_;
}

void Division::count(Sizes& sizes, base::Nanoseconds time) noexcept {
    if (sizes.skip > 0) {
        --sizes.skip;
        return;
    }
    const auto home = sizes.known[sizes.home];
    sizes.time += home > 0 ? std::min(time, longest * home) : time;
    ++sizes.count;
    const auto average = sizes.time / sizes.count;
    if (sizes.trying) {
        const bool vain = sizes.count >= trial / 4 && average > home + home / 4;
        if (vain || sizes.count >= trial) end_trial(sizes, average);
    } else if (sizes.count >= window) {
        // One bad window is no reason to leave.
        const auto before = std::exchange(sizes.before, average);
        sizes.known[sizes.home] = before > 0 ? std::min(before, average) : average;
        const auto elsewise = sizes.known[other(sizes.home)];
        if (elsewise > 0 && better(elsewise, average)) sizes.wait = 0;  // if that still holds
        sizes.time = 0;
        sizes.count = 0;
    }
}

void Division::end_trial(Sizes& sizes, base::Nanoseconds average) noexcept {
    const auto home = sizes.known[sizes.home];
    sizes.known[other(sizes.home)] = average;
    if (better(average, home)) sizes.home = other(sizes.home);
    const auto [less, more] = std::minmax(home, average);
    sizes.wait = wait_for(static_cast<std::uint64_t>((more - less) * 1000 / std::max<base::Nanoseconds>(less, 1)),
                          cost_permille);
    turn(sizes, false);
}

Division::Preference Division::preference(std::uint64_t bytes) const noexcept {
    const auto octave = static_cast<std::uint32_t>(std::bit_width(bytes));
    const auto sizes = std::ranges::find(sizes_, octave, &Sizes::octave);
    if (sizes == sizes_.end() || sizes->home != undivided) return {};
    const auto [split, single] = sizes->known;
    const auto gain = std::max<base::Nanoseconds>(split - single, 0) * 100 / std::max<base::Nanoseconds>(split, 1);
    return {true, static_cast<std::uint32_t>(gain)};
}

}  // namespace railmux::sched
