// Leaving: what was sent arrives, everybody hears of it, and what is under way ends with the reason.
#include <array>
#include <sstream>
#include <thread>

#include "engine/pair.hpp"
#include "engine/sim_pair.hpp"

using namespace railmux;
using test::pattern;

namespace {

constexpr std::size_t large = 1'000'000;  // goes by rendezvous, in pieces of
constexpr const char* piece = "256K";

/// Hosts a, b and c, of which a talks to both others. b leaves.
struct Three {
    explicit Three(const char* patience = "2s") {
        for (const char* host : {"a", "b", "c"}) hosts.fabric.add_rail(host, {.device = "eth0"});
        hosts.settings = {{"fragment.size", piece}};
        a = hosts.start("a", "vft");
        c = hosts.start("c", "vft");
        hosts.settings.emplace_back("close.timeout", patience);
        b = hosts.start("b", "vft");
        a_to_b = a->add_peer(b->address());
        a_to_c = a->add_peer(c->address());
        b_to_a = b->add_peer(a->address());
        c_to_a = c->add_peer(a->address());
        hosts.deliver(*a, a_to_b, *b, b_to_a, 8);
        hosts.deliver(*a, a_to_c, *c, c_to_a, 8);
    }
    void b_leaves() {
        const auto meanwhile = hosts.keep_going(*a);
        b->leave();
    }
    template <typename Holds>
    void until(Holds holds) {
        hosts.until({a.get(), b.get(), c.get()}, holds);
    }
    Status end_of(messaging::Engine& engine, Request& request) {
        std::optional<Status> status;
        until([&] { return (status = engine.test(request)).has_value(); });
        return *status;
    }

    test::SimHosts hosts;
    std::unique_ptr<messaging::Engine> a, b, c;
    Peer a_to_b, a_to_c, b_to_a, c_to_a;
};

Request isend(messaging::Engine& from, Peer to, Tag tag, ConstBuffer data) {
    return from.isend(to, tag, {&data, 1}, nullptr);
}
Request irecv(messaging::Engine& at, Peer from, Tag tag, MutableBuffer room) {
    return at.irecv(from, tag, {&room, 1}, nullptr);
}

/// The report's lines about models of links of that rail.
std::size_t model_rows(messaging::Engine& engine, const std::string& rail) {
    std::istringstream report(engine.report());
    std::size_t rows = 0;
    for (std::string line; std::getline(report, line);) rows += line.starts_with("model   " + rail + " ") ? 1 : 0;
    return rows;
}

template <typename Call>
ErrorCode thrown_by(Call call) {
    try {
        call();
    } catch (const Error& error) {
        return error.code();
    }
    return ErrorCode::ok;
}

}  // namespace

TEST_CASE("leave: what was sent arrives, then all that concerns the peer fails, and nothing else does", "[engine]") {
    Three job;
    std::vector<PeerEvent> left;
    int lost = 0;
    job.a->on_peer_left([&](const PeerEvent& event) { left.push_back(event); });
    job.a->on_peer_lost([&](const PeerEvent&) { ++lost; });
    const auto small = pattern(100);
    const auto big = pattern(large);
    std::array<std::byte, 100> got_small{};
    std::vector<std::byte> got_big(large);
    std::array<std::byte, 8> nothing{}, of_c{};
    auto first = irecv(*job.a, job.a_to_b, 1, got_small);
    auto second = irecv(*job.a, job.a_to_b, 2, got_big);
    auto third = irecv(*job.a, job.a_to_b, 3, nothing);
    auto anybody = irecv(*job.a, any_source, 4, of_c);
    auto small_sent = isend(*job.b, job.b_to_a, 1, small);
    auto big_sent = isend(*job.b, job.b_to_a, 2, big);
    job.b_leaves();
    CHECK(job.b->test(small_sent)->ok());
    CHECK(job.b->test(big_sent)->ok());
    CHECK(job.end_of(*job.a, first).ok());
    CHECK(job.end_of(*job.a, second).ok());
    CHECK((got_big == big));
    const auto begun = job.hosts.fabric.now();
    CHECK(job.end_of(*job.a, third).code == ErrorCode::peer_left);
    auto late = isend(*job.a, job.a_to_b, 5, small);
    CHECK(job.end_of(*job.a, late).code == ErrorCode::peer_left);
    auto later = irecv(*job.a, job.a_to_b, 5, nothing);
    CHECK(job.end_of(*job.a, later).code == ErrorCode::peer_left);
    CHECK(job.hosts.fabric.now() - begun < 10 * base::millisecond);
    CHECK_FALSE(job.a->test(anybody));
    auto said = isend(*job.c, job.c_to_a, 4, ConstBuffer(small).first(8));
    CHECK(job.end_of(*job.a, anybody).ok());
    CHECK(job.end_of(*job.c, said).ok());
    REQUIRE(left.size() == 1);
    CHECK(left[0].peer == job.a_to_b);
    CHECK(left[0].code == ErrorCode::peer_left);
    CHECK(lost == 0);
    CHECK(job.a->failure(job.a_to_b) == "it has left\n");
}

