#include "bootstrap/launcher.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include <railmux/error.hpp>

#include "base/clock.hpp"
#include "bootstrap/child.hpp"
#include "bootstrap/guard.hpp"
#include "bootstrap/launch_plan.hpp"
#include "bootstrap/running_job.hpp"
#include "bootstrap/signals.hpp"

namespace railmux::bootstrap {

namespace {

// What stays behind in a process's session may hold its output open; when all processes have ended it is given this
// long.
constexpr base::Nanoseconds drain_limit = base::second;
constexpr base::Nanoseconds kill_period = base::second / 2;  // once the grace is over
constexpr int timed_out = 124;                               // as timeout(1) has it

class Launcher {
public:
    explicit Launcher(const RunOptions& options)
        : options_(options), job_(make_job(options_, log_)), guard_([this] { job_->clean_up(); }) {}
    ~Launcher() {
        for (auto& child : children_) bury(child);
    }
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;

    int run() {
        const auto plans = make_plans();
        start_all(plans);
        while (unfinished()) {
            wait_for_something();
            check_time();
        }
        for (auto& child : children_) finish_output(child);
        return result_;
    }

private:
    /// Everything that can be wrong is found out before anything starts.
    std::vector<ChildPlan> make_plans() {
        if (options_.command.empty()) throw Error(ErrorCode::invalid_argument, "no program to run", "name one");
        const auto hosts = place_ranks(options_);
        const auto first = job_->open();
        std::vector<ChildPlan> plans;
        children_.resize(options_.processes);
        for (std::uint32_t i = 0; i < options_.processes; ++i) {
            children_[i].rank = first + i;
            children_[i].host = hosts[i];
            plans.push_back(plan(children_[i]));
            const auto& program = plans.back().command[0];
            if (i > 0 && program == plans[i - 1].command[0]) continue;
            if (!find_program(program).empty()) continue;
            throw Error(ErrorCode::invalid_argument, "there is no program " + program,
                        "check the name; a program of this folder needs ./ in front");
        }
        return plans;
    }

    [[nodiscard]] ChildPlan plan(const Child& child) const {
        return plan_child(options_, job_->identity(), child.rank, child.host);
    }

    void start_all(const std::vector<ChildPlan>& plans) {
        for (std::size_t i = 0; i < children_.size(); ++i) {
            start_one(children_[i], plans[i]);
            serve();  // the first ones need not wait for the last to be started
            if (ending_) return;
        }
    }

    void start_one(Child& child, const ChildPlan& plan) {
        start(child, plan, options_.prefix ? fmt::format("[{}] ", child.rank) : std::string());
        guard_.watch(child.pid);
    }

    [[nodiscard]] bool unfinished() {
        const auto any = [&](auto what) { return std::any_of(children_.begin(), children_.end(), what); };
        if (any([](const Child& child) { return child.running; })) return true;
        if (drain_until_ == 0) drain_until_ = base::now_ns() + drain_limit;
        return base::now_ns() < drain_until_ && any([](const Child& c) { return c.out.open() || c.err.open(); });
    }

    void wait_for_something() {
        std::vector<pollfd> waits{{signals_.descriptor(), POLLIN, 0}, {job_->descriptor(), POLLIN, 0}};
        std::vector<OutputStream*> streams;
        for (auto& child : children_) {
            for (auto* stream : {&child.out, &child.err}) {
                if (!stream->open()) continue;
                waits.push_back({stream->descriptor(), POLLIN, 0});
                streams.push_back(stream);
            }
        }
        const bool timed = ending_ || drain_until_ > 0 || options_.timeout.count() > 0;
        ::poll(waits.data(), waits.size(), timed ? 50 : -1);
        for (std::size_t i = 0; i < streams.size(); ++i) {
            if (waits[i + 2].revents != 0) streams[i]->forward();
        }
        serve();
        read_signals();
    }

    void serve() {
        if (!job_->serve() && !ending_) {
            result_ = 128 + SIGTERM;
            end_job("its first launcher has ended it");
        }
    }

