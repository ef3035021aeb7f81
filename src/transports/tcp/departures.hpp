// Departures: whether what a rail sends leaves by its interface at all, as far as the interface's counter tells. Many drivers
// bring that up to date once a second or two only (bnxt_en, tg3 and bnx2x when the adapter writes their block, iavf when the
// host answers), so a counter that lags is a suspicion, for the kernel's routes to confirm, and
// nothing more until it has had time.
//
// Threads: one engine at a time.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace railmux::transports::tcp {

class Departures {
public:
    /// That long a counter may tell nothing of what has left.
    static constexpr base::Nanoseconds longest_lag = 5 * base::second;

    /// Whether a look at the counter would tell anything now.
    [[nodiscard]] bool tells(base::Nanoseconds now) const noexcept {
        return suspected_ == 0 || now - since_ >= longest_lag;
    }
    /// So many bytes have left for certain, and the interface has counted so many more than at first. True: they leave
    /// elsewhere.
    [[nodiscard]] bool elsewhere(std::uint64_t left, std::uint64_t counted, base::Nanoseconds now) noexcept {
        // Half is a generous margin.
        if (suspected_ == 0 && counted < left / 2) {
            suspected_ = left;
            since_ = now;
            return false;
        }
        if (counted < suspected_ / 2) return now - since_ >= longest_lag;
        suspected_ = 0;
        return false;
    }

private:
    std::uint64_t suspected_ = 0;  // bytes that had left, and were not counted
    base::Nanoseconds since_ = 0;
};

}  // namespace railmux::transports::tcp
