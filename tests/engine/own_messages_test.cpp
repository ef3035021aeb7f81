// Messages of a process to itself, which no rail carries: what is matched, kept and copied.
#include <array>
#include <deque>
#include <random>

#include "engine/alone.hpp"

using namespace railmux;
using test::Alone;
using test::kept;
using test::pattern;
using test::window;

TEST_CASE("a process sends to itself, whichever comes first, and no rail carries it", "[engine]") {
    Alone alone;
    auto& context = alone.context;
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, kept, kept + 1, std::size_t{5'000'000}}) {
        for (const bool posted_first : {true, false}) {
            INFO(bytes << " bytes, receive posted first: " << posted_first);
            const auto data = pattern(bytes);
            std::vector<std::byte> got(bytes);
            Request receive;
            if (posted_first) receive = context.irecv(alone.self, 7, got);
            auto send = context.isend(alone.self, 7, data);
            if (!posted_first) {
                const auto found = context.probe(any_source, 7);
                REQUIRE(found.has_value());
                CHECK(found->message == bytes);
                CHECK(found->peer == alone.self);
                receive = context.irecv(any_source, TagMatch::any(), got);
            }
            const auto status = context.wait(receive);
            CHECK(status.ok());
            CHECK(status.bytes == bytes);
            CHECK(status.peer == alone.self);
            CHECK(status.tag == 7);
            CHECK(test::same(got, data));
            const auto sent = context.wait(send);
            CHECK(sent.ok());
            CHECK(sent.bytes == bytes);
            CHECK(sent.rails == 0);
        }
    }
    for (const auto& rail : context.traffic()) CHECK(rail.sent_frames == 0);
}

TEST_CASE("a blocking send to oneself ends when the message is kept", "[engine]") {
    Alone alone;
    const auto data = pattern(kept);
    alone.context.send(alone.self, 1, data);
    std::vector<std::byte> got(kept);
    CHECK(alone.context.recv(alone.self, 1, got).ok());
    CHECK(test::same(got, data));
}

TEST_CASE("what is too long to be kept, or too much, is sent when it is received", "[engine]") {
    Alone alone;
    auto& context = alone.context;
    const auto long_one = pattern(kept + 1);
    auto waiting = context.isend(alone.self, 1, long_one);
    CHECK_FALSE(alone.over(waiting));

    const auto data = pattern(kept, 2);
    std::vector<Request> sends;
    constexpr std::size_t most = window / kept + 2;
    std::size_t ended = 0;
    for (std::size_t i = 0; i < most; ++i) {
        sends.push_back(context.isend(alone.self, 2, data));
        ended += alone.over(sends.back()) ? 1 : 0;
    }
    CHECK(ended < window / kept);  // each message costs some room besides its bytes
    CHECK(ended > window / kept / 2);

    std::vector<std::byte> got(kept + 1);
    CHECK(context.recv(alone.self, 1, got).ok());
    CHECK(test::same(got, long_one));
    CHECK(alone.over(waiting));
    for (std::size_t i = 0; i < most; ++i) CHECK(context.recv(alone.self, 2, got).bytes == kept);
    for (auto& send : sends) CHECK((!send.active() || alone.over(send)));
    auto again = context.isend(alone.self, 2, data);  // there is room again
    CHECK(alone.over(again));
}

TEST_CASE("a message to oneself that is longer than the buffer is cut", "[engine]") {
    Alone alone;
    auto& context = alone.context;
    for (const std::size_t bytes : {std::size_t{100}, 2 * kept}) {
        const auto data = pattern(bytes);
        std::vector<std::byte> got(bytes / 2 + 1);
        std::span<std::byte> room = std::span(got).first(bytes / 2);
        auto send = context.isend(alone.self, 1, data);
        const auto status = context.recv(alone.self, 1, room);
        CHECK(status.truncated());
        CHECK(status.bytes == bytes / 2);
        CHECK(status.message == bytes);
        CHECK(test::same(room, std::span(data).first(bytes / 2)));
        CHECK(got.back() == std::byte{0});
        CHECK(context.wait(send).ok());
    }
}