TEST_CASE("leave: what does not arrive in time is told, and ends at both sides", "[engine]") {
    Three job("100ms");
    const auto big = pattern(large);
    auto sent = isend(*job.b, job.b_to_a, 1, big);
    auto wanted = isend(*job.a, job.a_to_b, 2, big);
    try {
        job.b_leaves();
        FAIL("nobody has received it");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::timed_out);
        CHECK_THAT(error.what(), Catch::Contains("sent to " + job.b->name(job.b_to_a)));
    }
    CHECK(job.end_of(*job.b, sent).code == ErrorCode::cancelled);
    CHECK(job.end_of(*job.a, wanted).code == ErrorCode::peer_left);
    std::vector<std::byte> got(large);
    auto receive = irecv(*job.a, job.a_to_b, 1, got);  // it had been announced
    CHECK(job.end_of(*job.a, receive).code == ErrorCode::peer_left);
    job.hosts.deliver(*job.a, job.a_to_c, *job.c, job.c_to_a, large);
}

TEST_CASE("leave: a large message under way at that moment arrives, or ends at both sides", "[engine]") {
    const auto patience = GENERATE("2s", "0s");
    INFO(patience);
    Three job(patience);
    const auto big = pattern(large);
    std::vector<std::byte> got(large);
    auto sent = isend(*job.b, job.b_to_a, 1, big);
    auto receive = irecv(*job.a, job.a_to_b, 1, got);
    auto wanted = isend(*job.a, job.a_to_b, 2, big);
    std::vector<std::byte> got_at_b(large);
    auto received = irecv(*job.b, job.b_to_a, 2, got_at_b);
    for (int i = 0; i < 20; ++i) job.until([&, rounds = 0]() mutable { return ++rounds > 1; });  // the first pieces go
    const auto in_time = std::string(patience) == "2s";
    CHECK(thrown_by([&] { job.b_leaves(); }) == (in_time ? ErrorCode::ok : ErrorCode::timed_out));
    const auto at_b = job.end_of(*job.b, sent).code;
    const auto at_a = job.end_of(*job.a, receive).code;
    CHECK(at_b == (in_time ? ErrorCode::ok : ErrorCode::cancelled));
    CHECK(at_a == (in_time ? ErrorCode::ok : ErrorCode::peer_left));
    if (in_time) CHECK((got == big));
    // What it was getting is not waited for.
    const auto there = job.end_of(*job.b, received).code;
    CHECK((there == ErrorCode::ok || there == ErrorCode::cancelled));
    const auto here = job.end_of(*job.a, wanted).code;
    CHECK((here == ErrorCode::ok || here == ErrorCode::peer_left));
}

TEST_CASE("leave: who has left can begin nothing, and leaves once", "[engine]") {
    Three job;
    std::array<std::byte, 8> room{};
    auto of_a = irecv(*job.b, job.b_to_a, 1, room);
    auto of_anybody = irecv(*job.b, any_source, 2, room);
    auto region = job.b->register_memory(room, Rights::read_write);
    auto notified = job.b->inotified(region, 1, nullptr);
    job.b_leaves();
    job.b->leave();
    CHECK(job.b->test(of_a)->code == ErrorCode::cancelled);
    CHECK(job.b->test(of_anybody)->code == ErrorCode::cancelled);
    CHECK(job.b->test(notified)->code == ErrorCode::cancelled);
    CHECK(thrown_by([&] { static_cast<void>(isend(*job.b, job.b_to_a, 1, room)); }) == ErrorCode::invalid_argument);
    CHECK(thrown_by([&] { static_cast<void>(irecv(*job.b, any_source, 1, room)); }) == ErrorCode::invalid_argument);
    CHECK(thrown_by([&] { static_cast<void>(job.b->iflush(job.b_to_a, nullptr)); }) == ErrorCode::invalid_argument);
    CHECK(thrown_by([&] { static_cast<void>(job.b->iflush(nullptr)); }) == ErrorCode::invalid_argument);
    CHECK(thrown_by([&] { static_cast<void>(job.b->listen("127.0.0.1:0")); }) == ErrorCode::invalid_argument);
    CHECK(thrown_by([&] { static_cast<void>(job.b->connect("127.0.0.1:1", {})); }) == ErrorCode::invalid_argument);
    CHECK_FALSE(job.b->name(job.b_to_a).empty());
    CHECK(job.b->flush(std::chrono::nanoseconds(0)));
}

