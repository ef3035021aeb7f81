// Bursts of small messages that share frames: when they do, and that nobody notices but by the time.
#include <deque>

#include "engine/hostile.hpp"
#include "messaging/bundle.hpp"

namespace railmux {

namespace {

using test::SimHosts;
using test::SimPair;
using transports::FaultPlan;

std::uint64_t frames_of(messaging::Engine& engine) {
    std::uint64_t frames = 0;
    for (const auto& rail : engine.traffic()) frames += rail.sent_frames + rail.resent_frames;
    return frames;
}

/// Messages from a to b, and what has come of them.
class Stream {
public:
    explicit Stream(SimPair& pair) : pair_(pair) { pair.hosts.look_each = 1000; }

    void send(std::size_t bytes, Tag tag) {
        auto& data = sent_.emplace_back(test::pattern(bytes, ++seed_));
        auto& got = got_.emplace_back(bytes);
        receives_.push_back(pair_.b->irecv(pair_.to_a, tag, got));
        sends_.push_back(pair_.a->isend(pair_.to_b, tag, data));
    }
    /// Looks at once, and until all is there.
    void look() {
        static_cast<void>(pair_.a->progress());
        pair_.until([&] {
            for (auto& send : sends_) {
                if (send.active()) static_cast<void>(pair_.a->test(send));
            }
            for (auto& receive : receives_) {
                if (receive.active()) static_cast<void>(pair_.b->test(receive));
            }
            const auto active = [](const Request& request) { return request.active(); };
            return std::ranges::none_of(sends_, active) && std::ranges::none_of(receives_, active);
        });
        REQUIRE(got_ == sent_);
        sends_.clear();
        receives_.clear();
        sent_.clear();
        got_.clear();
    }
    /// The frames that so many small messages take.
    std::uint64_t burst(int messages, base::Nanoseconds until_look = 0, Tag tag = 1) {
        const auto before = frames_of(*pair_.a);
        for (int i = 0; i < messages; ++i) send(8, tag);
        if (until_look > 0) pair_.hosts.fabric.advance(until_look);
        static_cast<void>(pair_.a->progress());
        const auto frames = frames_of(*pair_.a) - before;
        look();
        pair_.until([end = SimHosts::now() + 200 * base::microsecond] { return SimHosts::now() >= end; });
        return frames;
    }
    /// So that the next burst shares frames.
    void practise() {
        for (int i = 0; i < 9; ++i) burst(8);
    }

private:
    SimPair& pair_;
    std::uint64_t seed_ = 0;
    std::deque<std::vector<std::byte>> sent_, got_;
    std::vector<Request> sends_, receives_;
};

void exchange_bundled(SimPair& pair) {
    Stream stream(pair);
    stream.practise();
    for (int round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i < 40; ++i) {
            const std::array<std::size_t, 6> sizes{8, 0, 256, 257, 8, i % 20 == 5 ? std::size_t{40'000} : 200};
            stream.send(sizes[i % sizes.size()], 1 + i / 4 % 2);
        }
        stream.look();
    }
}

}  // namespace

TEST_CASE("bundles: bursts that are looked for at once share frames", "[engine]") {
    SimPair pair("vft", {}, 1, 1);
    Stream stream(pair);
    stream.burst(1);  // which brings the link up
    for (int i = 0; i < 3; ++i) {
        CAPTURE(i);
        CHECK(stream.burst(20) == 20);
    }
    CHECK(stream.burst(20) == 3);  // the first two, which others may wait for, and the rest
    CHECK(stream.burst(2) == 2);
    CHECK(stream.burst(1) == 1);
    CHECK(stream.burst(1 + 1 + 24) == 3);
    CHECK(stream.burst(1 + 1 + 25) == 4);
    SECTION("until one is looked for late") {
        CHECK(stream.burst(20, 20 * base::microsecond) == 3);
        for (int i = 0; i < 7; ++i) CHECK(stream.burst(20) == 20);  // it was in vain that messages waited
        CHECK(stream.burst(20) == 3);
    }
    SECTION("lone messages change nothing") {
        for (int i = 0; i < 10; ++i) CHECK(stream.burst(1, 50 * base::microsecond) == 1);
        CHECK(stream.burst(20) == 3);
    }
}

TEST_CASE("bundles: not where several threads call, or somebody may sleep", "[engine]") {
    Config config;
    config.set("thread_level", "multiple");
    SimPair pair("vft", {}, 1, 1, config);
    Stream stream(pair);
    stream.burst(1);
    for (int i = 0; i < 8; ++i) CHECK(stream.burst(20) == 20);
}

TEST_CASE("bundles: messages of all lengths and tags keep their order", "[engine]") {
    for (const char* policy : {"vft", "round_robin"}) {
        SimPair pair(policy);
        exchange_bundled(pair);
    }
}

TEST_CASE("bundles: links die at every step, and every message arrives once", "[engine]") {
    test::with_link_killed_at_each_step("round_robin", "eth0", exchange_bundled);
}

TEST_CASE("bundles: with faults of all kinds every message arrives once", "[engine]") {
    test::with_random_faults(",refuse=5%,delay=10%,kill_link=1%", exchange_bundled);
}

TEST_CASE("bundles: what waits in one is not sent yet, and goes before what follows", "[engine]") {
    SimPair pair("vft", {}, 1, 1);
    Stream stream(pair);
    stream.practise();
    std::vector<std::byte> data(8), got(8);
    std::vector<Request> sends;
    for (int i = 0; i < 4; ++i) sends.push_back(pair.a->isend(pair.to_b, 5 + static_cast<Tag>(i), data));
    SECTION("flush") {
        const auto meanwhile = pair.hosts.keep_going(*pair.b);
        CHECK(pair.a->flush(std::chrono::seconds(1)));
    }
    SECTION("a send that blocks") { pair.a->send(pair.to_b, 9, data); }
    SECTION("a send with a callback") {
        const ConstBuffer out(data);
        sends.push_back(pair.a->isend(pair.to_b, 9, {&out, 1}, [](const Status&) {}));
        static_cast<void>(pair.a->progress());
    }
    std::optional<Status> first;
    pair.until([&] { return (first = pair.b->probe(pair.to_a, TagMatch::any())).has_value(); });
    CHECK(first->tag == 5);
    for (Tag tag = 5; tag < 9; ++tag) {
        std::optional<Message> message;
        pair.until([&] { return (message = pair.b->mprobe(pair.to_a, TagMatch::any())).has_value(); });
        CHECK(message->tag() == tag);
    }
}

TEST_CASE("bundles: what a callback sends has left when the look that called it is over", "[engine]") {
    SimPair pair("vft", {}, 1, 1);
    Stream stream(pair);
    stream.practise();
    std::vector<std::byte> data(8), asked(8), got(8);
    const MutableBuffer into(asked);
    bool called = false;
    auto question = pair.a->irecv(pair.to_b, TagMatch(7), {&into, 1}, [&](const Status&) {
        called = true;
        for (int i = 0; i < 10; ++i) static_cast<void>(pair.a->isend(pair.to_b, 1, data));
    });
    static_cast<void>(pair.b->isend(pair.to_a, 7, data));
    const auto before = frames_of(*pair.a);
    while (!called) {
        static_cast<void>(pair.b->progress());
        static_cast<void>(pair.a->progress());
        if (!called) pair.hosts.fabric.advance(base::microsecond);
    }
    CHECK(frames_of(*pair.a) - before == 3);
    for (int i = 0; i < 10; ++i) {  // while a computes
        auto request = pair.b->irecv(pair.to_a, 1, got);
        pair.hosts.until({pair.b.get()}, [&] { return pair.b->test(request).has_value(); });
    }
}

TEST_CASE("bundles: the first message to each of many peers waits for nothing", "[engine]") {
    SimHosts hosts;
    hosts.look_each = 1000;
    const std::vector<std::string> names{"a", "b", "c", "d", "e", "f", "g", "h"};
    std::vector<std::unique_ptr<messaging::Engine>> engines;
    std::vector<messaging::Engine*> all;
    std::vector<Peer> peers;
    for (const auto& host : names) {
        hosts.fabric.add_rail(host, {.device = "eth0", .network = "net0"});
        all.push_back(engines.emplace_back(hosts.start(host, "vft")).get());
        if (all.size() > 1) peers.push_back(all.front()->add_peer(all.back()->address()));
    }
    auto& sender = *all.front();
    const std::vector<std::byte> data(8);
    std::vector<Request> sends;
    const auto until = [&](auto holds) {
        hosts.until({&sender}, [&] {
            for (auto* engine : all) static_cast<void>(engine->progress());
            return holds();
        });
    };
    const auto burst = [&](int each) {
        const auto before = frames_of(sender);
        for (int i = 0; i < each; ++i) {
            for (const auto peer : peers) sends.push_back(sender.isend(peer, 1, data));
        }
        static_cast<void>(sender.progress());
        const auto frames = frames_of(sender) - before;
        for (auto& send : sends) until([&] { return sender.test(send).has_value(); });
        sends.clear();
        until([end = SimHosts::now() + 200 * base::microsecond] { return SimHosts::now() >= end; });
        return frames;
    };
    for (int i = 0; i < 12; ++i) burst(1);  // which brings the links up, and has them measured, and shows a habit
    CHECK(burst(1) == peers.size());
    // The last two to each share a frame.
    CHECK(burst(3) == 2 * peers.size());
}

TEST_CASE("bundles: with the peer its bundle goes", "[engine]") {
    SimPair pair("vft", {}, 1, 1);
    Stream stream(pair);
    stream.practise();
    std::vector<std::byte> data(8);
    std::vector<Request> sends;
    const auto send_four = [&] {
        for (int i = 0; i < 4; ++i) sends.push_back(pair.a->isend(pair.to_b, 5, data));
    };
    send_four();
    pair.b.reset();
    pair.hosts.look_each = base::millisecond;  // it takes many seconds to give up
    pair.hosts.until({pair.a.get()}, [&] {
        for (auto& send : sends) {
            if (send.active()) static_cast<void>(pair.a->test(send));
        }
        return std::ranges::none_of(sends, &Request::active);
    });
    const auto end = SimHosts::now() + 60 * base::second;
    pair.hosts.until(
        {pair.a.get()}, [&] { return SimHosts::now() > end; }, 100 * base::second);
}

TEST_CASE("bundles: who sends malformed ones loses the link, and others are served on", "[engine]") {
    SimHosts hosts;
    for (const char* host : {"victim", "hostile"}) hosts.fabric.add_rail(host, {.device = "eth0", .network = "net0"});
    auto victim = hosts.start("victim", "round_robin");
    test::Hostile hostile(hosts, *victim);
    const auto until = [&](auto holds) {
        hosts.until({victim.get()}, [&] {
            hostile.poll(SimHosts::now());
            return holds();
        });
    };
    const auto survives = [&](std::span<const std::byte> body) {
        until([&] { return hostile.connected(SimHosts::now()); });
        hostile.say(rails::FrameType::bundle, rails::frame_flag::ordered, body, SimHosts::now());
        const auto before = hostile.links_lost;
        until([&] { return hostile.heard() || hostile.links_lost > before; });
        return hostile.links_lost == before;
    };
    rails::FramePool pool;
    messaging::Bundle bundle;
    bundle.begin(pool.take(messaging::Bundle::most_bytes));
    for (int i = 0; i < 3; ++i) bundle.add(3, test::pattern(8));
    const auto* frame = bundle.close();
    std::vector<std::byte> body(frame->data() + rails::FrameHeader::size, frame->data() + frame->bytes);
    CHECK(survives(body));
    auto longer = body;
    longer.push_back(std::byte{1});
    CHECK_FALSE(survives(longer));
    CHECK_FALSE(survives(std::span(body).first(body.size() - 1)));
    CHECK_FALSE(survives({}));
    CHECK(survives(body));
}

}  // namespace railmux
