// Every order of steps of all who wait on a context, with the class that the library uses. A step is what happens under one
// hold of the lock; but between a look and the arming of the rail the network has its turn, too.
//
// Threads: one.
// Lifetime: values.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "progress/turns.hpp"

namespace progress_worlds {

using railmux::progress::Deed;
using railmux::progress::Rings;
using railmux::progress::Turns;
using railmux::progress::Who;

/// Leave out one of the rules of turns.hpp, to see that it is needed.
enum class Without : std::uint8_t {
    nothing,
    rings_for_looks,
    rings_for_wants,
    rings_for_ends,
    ring_on_leaving,
    ring_on_switching,
    second_look
};

enum class Caller : std::uint8_t { none, isend_test, test_isend };

struct Cast {
    int waiters = 0;
    bool helper = false;
    bool loop = false;
    Caller caller = Caller::none;
    bool switcher = false;
    Without without = Without::nothing;
};

/// A thread that waits for its operation. `at`: its next step.
struct Actor {
    std::uint8_t at = 0;
    bool turn = false;
    auto operator<=>(const Actor&) const = default;
};

struct World {
    Turns turns;
    // The network, and a rail.
    std::uint8_t sent = 0;   // every second message ends the next operation
    std::uint8_t taken = 0;  // looked at
    bool watched = false;    // the rail's descriptor turns readable for what comes from now on
    bool readable = false;
    bool held = false;       // somebody who holds the lock is between a look and arming
    bool wanted = false;     // something waits for a look that no descriptor tells of
    std::uint8_t ended = 0;  // bits
    std::uint8_t shown = 0;  // ... as told to the loop
    // Bells, and a condition.
    bool turn_bell = false;
    bool helper_bell = false;
    bool loop_bell = false;

    std::array<Actor, 2> waiters{};
    std::array<bool, 2> queued{};  // waits for the turn, or for news
    Actor helper;
    Actor loop;
    Actor caller;
    Actor switcher;
    bool stop = false;  // of the helper
    auto operator<=>(const World&) const = default;
};

class Model {
public:
    explicit Model(const Cast& cast) : cast_(cast) {}

    struct Outcome {
        std::size_t worlds = 0;
        bool slept_through = false;
    };

    Outcome try_everything() {
        World first;
        if (cast_.helper) ring(first, first.turns.set_helped(true));
        if (!cast_.helper) first.helper.at = through;
        std::set<World> seen;
        std::vector<World> open{first};
        Outcome outcome;
        while (!open.empty()) {
            const auto world = open.back();
            open.pop_back();
            if (!seen.insert(world).second) continue;
            bool moved = false;
            for (const auto& step : steps()) {
                auto next = world;
                if (!step(next)) continue;
                moved = true;
                open.push_back(next);
            }
            outcome.slept_through = outcome.slept_through || (!moved && !all_through(world));
        }
        outcome.worlds = seen.size();
        return outcome;
    }

private:
    using Step = std::function<bool(World&)>;
    static constexpr std::uint8_t through = 99;
    static constexpr std::uint8_t arming = 50;

    [[nodiscard]] std::uint8_t operations() const {
        return static_cast<std::uint8_t>(cast_.waiters + (cast_.loop ? 1 : 0));
    }
    [[nodiscard]] bool all_through(const World& world) const {
        for (int i = 0; i < cast_.waiters; ++i) {
            if (world.waiters.at(static_cast<std::size_t>(i)).at != through) return false;
        }
        if (cast_.switcher && world.switcher.at != through) return false;
        return (!cast_.loop || world.loop.at == through) && (world.helper.at == through || !world.wanted);
    }

