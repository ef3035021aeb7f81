// Watch: for how long nobody may have seen a message that was there. A process looks at its network again and again; it
// may be computing between two looks, and the kernel may stop it anywhere, even inside a look.
//
// A message found by a look may have come since the look before it began. That span is always there, so only what
// exceeds the usual one counts. Nor does what the look before took for moving bytes itself, if the kernel has not evicted the
// thread meanwhile: a rail whose large messages the processor moves is not blind while it does.
//
// Threads: one thread at a time per object.
// Lifetime: a value.
#pragma once

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/evictions.hpp"

namespace railmux::model {

class Watch {
public:
    using Evictions = std::uint64_t (*)();

    explicit Watch(Evictions evictions = &base::evictions) noexcept : evictions_(evictions) {}

    /// A look at `rail` begins; gives Sample::blind for what it will find. Cheap, but after long spans.
    base::Nanoseconds looks(base::Nanoseconds begin, std::uint32_t rail) noexcept {
        const auto span = last_begin_ < 0 ? 0 : begin - last_begin_;
        // What is found waited while another rail's bytes were moved.
        const auto worked = last_begin_ < 0 || std::exchange(last_rail_, rail) != rail ? 0 : last_end_ - last_begin_;
        last_begin_ = last_end_ = begin;
        // Near the median of the spans: up and down by the same small part.
        usual_ = usual_ == 0 ? span : span > usual_ ? usual_ + usual_ / 16 + 1 : usual_ - usual_ / 16;
        const auto blind = std::max<base::Nanoseconds>(0, span - 3 * usual_);
        if (blind < worth_asking || worked < blind / 2) return blind;
        const auto evictions = evictions_();
        const bool evicted = std::exchange(seen_, evictions) != evictions;
        return evicted ? blind : std::max<base::Nanoseconds>(0, blind - worked);
    }
    /// It has ended; left out where nobody wants to know.
    void looked(base::Nanoseconds end) noexcept { last_end_ = end; }
    /// The process slept until something came: it was looking all the time.
    void woke(base::Nanoseconds now) noexcept { last_begin_ = last_end_ = now; }

private:
    static constexpr base::Nanoseconds worth_asking = base::microsecond;  // thrice what asking takes

    Evictions evictions_;
    std::uint64_t seen_ = ~std::uint64_t{0};  // evictions when they were asked for; first not known
    std::uint32_t last_rail_ = ~std::uint32_t{0};
    base::Nanoseconds last_begin_ = -1;
    base::Nanoseconds last_end_ = -1;
    base::Nanoseconds usual_ = 0;
};

}  // namespace railmux::model
