#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "bootstrap/endpoint.hpp"
#include "engine/pair.hpp"
#include "engine/sim_pair.hpp"

using namespace railmux;
using test::Pair;
using test::pattern;

TEST_CASE("both sides connect at the same moment and keep one link a rail pair", "[engine]") {
    for (int round = 0; round < 20; ++round) {
        Pair pair;
        const auto data = pattern(8);
        std::array<std::byte, 8> at_a{};
        std::array<std::byte, 8> at_b{};
        auto from_a = pair.a.isend(pair.to_b, 1, data);
        auto from_b = pair.b.isend(pair.to_a, 1, data);
        auto to_a = pair.a.irecv(pair.to_b, 1, at_a);
        auto to_b = pair.b.irecv(pair.to_a, 1, at_b);
        CHECK(pair.finish(pair.a, to_a).ok());
        CHECK(pair.finish(pair.b, to_b).ok());
        for (const auto& t : pair.a.traffic()) CHECK(t.links_lost == 0);
    }
}

TEST_CASE("operations fail with the reason when a peer cannot be reached", "[engine]") {
    auto config = test::two_rails();
    config.set("connect.patience", "300ms").set("log", "off");
    Context a(config);
    std::vector<std::byte> address;
    {
        const Context gone(config);
        address = gone.address();
    }
    const auto peer = a.add_peer(address);
    const auto data = pattern(8);
    auto send = a.isend(peer, 1, data);
    const auto status = a.wait(send);
    CHECK(status.code == ErrorCode::unreachable);
    CHECK(a.failure(peer).find("refused") != std::string::npos);
    try {
        static_cast<void>(a.explain(peer, 8));
        FAIL("explained");
    } catch (const Error& error) {  // the causes are part of what happened; what to do stands by itself
        CHECK(error.code() == ErrorCode::unreachable);
        CHECK_THAT(error.what(), Catch::Contains("cannot be reached\n") && Catch::Contains("refused"));
        CHECK_THAT(error.cure(), Catch::StartsWith("`railmux info` on both hosts"));
    }
}

TEST_CASE("who warms up has links before the first message", "[engine]") {
    test::SimHosts hosts;
    hosts.settings = {{"connect.timeout", "95ms"}, {"connect.patience", "200ms"}};
    for (const char* host : {"a", "b", "c"}) hosts.fabric.add_rail(host, {});
    hosts.fabric.add_rail("d", {.network = "elsewhere"});
    const auto a = hosts.start("a", "vft");
    const auto b = hosts.start("b", "vft");
    const auto c = hosts.start("c", "vft");  // never calls in
    const auto d = hosts.start("d", "vft");  // no rail leads there
    const std::array to{a->peer(0), a->add_peer(b->address()), a->add_peer(c->address()), a->add_peer(d->address())};
    const auto sees_b = hosts.keep_going(*b);
    CHECK(a->warm_up({}, std::chrono::seconds(1)) == 0);
    CHECK(a->models(to[1]).empty());
    CHECK(a->warm_up(to, std::chrono::milliseconds(50)) == 2);  // c may still answer
    CHECK(a->failure(to[2]).empty());
    CHECK(a->models(to[1]).size() == 1);
    const auto begun = hosts.fabric.now();
    CHECK(a->warm_up(to, std::chrono::seconds(5)) == 2);
    CHECK(hosts.fabric.now() - begun < base::second);  // nobody waits for what is hopeless
    CHECK_FALSE(a->failure(to[2]).empty());
    CHECK_FALSE(a->failure(to[3]).empty());
    CHECK_THROWS_AS(a->warm_up(std::array{Peer::from_index(99)}, std::chrono::seconds(1)), Error);

    const auto data = pattern(8);
    auto send = a->isend(to[1], 1, data);
    CHECK(a->test(send)->rails == 1);  // no link had to be waited for
}

TEST_CASE("a silent peer is not called behind a firewall after having been tried for a moment", "[engine]") {
    test::SimHosts hosts;
    hosts.settings = {{"connect.timeout", "95ms"}, {"connect.patience", "120ms"}};
    for (const char* host : {"s", "t"}) hosts.fabric.add_rail(host, {});
    const auto s = hosts.start("s", "vft");
    const auto silent = hosts.start("t", "vft");
    const auto peer = s->add_peer(silent->address());
    const auto data = pattern(8);
    const ConstBuffer out(data);
    auto send = s->isend(peer, 1, {&out, 1}, nullptr);
    hosts.until({s.get()}, [&] { return s->test(send).has_value(); });
    const auto why = s->failure(peer);  // tried for 95 ms, and again 20 ms later, for the last 5
    CHECK_THAT(why, Catch::Contains("no answer within 95 ms; does a firewall"));
    CHECK_THAT(why, Catch::Contains("no answer yet when connect.patience was over"));
    CHECK_THAT(why, !Catch::Contains("within 0 ms") && !Catch::Contains("within 5 ms"));
}