    const std::vector<Step>& steps() {
        if (!steps_.empty()) return steps_;
        steps_.push_back([this](World& w) { return network(w); });
        for (std::size_t i = 0; i < static_cast<std::size_t>(cast_.waiters); ++i) {
            steps_.push_back([this, i](World& w) { return waiter(w, i); });
        }
        if (cast_.helper || cast_.switcher) steps_.push_back([this](World& w) { return helper(w); });
        if (cast_.loop) steps_.push_back([this](World& w) { return loop(w); });
        if (cast_.caller != Caller::none) steps_.push_back([this](World& w) { return caller(w); });
        if (cast_.switcher) steps_.push_back([this](World& w) { return switcher(w); });
        return steps_;
    }

    [[nodiscard]] bool network(World& w) const {
        if (w.sent == 2 * operations()) return false;
        ++w.sent;
        w.readable = w.readable || w.watched;
        return true;
    }

    [[nodiscard]] static bool over(const World& w, std::size_t operation) { return (w.ended >> operation & 1) != 0; }

    struct Look {
        bool happened;
        bool ended;
    };
    /// A look takes what is there, and the rail's promise away.
    static Look look(World& w) {
        w.watched = w.readable = false;
        const bool wanted = std::exchange(w.wanted, false);
        if (w.sent == w.taken) return {wanted, false};
        const bool ends = ++w.taken % 2 == 0;
        if (ends) w.ended = static_cast<std::uint8_t>(w.ended | 1U << (w.taken / 2 - 1));
        return {true, ends};
    }
    /// False: something came up.
    [[nodiscard]] bool arm(World& w) const {
        w.watched = true;
        return cast_.without == Without::second_look || w.sent == w.taken;
    }

    void report(World& w, Who who, Deed deed) const {
        if (!w.turns.any_to_tell(who)) return;
        if (cast_.without == Without::rings_for_looks) deed.looked = false;
        if (cast_.without == Without::rings_for_ends) deed.ended = deed.happened = false;
        const bool asleep = w.turns.asleep(Who::waiter) || w.turns.asleep(Who::helper) || w.turns.asleep(Who::loop);
        deed.wants_look = cast_.without != Without::rings_for_wants && asleep && w.wanted;
        ring(w, w.turns.did(who, deed));
    }
    static void ring(World& w, Rings rings) {
        if (rings.waiters) w.queued = {};
        w.turn_bell = w.turn_bell || rings.turn;
        w.helper_bell = w.helper_bell || rings.helper;
        w.loop_bell = w.loop_bell || rings.loop;
    }

    /// Progress::until.
    bool waiter(World& w, std::size_t i) const {
        auto& me = w.waiters.at(i);
        if (w.held && me.at != arming) return false;
        switch (me.at) {
            case 0:
                w.turns.enter();
                me.at = 1;
                return true;
            case 1: {
                if (over(w, i)) {
                    const auto rings = w.turns.leave(me.turn);
                    if (cast_.without != Without::ring_on_leaving) ring(w, rings);
                    me = {through, false};
                    return true;
                }
                if (!me.turn) me.turn = w.turns.take();
                if (!me.turn) {
                    w.queued.at(i) = true;
                    me.at = 3;
                    return true;
                }
                const auto [happened, ended] = look(w);
                if (happened) {
                    report(w, Who::waiter, {.looked = true, .happened = true, .ended = ended});
                } else {
                    w.held = true;
                    me.at = arming;
                }
                return true;
            }
            case arming:
                w.held = false;
                if (arm(w)) {
                    w.turns.sleep(Who::waiter);
                    me.at = 2;  // it reports when it has slept
                } else {
                    report(w, Who::waiter, {.looked = true});
                    me.at = 1;
                }
                return true;
            case 2:
                if (!w.turn_bell && !w.readable) return false;
                w.turn_bell = false;
                w.turns.rise(Who::waiter);
                report(w, Who::waiter, {.looked = true});
                me.at = 1;
                return true;
            case 3:
                if (w.queued.at(i)) return false;
                me.at = 1;
                return true;
            default: return false;
        }
    }

