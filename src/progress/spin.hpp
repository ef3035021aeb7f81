// Spin: how long a hybrid wait looks at the rails in vain before it sleeps.
//
// As long as an answer takes by the model of the best link, and as long again as sleeping and waking would cost: whoever
// spins for what a sleep costs, and then sleeps, loses at most twice what he would have lost had he known (Karlin, Li,
// Manasse and Owicki 1991). Where an answer takes longer than the limit, spinning for it is in vain from the start, and only
// the price of a sleep is spun. Where no descriptor ends a sleep, its price is how long it lasts, and the limit is as much
// higher.
//
// What a sleep costs shows when it was too short: what came would have been seen by spinning to the limit. So much is spun
// then, and less again with each sleep that was worth it. Otherwise two that hand bytes to each other all the time, both of
// whom once slept (in a virtual machine to be woken takes 25 us), would go on sleeping for each other: each of them is woken
// after the other has given up waiting for it.
//
// All this holds while the core has nothing better to do. With more runnable processes than cores, those that spin keep
// those away that they wait for. A process sees that itself: when it gives the core away (sched_yield) and somebody else
// takes it, or when it is taken from it (involuntary context switches). It then spins no more, for a while that grows each
// time the next try shows the same, and shrinks when it does not: it sleeps, or, where an answer takes less than that, gives
// the core away after each look.
//
// Threads: one at a time.
// Lifetime: none.
#pragma once

#include <cstdint>
#include <thread>

#include "base/clock.hpp"

namespace railmux::progress {

class Spin {
public:
    /// How it learns of others that want the core; replaced in tests.
    struct Senses {
        base::Nanoseconds (*clock)();
        void (*yield)();             // lets others run who are waiting for this core
        std::uint64_t (*evicted)();  // times that the core was taken from this thread, ever
    };
    [[nodiscard]] static Senses system_senses() noexcept;

    /// Times that are known of what may come.
    struct Outlook {
        base::Nanoseconds answer = 0;  // by the model; 0: nobody knows
        base::Nanoseconds unseen = 0;  // how long it may have been there before a sleep ends; 0: it ends the sleep
    };

    explicit Spin(base::Nanoseconds most, Senses senses = system_senses()) noexcept : most_(most), senses_(senses) {}

    /// Whether who has found nothing since `since` should sleep now. `outlook()` is seldom asked.
    template <typename Asked>
    [[nodiscard]] bool over(base::Nanoseconds now, base::Nanoseconds since, Asked outlook) {
        if (now < crowded_until_) return true;
        const auto idle = now - since;
        if (idle < first_look && idle < most_) return false;
        if (now >= next_check_ && check(now, outlook())) return true;
        return idle >= budget_;
    }

    /// Who had found nothing since `since` slept, and something woke him by `now`.
    void woken(base::Nanoseconds now, base::Nanoseconds since) noexcept;

    [[nodiscard]] bool crowded(base::Nanoseconds now) const noexcept { return now < crowded_until_; }
    /// In a crowd, before who has found nothing since `since` sleeps: lets the others run, who may be about to answer. Where an
    /// answer takes less than to sleep and to be woken, that costs less. False if it does not, or was tried for long enough.
    /// `outlook()` is asked as seldom as by over(): the crowd may have been there before the first link was.
    template <typename Asked>
    [[nodiscard]] bool gave_way(base::Nanoseconds now, base::Nanoseconds since, Asked outlook) {
        if (now >= next_outlook_) look_out(now, outlook());
        if (outlook_.answer <= 0 || outlook_.answer > sleep_cost || now - since >= most_) return false;
        senses_.yield();
        return true;
    }
    [[nodiscard]] base::Nanoseconds budget() const noexcept { return budget_; }

    // About what going to sleep and waking up take at least: some system calls, and two context switches.
    static constexpr base::Nanoseconds sleep_cost = 10 * base::microsecond;
    // Nothing is asked earlier: answers within a node come within that.
    static constexpr base::Nanoseconds first_look = 3 * base::microsecond;
    // How often it is asked whether others want the core: giving it away costs about half a microsecond if nobody does.
    static constexpr base::Nanoseconds check_period = 100 * base::microsecond;
    // What was taken from this thread counts over so long at most: later it may have computed in between, and lost its core to
    // the end of its time slice only.
    static constexpr base::Nanoseconds eviction_period = 2 * base::millisecond;
    static constexpr base::Nanoseconds shortest_hold = 2 * base::millisecond;
    static constexpr base::Nanoseconds longest_hold = 256 * base::millisecond;

private:
    /// True if others want the core.
    bool check(base::Nanoseconds now, Outlook outlook) noexcept;
    void look_out(base::Nanoseconds now, Outlook outlook) noexcept;
    void set_budget() noexcept;

    base::Nanoseconds most_;
    Senses senses_;
    base::Nanoseconds budget_ = 0;
    base::Nanoseconds price_ = sleep_cost;  // of a sleep
    Outlook outlook_;                       // as last asked
    base::Nanoseconds next_outlook_ = 0;
    base::Nanoseconds next_check_ = 0;
    base::Nanoseconds checked_ = 0;
    std::uint64_t evicted_ = 0;  // by then
    std::thread::id checked_by_;
    // Kernel threads want the core now and then, competitors do at most checks: two signs with one check between them that
    // shows none, or fewer.
    std::uint8_t signs_ = 0;
    base::Nanoseconds hold_ = shortest_hold;
    base::Nanoseconds crowded_until_ = 0;
};

}  // namespace railmux::progress
