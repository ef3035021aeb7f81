#include "fuzz/session_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "fuzz/session_side.hpp"

namespace railmux::test {
namespace {

constexpr std::uint32_t most_rails = 3;
constexpr std::uint32_t most_steps = 60;
constexpr std::uint32_t burst = Session::window + 500;
constexpr base::Nanoseconds shortest_to_arrive = 60 * base::second;
constexpr std::uint64_t most_polls = 1'000'000;  // of the end: more is a live lock

struct Faults {
    const char* plan;
    int polls;  // after so many without anything, what faults hold back has been let go
    bool checksum = false;
};
constexpr std::array<Faults, 10> all_faults{{{"", 1},
                                             {"", 1},
                                             {"duplicate=10%", 2},
                                             {"delay=10%:7", 9},
                                             {"delay_work=10%:5,refuse=20%", 7},
                                             {"duplicate=5%,delay=20%:3,refuse=5%", 5},
                                             {"kill_work=2%,duplicate=10%", 2},
                                             {"kill_link=1%,delay=5%:9,delay_work=5%:3,stall=1%:20", 24},
                                             {"corrupt=5%", 1, true},
                                             {"corrupt=1%,duplicate=5%,delay=10%:3,kill_link=1%", 5, true}}};

class Schedule {
public:
    explicit Schedule(Choices choices) : choices_(choices) {
        clock_of = &fabric_;
        const auto few = choices_.below(6);  // rails are two or one now and then: the last dies more often
        rails_ = few == 4 ? 2 : few == 5 ? 1 : most_rails;
        for (std::uint32_t rail = 0; rail < rails_; ++rail) {
            const auto timing = timing_of(rail);
            for (const char* host : {"a", "b"}) {
                fabric_.add_rail(host, {.device = device(rail), .network = "net" + device(rail), .timing = timing});
            }
        }
        static constexpr std::array<const char*, 3> policies{"vft", "round_robin", "weighted_round_robin"};
        const auto* policy = policies[choices_.below(policies.size())];
        const auto& faults = all_faults[choices_.below(all_faults.size())];
        quiet_polls_ = faults.polls;
        checksum_ = faults.checksum;
        kills_ = checksum_ || std::string_view(faults.plan).find("kill") != std::string_view::npos;
        auto plan = transports::FaultPlan::parse(faults.plan);
        plan.seed = choices_.below(256);
        const std::uint64_t instance = choices_.below(2) == 0 ? 10 : 30;  // who goes first when both connect
        a_.emplace(fabric_, "a", Identity{.instance = instance, .rank = 0}, policy, plan, faults.checksum);
        b_.emplace(fabric_, "b", Identity{.instance = 20, .rank = 1}, policy, plan, false);  // one side is enough
        a_->knows(*b_);
        b_->knows(*a_);
    }
    ~Schedule() { clock_of = nullptr; }
    Schedule(const Schedule&) = delete;
    Schedule& operator=(const Schedule&) = delete;

