#include "progress/spin.hpp"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/evictions.hpp"

namespace railmux::progress {

namespace {
// A sign adds, a check without one takes off.
constexpr std::uint8_t sign_weight = 2;
constexpr std::uint8_t enough_signs = 3;
constexpr std::uint8_t most_signs = 4;
// A sleep that was worth it takes off so much of what one that was not has added.
constexpr base::Nanoseconds forget = 4;
}  // namespace

Spin::Senses Spin::system_senses() noexcept {
    return {.clock = &base::now_ns, .yield = [] { ::sched_yield(); }, .evicted = &base::evictions};
}

void Spin::set_budget() noexcept {
    const auto [answer, unseen] = outlook_;
    const auto most = most_ > 0 ? most_ + unseen : 0;
    const auto price = price_ + unseen;
    // Nobody knows: all that is allowed.
    const auto wanted = answer <= 0 ? most : answer > most ? price : answer + price;
    budget_ = std::min(wanted, most);
}

void Spin::look_out(base::Nanoseconds now, Outlook outlook) noexcept {
    outlook_ = outlook;
    next_outlook_ = now + check_period;
    set_budget();
}

void Spin::woken(base::Nanoseconds now, base::Nanoseconds since) noexcept {
    const auto late = now - since - outlook_.unseen <= most_ + sleep_cost;  // it had come before he was awake
    price_ = late ? std::max(most_, sleep_cost) : price_ - (price_ - sleep_cost) / forget;
    set_budget();
}

bool Spin::check(base::Nanoseconds now, Outlook outlook) noexcept {
    look_out(now, outlook);
    const auto before = senses_.evicted();
    senses_.yield();
    const auto evicted = senses_.evicted();  // a switch by sched_yield counts, too
    const auto thread = std::this_thread::get_id();
    const bool counts = now - checked_ <= eviction_period && std::exchange(checked_by_, thread) == thread;
    const bool sign = evicted != before || (counts && before != evicted_);
    evicted_ = evicted;
    checked_ = senses_.clock();
    next_check_ = checked_ + check_period;
    if (!sign) {
        signs_ = static_cast<std::uint8_t>(signs_ - (signs_ > 0 ? 1 : 0));
        return false;
    }
    signs_ = std::min<std::uint8_t>(signs_ + sign_weight, most_signs);
    if (signs_ < enough_signs) return false;
    const bool again = now - crowded_until_ < hold_;
    hold_ = again ? std::min(hold_ * 2, longest_hold) : shortest_hold;
    crowded_until_ = checked_ + hold_;
    signs_ = sign_weight;  // when it is tried again, one more says it
    return true;
}

}  // namespace railmux::progress
