// Habit: whether somebody who sends several messages is known to look for results right behind them. Only then may they wait
// for that look: who computes in between is not to find that nothing was sent meanwhile.
//
// Some bursts in a row that were looked for at once show a habit; one that was not ends it. If messages waited for that one,
// the next row has to be twice as long, so that who computes behind every fifth burst, or every fiftieth, is soon no longer
// thought to have one; and half as long again after a row of eight times that.
//
// Threads: one engine at a time. Pure.
// Lifetime: a value.
#pragma once

#include <algorithm>
#include <cstdint>

namespace railmux::messaging {

class Habit {
public:
    /// A burst was looked for at once.
    void prompt() noexcept {
        if (++row_ < proof * needed_) return;
        needed_ = std::max(needed_ / 2, least);
        row_ = needed_;
    }
    /// One was not, and messages had waited for that, or none had.
    void late(bool waited) noexcept {
        if (waited && shown()) needed_ = std::min(2 * needed_, most);
        row_ = 0;
    }
    [[nodiscard]] bool shown() const noexcept { return row_ >= needed_; }

private:
    static constexpr std::uint32_t least = 4, most = 1024;
    static constexpr std::uint32_t proof = 9;

    std::uint32_t needed_ = least;
    std::uint32_t row_ = 0;
};

}  // namespace railmux::messaging
