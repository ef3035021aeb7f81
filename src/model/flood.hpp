// Flood: what links sustain while all of them are kept busy: trains of messages, the next but one as soon as one is answered,
// so that neither side's absence for a moment leaves a link idle. Without bounds for the network's sake: it is made on demand.
//
//   for each link, Flood::trains times: send flood.next(link)
//   on the reply to flood.awaited(link): flood.answered(link, now), and unless flood.over() send flood.next(link)
//
// What token buckets and buffers pass at once is let through first. Links that are done go on until the last one is, so that
// each is measured beside all others.
//
// Threads: one thread at a time per object.
// Lifetime: a value.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/sample.hpp"

namespace railmux::model {

class Flood {
public:
    static constexpr std::uint32_t trains = 2;  // under way on each link

    /// `largest` payload of a message on each of the links.
    explicit Flood(const std::vector<std::uint64_t>& largest);

    [[nodiscard]] Train next(std::size_t link) noexcept;
    /// The train whose reply is the next to come; 0: none is under way.
    [[nodiscard]] std::uint32_t awaited(std::size_t link) const noexcept;
    void answered(std::size_t link, base::Nanoseconds now) noexcept;

    /// All that is measured is known; what is under way will still be answered.
    [[nodiscard]] bool over() const noexcept;
    /// Between 0 and 1: over, and nothing is under way.
    [[nodiscard]] double progress() const noexcept;
    /// Of all links together, in bits per second; 0 before it is over.
    [[nodiscard]] double bps() const noexcept;

private:
    struct Link {
        std::uint64_t largest = 0;
        std::uint64_t train_bytes = 0;                  // of the next train
        std::uint32_t sent = 0;                         // trains; their ids count from 1
        std::uint32_t replies = 0;                      // to them
        std::array<std::uint64_t, trains> under_way{};  // bytes of those without one, by id
        base::Nanoseconds last = -1;                    // reply; -1: none yet
        base::Nanoseconds first = -1;                   // reply from which on is measured; -1: not yet
        std::uint64_t warm_bytes = 0;                   // that have passed before it
        std::uint64_t bytes = 0;                        // since then
        std::uint32_t measured_trains = 0;
    };
    [[nodiscard]] bool warm() const noexcept;
    [[nodiscard]] static bool measured(const Link& link) noexcept;

    std::vector<Link> links_;
};

}  // namespace railmux::model
