#include "progress/progress.hpp"

namespace railmux {

std::string_view to_string(ProgressMode mode) noexcept {
    switch (mode) {
        case ProgressMode::poll: return "poll";
        case ProgressMode::block: return "block";
        case ProgressMode::hybrid: return "hybrid";
        case ProgressMode::thread: return "thread";
    }
    return "?";
}

}  // namespace railmux

namespace railmux::progress {

Progress::Progress(const Options& options, Subject& subject)
    : subject_(subject),
      mode_(options.mode == ProgressMode::thread ? ProgressMode::hybrid : options.mode),
      always_shared_(options.shared),
      spin_(options.spin),
      flags_(options.shared ? shared_flag : std::uint8_t{0}) {}

Progress::~Progress() { stop(); }

// --- The lock --------------------------------------------------------------------------------------------------------

void Progress::enter() {
    if (shared()) mutex_.lock();
}

void Progress::leave() {
    tell(Who::call, looked_, looked_);
    if (shared()) mutex_.unlock();
}

/// The lock is not fair: without a pause here, whoever wants to call in might never get his turn. Who waits spins, mostly, and
/// is in after a microsecond; one that sleeps, or has lost its core, is given some 100 us, most of them yielded.
void Progress::let_in() {
    constexpr int rounds = 100, spun_rounds = 5, pauses = 16;
    const auto others = mutex_.let_in();
    mutex_.unlock();
    for (int i = 0; i < rounds && mutex_.let_in() == others; ++i) {
        for (int j = 0; j < pauses && mutex_.let_in() == others; ++j) base::pause();
        if (i >= spun_rounds) std::this_thread::yield();
    }
    mutex_.lock();
}

base::Nanoseconds Progress::earliest_due() const noexcept {
    auto earliest = base::Nanoseconds{0};  // nobody sleeps: whoever looks next sees for himself
    for (const auto who : {Who::waiter, Who::helper, Who::loop}) {
        if (!turns_.asleep(who)) continue;
        const auto due = due_[static_cast<std::size_t>(who)];
        earliest = earliest == 0 ? due : std::min(earliest, due);
    }
    return earliest;
}

void Progress::report(Who who, bool looked, bool happened) {
    const auto ended = subject_.ended();
    Deed deed{.looked = looked || looked_, .happened = happened, .ended = ended != ended_};
    looked_ = false;
    ended_ = ended;
    if (const auto due = earliest_due(); due > 0) deed.wants_look = subject_.wants_look(due);
    ring(turns_.did(who, deed));
}

void Progress::ring(Rings rings) {
    if (rings.waiters) {
        news_.fetch_add(1, std::memory_order_relaxed);
        if (without_turn_ > 0) turn_free_.notify_all();
    }
    if (rings.turn) sleeper_.wake();
    if (rings.helper) helper_set_->wake();
    if (rings.loop) {
        loop_set_->wake();
        flags_.fetch_and(static_cast<std::uint8_t>(~armed_flag), std::memory_order_relaxed);
    }
}

// --- Waiting ---------------------------------------------------------------------------------------------------------

void Progress::leave_wait(bool turn) {
    if (turn) turn_taken_.store(false, std::memory_order_relaxed);
    ring(turns_.leave(turn));
    if (deep_.load(std::memory_order_relaxed) && !turns_.waited_for()) end_parking();
}

void Progress::sleep_for_turn(std::uint32_t seen, base::Nanoseconds limit) {
    if (news_.load(std::memory_order_relaxed) != seen) return;
    ++without_turn_;
    turn_free_.wait_for(mutex_, std::chrono::nanoseconds(limit));
    --without_turn_;
}

/// True if a descriptor ended it.
bool Progress::sleep(Who who, Sleeper& sleeper, base::Nanoseconds deadline) {
    const auto due = std::min(subject_.arm(sleeper), deadline);
    const auto limit = due - subject_.now();
    if (limit <= 0) return false;
    turns_.sleep(who);
    due_[static_cast<std::size_t>(who)] = due;
    const bool locked = shared();
    if (locked) mutex_.unlock();
    const bool came = sleeper.sleep(limit);
    if (locked) mutex_.lock();
    turns_.rise(who);
    subject_.slept();
    return came;
}

// --- An application that sleeps by itself ----------------------------------------------------------------------------

int Progress::descriptor() {
    const Lock lock(*this);
    if (loop_set_ == nullptr) loop_set_ = std::make_unique<Sleeper>();
    return loop_set_->descriptor();
}

bool Progress::arm() {
    static_cast<void>(descriptor());
    enter();
    struct Leave {
        Progress& progress;
        ~Leave() {
            if (progress.shared()) progress.mutex_.unlock();
        }
    } const on_return{*this};
    return arm_locked();
}

bool Progress::arm_locked() {
    turns_.rise(Who::loop);
    flags_.fetch_and(static_cast<std::uint8_t>(~armed_flag), std::memory_order_relaxed);
    loop_set_->clear();
    const bool kept = turns_.kept();
    const bool happened = !kept && subject_.look(true);
    report(Who::loop, !kept, happened);
    // What ended since the last time, by whomever, may not have been seen.
    if (happened || shown_ended_ != ended_) {
        shown_ended_ = ended_;
        return false;
    }
    auto due = never;
    if (kept) {
        loop_set_->forget_all();
    } else {
        due = subject_.arm(*loop_set_);
        const auto limit = due - subject_.now();
        if (limit <= 0) return false;
        loop_set_->expire_in(limit);
    }
    turns_.sleep(Who::loop);
    due_[static_cast<std::size_t>(Who::loop)] = due;
    flags_.fetch_or(armed_flag, std::memory_order_relaxed);
    return true;
}

}  // namespace railmux::progress
