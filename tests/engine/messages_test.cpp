#include <array>
#include <deque>
#include <random>

#include "engine/pair.hpp"
#include "engine/sim_pair.hpp"

using namespace railmux;
using test::Pair;
using test::pattern;

TEST_CASE("messages of every size arrive as they were sent", "[engine]") {
    Pair pair;
    for (const std::size_t bytes : {0U, 1U, 8U, 127U, 4096U, 16384U, 16385U, 65536U, 65537U, 1000003U, 8388608U}) {
        for (const bool posted_first : {true, false}) {
            INFO(bytes << " bytes, receive posted first: " << posted_first);
            const auto data = pattern(bytes);
            std::vector<std::byte> got(bytes);
            Request receive;
            if (posted_first) receive = pair.b.irecv(pair.to_a, 7, got);
            auto send = pair.a.isend(pair.to_b, 7, data);
            if (!posted_first) {
                pair.until([&] { return pair.b.probe(any_source, 7).has_value(); });
                receive = pair.b.irecv(any_source, 7, got);
            }
            const auto status = pair.finish(pair.b, receive);
            CHECK(status.ok());
            CHECK(status.bytes == bytes);
            CHECK(status.message == bytes);
            CHECK(status.peer == pair.to_a);
            CHECK(status.tag == 7);
            CHECK(test::same(got, data));
            CHECK(pair.finish(pair.a, send).ok());
        }
    }
}

TEST_CASE("messages match in the order they were sent, whatever rail they took", "[engine]") {
    Pair pair;
    constexpr int count = 3000;
    std::mt19937 random(5);
    std::deque<std::vector<std::byte>> sent;
    std::vector<Request> sends;
    for (int i = 0; i < count; ++i) {
        const std::size_t bytes = random() % 10 == 0 ? 20000 + random() % 80000 : 4 + random() % 2000;
        sent.push_back(pattern(bytes, static_cast<unsigned>(i)));
        sends.push_back(pair.a.isend(pair.to_b, 1, sent.back()));
        if (i % 64 == 0) pair.a.progress();
    }
    std::vector<std::byte> got(200000);
    for (int i = 0; i < count; ++i) {
        auto receive = pair.b.irecv(pair.to_a, 1, got);
        const auto status = pair.finish(pair.b, receive);
        const auto& expected = sent[static_cast<std::size_t>(i)];
        REQUIRE(status.bytes == expected.size());
        REQUIRE(std::memcmp(got.data(), expected.data(), expected.size()) == 0);
    }
    for (auto& request : sends) CHECK(pair.finish(pair.a, request).ok());
    const auto traffic = pair.a.traffic();
    CHECK(std::count_if(traffic.begin(), traffic.end(), [](const auto& t) { return t.sent_frames > 100; }) == 2);
}

TEST_CASE("tags, masks and sources select", "[engine]") {
    Pair pair;
    const auto one = pattern(8, 1);
    const auto two = pattern(8, 2);
    auto first = pair.a.isend(pair.to_b, 0x101, one);
    auto second = pair.a.isend(pair.to_b, 0x202, two);
    std::array<std::byte, 8> got{};
    auto receive = pair.b.irecv(any_source, {0x200, 0xF00}, got);
    CHECK(pair.finish(pair.b, receive).tag == 0x202);
    CHECK(std::memcmp(got.data(), two.data(), 8) == 0);
    receive = pair.b.irecv(pair.to_a, TagMatch::any(), got);
    CHECK(pair.finish(pair.b, receive).tag == 0x101);
}

TEST_CASE("a message longer than the buffer is cut and says so", "[engine]") {
    Pair pair;
    for (const std::size_t bytes : {100U, 100000U}) {
        for (const std::size_t room : {0U, 60U, 60000U}) {
            if (room >= bytes) continue;
            INFO(bytes << " into " << room);
            const auto data = pattern(bytes);
            std::vector<std::byte> got(room + 8, std::byte{0xEE});
            auto receive = pair.b.irecv(pair.to_a, 3, std::span(got).first(room));
            auto send = pair.a.isend(pair.to_b, 3, data);
            const auto status = pair.finish(pair.b, receive);
            CHECK(status.truncated());
            CHECK(status.bytes == room);
            CHECK(status.message == bytes);
            CHECK(std::memcmp(got.data(), data.data(), room) == 0);
            CHECK(got[room] == std::byte{0xEE});
            CHECK(pair.finish(pair.a, send).ok());
        }
    }
}

