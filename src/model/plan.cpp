#include "model/plan.hpp"

#include <algorithm>
#include <utility>

namespace railmux::model {

std::vector<Step> quick_opening(std::uint64_t max_bytes) {
    return {{StepKind::single, 1, 1}, {StepKind::single, std::min(max_bytes, QuickLimits::second_size), 1}};
}

std::vector<Step> quick_rounds(std::uint64_t large) {
    // 21 messages a round, 9 of them large. The third round is cut where the limits say so.
    std::vector<Step> steps;
    for (int round = 0; round < 3; ++round) {
        steps.push_back({StepKind::single, 1, 1});
        steps.push_back({StepKind::train, 1, 5});
        steps.push_back({StepKind::single, large, 1});
        steps.push_back({StepKind::train, large, 3});
        steps.push_back({StepKind::delayed, 1, 3});
        steps.push_back({StepKind::delayed, large, 2});
    }
    return steps;
}

std::uint64_t quick_large(double round_trip_ns, double ns_per_byte, std::uint64_t max_bytes) noexcept {
    // Three rounds take 27 round trips of nothing, delays included, and 33 transfers of the large size.
    constexpr double time_ns = 0.8 * QuickLimits::time_ns;
    const double left = std::max(0.1 * time_ns, time_ns - 27 * round_trip_ns);
    const double bytes = left / 33 / std::max(ns_per_byte, 1e-6);
    constexpr double least = QuickLimits::second_size, most = QuickLimits::large_size;
    return std::min(max_bytes, static_cast<std::uint64_t>(std::clamp(bytes, least, most)));
}

std::vector<Step> verify_steps(double ns_per_byte, std::uint64_t max_bytes) {
    const auto large = quick_large(0, ns_per_byte, max_bytes);
    const Step small_step{StepKind::single, 1, 1}, large_step{StepKind::single, large, 1};
    return {small_step, large_step, small_step, large_step};
}

std::vector<std::uint64_t> linear_grid(std::uint64_t max_bytes, std::uint32_t count) {
    std::vector<std::uint64_t> sizes{1};
    const auto step = max_bytes / std::max(count, 1U);
    for (const auto part : {16U, 4U, 2U}) {  // L, o and g are decided near one byte
        if (step / part > sizes.back()) sizes.push_back(step / part);
    }
    for (std::uint64_t i = 1; i <= count; ++i) {
        const auto size = max_bytes / count * i + max_bytes % count * i / count;
        if (size > sizes.back()) sizes.push_back(size);
    }
    return sizes;
}

namespace {

/// Divides the gap behind sizes[left] into so many parts.
void add_between(std::vector<std::uint64_t>& added, std::span<const std::uint64_t> sizes, std::size_t left, int parts) {
    if (left + 1 >= sizes.size()) return;
    const auto from = sizes[left], gap = sizes[left + 1] - from;
    for (int i = 1; i < parts; ++i) {
        const auto size = from + gap * static_cast<std::uint64_t>(i) / static_cast<std::uint64_t>(parts);
        if (size > from) added.push_back(size);
    }
}

/// Where the sizes on both sides of each change stand: the place of the first of the two.
std::vector<std::size_t> places_of(std::span<const std::uint64_t> sizes, std::span<const std::uint64_t> range_ends) {
    std::vector<std::size_t> places;
    for (const auto end : range_ends) {
        const auto next = std::ranges::upper_bound(sizes, end);
        if (next == sizes.begin() || next == sizes.end()) continue;  // the open end of the last range
        places.push_back(static_cast<std::size_t>(next - sizes.begin()) - 1);
    }
    return places;
}

std::vector<std::uint64_t> each_once(std::vector<std::uint64_t> sizes) {
    std::ranges::sort(sizes);
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
}

}  // namespace

std::vector<std::uint64_t> denser(std::span<const std::uint64_t> sizes, std::span<const std::uint64_t> range_ends) {
    std::vector<std::uint64_t> added;
    for (const auto place : places_of(sizes, range_ends)) {
        if (place > 0) add_between(added, sizes, place - 1, 2);
        add_between(added, sizes, place, 4);
        add_between(added, sizes, place + 1, 2);
    }
    return each_once(std::move(added));
}

std::vector<std::uint64_t> where_wide(std::span<const std::uint64_t> sizes, std::span<const std::uint64_t> range_ends) {
    std::vector<std::uint64_t> added;
    for (const auto place : places_of(sizes, range_ends)) {
        const auto gap = sizes[place + 1] - sizes[place];
        if (gap > sizes[place] / 8) add_between(added, sizes, place, 4);
    }
    return each_once(std::move(added));
}

std::vector<std::uint64_t> large_grid(std::uint64_t from, std::uint64_t to) {
    std::vector<std::uint64_t> sizes;
    for (auto base = from; base < to; base *= 2) {
        for (const auto quarters : {5U, 6U, 7U, 8U}) {
            if (const auto size = base / 4 * quarters; size < to) sizes.push_back(size);
        }
    }
    if (to > from) sizes.push_back(to);
    return sizes;
}

namespace {

void add_large(std::vector<Step>& steps, std::uint64_t size, std::uint32_t round, std::uint32_t n) {
    steps.push_back({StepKind::single, size, 1});
    steps.push_back({StepKind::train, size, n});
    steps.push_back({StepKind::delayed, size, 2});
    if (round % 2 == 1) steps.push_back({StepKind::late, size, 1});
}

void add_singles(std::vector<Step>& steps, std::uint64_t size, bool often) {
    const int singles = size == 1 ? 10 : often ? 4 : 1;
    for (int i = 0; i < singles; ++i) steps.push_back({StepKind::single, size, 1});
}

void add_trains(std::vector<Step>& steps, std::uint64_t size, bool often, std::uint32_t round, std::uint32_t n) {
    const int trains = size == 1 ? 4 : often ? 2 : 1;
    for (int i = 0; i < trains; ++i) {
        if (often || round % 2 == 0) steps.push_back({StepKind::train, size, n});
        if (often || round % 2 == 1) steps.push_back({StepKind::delayed, size, n});
    }
    if (round % 4 == 1) steps.push_back({StepKind::late, size, 1});
}

}  // namespace

std::vector<Step> full_rounds(std::span<const std::uint64_t> sizes, std::uint64_t usual, std::uint32_t rounds,
                              std::uint32_t n, std::uint32_t large_every) {
    std::vector<Step> steps;
    const auto often = [&](std::uint64_t size) { return size <= usual / 4; };
    const auto usual_sizes =
        sizes.first(static_cast<std::size_t>(std::ranges::upper_bound(sizes, usual) - sizes.begin()));
    for (std::uint32_t round = 0; round < rounds; ++round) {
        for (const auto size : usual_sizes) {
            add_singles(steps, size, often(size));
            if (round == 0) add_trains(steps, size, often(size), round, n);  // they show how long to rest
        }
        for (const auto size : usual_sizes) {
            if (round > 0) add_trains(steps, size, often(size), round, n);
        }
        if (round % large_every != 0) continue;
        for (const auto size : sizes.subspan(usual_sizes.size())) add_large(steps, size, round, n);
    }
    return steps;
}

}  // namespace railmux::model
