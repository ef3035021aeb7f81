// Two processes that go on talking while a test troubles the networks between them, and say what they notice. Each round is
// a burst of small messages, one that goes by rendezvous over all rails, and an answer; all of them are numbered, and each
// must come once and in order.
//
//   railmux run -n 2 job_troubled FOLDER [idle]
//
// Lines on standard output, the times in ms: "rank R pid P", "links N", "down RAIL CAUSE", "up RAIL TIME CAUSE", "longest
// TIME": the longest round since the line before; a file "mark" in FOLDER asks for it, and is removed. A file "end" ends both.
// `idle`: rank 1 only waits, as rank 0 does between two looks for these files.
#include <railmux/context.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Number = std::uint64_t;

constexpr railmux::Tag tag = 1;
constexpr Number last = ~Number{0};
constexpr std::size_t burst = 64;
using Small = std::array<Number, 512>;    // 4 KiB: sent at once, as far as there is credit
using Large = std::array<Number, 24576>;  // 192 KiB: larger than what is not asked for

double ms(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

template <typename... Values>
void say(const char* format, Values... values) {
    std::printf(format, values...);  // NOLINT: the formats stand below
    std::fflush(stdout);
}

void tell_events(railmux::Context& context) {
    if (context.rank() != 0) return;
    context.on_rail_down([](const railmux::RailEvent& event) {
        if (event.peer.valid()) say("down %s %s\n", event.rail.c_str(), event.cause.c_str());
    });
    context.on_rail_up([](const railmux::RailEvent& event) {
        if (event.peer.valid()) say("up %s %.0f %s\n", event.rail.c_str(), ms(event.down), event.cause.c_str());
    });
}

template <typename Numbers>
void check(const Numbers& numbers, Number round) {
    if (numbers.front() == numbers.back() && (numbers.back() == round || numbers.back() == last)) return;
    throw railmux::Error(railmux::ErrorCode::protocol, "round " + std::to_string(round) + " is wrong");
}

template <typename Numbers>
auto bytes_of(Numbers& numbers) {
    return std::as_writable_bytes(std::span(numbers));
}

class Rounds {
public:
    explicit Rounds(railmux::Context& context) : context_(context), other_(context.peer(1 - context.rank())) {}

    /// False after the last one.
    bool send(Number round) {
        std::vector<railmux::Request> requests;
        for (auto& small : smalls_) {
            small.fill(round);
            requests.push_back(context_.isend(other_, tag, bytes_of(small)));
        }
        large_.fill(round);
        requests.push_back(context_.isend(other_, tag, bytes_of(large_)));
        if (context_.wait_all(requests) != railmux::ErrorCode::ok) throw lost();
        context_.recv(other_, tag, bytes_of(answer_));
        check(answer_, round);
        return round != last;
    }
    bool receive(Number round) {
        for (auto& small : smalls_) {
            context_.recv(other_, tag, bytes_of(small));
            check(small, round);
        }
        context_.recv(other_, tag, bytes_of(large_));
        check(large_, round);
        answer_.fill(large_.front());
        context_.send(other_, tag, bytes_of(answer_));
        return large_.front() != last;
    }
    [[nodiscard]] std::size_t links() { return context_.models(other_).size(); }

private:
    railmux::Error lost() { return {railmux::ErrorCode::peer_lost, context_.failure(other_)}; }

    railmux::Context& context_;
    railmux::Peer other_;
    std::vector<Small> smalls_ = std::vector<Small>(burst);
    Large large_{};
    std::array<Number, 1> answer_{};
};

void drive(Rounds& rounds, const std::filesystem::path& folder) {
    std::size_t links = 0;
    Clock::duration longest{};
    for (Number round = 0;; ++round) {
        const bool end = std::filesystem::exists(folder / "end");
        const auto begin = Clock::now();
        if (!rounds.send(end ? last : round)) return;
        longest = std::max(longest, Clock::now() - begin);
        if (std::exchange(links, rounds.links()) != links) say("links %zu\n", links);
        if (std::filesystem::remove(folder / "mark")) {
            say("longest %.1f\n", ms(longest));
            longest = {};
        }
    }
}

void run(railmux::Context& context, const std::filesystem::path& folder, bool idle) {
    say("rank %u pid %d\n", context.rank(), static_cast<int>(::getpid()));
    tell_events(context);
    Rounds rounds(context);
    if (context.rank() == 1) {
        for (Number round = 0; rounds.receive(round); ++round) {
        }
    } else if (!idle) {
        drive(rounds, folder);
    } else {
        for (Number round = 0; round < 100; ++round) rounds.send(round);
        say("links %zu\n", rounds.links());
        Number word = 0;  // nobody sends it: the context sleeps
        auto never = context.irecv(context.peer(1), tag + 1, std::as_writable_bytes(std::span(&word, 1)));
        context.wait(never);
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 2) return 2;
        railmux::Context context;
        run(context, argv[1], argc > 2);
        return 0;
    } catch (const railmux::Error& error) {
        std::cerr << error.what() << '\n' << error.cure() << '\n';
        return 1;
    }
}
