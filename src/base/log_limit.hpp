// LogLimit: log lines that strangers can cause, at most ten a second: garbage must neither fill a disk nor cost a job its time.
//
// Threads: one thread at a time per object.
// Lifetime: refers to its log.
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"

namespace railmux::base {

class LogLimit {
public:
    explicit LogLimit(Logger& log) noexcept : log_(log) {}

    /// A warning, if there is room for one; else it is counted, and the next second's first line is followed by how many there
    /// were. The text is not even made then.
    template <typename... Args>
    void warning(fmt::format_string<Args...> text, Args&&... args) {
        if (admits(now_ns())) log_.warning(text, std::forward<Args>(args)...);
    }

    /// Whether one more line may be written at `now`.
    [[nodiscard]] bool admits(Nanoseconds now) {
        if (now - since_ > second) {
            if (told_ > most_lines) log_.warning("{} more lines like those before", told_ - most_lines);
            since_ = now;
            told_ = 0;
        }
        return ++told_ <= most_lines;
    }

private:
    static constexpr unsigned most_lines = 10;

    Logger& log_;
    Nanoseconds since_ = -2 * second;
    unsigned told_ = 0;
};

}  // namespace railmux::base