    /// Progress::arm, and an application that looks at its operation, the last one, whenever it is told to.
    bool loop(World& w) const {
        auto& me = w.loop;
        if (w.held && me.at != arming) return false;
        const auto mine = static_cast<std::size_t>(cast_.waiters);
        switch (me.at) {
            case 0:  // Context::test, which takes no look here
                me.at = over(w, mine) ? through : 1;
                return true;
            case 1: {
                w.turns.rise(Who::loop);
                w.loop_bell = false;
                const bool kept = w.turns.kept();
                const auto [happened, ended] = kept ? Look{false, false} : look(w);
                report(w, Who::loop, {.looked = !kept, .happened = happened, .ended = ended});
                me.at = 0;
                const bool shown = std::exchange(w.shown, w.ended) == w.ended;
                if (happened || !shown) return true;
                if (kept) {
                    w.turns.sleep(Who::loop);
                    me = {2, false};
                } else {
                    w.held = true;
                    me.at = arming;
                }
                return true;
            }
            case arming:
                w.held = false;
                me.at = 0;
                if (!arm(w)) return true;
                w.turns.sleep(Who::loop);
                me = {2, true};
                return true;
            case 2:  // in its own poll(2); the rail is in its set only if it armed that
                if (!w.loop_bell && !(me.turn && w.readable)) return false;
                me = {0, false};
                return true;
            default: return false;
        }
    }

    /// Progress::help. That it comes back by itself after a while is left out: nothing may depend on it but what is late.
    bool helper(World& w) const {
        auto& me = w.helper;
        if (w.held && me.at != arming) return false;
        switch (me.at) {
            case through: return false;
            case 0: {
                if (w.stop) {
                    me.at = through;
                    return true;
                }
                if (w.turns.waited_for()) return false;  // parked, until nobody waits
                const auto [happened, ended] = look(w);
                report(w, Who::helper, {.looked = true, .happened = happened, .ended = ended});
                w.held = !happened;
                me.at = happened ? 0 : arming;
                return true;
            }
            case arming:
                w.held = false;
                if (arm(w)) w.turns.sleep(Who::helper);
                me.at = w.turns.asleep(Who::helper) ? 1 : 0;
                return true;
            default:
                if (!w.helper_bell && !w.readable) return false;
                w.helper_bell = false;
                w.turns.rise(Who::helper);
                me.at = 0;
                return true;
        }
    }

    /// isend, which leaves something to be looked at, and test, which looks; or the other way round.
    bool caller(World& w) const {
        auto& me = w.caller;
        if (w.held || me.at == 2) return false;
        if ((me.at == 0) == (cast_.caller == Caller::isend_test)) {
            w.wanted = true;
            report(w, Who::call, {});
        } else {
            const auto [happened, ended] = look(w);
            report(w, Who::call, {.looked = true, .happened = happened, .ended = ended});
        }
        ++me.at;
        return true;
    }

    /// Progress::set_mode: to a mode with a helper and back, or the other way round.
    bool switcher(World& w) const {
        auto& me = w.switcher;
        if (w.held) return false;
        switch (me.at) {
            case 0:
                if (cast_.helper) {
                    w.stop = w.helper_bell = true;
                    me.at = 1;
                } else {
                    switch_to(w, true);
                    me.at = 2;
                }
                return true;
            case 1:
                if (w.helper.at != through) return false;
                switch_to(w, false);
                me.at = cast_.helper ? 2 : through;
                return true;
            case 2:
                if (cast_.helper) {
                    switch_to(w, true);
                    me.at = through;
                } else {
                    w.stop = w.helper_bell = true;
                    me.at = 1;
                }
                return true;
            default: return false;
        }
    }
    void switch_to(World& w, bool helped) const {
        w.stop = false;
        if (helped) w.helper = {};
        const auto rings = w.turns.set_helped(helped);
        if (cast_.without != Without::ring_on_switching) ring(w, rings);
    }

    Cast cast_;
    std::vector<Step> steps_;
};

inline Model::Outcome outcome_of(const Cast& cast) { return Model(cast).try_everything(); }

}  // namespace progress_worlds
