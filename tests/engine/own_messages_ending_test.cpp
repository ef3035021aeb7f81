// Messages of a process to itself: how they end, who is told, and what they keep nobody from.
#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "engine/alone.hpp"

using namespace railmux;
using test::Alone;
using test::kept;
using test::pattern;

TEST_CASE("callbacks of messages to oneself are called with the next look, in either order", "[engine]") {
    Alone alone;
    auto& context = alone.context;
    for (const std::size_t bytes : {kept, 2 * kept}) {
        for (const bool posted_first : {true, false}) {
            const auto data = pattern(bytes);
            std::vector<std::byte> got(bytes);
            int received = 0;
            int sent = 0;
            const auto receive = [&] {
                return context.irecv(alone.self, 1, got, [&](const Status& s) { received += s.ok() ? 1 : 100; });
            };
            Request receiving;
            if (posted_first) receiving = receive();
            auto sending = context.isend(alone.self, 1, data, [&](const Status& s) { sent += s.ok() ? 1 : 100; });
            if (!posted_first) receiving = receive();
            CHECK(received + sent == 0);
            context.wait(receiving);
            context.wait(sending);
            CHECK(received == 1);
            CHECK(sent == 1);
        }
    }
}

TEST_CASE("callbacks that send to their own process again and again let others have their turn", "[engine]") {
    Alone alone;
    auto& context = alone.context;
    std::array<std::byte, 8> data{}, got{};
    int rounds = 0;
    Request receiving, sending;
    const std::function<void(const Status&)> again = [&](const Status&) {
        if (++rounds == 1000) return;
        receiving = context.irecv(alone.self, 1, got, again);
        sending = context.isend(alone.self, 1, data);
    };
    again({});
    context.progress();
    CHECK(rounds < 10);
    while (rounds < 1000) REQUIRE(context.progress());
}

TEST_CASE("who sends to himself again and again hears of others, however he looks for results", "[engine]") {
    test::Pair pair;
    auto& context = pair.a;
    const auto self = context.peer(0);
    const auto data = pattern(64);
    std::vector<std::byte> got(data.size());
    const int way = GENERATE(0, 1, 2, 3, 4, 5);
    INFO("way " << way);
    bool heard = false;
    std::vector<std::byte> from_b(8);
    auto receive = context.irecv(pair.to_b, 1, from_b, [&](const Status&) { heard = true; });
    auto send = pair.b.isend(pair.to_a, 1, std::span(data).first(8));
    const ConstBuffer piece(data);
    const auto to_himself = [&] {
        if (way == 5) {
            context.send(self, 1, data);
            return static_cast<void>(context.recv(std::move(*context.mprobe(self, 1)), got));
        }
        std::array requests{context.irecv(self, 1, got),
                            way == 4 ? context.isend(self, 1, {&piece, 1}) : context.isend(self, 1, data)};
        if (way == 1) {
            for (auto& request : requests) CHECK(context.test(request).has_value());
        } else if (way == 2) {
            for (int i = 0; i < 2; ++i) context.wait_any(requests);
        } else if (way == 3) {
            context.wait_all(requests);
        } else {
            for (auto& request : requests) context.wait(request);
        }
    };
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!heard && std::chrono::steady_clock::now() < limit) {
        for (int i = 0; i < 1000; ++i) to_himself();
        pair.b.progress();
    }
    CHECK(heard);
    CHECK(pair.finish(pair.b, send).ok());
    CHECK(pair.finish(pair.a, receive).ok());
}

TEST_CASE("a message to oneself matches receives from anybody and of any tag in the order of posting", "[engine]") {
    Alone alone;
    auto& context = alone.context;
    std::array<std::byte, 8> data{}, got{};
    std::vector<Request> receives;
    receives.push_back(context.irecv(any_source, 7, got));
    receives.push_back(context.irecv(alone.self, TagMatch::any(), got));
    receives.push_back(context.irecv(alone.self, 7, got));
    for (auto& receive : receives) {
        context.send(alone.self, 7, data);
        CHECK(context.wait(receive).tag == 7);
    }
    auto cancelled = context.irecv(alone.self, 7, got);
    CHECK(context.cancel(cancelled));
    CHECK(context.wait(cancelled).code == ErrorCode::cancelled);
    context.send(alone.self, 7, data);
    CHECK(context.probe(any_source, 7).has_value());
}

TEST_CASE("an operation with oneself whose request is gone ends all the same", "[engine]") {
    Alone alone;
    const auto data = pattern(2 * kept);
    std::vector<std::byte> got(data.size());
    static_cast<void>(alone.context.isend(alone.self, 1, data));
    CHECK(alone.context.recv(alone.self, 1, got).ok());
    CHECK(test::same(got, data));
    std::vector<std::byte> once_more(data.size());
    static_cast<void>(alone.context.irecv(alone.self, 1, once_more));
    alone.context.send(alone.self, 1, data);
    CHECK(test::same(once_more, data));
}

