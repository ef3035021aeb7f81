// A program with a poll(2) loop of its own: messages are one of the things that wake it, beside a timer here.
//
//   railmux run -n 4 example_event_loop
//
// A token goes round a ring; nobody calls wait.
#include <railmux/context.hpp>

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <utility>

#include "example.hpp"

namespace {

constexpr railmux::Tag token_tag = 1;
constexpr std::uint64_t laps = 5;

class Ring {
public:
    explicit Ring(railmux::Context& context) : context_(context) {
        receive();
        if (context_.rank() == 0) pass_on();
    }
    [[nodiscard]] bool over() const { return failed_ || (lap_ == laps && !sending_.active()); }
    [[nodiscard]] bool failed() const { return failed_; }
    /// Takes the results of sends; those of receives come by the callback.
    void look() {
        if (!sending_.active()) return;
        if (const auto sent = context_.test(sending_); sent && !sent->ok()) fail(*sent);
    }

private:
    void receive() {
        const auto left = context_.peer((context_.rank() + context_.size() - 1) % context_.size());
        receiving_ = context_.irecv(left, token_tag, token_, [this](const railmux::Status& status) {
            if (!status.ok()) return fail(status);
            ++lap_;
            if (lap_ < laps) receive();
            if (context_.rank() != 0 || lap_ < laps) pass_on();  // the last lap ends at rank 0
        });
    }
    void pass_on() {
        sending_ = context_.isend(context_.peer((context_.rank() + 1) % context_.size()), token_tag, token_);
    }

    void fail(const railmux::Status& status) {  // in callbacks, too, which must not throw
        if (std::exchange(failed_, true)) return;
        std::cerr << "the ring is broken: " << to_string(status.code) << '\n' << context_.failure(status.peer);
    }

    railmux::Context& context_;
    std::array<std::byte, 8> token_{};
    railmux::Request receiving_;
    railmux::Request sending_;
    std::uint64_t lap_ = 0;
    bool failed_ = false;
};

int make_timer() {
    const int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    constexpr timespec ten_ms{.tv_sec = 0, .tv_nsec = 10'000'000};
    const itimerspec each{.it_interval = ten_ms, .it_value = ten_ms};
    ::timerfd_settime(timer, 0, &each, nullptr);
    return timer;
}

int run(railmux::Context& context) {
    Ring ring(context);
    const int timer = make_timer();
    std::array<pollfd, 2> wakers{pollfd{context.event_fd(), POLLIN, 0}, pollfd{timer, POLLIN, 0}};
    std::uint64_t ticks = 0;
    while (!ring.over()) {
        // False: something happened, and it may have been what we wait for. True: now we may sleep.
        if (!context.arm()) {
            ring.look();
            continue;
        }
        if (ring.over()) break;
        if (::poll(wakers.data(), wakers.size(), 10'000) <= 0) return 1;  // somebody has died
        std::uint64_t more = 0;
        if (::read(timer, &more, sizeof more) == sizeof more) ticks += more;
    }
    ::close(timer);
    if (ring.failed()) return 1;
    if (context.rank() == 0) std::cout << laps << " laps; the timer ticked " << ticks << " times meanwhile\n";
    return 0;
}

}  // namespace

int main() { return run_example(run); }
