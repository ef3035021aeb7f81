// Progress: the lock of a context, and all of its waiting: who looks at the rails, who sleeps, who is woken.
//
// A wait is `until`: look, and look again, and by the mode (ProgressMode) spin, or sleep on all descriptors at once. An
// application that sleeps by itself takes `descriptor` and `arm`. With ProgressMode::thread a helper looks while nobody
// waits. turns.hpp has the rules by which no wake-up is lost; spin.hpp says how long is spun.
//
// With one thread (not shared) the lock is a flag that is looked at, and nobody wakes anybody, unless the application is
// armed: then its own calls make its descriptor readable where they leave something to do.
//
// Threads: Lock is how a thread enters; what says so is called with it. stop and set_mode without.
// Lifetime: owned by the subject, which it outlives by nothing: stop() before the subject's parts go.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <railmux/progress.hpp>

#include "base/clock.hpp"
#include "base/in_line.hpp"
#include "base/pause.hpp"
#include "base/spinning_lock.hpp"
#include "progress/sleeper.hpp"
#include "progress/spin.hpp"
#include "progress/turns.hpp"

namespace railmux::progress {

/// What is moved on. Everything is called with the lock.
class Subject {
public:
    /// Looks at everything once, reading the clock before if `exact`. True if anything happened.
    virtual bool look(bool exact) = 0;
    /// Whether what comes in is being timed: then looks are exact.
    [[nodiscard]] virtual bool timing() const noexcept = 0;
    /// The time; and as last read.
    [[nodiscard]] virtual base::Nanoseconds now() const noexcept = 0;
    [[nodiscard]] virtual base::Nanoseconds last_now() const noexcept = 0;
    /// After a look that found nothing: names to `set` the descriptors that turn readable when the next one may find
    /// something. Returns by when it is due anyway; 0 if something came up meanwhile.
    [[nodiscard]] virtual base::Nanoseconds arm(Sleeper& set) = 0;
    /// Somebody has slept, and what came woke him.
    virtual void slept() = 0;
    /// Whether something waits for a look before that time, which no descriptor tells.
    [[nodiscard]] virtual bool wants_look(base::Nanoseconds before) noexcept = 0;
    /// Operations that ended so far, and whatever else an application may wait for.
    [[nodiscard]] virtual std::uint64_t ended() const noexcept = 0;
    /// How long an answer takes over the best link; 0 if there is none.
    [[nodiscard]] virtual base::Nanoseconds answer_time() = 0;
    /// How long what comes while the process sleeps may wait for it to wake up; 0: a descriptor wakes it.
    [[nodiscard]] virtual base::Nanoseconds unseen_time() const noexcept { return 0; }

protected:
    ~Subject() = default;
};

class Progress {
public:
    struct Options {
        ProgressMode mode = ProgressMode::hybrid;
        bool shared = false;  // several threads call
        base::Nanoseconds spin = 50 * base::microsecond;
    };

    Progress(const Options& options, Subject& subject);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// A thread's stay inside. Recursive.
    class Lock {
    public:
        RAILMUX_IN_LINE explicit Lock(Progress& progress) : progress_(progress) {
            if (progress_.flags_.load(std::memory_order_relaxed) != 0) progress_.enter();
        }
        RAILMUX_IN_LINE ~Lock() {
            if (progress_.flags_.load(std::memory_order_relaxed) != 0) progress_.leave();
        }
        Lock(const Lock&) = delete;
        Lock& operator=(const Lock&) = delete;

    private:
        Progress& progress_;
    };

    /// Moves everything on until `over()`, or the time has come: then what over() says. With the lock, taken once: others
    /// get in meanwhile. `subject` is the one given at the beginning, by its own type, so that spinning calls nothing
    /// virtual.
    /// `seen` is what a waiter may look at without the lock while another one has the turn: true says that over() may be.
    template <typename S, typename Over, typename Seen>
    bool until(S& subject, Over over, base::Nanoseconds deadline, Seen seen);
    /// Where nothing tells but the news of every look.
    template <typename S, typename Over>
    bool until(S& subject, Over over, base::Nanoseconds deadline) {
        const auto any_news = [this, known = news_.load(std::memory_order_relaxed)]() mutable {
            return std::exchange(known, news_.load(std::memory_order_relaxed)) != known;
        };
        return until(subject, over, deadline, any_news);
    }

    /// To be told of every look, by the subject. With the lock.
    void looked() noexcept { looked_ = true; }
    /// Calls the application's code, without the lock, which was taken once.
    template <typename Call>
    void outside(Call call) {
        if (!shared()) return call();
        mutex_.unlock();
        const Relock relock{mutex_};
        call();
    }

