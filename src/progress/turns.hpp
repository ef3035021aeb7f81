// Turns: who moves a context on, who sleeps meanwhile, and whom to wake for what.
//
//   waiters  threads inside a wait. One of them has the turn: it looks at the rails, and sleeps on their descriptors when
//            there is nothing; the others wait until something happens, or until the turn is free.
//   helper   the context's own thread (ProgressMode::thread). It looks while no waiter does.
//   loop     an application that sleeps by itself, on Context::event_fd.
//   calls    everything else that enters: isend, test, ...
//
// No wake-up is lost because of three rules:
//  1. Who goes to sleep has looked, found nothing, armed the rails and said so (sleep), all under the lock. What comes to a
//     rail from then on makes its descriptor readable.
//  2. A look by anybody else takes the rails' promise away: it wakes who sleeps on it. So does a call that leaves
//     something to be looked at earlier than the sleeper knows.
//  3. Who sleeps while somebody else looks (waiters without the turn; the loop beside a waiter or the helper) is woken for
//     what ended, and when nobody looks any more.
// tests/unit/progress_turns_test.cpp tries every order of steps of all of them, with this class.
//
// A sleeper is rung once; until it has risen it needs no second ring.
//
// Threads: under the context's lock.
// Lifetime: a value.
#pragma once

#include <compare>
#include <cstdint>

namespace railmux::progress {

enum class Who : std::uint8_t { call, waiter, helper, loop };

/// What somebody did.
struct Deed {
    bool looked = false;      // at the rails
    bool happened = false;    // ... and something was there
    bool ended = false;       // an operation
    bool wants_look = false;  // something waits for a look, earlier than who sleeps knows
};

/// Whom to wake.
struct Rings {
    bool waiters = false;  // those without the turn
    bool turn = false;     // the waiter that sleeps
    bool helper = false;
    bool loop = false;
    friend constexpr bool operator==(Rings, Rings) noexcept = default;
};

class Turns {
public:
    /// A waiter comes; it tries to take the turn, which only one may have, until its wait is over.
    void enter() noexcept { ++waiting_; }
    [[nodiscard]] bool take() noexcept {
        if (taken_) return false;
        ++activity_;
        return taken_ = true;
    }
    /// A waiter leaves, with the turn or without.
    [[nodiscard]] Rings leave(bool with_turn) noexcept {
        --waiting_;
        if (with_turn) taken_ = false;
        Rings rings;
        rings.waiters = waiting_ > 0 && !taken_;
        rings.loop = waiting_ == 0 && !helped_ && stir(loop_);
        return rings;
    }

    /// There is a helper, from now on or no more. Whoever sleeps is to look again at how.
    [[nodiscard]] Rings set_helped(bool helped) noexcept {
        helped_ = helped;
        return {.waiters = waiting_ > 0, .turn = stir(turn_), .helper = stir(helper_), .loop = stir(loop_)};
    }

    /// After `who` did something.
    [[nodiscard]] Rings did(Who who, Deed deed) noexcept {
        const bool stirs = deed.looked || deed.wants_look;
        if (who == Who::call && deed.looked) ++activity_;
        Rings rings;
        rings.waiters = waiting_ > (taken_ ? 1U : 0U) && (deed.happened || deed.ended);
        rings.turn = who != Who::waiter && (stirs || deed.ended) && stir(turn_);
        rings.helper = who != Who::helper && stirs && stir(helper_);
        rings.loop = who != Who::loop && (deed.ended || (stirs && !kept())) && stir(loop_);
        return rings;
    }

    /// `who` is about to sleep; it is awake again.
    void sleep(Who who) noexcept { alert(who) = Alert::asleep; }
    void rise(Who who) noexcept { alert(who) = Alert::awake; }

    /// Whether there is anybody to be told of what a caller, or the waiter with the turn, did.
    [[nodiscard]] bool any_to_tell(Who who) const noexcept {
        return waiting_ > (who == Who::waiter ? 1U : 0U) || helped_ || loop_ == Alert::asleep;
    }
    /// Whether somebody else looks for the loop.
    [[nodiscard]] bool kept() const noexcept { return waiting_ > 0 || helped_; }
    /// Whether there is a waiter; whether `who` sleeps, and has not been rung.
    [[nodiscard]] bool waited_for() const noexcept { return waiting_ > 0; }
    [[nodiscard]] bool asleep(Who who) const noexcept {
        return (who == Who::waiter ? turn_ : who == Who::helper ? helper_ : loop_) == Alert::asleep;
    }
    /// Moves on with whatever others than the helper look at.
    [[nodiscard]] std::uint32_t activity() const noexcept { return activity_; }

    friend constexpr auto operator<=>(const Turns&, const Turns&) noexcept = default;

private:
    enum class Alert : std::uint8_t { awake, asleep, rung };

    [[nodiscard]] static bool stir(Alert& alert) noexcept {
        if (alert != Alert::asleep) return false;
        alert = Alert::rung;
        return true;
    }
    [[nodiscard]] Alert& alert(Who who) noexcept {
        return who == Who::waiter ? turn_ : who == Who::helper ? helper_ : loop_;
    }

    std::uint16_t waiting_ = 0;  // waiters
    std::uint32_t activity_ = 0;
    bool taken_ = false;   // one of them has the turn
    bool helped_ = false;  // there is a helper
    Alert turn_ = Alert::awake;
    Alert helper_ = Alert::awake;
    Alert loop_ = Alert::awake;
};

}  // namespace railmux::progress