TEST_CASE("gather and scatter lists", "[engine]") {
    Pair pair;
    for (const std::size_t piece : {7U, 3000U, 100000U}) {
        const auto data = pattern(piece * 5);
        std::vector<ConstBuffer> parts;
        for (std::size_t i = 0; i < 5; ++i) parts.push_back(ConstBuffer(data).subspan(i * piece, piece));
        parts.insert(parts.begin() + 2, ConstBuffer{});
        std::vector<std::byte> got(piece * 5);
        const std::array<MutableBuffer, 3> places{std::span(got).first(piece / 2),
                                                  std::span(got).subspan(piece / 2, piece * 2),
                                                  std::span(got).subspan(piece / 2 + piece * 2)};
        auto receive = pair.b.irecv(pair.to_a, 4, places);
        auto send = pair.a.isend(pair.to_b, 4, parts);
        CHECK(pair.finish(pair.b, receive).bytes == piece * 5);
        CHECK(test::same(got, data));
        CHECK(pair.finish(pair.a, send).ok());
    }
}

TEST_CASE("probe looks, mprobe takes, cancel withdraws", "[engine]") {
    Pair pair;
    const auto small = pattern(100);
    const auto large = pattern(300000);
    CHECK_FALSE(pair.b.probe(any_source, TagMatch::any()));
    auto first = pair.a.isend(pair.to_b, 1, small);
    auto second = pair.a.isend(pair.to_b, 2, large);
    auto third = pair.a.isend(pair.to_b, 3, large);
    pair.until([&] { return pair.b.probe(pair.to_a, 3).has_value(); });
    CHECK(pair.b.probe(any_source, TagMatch::any())->message == 100);

    auto message = pair.b.mprobe(pair.to_a, 2);
    REQUIRE(message);
    CHECK(message->bytes() == large.size());
    CHECK_FALSE(pair.b.probe(pair.to_a, 2));
    std::vector<std::byte> got(large.size());
    auto receive = pair.b.irecv(std::move(*message), got);
    CHECK(pair.finish(pair.b, receive).ok());
    CHECK(got == large);

    { const auto dropped = pair.b.mprobe(pair.to_a, 3); }  // its content goes with it; the sender is done
    CHECK(pair.finish(pair.a, third).ok());

    auto never = pair.b.irecv(pair.to_a, 99, got);
    CHECK(pair.b.cancel(never));
    CHECK(pair.finish(pair.b, never).code == ErrorCode::cancelled);
    auto matched = pair.b.irecv(pair.to_a, 1, got);
    CHECK_FALSE(pair.b.cancel(matched));
    CHECK(pair.finish(pair.b, matched).ok());
    CHECK(pair.finish(pair.a, first).ok());
    CHECK(pair.finish(pair.a, second).ok());
}

TEST_CASE("callbacks run once, from progress, and may start more", "[engine]") {
    Pair pair;
    int sent = 0;
    int received = 0;
    std::array<std::byte, 8> data{};
    std::array<std::byte, 8> got{};
    Request again;
    auto receive = pair.b.irecv(pair.to_a, 5, got, [&](const Status& status) {
        CHECK(status.ok());
        if (++received == 1) again = pair.b.irecv(pair.to_a, 5, got, [&](const Status&) { ++received; });
    });
    auto send = pair.a.isend(pair.to_b, 5, data, [&](const Status&) { ++sent; });
    CHECK(sent == 0);  // never from inside the call
    auto other = pair.a.isend(pair.to_b, 5, data);
    pair.until([&] { return sent == 1 && received == 2; });
    CHECK(pair.finish(pair.a, send).ok());
    CHECK(pair.finish(pair.b, receive).ok());
}

TEST_CASE("wait_any and wait_all", "[engine]") {
    Pair pair;
    std::array<std::array<std::byte, 8>, 3> got{};
    std::array<Request, 3> requests;
    for (std::size_t i = 0; i < 3; ++i) requests[i] = pair.b.irecv(pair.to_a, i, got[i]);
    const auto data = pattern(8);
    auto send = pair.a.isend(pair.to_b, 1, data);
    pair.until([&] { return pair.a.flush(std::chrono::nanoseconds(0)); });
    const auto ended = pair.b.wait_any(requests);
    CHECK(ended.index == 1);
    CHECK(ended.status.ok());
    CHECK_FALSE(requests[1].active());
    auto zero = pair.a.isend(pair.to_b, 0, data);
    auto two = pair.a.isend(pair.to_b, 2, data);
    pair.until([&] { return pair.a.flush(std::chrono::nanoseconds(0)); });
    CHECK(pair.b.wait_all(requests) == ErrorCode::ok);
}

