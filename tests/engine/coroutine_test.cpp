// Coroutines: awaiting operations, in one thread and with the helper.
#include <catch2/catch.hpp>

#include <atomic>
#include <exception>

#include <railmux/coroutine.hpp>

#include "engine/pair.hpp"

using namespace railmux;
using test::Pair;
using test::pattern;
using test::two_rails;

namespace {

struct Task {
    struct promise_type {
        Task get_return_object() { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
};

constexpr int exchanges = 300;

struct Tally {
    std::atomic<int> through = 0;
    std::atomic<int> wrong = 0;
};

Task ask(Context& context, Peer other, Tag tag, Tally& tally) {
    for (unsigned i = 0; i < exchanges; ++i) {
        const auto data = pattern(i % 50 == 0 ? 40'000 : 8, i);
        const auto sent = co_await async_send(context, other, tag, data);
        std::vector<std::byte> got(data.size());
        const auto received = co_await async_recv(context, other, tag + 1, got);
        if (!sent.ok() || !received.ok() || received.bytes != data.size() || got != data) ++tally.wrong;
    }
    ++tally.through;
}

Task answer(Context& context, Peer other, Tag tag, Tally& tally) {
    std::vector<std::byte> got(40'000);
    for (int i = 0; i < exchanges; ++i) {
        const auto status = co_await async_recv(context, other, tag, got);
        co_await async_send(context, other, tag + 1, std::span(got).first(status.bytes));
    }
    ++tally.through;
}

Task copy(Context& context, Peer there, RemotePlace place, Tally& tally) {
    const auto data = pattern(20'000);
    std::vector<std::byte> back(data.size());
    const auto put = co_await async_put(context, there, place, data);
    const auto flushed = co_await async_flush(context, there);
    const auto got = co_await async_get(context, there, place, back);
    if (!put.ok() || !flushed.ok() || !got.ok() || back != data) ++tally.wrong;
    ++tally.through;
}

Task give_up(Context& context, Tally& tally) {
    try {
        co_await async_send(context, Peer(), 1, {});
    } catch (const Error& error) {
        if (error.code() == ErrorCode::invalid_argument) ++tally.through;
    }
}

}  // namespace

TEST_CASE("threads: coroutines await operations, and several go on at a time", "[engine]") {
    auto config = two_rails();
    config.set("progress", GENERATE("poll", "thread"));
    Pair pair(config);
    Tally tally;
    for (Tag tag = 0; tag < 8; tag += 2) {
        ask(pair.a, pair.to_b, tag, tally);
        answer(pair.b, pair.to_a, tag, tally);
    }
    pair.until([&] { return tally.through == 8; });
    CHECK(tally.wrong == 0);
}

TEST_CASE("coroutines await puts and gets, and what is misused throws there", "[engine]") {
    Pair pair;
    Tally tally;
    std::vector<std::byte> memory(20'000);
    const auto region = pair.b.register_memory(memory);
    copy(pair.a, pair.to_b, {.key = region.key()}, tally);
    pair.until([&] { return tally.through == 1; });
    give_up(pair.a, tally);
    CHECK(tally.through == 2);
    CHECK(tally.wrong == 0);
}