TEST_CASE("messages to oneself are gathered and scattered, however the pieces lie", "[engine]") {
    Alone alone;
    auto& context = alone.context;
    std::mt19937 random(7);
    const auto cut = [&](std::size_t bytes) {  // into pieces, some of them empty
        std::vector<std::size_t> ends{0, bytes};
        for (auto more = random() % 5; more > 0; --more) ends.push_back(random() % (bytes + 1));
        std::ranges::sort(ends);
        return ends;
    };
    for (int round = 0; round < 200; ++round) {
        const std::size_t bytes = random() % (3 * kept);
        const std::size_t room = bytes - std::min<std::size_t>(bytes, random() % 3 == 0 ? random() % 100 : 0);
        INFO("round " << round << ": " << bytes << " bytes into " << room);
        const auto data = pattern(bytes, static_cast<unsigned>(round));
        std::vector<std::byte> got(room);
        std::vector<ConstBuffer> from;
        std::vector<MutableBuffer> to;
        const auto sent = cut(bytes);
        const auto received = cut(room);
        for (std::size_t i = 1; i < sent.size(); ++i)
            from.push_back(std::span(data).subspan(sent[i - 1], sent[i] - sent[i - 1]));
        for (std::size_t i = 1; i < received.size(); ++i)
            to.push_back(std::span(got).subspan(received[i - 1], received[i] - received[i - 1]));
        const bool posted_first = random() % 2 == 0;
        Request receive;
        if (posted_first) receive = context.irecv(alone.self, 1, to);
        auto send = context.isend(alone.self, 1, from);
        if (!posted_first) receive = context.irecv(alone.self, 1, to);
        CHECK(context.wait(receive).bytes == room);
        CHECK(test::same(got, std::span(data).first(room)));
        CHECK(context.wait(send).bytes == bytes);
    }
}

TEST_CASE("messages to oneself match in the order they were sent, kept or waiting", "[engine]") {
    Alone alone;
    auto& context = alone.context;
    constexpr unsigned tags = 3;
    std::mt19937 random(11);
    struct Sent {
        std::vector<std::byte> data;
        Request request;
    };
    std::array<std::deque<Sent>, tags> outstanding;
    std::vector<std::byte> got(4 * kept);
    for (int step = 0; step < 3000; ++step) {
        const auto tag = random() % tags;
        auto& queue = outstanding[tag];
        if (random() % 2 == 0) {
            queue.push_back({pattern(random() % (2 * kept), static_cast<unsigned>(step)), {}});
            queue.back().request = context.isend(alone.self, tag, queue.back().data);
        } else if (!queue.empty()) {
            const auto status = context.recv(random() % 2 == 0 ? any_source : alone.self, tag, got);
            REQUIRE(status.ok());
            REQUIRE(test::same(std::span(got).first(status.bytes), queue.front().data));
            REQUIRE(alone.over(queue.front().request));
            queue.pop_front();
        } else {
            REQUIRE_FALSE(context.probe(alone.self, tag).has_value());
        }
    }
}

TEST_CASE("a message to oneself that is taken out of matching is received, or dropped", "[engine]") {
    Alone alone;
    auto& context = alone.context;
    for (const std::size_t bytes : {kept, 2 * kept}) {
        const auto data = pattern(bytes);
        std::vector<std::byte> got(bytes);
        auto send = context.isend(alone.self, 1, data);
        auto message = context.mprobe(alone.self, 1);
        REQUIRE(message.has_value());
        CHECK_FALSE(context.probe(alone.self, 1).has_value());
        CHECK(context.recv(std::move(*message), got).ok());
        CHECK(test::same(got, data));
        CHECK(context.wait(send).ok());

        auto dropped = context.isend(alone.self, 1, data);
        static_cast<void>(context.mprobe(alone.self, 1));
        CHECK(context.wait(dropped).ok());
    }
}