    /// For an application that sleeps by itself (Context::event_fd, Context::arm). Without the lock.
    [[nodiscard]] int descriptor();
    [[nodiscard]] bool arm();

    /// Nobody else calls in, and nobody sleeps.
    [[nodiscard]] bool alone() const noexcept { return flags_.load(std::memory_order_relaxed) == 0; }

    [[nodiscard]] ProgressMode mode() const noexcept { return mode_.load(std::memory_order_relaxed); }
    /// Starts and stops the helper as needed. Not from within `outside` of the helper.
    void set_mode(ProgressMode mode);
    /// No helper any more.
    void stop();

    static constexpr auto never = base::never;

private:
    // A waiter without the turn spins so long before it sleeps: what it waits for comes by another thread, which looks all the
    // time or sleeps, too. Now and then (a microsecond) it lets others have its core, who may be the one that looks.
    static constexpr base::Nanoseconds longest_turn_spin = 20 * base::microsecond;
    static constexpr int pauses_a_yield = 32;
    // Whoever has nothing to be told earlier looks after itself so often: what he waits for may come about without anything
    // that others are told of.
    static constexpr base::Nanoseconds longest_turn_wait = 50 * base::millisecond;

    static constexpr std::uint8_t shared_flag = 1;  // the lock is one
    static constexpr std::uint8_t armed_flag = 2;   // the application may be asleep

    struct Relock {
        base::SpinningLock& mutex;
        ~Relock() { mutex.lock(); }
    };
    /// A waiter's stay, and its turn.
    struct Visit {
        Progress& progress;
        bool turn = false;
        explicit Visit(Progress& p) : progress(p) { progress.turns_.enter(); }
        Visit(const Visit&) = delete;
        Visit& operator=(const Visit&) = delete;
        ~Visit() { progress.leave_wait(turn); }
    };

    [[nodiscard]] bool shared() const noexcept { return (flags_.load(std::memory_order_relaxed) & shared_flag) != 0; }
    void enter();
    void leave();
    void let_in();
    [[nodiscard]] bool take_turn() noexcept {
        const bool taken = turns_.take();
        if (taken) turn_taken_.store(true, std::memory_order_relaxed);
        return taken;
    }
    void report(Who who, bool looked, bool happened);
    /// ... if anybody wants to know: usually nobody does.
    RAILMUX_IN_LINE void tell(Who who, bool looked, bool happened) {
        if (turns_.any_to_tell(who)) [[unlikely]]
            return report(who, looked, happened);
        looked_ = false;
    }
    void ring(Rings rings);
    void leave_wait(bool turn);
    /// Without the lock. True: something is to be seen, or the turn to be taken.
    template <typename S, typename Seen>
    bool spin_for_turn(S& subject, Seen& seen, base::Nanoseconds begun);
    void sleep_for_turn(std::uint32_t seen, base::Nanoseconds limit);
    template <typename S, typename Seen>
    void wait_for_turn(S& subject, Seen& seen, base::Nanoseconds deadline);
    [[nodiscard]] base::Nanoseconds earliest_due() const noexcept;
    template <typename S, typename Over, typename Seen>
    bool until_shared(S& subject, Over& over, base::Nanoseconds deadline, Seen& seen);
    template <typename S>
    bool rest(S& subject, base::Nanoseconds& idle_since, base::Nanoseconds deadline, bool spins, bool crowded);
    template <typename S>
    bool step(S& subject, base::Nanoseconds& idle_since, base::Nanoseconds deadline);
    bool sleep(Who who, Sleeper& sleeper, base::Nanoseconds deadline);
    [[nodiscard]] bool arm_locked();

    // The helper (helper.cpp)
    void start_helper();
    void unshare();
    void help();
    [[nodiscard]] bool on_duty();
    void park();
    void end_parking();

    Subject& subject_;
    std::atomic<ProgressMode> mode_;
    const bool always_shared_;
    Spin spin_;
    std::atomic<std::uint8_t> flags_{0};

    Turns turns_;
    bool looked_ = false;                     // somebody did, and it was not reported yet
    std::uint64_t ended_ = 0;                 // as last reported
    std::uint64_t shown_ended_ = 0;           // as last told to the application's loop
    std::array<base::Nanoseconds, 4> due_{};  // by Who: when a sleeper wakes up by itself
    std::uint32_t empty_looks_ = 0;

    Sleeper sleeper_;                    // of who has the turn
    std::unique_ptr<Sleeper> loop_set_;  // of the application, once it asked

