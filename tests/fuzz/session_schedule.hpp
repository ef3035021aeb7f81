// A schedule: two rail managers on simulated rails say things to each other while rails lose, delay, double and reorder
// frames, die and come back, all as a sequence of choices says; and a model that knows what must come of it.
//
// The model: every frame arrives once, ordered ones in the order they were sent, with their bytes; so does bulk, and with
// checksums nothing is written over what has arrived; every frame is released once, and given back; the credit for all that
// was taken is told; and when all rails work again, all of that within a minute (of simulated time; twenty where links go on
// dying). Then, in some schedules, one side gives the other up and both begin a new session, or one says goodbye and goes.
//
// Threads: one, and one schedule at a time: a rail manager's clock is a plain function.
// Lifetime: a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>

namespace railmux::test {

/// Where the schedule's choices come from: a seed, or bytes, behind whose end there are only zeros.
class Choices {
public:
    explicit Choices(std::uint64_t seed) : random_(seed) {}
    explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

    /// From 0 to `limit` - 1.
    [[nodiscard]] std::uint32_t below(std::uint32_t limit) {
        if (random_) return static_cast<std::uint32_t>((*random_)() % limit);
        return at_ < bytes_.size() ? bytes_[at_++] % limit : 0;
    }
    [[nodiscard]] bool over() const noexcept { return !random_ && at_ >= bytes_.size(); }

private:
    std::optional<std::mt19937_64> random_;
    std::span<const std::uint8_t> bytes_;
    std::size_t at_ = 0;
};

struct ScheduleStats {
    std::uint64_t frames = 0;
    std::uint64_t resent = 0;
    std::uint64_t duplicates = 0;
    std::uint64_t links_lost = 0;
    std::uint64_t corrupted = 0;
};

/// Plays one schedule; empty if all was as the model says, else what was not.
[[nodiscard]] std::string play_schedule(Choices choices, ScheduleStats& stats);

}  // namespace railmux::test