TEST_CASE("leave: one-sided operations of the others fail, too", "[engine]") {
    Three job;
    std::array<std::byte, 8> memory{}, got{};
    auto region = job.b->register_memory(memory, Rights::read_write);
    const RemotePlace place{job.b->region_key(0), 0};
    const MutableBuffer room(got);
    auto before = job.a->iget(job.a_to_b, place, {&room, 1}, nullptr);
    CHECK(job.end_of(*job.a, before).ok());
    job.b_leaves();
    auto after = job.a->iget(job.a_to_b, place, {&room, 1}, nullptr);
    CHECK(job.end_of(*job.a, after).code == ErrorCode::peer_left);
}

TEST_CASE("leave: all at once", "[engine]") {
    auto config = test::two_rails();
    config.set("close.timeout", "20s");
    constexpr std::size_t count = 4;
    std::vector<Context> all;
    for (std::size_t i = 0; i < count; ++i) all.emplace_back(config);
    std::vector<std::vector<Peer>> peers(count);
    for (std::size_t i = 0; i < count; ++i) {
        for (auto& other : all) peers[i].push_back(all[i].add_peer(other.address()));
    }
    std::array<bool, count> well{};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
            // Each has heard from everybody, and sends something that nobody takes, when it leaves. The large one waits for
            // its receiver, who leaves, too, and waits for ours.
            const auto data = pattern(100);
            const auto big = pattern(large);
            std::vector<Request> sent;
            for (const auto peer : peers[i]) sent.push_back(all[i].isend(peer, 1, data));
            std::vector<std::byte> got(100);
            for (const auto peer : peers[i]) static_cast<void>(all[i].recv(peer, 1, got));
            for (const auto peer : peers[i]) {
                sent.push_back(all[i].isend(peer, 2, data));
                sent.push_back(all[i].isend(peer, 3, big));
            }
            well[i] = thrown_by([&] { all[i].leave(); }) == ErrorCode::ok;
            for (auto& request : sent) {
                const auto code = all[i].wait(request).code;
                well[i] = well[i] && (code == ErrorCode::ok || code == ErrorCode::peer_left);  // some have left before
            }
        });
    }
    for (auto& thread : threads) thread.join();
    for (const auto one : well) CHECK(one);
}

TEST_CASE("threads: leave ends what other threads wait for", "[engine]") {
    auto config = test::two_rails();
    config.set("thread_level", "multiple").set("progress", GENERATE("hybrid", "block", "thread"));
    Context a(config);
    Context b(config);
    const auto to_b = a.add_peer(b.address());
    static_cast<void>(b.add_peer(a.address()));
    std::array<std::byte, 8> room{}, more{};
    auto one = a.irecv(to_b, 1, room);
    auto any = a.irecv(any_source, 2, more);
    ErrorCode of_b{}, of_any{};
    std::thread waits([&] { of_b = a.wait(one).code; });
    std::thread waits_too([&] { of_any = a.wait(any).code; });
    a.leave();
    waits.join();
    waits_too.join();
    CHECK(of_b == ErrorCode::cancelled);
    CHECK(of_any == ErrorCode::cancelled);
}

TEST_CASE("leave: the report still has the models of links that are over, whoever left first", "[engine]") {
    Three job;
    const auto of_a = model_rows(*job.a, "sim:eth0"), of_b = model_rows(*job.b, "sim:eth0");
    REQUIRE(of_a == 2);  // b and c
    REQUIRE(of_b == 1);
    bool left = false;
    job.a->on_peer_left([&](const PeerEvent&) { left = true; });
    job.b_leaves();
    job.until([&] { return left && job.a->models(job.a_to_b).empty(); });
    CHECK(model_rows(*job.a, "sim:eth0") == of_a);
    CHECK(model_rows(*job.b, "sim:eth0") == of_b);
}

TEST_CASE("leave: a link that was lost and is back stands once in the report", "[engine]") {
    test::SimPair pair("vft", {{"a/eth0", transports::FaultPlan::parse("kill_link@20")}});
    const auto ranges = [&] {
        std::size_t count = 0;
        for (const auto& link : pair.a->models(pair.to_b))
            count += link.rail == "sim:eth0" ? link.model.ranges.size() : 0;
        return count;
    };
    const auto lost = [&] {
        return std::ranges::any_of(pair.a->traffic(), [](const RailTraffic& rail) { return rail.links_lost > 0; });
    };
    while (!lost()) pair.hosts.deliver(*pair.a, pair.to_b, *pair.b, pair.to_a, 8);
    REQUIRE(ranges() == 0);
    CHECK(model_rows(*pair.a, "sim:eth0") > 0);
    pair.until([&] { return ranges() > 0; });
    CHECK(model_rows(*pair.a, "sim:eth0") == ranges());
}
