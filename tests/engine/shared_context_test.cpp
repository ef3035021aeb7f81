// Several threads that send, receive and wait over one context, each in its own way.
#include <catch2/catch.hpp>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "engine/pair.hpp"

using namespace railmux;
using test::Pair;
using test::pattern;

namespace {

constexpr unsigned ways = 5;  // of waiting, a thread each

Config shared(std::string_view rails, std::string_view mode) {
    auto config = test::two_rails();
    if (rails != "tcp") config.set("rails", std::string(rails));
    config.set("progress", std::string(mode)).set("thread_level", "multiple");
    return config;
}

std::size_t size_of(unsigned message) { return message % 16 == 15 ? 40'000 : 8; }

/// A thread's end of an exchange: its tags are its own.
struct End {
    Context& context;
    Peer other;
    unsigned way;
    int early = 0;  // waits that were over before the callback was

    void send(std::span<const std::byte> data) {
        if (way == 0) return context.send(other, way, data);
        bool called = false;
        std::array requests{way == 3 ? context.isend(other, way, data, [&](const Status&) { called = true; })
                                     : context.isend(other, way, data)};
        finish(requests);
        early += way == 3 && !called ? 1 : 0;
    }
    std::size_t receive(std::span<std::byte> into) {
        if (way == 0) return context.recv(other, way, into).bytes;
        bool called = false;
        std::array requests{way == 3 ? context.irecv(other, way, into, [&](const Status&) { called = true; })
                                     : context.irecv(other, way, into)};
        const auto bytes = finish(requests);
        early += way == 3 && !called ? 1 : 0;
        return bytes;
    }

private:
    std::size_t finish(std::span<Request> requests) {
        if (way == 1) return context.wait_any(requests).status.bytes;
        if (way == 2 || way == 3) return context.wait(requests[0]).bytes;
        for (;;) {
            if (const auto status = context.test(requests[0])) return status->bytes;
        }
    }
};

}  // namespace

TEST_CASE("threads: each gets what is its own, in order, in every mode", "[engine]") {
    const auto* const rails = GENERATE("tcp", "shm:node");
    const auto* const mode = GENERATE("poll", "block", "hybrid", "thread");
    CAPTURE(rails, mode);
    Pair pair(shared(rails, mode));
    constexpr unsigned messages = 200;
    std::atomic<int> wrong = 0;
    std::vector<std::thread> all;
    for (unsigned way = 0; way < ways; ++way) {
        all.emplace_back([&, way] {
            End end{pair.a, pair.to_b, way};
            std::vector<std::byte> got(40'000);
            for (unsigned i = 0; i < messages; ++i) {
                const auto data = pattern(size_of(i), way * messages + i);
                end.send(data);
                const auto bytes = end.receive(got);
                if (bytes != data.size() || std::memcmp(got.data(), data.data(), bytes) != 0) ++wrong;
            }
            wrong += end.early;
        });
        all.emplace_back([&, way] {
            End end{pair.b, pair.to_a, way};
            std::vector<std::byte> got(40'000);
            for (unsigned i = 0; i < messages; ++i) end.send(std::span(got).first(end.receive(got)));
            wrong += end.early;
        });
    }
    for (auto& thread : all) thread.join();
    CHECK(wrong == 0);
}

TEST_CASE("threads: what one sends to a peer arrives in order, whoever else sends", "[engine]") {
    const auto* const mode = GENERATE("poll", "block", "hybrid", "thread");
    CAPTURE(mode);
    Pair pair(shared("shm:node", mode));
    constexpr unsigned senders = 3;
    constexpr unsigned messages = 2000;
    std::vector<std::thread> all;
    std::atomic<unsigned> over = 0;
    for (unsigned sender = 0; sender < senders; ++sender) {
        all.emplace_back([&, sender] {
            std::array<unsigned, 2> message{sender, 0};
            for (; message[1] < messages; ++message[1]) {
                pair.a.send(pair.to_b, 0, std::as_bytes(std::span(message)));
            }
            pair.a.recv(pair.to_b, 1 + sender, {});
            ++over;
        });
    }
    std::array<unsigned, senders> next{};
    int wrong = 0;
    for (unsigned i = 0; i < senders * messages; ++i) {
        std::array<unsigned, 2> message{};
        pair.b.recv(pair.to_a, 0, std::as_writable_bytes(std::span(message)));
        if (message[0] >= senders || next.at(message[0])++ != message[1]) ++wrong;
    }
    for (unsigned sender = 0; sender < senders; ++sender) pair.b.send(pair.to_a, 1 + sender, {});
    while (over < senders) pair.b.progress();  // what has been sent may need somebody who looks
    for (auto& thread : all) thread.join();
    CHECK(wrong == 0);
}

TEST_CASE("threads: who waits takes over from who looks, again and again", "[engine]") {
    const auto* const mode = GENERATE("poll", "block", "hybrid", "thread");
    CAPTURE(mode);
    Pair pair(shared("shm:node", mode));
    // The first to wait has the turn. It is answered first, and must hand it to the other, whose answer comes only then.
    std::vector<std::byte> one(8);
    std::vector<std::byte> two(8);
    const auto data = pattern(8);
    for (int round = 0; round < 200; ++round) {
        std::atomic<int> done = 0;
        const auto wait_for = [&](Tag tag, std::span<std::byte> into) {
            return std::thread([&, tag, into] {
                pair.a.recv(pair.to_b, tag, into);
                ++done;
            });
        };
        auto first = wait_for(1, one);
        auto second = wait_for(2, two);
        const auto answer_first = static_cast<Tag>(1 + round % 2);
        pair.b.send(pair.to_a, answer_first, data);
        while (done < 1) pair.b.progress();
        pair.b.send(pair.to_a, 3 - answer_first, data);
        while (done < 2) pair.b.progress();
        first.join();
        second.join();
    }
    CHECK(one == data);
    CHECK(two == data);
}