    void read_signals() {
        while (const auto signal = signals_.next()) {
            if (*signal != SIGCHLD) {
                pass_on(*signal);
                continue;
            }
            for (auto& child : children_) {
                if (take_end(child) && !judge_end(child)) job_->ended(child.rank);
            }
        }
    }

    /// The first is passed on, so that the processes can end in their own way; the second is meant seriously.
    void pass_on(int signal) {
        if (result_ == 0) result_ = 128 + signal;
        const bool again = std::exchange(interrupted_, true);
        for (auto& child : children_) signal_child(child, again ? SIGKILL : signal);
        if (!ending_) kill_at_ = base::now_ns() + grace();
        if (!std::exchange(ending_, true)) job_->end();
    }

    static void finish_output(Child& child) {
        for (auto* stream : {&child.out, &child.err}) {
            if (stream->open()) stream->finish();
        }
    }

    /// Whether it has a successor.
    bool judge_end(Child& child) {
        if (exit_status(child) == 0 || ending_) return false;
        const auto where = child.host.empty() ? std::string() : " on host " + child.host;
        const auto what = fmt::format("rank {}{} {}", child.rank, where, describe_end(child));
        if (child.restarts < options_.restarts) return restart(child, what);
        if (result_ == 0) result_ = exit_status(child);
        if (options_.keep_going) {
            fmt::print(stderr, "railmux run: {}; the others go on\n", what);
        } else {
            end_job(what);
        }
        return false;
    }

    /// Another process under the same rank; ours, if nobody has been quicker.
    bool restart(Child& child, const std::string& why) {
        try {
            if (const auto taken = job_->claim(child.rank); !taken.empty()) {
                fmt::print(stderr, "railmux run: {}; it is not started anew: {}\n", why, taken);
                return true;
            }
            start_anew(child, why);
            return true;
        } catch (const Error& error) {
            result_ = exit_status(child);
            end_job(fmt::format("{}, and cannot be started anew: {}", why, error.what()));
            return false;
        }
    }

    void start_anew(Child& child, const std::string& why) {
        ++child.restarts;
        fmt::print(stderr, "railmux run: {}; starting it anew ({} of {})\n", why, child.restarts, options_.restarts);
        guard_.forget(child.pid);
        bury(child);
        for (auto* stream : {&child.out, &child.err}) {
            pollfd last_words{stream->descriptor(), POLLIN, 0};
            if (stream->open() && ::poll(&last_words, 1, 0) > 0) stream->forward();
        }
        finish_output(child);
        start_one(child, plan(child));
    }

    void end_job(const std::string& why) {
        fmt::print(stderr, "railmux run: {}; ending the job\n", why);
        ending_ = true;
        kill_at_ = base::now_ns() + grace();
        job_->end();
        for (auto& child : children_) signal_child(child, SIGTERM);
    }

    void check_time() {
        const auto now = base::now_ns();
        if (!ending_ && options_.timeout.count() > 0 && now - started_ > options_.timeout.count() * base::second) {
            result_ = timed_out;
            end_job(fmt::format("not over after {} s", options_.timeout.count()));
        }
        if (ending_ && now > kill_at_) {
            for (auto& child : children_) signal_child(child, SIGKILL);
            kill_at_ = now + kill_period;
        }
    }

    [[nodiscard]] base::Nanoseconds grace() const noexcept { return std::chrono::nanoseconds(options_.grace).count(); }

    RunOptions options_;
    base::Logger log_{base::LogLevel::warning, "railmux run: "};
    std::unique_ptr<RunningJob> job_;
    Guard guard_;  // before all that opens descriptors
    Signals signals_;
    std::vector<Child> children_;
    base::Nanoseconds started_ = base::now_ns();
    base::Nanoseconds kill_at_ = 0;
    base::Nanoseconds drain_until_ = 0;
    bool ending_ = false;
    bool interrupted_ = false;
    int result_ = 0;
};

}  // namespace

int run_job(const RunOptions& options) { return Launcher(options).run(); }

}  // namespace railmux::bootstrap