    base::SpinningLock mutex_;
    std::condition_variable_any turn_free_;  // or something happened
    std::atomic<std::uint32_t> news_{0};     // counts those
    std::uint32_t without_turn_ = 0;         // sleep on it
    std::atomic<bool> turn_taken_{false};    // as turns_ has it, to be seen without the lock

    std::mutex mode_change_;
    std::unique_ptr<Sleeper> helper_set_;
    std::thread helper_;
    std::atomic<bool> stop_{false};
    std::uint32_t seen_activity_ = 0;
    std::mutex parking_;  // taken last
    std::condition_variable parked_;
    std::atomic<bool> deep_{false};  // parked until somebody ends it
};

template <typename S, typename Over, typename Seen>
RAILMUX_IN_LINE bool Progress::until(S& subject, Over over, base::Nanoseconds deadline, Seen seen) {
    if (shared()) return until_shared(subject, over, deadline, seen);
    auto idle_since = never;
    while (!over()) {
        step(subject, idle_since, deadline);
        if (deadline != never && subject.now() >= deadline) return over();
    }
    return true;
}

template <typename S, typename Over, typename Seen>
[[gnu::noinline]] bool Progress::until_shared(S& subject, Over& over, base::Nanoseconds deadline, Seen& seen) {
    if (over()) return true;
    auto idle_since = never;
    Visit visit(*this);
    for (;;) {
        if (visit.turn || (visit.turn = take_turn())) {
            const bool happened = step(subject, idle_since, deadline);
            tell(Who::waiter, true, happened);
        } else {
            wait_for_turn(subject, seen, deadline);
        }
        if (over()) return true;
        if (deadline != never && subject.now() >= deadline) return false;
        if (visit.turn && mutex_.wanted()) let_in();
        if (over()) return true;  // by whom that let in
    }
}

/// Another one looks meanwhile, and is not to be kept from it: what he finds for us is seen without the lock.
template <typename S, typename Seen>
void Progress::wait_for_turn(S& subject, Seen& seen, base::Nanoseconds deadline) {
    const auto known = news_.load(std::memory_order_relaxed);
    const auto begun = subject.now();
    const auto limit = std::min(deadline - begun, longest_turn_wait);
    if (limit <= 0) return;
    if (mode() != ProgressMode::block && !spin_.crowded(begun)) {
        mutex_.unlock();
        const bool came = spin_for_turn(subject, seen, begun);
        mutex_.lock();
        if (came) return;
    }
    sleep_for_turn(known, limit);
}

template <typename S, typename Seen>
bool Progress::spin_for_turn(S& subject, Seen& seen, base::Nanoseconds begun) {
    for (;;) {
        for (int i = 0; i < pauses_a_yield; ++i) {
            if (seen() || !turn_taken_.load(std::memory_order_relaxed)) return true;
            base::pause();
        }
        if (subject.now() - begun >= longest_turn_spin) return false;
        std::this_thread::yield();
    }
}

/// One look, and a sleep if there was nothing and the mode says so. True if anything happened, perhaps to what another waiter
/// looks at himself.
template <typename S>
RAILMUX_IN_LINE bool Progress::step(S& subject, base::Nanoseconds& idle_since, base::Nanoseconds deadline) {
    // Reading the clock takes a tenth of a look at a socket, so a wait does it at every eighth only; what comes in makes the
    // rail manager read it.
    const auto mode = this->mode();
    const bool spins = mode == ProgressMode::hybrid || mode == ProgressMode::thread;
    const bool crowded = spins && spin_.crowded(subject.last_now());
    const bool exact = crowded || subject.timing() || ++empty_looks_ % 8 == 0;
    if (subject.look(exact)) {
        idle_since = never;
        return true;
    }
    if (mode == ProgressMode::poll || (spins && !exact)) return false;
    return rest(subject, idle_since, deadline, spins, crowded);
}

/// There was nothing, and it is time to think of sleeping.
template <typename S>
[[gnu::noinline]] bool Progress::rest(S& subject, base::Nanoseconds& idle_since, base::Nanoseconds deadline, bool spins,
                                      bool crowded) {
    const auto now = subject.last_now();
    if (spins) {
        idle_since = std::min(idle_since, now);
        const auto outlook = [&] { return Spin::Outlook{subject.answer_time(), subject.unseen_time()}; };
        if (crowded && spin_.gave_way(now, idle_since, outlook)) return false;
        if (!spin_.over(now, idle_since, outlook)) return false;
    }
    const bool came = sleep(Who::waiter, sleeper_, deadline);
    if (came && spins) spin_.woken(subject.now(), idle_since);
    return came;
}

}  // namespace railmux::progress
