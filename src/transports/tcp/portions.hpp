// Portions: how much of a stream the kernel makes one buffer of, for a slow network.
//
// A buffer that holds more than a shaper's bucket is taken apart there into packets, each with a timer of its own, which cost
// more than all else and take turns with ours (docs/transports.md, tcp). The kernel adds what comes next to a buffer that is
// still waiting, unless it was told that it ends (MSG_EOR). Each portion is a call of its own, which costs as much as many
// small messages: so what is handed over together and fills half of a portion ends it, and what is too long for one by a
// quarter at most still goes with it.
//
// Threads: pure; one thread at a time.
// Lifetime: a value.
#pragma once

#include <algorithm>
#include <cstddef>

namespace railmux::transports::tcp {

class Portions {
public:
    struct Part {
        std::size_t bytes = 0;
        bool ends = false;  // a portion
    };

    Portions() = default;
    explicit Portions(std::size_t bytes) noexcept : bytes_(bytes) {}
    [[nodiscard]] bool known() const noexcept { return bytes_ > 0; }

    /// How much of what is `left` to be sent goes with the next call, and whether it ends a portion. The end of what there is
    /// now is no end of a portion: what comes next, if this is still waiting, goes with it.
    [[nodiscard]] Part next(std::size_t left) const noexcept {
        if (filled_ >= bytes_)
            return {.bytes = std::min(left, bytes_ / 4), .ends = true};  // the kernel did not take its end
        const auto room = bytes_ - filled_;
        if (left > room + bytes_ / 4) return {.bytes = room, .ends = true};
        return {.bytes = left, .ends = filled_ + left >= bytes_ / 2};
    }
    /// The kernel has taken so much of it.
    void sent(const Part& part, std::size_t taken) noexcept {
        filled_ = part.ends && taken == part.bytes ? 0 : filled_ + taken;
    }

private:
    std::size_t bytes_ = 0;
    std::size_t filled_ = 0;  // so much of the last one
};

}  // namespace railmux::transports::tcp