TEST_CASE("what is received of a session that is over gives no credit in the next", "[engine]") {
    test::SimHosts hosts;
    hosts.settings = {{"recover.patience", "100ms"}};
    for (const char* host : {"a", "b"}) hosts.fabric.add_rail(host, {});
    const auto a = hosts.start("a", "vft");
    const auto b = hosts.start("b", "vft");
    const auto to_b = a->add_peer(b->address());
    const auto to_a = b->add_peer(a->address());
    const auto data = pattern(3000);
    const ConstBuffer out(data);
    auto old = b->isend(to_a, 2, {&out, 1}, nullptr);
    hosts.until({a.get(), b.get()}, [&] { return a->probe(to_b, {2}) && b->test(old); });
    hosts.fabric.cut("a/eth0", "b/eth0", test::sim::Cut::loud);
    hosts.until({a.get(), b.get()}, [&] { return !a->failure(to_b).empty() && !b->failure(to_a).empty(); });
    hosts.fabric.restore("a/eth0", "b/eth0");
    hosts.deliver(*b, to_a, *a, to_b, 8);
    std::vector<std::byte> got(data.size());
    const MutableBuffer in(got);
    auto receive = a->irecv(to_b, {2}, {&in, 1}, nullptr);
    CHECK(a->test(receive)->ok());
    CHECK(test::same(got, data));
    hosts.deliver(*a, to_b, *b, to_a, 8);
    hosts.deliver(*b, to_a, *a, to_b, 8);
}

TEST_CASE("who sleeps until a peer is given up wakes up when it is", "[engine]") {
    auto config = test::two_rails();
    config.set("log", "off").set("progress", "block").set("connect.patience", "100ms");
    Context a(config);
    const auto gone = [&] { return Context(config).address(); }();
    const auto peer = a.add_peer(gone);
    const auto data = pattern(8);
    auto send = a.isend(peer, 1, data);
    const auto start = std::chrono::steady_clock::now();
    CHECK(a.flush(std::chrono::seconds(5)));  // nothing else happens that could wake it
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
    const auto status = a.test(send);
    REQUIRE(status);
    CHECK(status->code == ErrorCode::unreachable);
}

TEST_CASE("whoever connects to somebody slow goes on serving its other peers", "[engine]") {
    auto config = test::two_rails();
    config.set("log", "off");
    Context a(config);
    Context b(config);
    const auto to_a = b.add_peer(a.address());
    // Takes connections, as the kernel does for every listener, and says nothing.
    const auto silent = bootstrap::listen_at("127.0.0.1:0");
    const auto where = fmt::format("127.0.0.1:{}", silent.front().port);
    std::atomic<bool> arrived = false;
    std::thread other([&] {
        const auto data = pattern(8);
        auto send = b.isend(to_a, 1, data);
        b.wait(send);
        arrived = b.flush(std::chrono::milliseconds(700));
    });
    CHECK_THROWS_AS((void)a.connect(where, std::chrono::seconds(1)), Error);
    other.join();
    CHECK(arrived);
}

TEST_CASE("a wrong job key is told apart from a network fault", "[engine]") {
    auto config = test::two_rails();
    config.set("log", "off").set("job.key", "right");
    Context a(config);
    config.set("job.key", "wrong");
    Context b(config);
    const auto peer = a.add_peer(b.address());
    const auto data = pattern(8);
    auto send = a.isend(peer, 1, data);
    std::optional<Status> status;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!(status = a.test(send)) && std::chrono::steady_clock::now() < end) b.progress();
    REQUIRE(status);
    CHECK(status->code == ErrorCode::wrong_key);
    CHECK(a.failure(peer).find("keys differ") != std::string::npos);
}

TEST_CASE("a peer that leaves is noticed, what it sent before arrives", "[engine]") {
    const auto config = test::two_rails();
    Context a(config);
    auto b = std::make_optional<Context>(config);
    const auto to_b = a.add_peer(b->address());
    const auto to_a = b->add_peer(a.address());
    const auto data = pattern(100);
    auto send = b->isend(to_a, 1, data);
    while (!b->test(send)) a.progress();
    std::thread closing([&] { b.reset(); });  // closing waits until the message is acknowledged
    std::vector<std::byte> got(100);
    auto first = a.irecv(to_b, 1, got);
    CHECK(a.wait(first).ok());
    auto second = a.irecv(to_b, 1, got);
    CHECK(a.wait(second).code == ErrorCode::peer_left);
    closing.join();
    CHECK_THROWS_AS(a.send(to_b, 1, data), Error);
}