TEST_CASE("who leaves ends what he has not received from himself", "[engine]") {
    Alone alone;
    auto& context = alone.context;
    const auto data = pattern(2 * kept);
    auto taken = context.isend(alone.self, 1, data);
    auto message = context.mprobe(alone.self, 1);
    auto listed = context.isend(alone.self, 2, data);
    auto waiting = context.irecv(alone.self, 3, std::span<std::byte>());
    CHECK_THROWS_AS(context.leave(), Error);  // the first one has not arrived
    CHECK(context.wait(listed).code == ErrorCode::peer_left);
    CHECK(context.wait(taken).code == ErrorCode::cancelled);
    CHECK(context.wait(waiting).code == ErrorCode::cancelled);
    std::vector<std::byte> got(data.size());
    auto late = context.irecv(std::move(*message), got);
    CHECK(context.wait(late).code == ErrorCode::cancelled);
}

TEST_CASE("callbacks of what ends because its process leaves are called", "[engine]") {
    const bool by_leaving = GENERATE(true, false);
    const auto data = pattern(2 * kept);
    std::vector<ErrorCode> codes;
    const auto note = [&](const Status& status) { codes.push_back(status.code); };
    {
        Alone alone;
        auto sending = alone.context.isend(alone.self, 1, data, note);
        auto receiving = alone.context.irecv(alone.self, 2, std::span<std::byte>(), note);
        if (by_leaving) alone.context.leave();
        CHECK(codes.size() == (by_leaving ? 2 : 0));
    }
    REQUIRE_FALSE(codes.empty());
    CHECK(codes.front() == ErrorCode::peer_left);
}

TEST_CASE("flush waits for what a process sends to itself", "[engine]") {
    Alone alone;
    auto& context = alone.context;
    const auto data = pattern(2 * kept);
    auto send = context.isend(alone.self, 1, data);
    CHECK_FALSE(context.flush(std::chrono::milliseconds(1)));
    std::vector<std::byte> got(data.size());
    static_cast<void>(context.recv(alone.self, 1, got));
    CHECK(context.flush(std::chrono::seconds(1)));
    CHECK(context.wait(send).ok());
}

TEST_CASE("an armed application is told of a message to itself", "[engine]") {
    Alone alone;
    auto& context = alone.context;
    static_cast<void>(context.event_fd());
    std::array<std::byte, 8> got{};
    auto receive = context.irecv(alone.self, 1, got);
    while (!context.arm()) continue;
    context.send(alone.self, 1, got);
    CHECK_FALSE(context.arm());
    CHECK(alone.over(receive));
}

TEST_CASE("threads: who sleeps is told of a message that another thread sends to their process", "[engine]") {
    for (const char* mode : {"block", "hybrid", "thread"}) {
        INFO(mode);
        auto config = Alone::config("multiple");
        config.set("progress", mode);
        Context context(config);
        const auto self = context.peer(0);
        std::atomic<int> called = 0;
        std::atomic<int> waited = 0;
        constexpr int rounds = 50;
        std::thread other([&] {
            std::array<std::byte, 8> got{};
            for (int i = 0; i < rounds; ++i) {
                auto receive = context.irecv(self, 1, got, [&](const Status&) { ++called; });
                context.wait(receive);
                ++waited;
            }
        });
        std::array<std::byte, 8> data{};
        for (int i = 0; i < rounds; ++i) {
            for (int turn = 0; turn < 20 * i; ++turn) std::this_thread::yield();  // at any moment of its falling asleep
            context.send(self, 1, data);
            while (waited <= i) std::this_thread::yield();
        }
        other.join();
        CHECK(called == rounds);
    }
}

TEST_CASE("threads: one waits for what another sends to their process", "[engine]") {
    for (const char* mode : {"poll", "block", "hybrid", "thread"}) {
        INFO(mode);
        auto config = Alone::config("multiple");
        config.set("progress", mode);
        Context context(config);
        const auto self = context.peer(0);
        constexpr int rounds = 300;
        std::thread other([&] {
            std::vector<std::byte> got(2 * kept);
            for (int i = 0; i < rounds; ++i) {
                const auto bytes = context.recv(self, 1, got).bytes;
                context.send(self, 2, std::span(got).first(bytes));
            }
        });
        std::vector<std::byte> got(2 * kept);
        for (int i = 0; i < rounds; ++i) {
            const auto data = pattern(i % 2 == 0 ? 8 : 2 * kept, static_cast<unsigned>(i));
            context.send(self, 1, data);
            CHECK(context.recv(self, 2, got).bytes == data.size());
            CHECK(test::same(std::span(got).first(data.size()), data));
        }
        other.join();
    }
}
