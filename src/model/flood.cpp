#include "model/flood.hpp"

#include <algorithm>
#include <bit>

#include "model/probe_wire.hpp"

namespace railmux::model {

namespace {
// The buckets and buffers that networks are known to have, four times over.
constexpr std::uint64_t warm_up = 1024 * 1024;
constexpr std::uint64_t first_train = 128 * 1024;
// A train: long compared with how late a reply may be noticed, so short that many make a measurement.
constexpr base::Nanoseconds train_time = 10 * base::millisecond;
constexpr base::Nanoseconds measure_time = 80 * base::millisecond;
constexpr std::uint32_t least_trains = 3;
}  // namespace

Flood::Flood(const std::vector<std::uint64_t>& largest) {
    for (const auto bytes : largest) links_.push_back({.largest = bytes, .train_bytes = first_train});
}

Train Flood::next(std::size_t place) noexcept {
    auto& link = links_[place];
    // As few messages as the train has to have, of at least a packet: the reply is as large as one of them.
    const auto each = std::bit_ceil(std::max<std::uint64_t>(link.train_bytes / ProbeRequest::max_n, 1024));
    Train train{.id = ++link.sent, .bytes = std::min(each, link.largest)};
    train.n =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(link.train_bytes / train.bytes, 1, ProbeRequest::max_n));
    link.under_way[train.id % trains] = train.n * train.bytes;
    return train;
}

std::uint32_t Flood::awaited(std::size_t place) const noexcept {
    const auto& link = links_[place];
    return link.replies < link.sent ? link.replies + 1 : 0;
}

void Flood::answered(std::size_t place, base::Nanoseconds now) noexcept {
    auto& link = links_[place];
    const auto arrived = link.under_way[++link.replies % trains];
    if (over()) return;  // the others may have stopped
    if (link.last >= 0) {
        const auto time = static_cast<double>(std::max<base::Nanoseconds>(now - link.last, 1));
        const auto fitting = static_cast<double>(arrived) * static_cast<double>(train_time) / time;
        // At most twice as many: what passed at once says little about the rest.
        link.train_bytes =
            static_cast<std::uint64_t>(std::clamp(fitting, 1.0, 2 * static_cast<double>(link.train_bytes)));
    }
    link.last = now;
    if (link.first >= 0) {
        link.bytes += arrived;
        ++link.measured_trains;
    } else {
        link.warm_bytes += arrived;
        if (warm()) link.first = now;
    }
}

bool Flood::warm() const noexcept {
    return std::ranges::all_of(links_, [](const Link& link) { return link.warm_bytes >= warm_up; });
}

bool Flood::measured(const Link& link) noexcept {
    return link.measured_trains >= least_trains && link.last - link.first >= measure_time;
}

bool Flood::over() const noexcept { return std::ranges::all_of(links_, measured); }

double Flood::progress() const noexcept {
    double least = 1;
    for (const auto& link : links_) {
        const auto warmed = std::min(1.0, static_cast<double>(link.warm_bytes) / static_cast<double>(warm_up));
        const auto time = link.first < 0 ? 0 : link.last - link.first;
        const auto done = std::min(1.0, static_cast<double>(time) / static_cast<double>(measure_time));
        const bool all = over() && link.replies == link.sent;
        const auto replies = static_cast<double>(link.replies);
        least = std::min(least, all ? 1 : (warmed + done + replies / (replies + 1)) / 3);
    }
    return least;
}

double Flood::bps() const noexcept {
    if (!over()) return 0;
    double sum = 0;
    for (const auto& link : links_) {
        sum += 8e9 * static_cast<double>(link.bytes) / static_cast<double>(link.last - link.first);
    }
    return sum;
}

}  // namespace railmux::model
