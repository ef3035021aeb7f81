// Rounds: whose turn it is among the rails that are looked at, and when they have been.
//
// The first that has something ends a call: what it brought should reach the application before other rails are looked at,
// each of which costs a system call. The next call begins behind it, so that each gets its turn; but one that has brought
// nothing for long is left out of three calls in four, unless calls are rare: what comes over another one would wait for it.
// Some have a rest: of those the one that brought something last is looked at as any other, and who brings nothing beside it
// for long only now and then. That is known of them all the same: nobody is believed to use them meanwhile.
//
// Threads: one engine at a time. Pure: time is an argument.
// Lifetime: part of the rail manager.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/in_line.hpp"

namespace railmux::rails {

/// What a look at a rail brought, from little to much.
enum class Found : std::uint8_t {
    nothing,
    moved,  // the look itself moved bytes of something larger: work, and a reason to look again, but nothing had been waiting
    events,
};

/// When the rails were looked at.
struct Looks {
    base::Nanoseconds begun = 0;   // the round of looks under way
    base::Nanoseconds looked = 0;  // what had arrived by then, on whatever rail, is known
    // ... and has been taken, from all that were not left out, as far as a transport brings what it has: a tcp connection over
    // which nothing has come for long is looked at now and then only.
    base::Nanoseconds taken = 0;
};

class Rounds {
public:
    /// From now on there is none; add() says which there are.
    void clear() noexcept {
        places_.clear();
        next_ = 0;
        used_ = none;
    }
    void add(std::uint32_t rail, base::Nanoseconds rest = 0) { places_.push_back({.rail = rail, .rest = rest}); }
    /// The next call begins with that rail.
    void prefer(std::uint32_t rail) noexcept {
        const auto place = std::ranges::find(places_, rail, &Place::rail);
        if (place != places_.end()) next_ = static_cast<std::size_t>(place - places_.begin());
    }
    /// Whatever came before `now` would have woken the caller, who slept until then. He looks at all of them next: whatever
    /// woke him, or could not.
    void woken(base::Nanoseconds now) noexcept {
        looks_ = {.begun = now, .looked = now, .taken = now};
        partial_ = most_partial;
        for (auto& place : places_) place.looked = 0;
    }
    [[nodiscard]] const Looks& looks() const noexcept { return looks_; }
    /// The look under way may have left some of what was there.
    void left_some() noexcept { left_some_ = true; }

    /// Looks at them, `all` or those that are not left out, until look(rail) finds events. Returns the most that any found.
    template <typename Look>
    RAILMUX_IN_LINE Found go(bool all, base::Nanoseconds now, Look look) {
        const bool asked = all;
        const bool one = places_.size() == 1;
        all = one || all || partial_ >= most_partial || now - looks_.looked >= longest_rest;
        partial_ = all ? 0 : partial_ + 1;
        auto most = Found::nothing;
        for (auto left = places_.size(); left > 0; --left) {
            if (next_ == 0) {
                looks_.begun = now;
                left_out_ = left_some_ = false;
            }
            const auto at = next_;
            auto& place = places_[at];
            next_ = next_ + 1 < places_.size() ? next_ + 1 : 0;
            const bool due = one || is_due(at, all, asked, now);
            const auto found = due ? look(place.rail) : Found::nothing;
            place.vain = found != Found::nothing ? 0 : place.vain + 1;
            if (found != Found::nothing && place.rest > 0) used_ = at;
            if (next_ == 0 && !left_out_) {
                looks_.looked = looks_.begun;
                if (!left_some_) looks_.taken = looks_.begun;
            }
            if (found == Found::events) return found;
            most = std::max(most, found);
        }
        if (places_.empty()) looks_.looked = now;
        looks_.taken = now;
        return most;
    }

private:
    // So many looks in vain are long: some 50 us, several round trips.
    static constexpr std::uint32_t vain_looks = 128;
    // Calls in a row that may leave some out, and how long ago what is known of all of them may be for that.
    static constexpr std::uint32_t most_partial = 3;
    static constexpr base::Nanoseconds longest_rest = 5 * base::microsecond;

    static constexpr auto none = ~std::size_t{0};

    struct alignas(32) Place {  // found without a division
        std::uint32_t rail = 0;
        std::uint32_t vain = 0;  // looks since it last brought something
        base::Nanoseconds rest = 0;
        base::Nanoseconds looked = 0;  // when it was
    };
    /// Whether it is looked at this time.
    [[nodiscard]] RAILMUX_IN_LINE bool is_due(std::size_t at, bool all, bool asked, base::Nanoseconds now) noexcept {
        auto& place = places_[at];
        const bool rests = place.rest > 0 && used_ != none && used_ != at;
        const bool late = !rests || asked || now - place.looked >= place.rest;
        const bool due = place.vain < vain_looks || (all && late);
        left_out_ = left_out_ || (!due && !rests);
        if (due) place.looked = now;
        return due;
    }

    std::vector<Place> places_;
    std::size_t used_ = none;  // of those with a rest, the one that brought something last
    std::size_t next_ = 0;
    std::uint32_t partial_ = 0;  // calls since the last that left nothing out
    bool left_out_ = false;      // some rail in the round under way
    bool left_some_ = false;     // ... of what was there on a rail
    Looks looks_;
};

}  // namespace railmux::rails