TEST_CASE("calls that break the rules say what to do instead", "[engine]") {
    Pair pair;
    std::array<std::byte, 8> got{};
    const auto data = pattern(8);
    auto send = pair.a.isend(pair.to_b, 1, data);
    std::optional<Message> message;
    pair.until([&] { return (message = pair.b.mprobe(pair.to_a, 1)).has_value(); });
    auto receive = pair.b.irecv(std::move(*message), got);
    CHECK(pair.finish(pair.b, receive).ok());
    CHECK(pair.finish(pair.a, send).ok());
    std::array<Request, 2> none;
    std::array<Status, 1> few{};
    const auto refused = [](auto call) {
        try {
            call();
            return false;
        } catch (const Error& error) {
            return error.code() == ErrorCode::invalid_argument && !error.cure().empty();
        }
    };
    CHECK(refused([&] { static_cast<void>(pair.b.irecv(std::move(*message), got)); }));
    CHECK(refused([&] { pair.b.wait(none[0]); }));
    CHECK(refused([&] { static_cast<void>(pair.b.test(none[0])); }));
    CHECK(refused([&] { pair.b.cancel(none[0]); }));
    CHECK(refused([&] { static_cast<void>(pair.b.wait_any(none)); }));
    CHECK(refused([&] { pair.b.wait_all(none, few); }));
    CHECK(pair.b.wait_all(none) == ErrorCode::ok);  // inactive ones are skipped
}

TEST_CASE("a message that no rail to its sender can place fails, though rails to others could", "[engine]") {
    test::SimHosts hosts;
    hosts.fabric.add_rail("a", {.device = "eth0", .network = "net0"});
    hosts.fabric.add_rail("b", {.device = "eth0", .network = "net0", .max_region = 100'000});
    hosts.fabric.add_rail("b", {.device = "eth1", .network = "elsewhere"});
    const auto a = hosts.start("a", "vft");
    const auto b = hosts.start("b", "vft");
    const auto to_b = a->add_peer(b->address());
    const auto to_a = b->add_peer(a->address());
    for (const std::size_t bytes : {100'000, 100'001}) {
        const auto data = pattern(bytes);
        std::vector<std::byte> room(bytes);
        const ConstBuffer out(data);
        const MutableBuffer in(room);
        auto sent = a->isend(to_b, 1, {&out, 1}, nullptr);
        auto received = b->irecv(to_a, 1, {&in, 1}, nullptr);
        std::optional<Status> status;
        hosts.until({a.get(), b.get()}, [&] { return (status = b->test(received)).has_value(); });
        CHECK(status->code == (bytes == 100'000 ? ErrorCode::ok : ErrorCode::out_of_memory));
        hosts.until({a.get(), b.get()}, [&] { return a->test(sent).has_value(); });
    }
}

TEST_CASE("a large message has arrived, though whoever received it leaves at once", "[engine]") {
    for (int round = 0; round < test::repeats(20); ++round) {
        Pair pair;
        const auto data = pattern(1 << 20);
        std::vector<std::byte> got(data.size());
        auto receive = pair.b.irecv(pair.to_a, 1, got);
        auto send = pair.a.isend(pair.to_b, 1, data);
        std::optional<Status> status;
        const auto received = [&] { return (status = pair.b.test(receive)).has_value(); };
        pair.until([&] { return received() || (pair.a.progress(), received()); });
        CHECK(status->ok());
        std::thread other([&] { pair.b_.reset(); });
        CHECK(pair.a.wait(send).ok());
        other.join();
    }
}

TEST_CASE("misuse is refused in words", "[engine]") {
    Context context(test::two_rails());
    std::array<std::byte, 8> data{};
    CHECK_THROWS_AS(context.peer(1), Error);
    CHECK_THROWS_AS(context.isend(Peer(), 1, data), Error);
    CHECK_THROWS_AS(context.isend(Peer::from_index(99), 1, data), Error);
    CHECK_THROWS_AS(context.add_peer(data), Error);
    Request request;
    CHECK_THROWS_AS(context.wait(request), Error);
}

TEST_CASE("a receive of what has been announced asks for it at once", "[engine]") {
    auto config = test::two_rails();
    config.set("bulk.inlined", "never");
    Pair pair(config);
    const auto data = pattern(1'000'000);
    auto send = pair.a.isend(pair.to_b, 1, data);
    pair.until([&] { return pair.b.probe(pair.to_a, 1).has_value(); });
    std::vector<std::byte> got(data.size());
    auto receive = pair.b.irecv(pair.to_a, 1, got);
    const auto begun = [&] {
        std::uint64_t sent = 0;
        for (const auto& rail : pair.a.traffic()) sent += rail.sent_bytes;
        return sent >= 16384;
    };
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!begun() && std::chrono::steady_clock::now() < end) pair.a.progress();  // b computes
    CHECK(begun());
    CHECK(pair.finish(pair.b, receive).ok());
    CHECK(pair.finish(pair.a, send).ok());
    CHECK(test::same(got, data));
}
