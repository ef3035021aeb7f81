#include "sched/pace.hpp"

#include <algorithm>
#include <utility>

namespace railmux::sched {

namespace {
/// bytes * theirs / ours, where they have something: the part of a backlog that goes with `bytes` of ours. Nobody is
/// believed to have more than 64 times as much as we have.
std::uint64_t share_of(std::uint64_t bytes, std::uint64_t theirs, std::uint64_t ours) noexcept {
    constexpr std::uint64_t one = 1024;
    if (theirs == 0) return 0;
    return bytes * (std::min(theirs, 64 * ours) * one / ours) / one;
}
}  // namespace

void Pace::sent(std::uint64_t bytes, base::Nanoseconds now, bool ours, std::uint32_t messages) noexcept {
    if (backlog_ == 0) {
        // A backlog that was acknowledged at one stroke left the rail idle for a moment only: what it proved still holds.
        if (now - last_ > idle_time) busy_bytes_ = 0;
        last_ = now;
        stretch_ = {.begin = now};
        saved_up_.idle();
        train_ = {.begin = now};
        fed_.forget();
        told_after_ = 0;
    }
    train_.end = now;
    train_.bytes += bytes;
    train_.messages += messages;
    if (!ours) disturbed();
    handed_ += bytes;
    backlog_ += bytes;
}

void Pace::account(base::Nanoseconds now, base::Nanoseconds busy, const Others& others, const Seen& seen) noexcept {
    told_ = told_ || seen.exact;
    const bool backlogged = backlog_ >= backlog_bytes || lasts();
    const auto known_within = [&](base::Nanoseconds time) {
        return seen.unseen <= look_time || seen.unseen * 8 <= time;
    };
    const bool in_time = known_within(now - stretch_.begin);
    const bool all = known_within(now - last_);
    stretch_.through += pending_;
    // What is acknowledged is made up for at once, so that this is what we had there since the last time.
    stretch_.in_front += share_of(pending_, others.backlog, backlog_ + pending_);
    if (in_time || stretch_.waiting == 0) {
        if (stretch_.waiting > 0 && backlogged) end_stretch(now, others, seen);
        others_gone_ = others.gone;
        const auto waiting = backlogged && in_time ? backlog_ - std::min(backlog_, seen.unposted) : 0;
        stretch_ = {.begin = std::max(now, stretch_.begin), .waiting = waiting, .exact = seen.exact};
    }
    const auto sustained = proven_.came_through(std::exchange(pending_count_, 0), pending_, now, all);
    // Clearly more than what is thought to be its rate: that was learnt from something else.
    if (sustained > 0 && rail_.per_byte / 5 > sustained / 4) relearn(sustained);
    add_fed(others, now);
    busy_bytes_ += pending_;
    // A trial of a guess lasts until it has shown something, or should have, if others did not use the rail or the peer kept
    // up; one is not due where little by little goes there anyway.
    if (hoped_) {
        hoped_bytes_ += pending_;
        if (hoped_bytes_ >= most_hoped_bytes) end_hope(busy);
    } else if (pending_ >= (shown_ ? trial_bytes / 2 : timed_bytes)) {
        used_ = busy;
    }
    pending_ = 0;
    last_ = now;
    remember(now);
}

/// The rail had a backlog at both ends of the stretch. If all that came through was on it at the beginning it was never idle.
void Pace::end_stretch(base::Nanoseconds now, const Others& others, const Seen& seen) noexcept {
    const auto time = now - stretch_.begin;
    const auto bytes = stretch_.through;
    saved_up_.passed(bytes);
    if (time <= 0) return;
    const bool never_idle = stretch_.waiting >= bytes + (seen.exact ? left_bytes : landed_unseen());
    if (!never_idle && !(stretch_.exact && seen.exact && shows_more(time, bytes))) return;
    // By acknowledgements alone it is not known when something came; and what others got belongs to the time, too.
    const bool ours = others.backlog == 0 && others.gone == others_gone_;
    const auto shown =
        told_ && ours ? saved_up_.came_through(bytes, time, rail_.per_byte) : SavedUp::Shown{time, bytes};
    if (shown.bytes == 0) return;
    // Looks are too rare to tell where what was saved up ended.
    bursts_ = bursts_ || ((ends_known(now) || saves_up(now)) && !saved_up_.used_up());
    others_ += others.gone - others_gone_;
    in_front_ += stretch_.in_front;
    add(shown.time, shown.bytes);
}

/// Where the peer sends much, too, acknowledgements wait behind that, for as long as what it keeps on the way takes. All that
/// we keep on the way may be there by then, the rail be idle, and seem so slow that it is given less.
std::uint64_t Pace::landed_unseen() const noexcept {
    return told_ || rail_.per_byte == 0 ? 0 : static_cast<std::uint64_t>(to_ticks(told_after_) / rail_.per_byte);
}

/// Even if the rail was idle for a part of that time it has done more than what is thought of it. Hosts tell in lumps what they
/// have: without the stretches in which much came, those that are left would be the ones in which little did.
bool Pace::shows_more(base::Nanoseconds time, std::uint64_t bytes) const noexcept {
    const auto thought = bytes_ > 0 ? to_ticks(time_) / static_cast<Ticks>(bytes_) : rail_.per_byte;
    return to_ticks(time) / static_cast<Ticks>(bytes) < thought;
}

void Pace::lone(const Passage& passage, Ticks thought, base::Nanoseconds now, base::Nanoseconds busy) noexcept {
    if (now < forgiven_until_) return;
    const auto count = static_cast<Ticks>(passage.bytes);
    const auto took = std::min(to_ticks(passage.service) / count, slowest);
    if (tried(busy)) return end_trial(took, to_ticks(look_time) / count, thought, busy);
    const auto chance = to_ticks(chance_of(passage)) / count;
    if (passage.by_host) told_by_host_ = now;
    const auto end = passage.end.time > 0 ? passage.end : Mark{now, handed_ - backlog_};
    if (took >= thought / 2) shown_ = true;
    // What was on the rail may have passed before it was known to have.
    const auto since_idle =
        passage.since_idle > 0 ? to_ticks(passage.service_since_idle) / static_cast<Ticks>(passage.since_idle) : took;
    const auto longest = to_ticks(passage.longest_since_idle) /
                         static_cast<Ticks>(passage.since_idle > 0 ? passage.since_idle : passage.bytes);
    at_once_.note(std::max(since_idle + chance, longest), now);
    const auto most = rail_.per_byte > 0 ? rail_.per_byte : took;
    passes_ +=
        (std::clamp<Ticks>(took - chance, 0, most) - passes_) / 4;  // of one that somebody held up little remains
    passed_at_ = now;
    if (took <= thought + std::max(chance, thought / 4)) {
        if (std::max(since_idle, longest) < rail_.per_byte / 8) {
            at_once_seen_ = now;
            ease();
        }
        return lateness_.in_time(end);
    }
    const auto window = rail_.per_byte == 0 ? first_late_time : window_time;
    const auto learnt = lateness_.late(passage.bytes, passage.service, end, window);
    if (before_trial_ > rail_.per_byte && took >= before_trial_ / 4 * 3) {  // the trial met no more than a burst
        relearn(before_trial_);
        doubts_ = doubted_before_ ? doubted : 0;
    } else if (learnt > 0) {
        relearn(learnt);
        doubts_ = doubted;
    }
}

/// A train passed at once, with what the rail had saved up. One that is thought slower than it is gets less than it could
/// carry: it never has a backlog, no train is late, and so nothing else would ever show that. What was learnt is wrong by an
/// eighth at times.
void Pace::ease() noexcept { rail_.per_byte = std::max(rail_.per_byte - rail_.per_byte / 16, learnt_ / 8 * 7); }

/// That a rail is as slow as ever needs no more than one train; how much slower it has become takes several, since somebody may
/// have been away. Of a guess nothing is known that a moment of absence could be told by: no single train makes it worse.
void Pace::end_trial(Ticks took, Ticks absent, Ticks thought, base::Nanoseconds busy) noexcept {
    const auto known = rail_.per_byte;
    const auto shown = hoped_ ? std::min(std::max(took - absent, std::min(took, thought)), std::max(guess_, thought))
                              : std::clamp(took, per_byte(busy, 1), std::max(2 * known, per_byte(busy, 1)));
    before_trial_ = known;
    doubted_before_ = doubts_ > 0;
    if (hoped_ || shown < known / 4 * 3 || shown > known / 4 * 5) doubts_ = doubted;
    rail_.windows.fill(std::max<Ticks>(shown, 1));
    learnt_ = rail_.per_byte = rail_.windows.front();
    if (sustained_ > 0) sustained_ = std::max(sustained_, learnt_);
    lateness_.forget(handed_);
    shown_ = true;
    end_hope(busy);
}

void Pace::add(base::Nanoseconds time, std::uint64_t bytes) noexcept {
    time_ += time;
    bytes_ += bytes;
    const bool first = window_count_ == 0;
    const bool long_enough = time_ >= (first ? first_window_time : window_time) && bytes_ >= window_bytes;
    if (long_enough || (first && bytes_ >= first_window_bytes))
        end_window(time_, bytes_, std::min(others_, 2 * in_front_));
}

/// What the time that passed with handing over shows, where nobody else uses the rail. Whatever shows more often is better.
void Pace::add_fed(const Others& others, base::Nanoseconds now) noexcept {
    if (backlog_ == 0 || others.backlog > 0 || std::exchange(fed_others_, others.gone) != others.gone) fed_.forget();
    if (backlog_ == 0) return;
    const auto shown = fed_.came_through(pending_, now);
    if (shown.time > 0) end_window(shown.time, shown.bytes, 0);
}

void Pace::end_window(base::Nanoseconds time, std::uint64_t bytes, std::uint64_t others) noexcept {
    ++window_count_;
    shown_ = true;
    hoped_ = false;
    hoped_bytes_ = 0;
    own_.add(window_count_, time, bytes);
    rail_.add(window_count_, time, bytes + others);
    learnt_ = sustained_ = rail_.per_byte;
    // The first is short: where something had passed in half of that time, it may have been the beginning of a burst, or its
    // end.
    const bool first = window_count_ == 1 && at_once_.any(last_, 1) && at_once_.least() < learnt_ / 2;
    if (std::exchange(bursts_, false) || first) {
        doubts_ = doubted;
    } else if (doubts_ > 0) {
        --doubts_;
    }
    fed_.forget();
    before_trial_ = 0;
    time_ = 0;
    bytes_ = others_ = in_front_ = 0;
}

void Pace::Rate::add(std::uint32_t count, base::Nanoseconds time, std::uint64_t bytes) noexcept {
    const auto rate = std::clamp<Ticks>(to_ticks(time) / static_cast<Ticks>(bytes), 1, slowest);
    windows[count % windows.size()] = rate;
    if (count < windows.size()) {
        per_byte = rate;
        return;
    }
    const auto [a, b, c] = windows;
    per_byte = std::max(std::min(a, b), std::min(std::max(a, b), c));
}

void Pace::measured(Ticks per_byte, base::Nanoseconds busy) noexcept {
    relearn(per_byte);
    shown_ = true;
    end_hope(busy);
}

void Pace::restored(base::Nanoseconds now, base::Nanoseconds busy) noexcept {
    const auto before = past_[0] > 0 ? past_[0] : past_[1];
    if (before > 0 && before < rail_.per_byte) {
        relearn(before);
        doubts_ = doubted;
    }
    past_.fill(rail_.per_byte);
    noted_ = now;
    forgiven_until_ = now + forgiven;
    used_ = busy;
    lateness_.forget(handed_);
}

void Pace::remember(base::Nanoseconds now) noexcept {
    if (now - noted_ < remembered) return;
    past_ = {past_[1], rail_.per_byte};
    noted_ = now;
}

void Pace::relearn(Ticks per_byte) noexcept {
    per_byte = std::clamp<Ticks>(per_byte, 1, slowest);
    for (auto* rate : {&own_, &rail_}) {
        rate->per_byte = per_byte;
        rate->windows.fill(per_byte);
    }
    learnt_ = sustained_ = per_byte;
    passes_ = 0;
    bursts_ = false;
    window_count_ = static_cast<std::uint32_t>(rail_.windows.size());
    doubts_ = 0;
    before_trial_ = 0;
    time_ = 0;
    bytes_ = others_ = in_front_ = 0;
}

bool Pace::correct(Cost& cost, base::Nanoseconds now, base::Nanoseconds busy) const noexcept {
    const bool proven = proven_.any(now);
    auto known = per_byte(busy, cost.per_byte);
    if (known == 0 && proven) known = std::min(proven_.per_byte(), cost.per_byte);
    const bool passed = at_once_.any(now, 1);
    bool bounded = false;
    if (rail_.per_byte == 0 && passed) {
        if (known == 0) known = cost.per_byte;
        bounded = at_once_.least() < known;
        known = std::min(at_once_.least(), known);
    }
    if (known > 0) {
        // What a byte takes besides G stays what it was; a model that has G wrong may have no such part at all. Nor is there
        // one that what passed at once did not take.
        auto besides = std::max<Ticks>(cost.slope - cost.per_byte, 0);
        if (passed) besides = std::min(besides, at_once_.least());
        cost.slope = known + besides;
        cost.per_byte = known;
    }
    if (proven) cost.gap = std::min(cost.gap, proven_.gap(cost.per_byte));
    return bounded;
}

void Pace::hope(Cost& cost, Ticks best, base::Nanoseconds busy) noexcept {
    if (shown_ || cost.per_byte <= best || busy - used_ < 2 * half_life) return;
    hoped_ = true;  // for all who use the rail, whoever asks next
    guess_ = cost.per_byte;
    const auto halvings = std::min<base::Nanoseconds>((busy - used_) / half_life - 1, 62);
    const auto hoped = std::max({cost.per_byte >> halvings, best, Ticks{1}});
    cost.slope = std::max(cost.slope - (cost.per_byte - hoped), hoped);
    cost.per_byte = hoped;
}

void Pace::end_hope(base::Nanoseconds busy) noexcept {
    used_ = busy;
    hoped_ = false;
    hoped_bytes_ = 0;
}

}  // namespace railmux::sched