TEST_CASE("a listening port joins two contexts", "[engine]") {
    const auto config = test::two_rails();
    Context server(config);
    const auto port = server.listen("127.0.0.1:0");
    std::thread client([&] {
        Context context(config);
        const auto peer = context.connect("127.0.0.1:" + std::to_string(port));
        std::vector<std::byte> got(8);
        context.send(peer, 1, pattern(8));
        context.recv(peer, 2, got);
    });
    const auto peer = server.accept(std::chrono::seconds(10));
    REQUIRE(peer);
    std::vector<std::byte> got(8);
    CHECK(server.recv(*peer, 1, got).ok());
    server.send(*peer, 2, got);
    client.join();
}

TEST_CASE("threads: any may call with thread level multiple", "[engine]") {
    auto config = test::two_rails();
    config.set("thread_level", "multiple").set("progress", GENERATE("hybrid", "poll", "block"));
    Context a(config);
    Context b(config);
    const auto to_b = a.add_peer(b.address());
    const auto to_a = b.add_peer(a.address());
    constexpr int threads = 3;
    constexpr int messages = 300;
    std::vector<std::thread> all;
    std::atomic<int> wrong{0};
    for (int t = 0; t < threads; ++t) {
        all.emplace_back([&, t] {
            for (int i = 0; i < messages; ++i) {
                a.send(to_b, static_cast<Tag>(t), pattern(i % 7 == 0 ? 40000 : 64, static_cast<unsigned>(i)));
            }
        });
        all.emplace_back([&, t] {
            std::vector<std::byte> got(40000);
            for (int i = 0; i < messages; ++i) {
                const auto status = b.recv(to_a, static_cast<Tag>(t), got);
                const auto expected = pattern(i % 7 == 0 ? 40000 : 64, static_cast<unsigned>(i));
                if (status.bytes != expected.size() || std::memcmp(got.data(), expected.data(), expected.size()) != 0)
                    ++wrong;
            }
        });
    }
    for (auto& thread : all) thread.join();
    CHECK(wrong == 0);
}

TEST_CASE("threads: who waits for many lets others in", "[engine]") {
    auto config = test::two_rails();
    config.set("thread_level", "multiple").set("progress", GENERATE("hybrid", "block"));
    Pair pair(config);
    for (int round = 0; round < 20; ++round) {
        std::atomic<bool> waiting = false;
        std::thread other([&] {
            std::vector<std::byte> got(8);
            std::array requests{pair.a.irecv(pair.to_b, {2}, got)};
            waiting = true;
            if (pair.a.wait_all(requests) != ErrorCode::ok) std::abort();
        });
        while (!waiting) std::this_thread::yield();
        const auto data = pattern(8);
        auto sent = pair.a.isend(pair.to_b, 1, data);
        std::vector<std::byte> got(8);
        const auto status = pair.b.recv(pair.to_a, 1, got);
        pair.b.send(pair.to_a, 2, got);
        other.join();
        CHECK(status.ok());
        CHECK(pair.finish(pair.a, sent).ok());
    }
}

TEST_CASE("threads: a peer may be slow to progress while the other one sleeps", "[engine]") {
    auto config = test::two_rails();
    config.set("progress", "block");
    Context a(config);
    Context b(config);
    const auto to_b = a.add_peer(b.address());
    const auto to_a = b.add_peer(a.address());
    std::thread other([&] {
        std::vector<std::byte> got(8);
        for (int i = 0; i < 50; ++i) {
            b.recv(to_a, 1, got);
            b.send(to_a, 2, got);
        }
    });
    std::vector<std::byte> got(8);
    for (int i = 0; i < 50; ++i) {
        a.send(to_b, 1, pattern(8, static_cast<unsigned>(i)));
        CHECK(a.recv(to_b, 2, got).ok());
        CHECK(got == pattern(8, static_cast<unsigned>(i)));
    }
    other.join();
}

TEST_CASE("models: each link has one from the first message on, and can be measured in full", "[engine]") {
    Pair pair;
    CHECK(pair.a.models(pair.to_b).empty());
    std::atomic<bool> over = false;
    std::thread other([&] {
        while (!over) pair.b.progress();
    });
    pair.a.send(pair.to_b, 1, {});
    double last = 0;
    const auto links = pair.a.assess(
        pair.to_b, "127.0.1.2",
        {.n = 3, .sizes = 3, .rounds = 2, .max_bytes = 4096, .progress = [&](std::string_view, double done) {
             last = done;
         }});
    over = true;
    other.join();
    CHECK(last == 1);
    REQUIRE(links.size() == 1);
    CHECK(links[0].link.rail == "tcp:127.0.1.2");
    CHECK(links[0].points.size() >= 3);
    CHECK(valid(links[0].link.model));
    CHECK(links[0].spent.messages > 0);
    CHECK(links[0].spent.cpu.count() > 0);
    CHECK(links[0].spent.cpu < links[0].took);
    CHECK_THROWS_AS(pair.a.assess(pair.to_b, "127.0.1."), Error);
    CHECK(pair.a.models(pair.to_b).size() == 2);
}