    std::string play(ScheduleStats& stats) {
        auto result = say_some();
        if (result.empty() && choices_.below(4) == 1) result = begin_anew();
        if (result.empty() && choices_.below(4) == 1) result = leave();
        count(stats);
        return result;
    }

private:
    static std::string device(std::uint32_t rail) { return "eth" + std::to_string(rail); }
    sim::Timing timing_of(std::uint32_t rail) {
        static constexpr std::array<double, 4> latencies{1'000, 20'000, 300'000, 5e6};
        return sim::simple_timing(latencies[choices_.below(latencies.size())] * (rail + 1), 300, 300, 400, 1.0);
    }
    [[nodiscard]] std::string wrong() const { return a_->wrong.empty() ? b_->wrong : a_->wrong; }

    void step() {
        const auto rail = choices_.below(rails_);
        const auto here = "a/" + device(rail);
        const auto there = "b/" + device(rail);
        const auto time = base::Nanoseconds{1000} << choices_.below(16);
        switch (choices_.below(12)) {
            case 0:
            case 1:
            case 2: say(*a_); break;
            case 3:
            case 4: say(*b_); break;
            case 5: fabric_.cut(here, there, sim::Cut::loud); break;
            case 6:
                fabric_.cut(here, there, sim::Cut::silent);
                silent_[rail] = true;
                break;
            case 7: restore(rail); break;
            case 8: fabric_.set_timing(here, timing_of(rail)); break;
            case 9: run(choices_.below(2) == 0, choices_.below(2) == 0, time); break;
            default: run(true, true, time); break;
        }
    }
    void say(Side& side) {
        // More than the window has room for; not 0, which is what the ends of bytes are. Where links die by the hundredth step
        // it would hardly ever arrive.
        if (choices_.below(1024) == 200 && !kills_) {
            for (std::uint32_t i = 0; i < burst; ++i) side.say(0, i % 3 != 0);
            side.follow(100);
            return;
        }
        for (auto count = 1 + choices_.below(5); count > 0; --count) {
            const auto kind = choices_.below(16);
            if (kind == 15) {
                side.put(1 + choices_.below(3000));
                continue;
            }
            if (kind == 14) side.follow(5);
            if (kind == 13) side.answer(5);
            side.say(kind < 12 ? choices_.below(64) : kind * 700, kind % 3 != 0);
        }
    }
    /// Links that were cut silently stay dead, and in this layer nobody but the network tells: so it does.
    void restore(std::uint32_t rail) {
        if (std::exchange(silent_[rail], false)) {
            fabric_.cut("a/" + device(rail), "b/" + device(rail), sim::Cut::loud);
        }
        fabric_.restore("a/" + device(rail), "b/" + device(rail));
    }

    bool poll(bool a, bool b) {
        bool any = false;
        if (a) any = a_->poll() || any;
        if (b) any = b_->poll() || any;
        ++polls_;
        fabric_.advance(2);
        return any;
    }
    /// Until nothing happens any more at this moment, whatever faults hold back for some polls.
    void settle(bool a, bool b) {
        for (int quiet = 0; quiet < quiet_polls_ && polls_ < most_polls;) quiet = poll(a, b) ? 0 : quiet + 1;
    }
    void jump(bool a, bool b, base::Nanoseconds end) {
        auto next = std::min(end, fabric_.next_event().value_or(end));
        if (a) next = std::min(next, a_->next_deadline());
        if (b) next = std::min(next, b_->next_deadline());
        fabric_.advance_to(std::max(next, now() + 1));
    }
    void run(bool a, bool b, base::Nanoseconds time) {
        polls_ = 0;
        for (const auto end = now() + time; now() < end && polls_ < most_polls; jump(a, b, end)) settle(a, b);
    }

    std::string say_some() {
        const auto steps = 1 + choices_.below(most_steps);
        for (std::uint32_t i = 0; i < steps && !choices_.over() && wrong().empty(); ++i) step();
        return wrong().empty() ? end() : wrong();
    }
    /// One side gives the other up, and both begin another session.
    std::string begin_anew() {
        if (!a_->connected() || !b_->connected()) return {};
        for (auto* side : {&*a_, &*b_}) side->expect_end();
        (choices_.below(2) == 0 ? *a_ : *b_).give_up();
        const auto result = wait_for("the other side's session goes on", [&] { return a_->ended() && b_->ended(); });
        for (auto* side : {&*a_, &*b_}) side->begin_anew();
        return result.empty() ? say_some() : result;
    }
    /// One side says goodbye, and goes.
    std::string leave() {
        if (!a_->connected() || !b_->connected()) return {};
        for (auto* side : {&*a_, &*b_}) side->expect_end();
        const bool first = choices_.below(2) == 0;
        auto& leaver = first ? *a_ : *b_;
        auto& other = first ? *b_ : *a_;
        other.expect_goodbye();
        if (!kills_) {  // else the last link may die, and there is no other after a goodbye
            for (auto count = choices_.below(20); count > 0; --count) leaver.say(choices_.below(64), true);
        }
        leaver.manager.leaving().say_goodbye(now());
        auto result = wait_for("a goodbye is not heard", [&] { return other.heard_goodbye(); });
        if (!result.empty()) return result;
        if (!other.heard_ordered_of(leaver)) return "a goodbye came before what was said before it";
        leaver.manager.leaving().part();
        result = wait_for("links of who left stay",
                          [&] { return leaver.manager.leaving().parted() && other.manager.leaving().parted(); });
        if (!result.empty()) return result;
        result = leaver.kept();
        return result.empty() ? other.kept() : result;
    }
    /// Longer where links go on dying: one that corrupts data rests for seconds each time, and may be the only one.
    [[nodiscard]] base::Nanoseconds time_to_arrive() const noexcept { return (kills_ ? 20 : 1) * shortest_to_arrive; }
    template <typename Done>
    std::string wait_for(const char* otherwise, Done done) {
        polls_ = 0;
        for (const auto limit = now() + time_to_arrive(); !done(); jump(true, true, limit)) {
            settle(true, true);
            if (!wrong().empty()) return wrong();
            if (now() >= limit) return std::string("hung: ") + otherwise;
            if (polls_ >= most_polls) return std::string("polls without end: ") + otherwise;
        }
        return wrong();
    }
    std::string end() {
        for (std::uint32_t rail = 0; rail < rails_; ++rail) restore(rail);
        polls_ = 0;
        const auto limit = now() + time_to_arrive();
        while (true) {
            settle(true, true);
            if (!wrong().empty()) return wrong();
            const auto what = missing();
            if (what.empty()) break;
            if (now() >= limit) return "hung: " + what;
            if (polls_ >= most_polls) return "polls without end: " + what;
            jump(true, true, limit);
        }
        run(true, true, afterwards);
        if (!wrong().empty() || !checksum_) return wrong();
        const auto spoiled = a_->spoiled();
        return spoiled.empty() ? b_->spoiled() : spoiled;
    }
    [[nodiscard]] std::string missing() {
        auto what = a_->missing(*b_);
        return what.empty() ? b_->missing(*a_) : what;
    }
    void count(ScheduleStats& stats) {
        for (auto* side : {&*a_, &*b_}) {
            stats.frames += side->said_ordered + side->said_loose;
            for (std::size_t rail = 0; side->talked() && rail < rails_; ++rail) {
                stats.resent += side->traffic(rail).resent_frames;
                stats.duplicates += side->traffic(rail).duplicate_frames;
                stats.links_lost += side->traffic(rail).links_lost;
                stats.corrupted += side->traffic(rail).corrupted_frames;
            }
        }
    }

    Choices choices_;
    sim::Fabric fabric_;
    std::uint32_t rails_ = most_rails;
    std::array<bool, most_rails> silent_{};
    int quiet_polls_ = 1;
    bool checksum_ = false;
    bool kills_ = false;
    std::uint64_t polls_ = 0;
    std::optional<Side> a_;
    std::optional<Side> b_;
};

}  // namespace

std::string play_schedule(Choices choices, ScheduleStats& stats) { return Schedule(choices).play(stats); }

}  // namespace railmux::test
