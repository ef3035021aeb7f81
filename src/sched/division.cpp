#include "sched/division.hpp"

#include <bit>
#include <numeric>
#include <utility>

namespace railmux::sched {

bool Division::begins(std::uint64_t bytes) noexcept {
    const auto before = std::exchange(left_, bytes);
    if (before != bytes) lone_ = false;
    if (before == 0) previous_ = std::exchange(last_, {});
    return before == 0;
}

bool Division::begin_lone(std::span<const std::size_t> places, std::span<const std::uint64_t> shares,
                          const Heard& heard, base::Nanoseconds now) {
    const auto largest = std::ranges::max_element(shares);
    bytes_ = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
    place_ = places[static_cast<std::size_t>(largest - shares.begin())];
    const auto peer = way_of_peer(heard.received, place_);
    lone_ = *largest < bytes_;  // else there is nothing to choose
    if (!lone_) return false;
    const auto loss_permille = (bytes_ - *largest) * 1000 / *largest;
    auto& sizes = sizes_of(bytes_);
    sizes.peer_divides = sizes.peer_divides || peer == divided;
    lone_ = as_before(sizes, place_, loss_permille);
    if (!lone_) return false;
    at_ = static_cast<std::size_t>(&sizes - sizes_.data());
    const auto between = now - previous_.begun;
    if (previous_.sizes == at_ && between <= pause * sizes.longest_delivery()) count(sizes, between);
    if (heard.follow && follows(sizes, peer)) {
        follow(sizes, *peer);
    } else {
        lead(sizes, loss_permille);
    }
    whole_ = sizes.way() == undivided;
    begun_ = now;
    const auto takes = sizes.longest_delivery();
    patience_ = takes > 0 ? now + patient * takes : base::never;
    return whole_;
}

/// By what has come since it was asked last; nothing, where that is little beside what we send. What has come over another link
/// than most of ours is to go over is no example: one of the two knows too little.
std::optional<Division::Way> Division::way_of_peer(std::span<const std::uint64_t> received, std::size_t place) {
    received_.resize(received.size());
    std::uint64_t all = 0;
    std::uint64_t here = 0;
    for (std::size_t i = 0; i < received.size(); ++i) {
        const auto more = received[i] - std::exchange(received_[i], received[i]);
        all += more;
        if (i == place) here = more;
    }
    if (all < bytes_ / 8) return {};
    return here == all ? undivided : divided;
}

Division::Sizes& Division::sizes_of(std::uint64_t bytes) {
    const auto octave = static_cast<std::uint32_t>(std::bit_width(bytes));
    const auto sizes = std::ranges::find(sizes_, octave, &Sizes::octave);
    return sizes != sizes_.end() ? *sizes : sizes_.emplace_back(Sizes{.octave = octave});
}

/// Whether the plan is about what it always was. A rail that others are preferred to for long is thought better and better of,
/// and is given some as planned, to be known again: that is no trial of ours. What lasts is another plan, and nothing is known.
bool Division::as_before(Sizes& sizes, std::size_t place, std::uint64_t loss_permille) noexcept {
    if (sizes.place == place && (sizes.way() == divided || loss_permille <= 4 * sizes.loss_permille)) {
        if (sizes.way() == divided) sizes.loss_permille = loss_permille;
        sizes.otherwise = 0;
        return true;
    }
    if (sizes.place != none && ++sizes.otherwise < window) return false;
    sizes = {.octave = sizes.octave, .place = place, .loss_permille = loss_permille};
    return true;
}

/// Whether there is an example: of a peer that can divide them, and that does not cost us much, as trials may.
bool Division::follows(const Sizes& sizes, std::optional<Way> peer) noexcept {
    if (!peer || !sizes.peer_divides || sizes.known[divided] == 0) return false;
    const auto there = sizes.known[*peer];
    const auto otherwise = sizes.known[other(*peer)];
    return there == 0 || otherwise == 0 || 4 * otherwise >= 3 * there;
}

void Division::follow(Sizes& sizes, Way way) noexcept {
    if (sizes.way() == way && !sizes.trying) return;
    sizes.home = way;
    turn(sizes, false);
}

void Division::lead(Sizes& sizes, std::uint64_t loss_permille) noexcept {
    if (sizes.home == undivided && sizes.known[undivided] == 0) follow(sizes, divided);  // it was the peer's
    ++sizes.begun;
    if (sizes.trying) {
        if (sizes.begun < 4 * (settling + trial)) return;
        // They come too rarely, or too irregularly, to show anything.
        sizes.wait = wait_for(unknown_loss_permille, cost_permille);
        return turn(sizes, false);
    }
    // The first plans go by guesses.
    const auto wait = sizes.wait.value_or(wait_for(loss_permille, first_cost_permille));
    if (sizes.begun >= wait && sizes.known[sizes.home] > 0) turn(sizes, true);
}

/// Messages after which a trial that loses so much has cost no more than that.
std::uint32_t Division::wait_for(std::uint64_t loss_permille, std::uint64_t permille) noexcept {
    const auto wait = std::min<std::uint64_t>((settling + trial) * loss_permille / permille, longest_wait);
    return std::max(static_cast<std::uint32_t>(wait), shortest_wait);
}

void Division::turn(Sizes& sizes, bool trying) noexcept {
    sizes.trying = trying;
    sizes.begun = 0;
    sizes.skip = settling;
    sizes.count = 0;
    sizes.time = sizes.before = 0;
}

void Division::arrived(base::Nanoseconds now) noexcept {
    lone_ = false;
    last_ = {.sizes = at_, .begun = begun_};
    auto& sizes = sizes_[at_];
    auto& delivery = sizes.delivery[sizes.way()];
    const auto took = now - begun_;
    // One that was kept up by something else is no measure.
    delivery = delivery == 0 ? took : (7 * delivery + std::min(took, longest * delivery)) / 8;
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
        const auto otherwise = sizes.known[other(sizes.home)];
        if (otherwise > 0 && better(otherwise, average)) sizes.wait = 0;  // if that still holds
        sizes.time = 0;
        sizes.count = 0;
    }
}

void Division::end_trial(Sizes& sizes, base::Nanoseconds average) noexcept {
    const auto home = sizes.known[sizes.home];
    sizes.known[other(sizes.home)] = average;
    if (better(average, home)) sizes.home = other(sizes.home);
    const auto [less, more] = std::minmax(home, average);
    const auto loss = (more - less) * 1000 / std::max<base::Nanoseconds>(less, 1);
    sizes.wait = wait_for(static_cast<std::uint64_t>(loss), cost_permille);
    turn(sizes, false);
}

std::optional<Division::Preference> Division::preference(std::uint64_t bytes) const noexcept {
    const auto octave = static_cast<std::uint32_t>(std::bit_width(bytes));
    const auto sizes = std::ranges::find(sizes_, octave, &Sizes::octave);
    if (sizes == sizes_.end() || sizes->home != undivided) return {};
    const auto [split, single] = sizes->known;
    if (split == 0 || single == 0) return {};
    const auto gain = std::max<base::Nanoseconds>(split - single, 0) * 100 / split;
    return Preference{.place = sizes->place, .gain_percent = static_cast<std::uint32_t>(gain)};
}

}  // namespace railmux::sched
