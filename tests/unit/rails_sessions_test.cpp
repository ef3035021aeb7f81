// Sessions and the links under them, of whole rail managers on a simulated fabric: whatever is late, given up, started anew
// or replayed, a link carries the session it was made for, or none.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "rails/rail_manager.hpp"
#include "transports/sim/fabric.hpp"

using namespace railmux;
using namespace railmux::rails;
namespace sim = railmux::transports::sim;

namespace {

using Strings = std::vector<std::string>;
using Codes = std::vector<ErrorCode>;

const JobKey key = make_job_key("job", "secret");

/// Hosts a, b and x with rails eth0, eth1 ...; under the fabric's clock.
struct World {
    enum class Network : std::uint8_t { plain, mute, confirming };  // mute: keepalives are wanted, and nothing is told

    explicit World(int rails = 2, Network network = Network::plain) {
        clock_of = &fabric;
        for (int i = 0; i < rails; ++i) {
            // The second is slower by far.
            const auto timing = sim::simple_timing(2000 + 30000 * i, 300, 300, 400, 1.0);
            const auto number = std::to_string(i);
            devices.push_back("eth" + number);
            for (const char* host : {"a", "b", "x"}) {
                fabric.add_rail(host, {.device = devices.back(),
                                       .network = "net" + number,
                                       .timing = timing,
                                       .keepalive = network == Network::mute,
                                       .confirms = network == Network::confirming});
            }
        }
    }
    ~World() { clock_of = nullptr; }
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    void cut(sim::Cut how) {
        for (const auto& device : devices) fabric.cut("a/" + device, "b/" + device, how);
    }
    void restore() {
        for (const auto& device : devices) fabric.restore("a/" + device, "b/" + device);
    }
    void restore_rails() {
        for (const auto& device : devices) {
            for (const char* host : {"a/", "b/"}) fabric.restore_rail(host + device);
        }
    }
    static base::Nanoseconds now() { return clock_of->now(); }

    sim::Fabric fabric;
    Strings devices;
    static inline const sim::Fabric* clock_of = nullptr;  // a rail manager's clock is a plain function
};

/// A rank of the job. What it knows of others stands under their ranks.
class Process final : private Upper {
public:
    struct Options {
        base::Nanoseconds patience = 10 * base::second;
        base::Nanoseconds pair_limit = 2 * base::second;
    };

    Process(World& world, std::string host, Identity self) : Process(world, std::move(host), self, Options{}) {}
    Process(World& world, std::string host, Identity self, const Options& options)
        : host_(std::move(host)),
          rails_(transports(world, host_), {}, log_),
          policy_(sched::make_policy("vft", rails_.capacity())),
          manager(manager_options(self, options), rails_, *policy_, *this, log_) {
        for (std::uint32_t rank = 0; rank < 2; ++rank) manager.peers().of_rank(rank);
    }

    void knows(const Process& other) { manager.learn(other.manager.own_address(other.host_, 1)); }
    void say(std::uint32_t peer, std::string_view text) {
        Frame* frame = manager.pool().take(FrameHeader::size + text.size());
        frame->type = FrameType::eager;
        frame->flags = frame_flag::ordered;
        frame->bytes = static_cast<std::uint32_t>(FrameHeader::size + text.size());
        std::memcpy(frame->data() + FrameHeader::size, text.data(), text.size());
        if (!manager.connected(peer)) manager.want(peer, World::now());
        manager.send(peer, frame, World::now());
        manager.flush(World::now());
    }
    [[nodiscard]] const Known& peer(std::uint32_t rank) { return manager.peers()[rank]; }
    [[nodiscard]] std::uint64_t links_lost(std::uint32_t rank) {
        std::uint64_t lost = 0;
        for (std::size_t rail = 0; rail < rails_.size(); ++rail) lost += peer(rank).traffic[rail].links_lost;
        return lost;
    }
    [[nodiscard]] std::size_t rails() const { return rails_.size(); }
    [[nodiscard]] std::span<const std::byte> rail_address() const { return rails_[0].rail->address(); }

    Strings heard;
    Codes gone;  // how sessions ended
    int left = 0;
    std::vector<RailNews> news;

private:
    static Transports transports(World& world, const std::string& host) {
        Transports all;
        all.push_back(sim::make_transport(world.fabric, host));
        return all;
    }
    static RailManager::Options manager_options(Identity self, const Options& options) {
        RailManager::Options all;
        all.connector = {.self = self, .key = key, .pair_limit = options.pair_limit};
        all.assessor.probe = false;
        all.assessor.clock = &World::now;
        all.patience = all.lost_patience = options.patience;
        all.share_node = false;
        return all;
    }

    bool on_frame(std::uint32_t, const FrameHeader&, std::span<const std::byte> body) override {
        heard.emplace_back(reinterpret_cast<const char*>(body.data()), body.size());
        return true;
    }
    void on_released(std::uint32_t, const Frame&) override {}
    std::span<const std::byte> closed_by(std::uint32_t, std::span<const std::byte>) noexcept override { return {}; }
    void on_sendable(std::uint32_t) override {}
    Frame* next_bulk(std::uint32_t, std::uint32_t, std::uint8_t, std::uint64_t) override { return nullptr; }
    Frame* next_get(std::uint32_t, std::uint32_t, std::uint8_t, std::uint64_t) override { return nullptr; }
    void on_got(std::uint32_t, const Frame&, transports::WorkStatus) override {}
    std::uint64_t bulk_left(std::uint32_t, std::uint8_t) override { return 0; }
    void on_put_denied(std::uint64_t) override {}
    void on_link_lost(std::uint32_t, std::uint32_t) override {}
    void on_peer_gone(std::uint32_t, ErrorCode code) override { gone.push_back(code); }
    void on_peer_left(std::uint32_t) override { ++left; }
    void on_rail_news(const RailNews& told) override { news.push_back(told); }
    void on_address_wanted(std::uint32_t) override {}
    void on_address_changed() override { manager.tell_address(manager.own_address(host_, 1), World::now()); }

    std::string host_;
    base::Logger log_{base::LogLevel::off};
    RailSet rails_;
    std::unique_ptr<sched::Policy> policy_;

public:
    RailManager manager;
};

/// Polls these, and moves the clock when they have nothing, until it holds; fails the test after `limit` of simulated time.
template <typename Holds>
void until(World& world, std::initializer_list<Process*> processes, Holds holds,
           base::Nanoseconds limit = 20 * base::second) {
    constexpr auto step = 50 * base::microsecond;
    const auto end = world.now() + limit;
    while (!holds()) {
        bool any = false;
        for (auto* process : processes) any = process->manager.poll(world.now()) || any;
        if (any) continue;
        if (world.now() > end) FAIL("not within " << limit / base::millisecond << " simulated ms");
        const auto next = world.fabric.next_event().value_or(world.now() + step);
        world.fabric.advance_to(std::min(next, world.now() + step));
    }
}

void run(World& world, std::initializer_list<Process*> processes, base::Nanoseconds time) {
    const auto end = world.now() + time;
    until(
        world, processes, [&] { return world.now() >= end; }, time + base::second);
}

/// Both know each other; ranks 0 and 1.
struct Couple {
    explicit Couple(int rails = 2, Process::Options of_b = {}, std::uint64_t instance_of_a = 10,
                    World::Network network = World::Network::plain)
        : world(rails, network),
          a(world, "a", {.instance = instance_of_a, .rank = 0}),
          b(std::make_unique<Process>(world, "b", Identity{.instance = 20, .rank = 1}, of_b)) {
        a.knows(*b);
        b->knows(a);
    }
    template <typename Holds>
    void until(Holds holds) {
        ::until(world, {&a, b.get()}, holds);
    }
    /// One message each way over whatever session there is.
    void talk() {
        const auto text = std::to_string(++talks);
        a.say(1, text);
        b->say(0, text);
        until([&] { return heard(a, text) && heard(*b, text); });
    }
    /// All links die, and both notice.
    void lose_links() {
        world.cut(sim::Cut::loud);
        until([&] { return !a.manager.connected(1) && !b->manager.connected(0); });
    }
    [[nodiscard]] bool both_have(std::size_t links) {
        return a.manager.live_links(1).size() == links && b->manager.live_links(0).size() == links;
    }
    static bool heard(const Process& process, const std::string& text) {
        return !process.heard.empty() && process.heard.back() == text;
    }

    World world;
    Process a;
    std::unique_ptr<Process> b;
    int talks = 0;
};

constexpr Process::Options impatient{.patience = 100 * base::millisecond};

/// B has given a up, who has never heard of it.
void have_b_give_up(Couple& pair) {
    pair.world.cut(sim::Cut::loud);
    pair.b->say(0, "lost");
    pair.until([&] { return !pair.b->gone.empty(); });
    pair.world.restore();
}

}  // namespace

TEST_CASE("both connect at once and keep one link a rail pair, whoever goes first", "[rails][sessions]") {
    Couple pair(2, {}, GENERATE(10, 30));
    pair.talk();
    run(pair.world, {&pair.a, pair.b.get()}, 100 * base::millisecond);
    CHECK(pair.a.manager.live_links(1).size() == 2);
    CHECK(pair.b->manager.live_links(0).size() == 2);
    CHECK(pair.a.links_lost(1) + pair.b->links_lost(0) == 0);
}

TEST_CASE("a session that the other side has given up ends once, whatever else is refused", "[rails][sessions]") {
    Couple pair(2, impatient);
    have_b_give_up(pair);
    pair.a.say(1, "old");
    pair.until([&] { return !pair.a.gone.empty(); });
    CHECK(pair.a.gone == Codes{ErrorCode::peer_lost});
    pair.a.say(1, "again");  // at once: the other rail's refusal is on its way
    pair.until([&] { return !pair.b->heard.empty(); });
    CHECK(pair.b->heard == Strings{"again"});
    CHECK(pair.a.gone.size() == 1);
}

TEST_CASE("a late refusal of an old hello leaves the new session alone", "[rails][sessions]") {
    Couple pair(2, impatient, GENERATE(10, 30));
    have_b_give_up(pair);
    pair.world.fabric.set_timing("a/eth1", sim::simple_timing(50e6, 300, 300, 400, 1.0));
    pair.a.say(1, "old");
    pair.until([&] { return !pair.a.gone.empty(); });
    pair.talk();
    run(pair.world, {&pair.a, pair.b.get()}, 200 * base::millisecond);  // the refusal comes
    pair.talk();
    CHECK(pair.a.heard == Strings{"1", "2"});
    CHECK(pair.b->heard == Strings{"1", "2"});
    CHECK(pair.a.gone.size() == 1);
    CHECK(pair.b->gone.size() == 1);
}

TEST_CASE("a link that proves itself too late does not join the next session", "[rails][sessions]") {
    Couple pair(1, {.patience = 500 * base::millisecond, .pair_limit = 5 * base::second}, GENERATE(10, 30));
    pair.talk();
    pair.lose_links();
    pair.world.restore();
    run(pair.world, {&pair.a}, 100 * base::millisecond);  // it says hello, and then computes
    run(pair.world, {pair.b.get()}, base::second);        // and is given up meanwhile
    CHECK(pair.b->gone == Codes{ErrorCode::unreachable});
    pair.until([&] { return !pair.a.gone.empty(); });
    CHECK(pair.a.gone == Codes{ErrorCode::peer_lost});
    pair.talk();
    CHECK(pair.a.gone.size() == 1);
    CHECK(pair.b->gone.size() == 1);
}

TEST_CASE("a lost link comes back by itself, and both sides tell", "[rails][sessions][recovery]") {
    Couple pair(2, {}, GENERATE(10, 30));
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    pair.world.fabric.cut("a/eth1", "b/eth1", sim::Cut::loud);
    pair.until([&] { return pair.both_have(1); });
    pair.talk();
    run(pair.world, {&pair.a, pair.b.get()}, 3 * base::second);
    pair.talk();
    CHECK(pair.both_have(1));
    pair.world.fabric.restore("a/eth1", "b/eth1");
    const auto restored = World::now();
    pair.until([&] { return pair.both_have(2); });
    CHECK(World::now() - restored < base::second);
    pair.talk();
    CHECK(pair.a.links_lost(1) == 1);
    CHECK(pair.b->links_lost(0) == 1);
    for (const auto* side : {&pair.a, pair.b.get()}) {
        REQUIRE(side->news.size() == 2);
        CHECK_FALSE(side->news[0].up);
        CHECK(side->news[1].up);
        CHECK(side->news[1].rail == 1);
        CHECK(side->news[1].cause == "the path is cut");
        CHECK(side->news[1].down > 3 * base::second);
        CHECK(side->news[1].down < 4 * base::second);
        CHECK(side->gone.empty());
    }
}

TEST_CASE("a rail that is up again is used at once, whichever side's it is", "[rails][sessions][recovery]") {
    Couple pair(2, {}, GENERATE(10, 30));
    const std::string rail = GENERATE("a/eth1", "b/eth1", "a/eth0");
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    pair.world.fabric.rail_down(rail, "no carrier");
    pair.until([&] { return pair.both_have(1); });
    run(pair.world, {&pair.a, pair.b.get()}, 100 * base::second);  // by now it is seldom asked for
    pair.world.fabric.restore_rail(rail);
    const auto restored = World::now();
    pair.until([&] { return pair.both_have(2); });
    CHECK(World::now() - restored < 20 * base::millisecond);
    auto& owner = rail[0] == 'a' ? pair.a : *pair.b;
    const auto whole = std::ranges::count(owner.news, no_peer, &RailNews::peer);
    CHECK(whole == 2);  // down, and up
    pair.talk();
}

TEST_CASE("a rail that is new is used, from both sides", "[rails][sessions][recovery]") {
    Couple pair(2, {}, GENERATE(10, 30));
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    const auto add = [&](const char* host) {
        pair.world.fabric.add_rail(
            host, {.device = "eth2", .network = "net2", .timing = sim::simple_timing(1000, 300, 300, 400, 1.0)});
    };
    add("a");
    run(pair.world, {&pair.a, pair.b.get()}, base::second);
    CHECK(pair.a.news.back().cause == "it is new");
    CHECK(pair.both_have(2));
    add("b");
    pair.until([&] { return pair.both_have(3); });
    pair.talk();
    pair.world.cut(sim::Cut::loud);  // the other two
    pair.until([&] { return pair.both_have(1); });
    pair.talk();
    CHECK(pair.a.peer(1).traffic[2].received_frames > 0);
    pair.world.restore();
    pair.until([&] { return pair.both_have(3); });
}

TEST_CASE("no more rails are taken up than there is room for", "[rails][sessions][recovery]") {
    Couple pair(2);
    pair.talk();
    for (std::size_t i = 2; i < 4 + RailSet::spare; ++i) {
        pair.world.fabric.add_rail(
            "a", {.device = fmt::format("eth{}", i), .timing = sim::simple_timing(1000, 300, 300, 400, 1.0)});
    }
    run(pair.world, {&pair.a, pair.b.get()}, base::second);
    CHECK(pair.a.rails() == 2 + RailSet::spare);
    pair.talk();
}

TEST_CASE("a link that falls silent is lost: soon under load, within a second when idle",
          "[rails][sessions][silence]") {
    Couple pair(2, {}, GENERATE(10, 30), World::Network::confirming);
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    run(pair.world, {&pair.a, pair.b.get()}, 5 * base::second);
    const bool load = GENERATE(true, false);
    pair.world.fabric.cut("a/eth0", "b/eth0", sim::Cut::silent);  // the one that small messages take
    const auto cut = World::now();
    if (load) {
        pair.talk();
        CHECK(World::now() - cut < 150 * base::millisecond);
    }
    pair.until([&] { return pair.both_have(1); });
    CHECK(World::now() - cut < base::second);
    // Whichever side noticed it first has told the other.
    const auto& causes = std::array{pair.a.news.front().cause, pair.b->news.front().cause};
    CHECK(
        std::ranges::any_of(causes, [](const auto& cause) { return cause.starts_with("nothing acknowledged for "); }));
    run(pair.world, {&pair.a, pair.b.get()}, 2 * base::second);
    pair.talk();
    pair.world.fabric.restore("a/eth0", "b/eth0");
    const auto restored = World::now();
    pair.until([&] { return pair.both_have(2); });
    CHECK(World::now() - restored < base::second);
    pair.talk();
}

TEST_CASE("the only link of a peer is lost within a second", "[rails][sessions][silence]") {
    Couple pair(1, {}, 10, World::Network::confirming);
    pair.talk();
    run(pair.world, {&pair.a, pair.b.get()}, 5 * base::second);
    pair.world.cut(sim::Cut::silent);
    const auto cut = World::now();
    pair.until([&] { return pair.both_have(0); });
    CHECK(World::now() - cut > 500 * base::millisecond);
    CHECK(World::now() - cut < 1100 * base::millisecond);
    pair.world.restore();
    pair.talk();
}

TEST_CASE("a peer that computes is not silent", "[rails][sessions][silence]") {
    Couple pair(2, {}, 10, World::Network::confirming);
    pair.talk();
    pair.a.say(1, "at last");
    run(pair.world, {&pair.a}, 60 * base::second);
    CHECK(pair.a.links_lost(1) == 0);
    pair.talk();
    CHECK(pair.a.news.empty());
}

TEST_CASE("over a network that tells nothing, a link is lost when only others are heard of the peer",
          "[rails][sessions][silence]") {
    Couple pair(2, {}, GENERATE(10, 30), World::Network::mute);
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    run(pair.world, {&pair.a, pair.b.get()}, 300 * base::second);  // idle
    CHECK(pair.both_have(2));
    CHECK(pair.a.news.empty());
    const auto cut = World::now();
    pair.world.fabric.cut("a/eth0", "b/eth0", sim::Cut::silent);
    pair.until([&] { return pair.both_have(1); });
    CHECK(World::now() - cut > 2 * base::second);
    CHECK(World::now() - cut < 8 * base::second);
    pair.talk();
    pair.world.restore();
    pair.until([&] { return pair.both_have(2); });
    pair.talk();
}

TEST_CASE("over a network that tells nothing, a peer may compute for a minute, but not for ever",
          "[rails][sessions][silence]") {
    Couple pair(2, {}, 10, World::Network::mute);
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    run(pair.world, {&pair.a}, 100 * base::second);
    CHECK(pair.a.links_lost(1) == 0);
    pair.talk();
    run(pair.world, {&pair.a, pair.b.get()}, 10 * base::second);
    CHECK(pair.a.links_lost(1) == 0);
    CHECK(pair.b->links_lost(0) == 0);
    run(pair.world, {&pair.a}, 150 * base::second);  // it was killed
    CHECK_FALSE(pair.a.manager.connected(1));
    CHECK(pair.a.gone == Codes{ErrorCode::unreachable});
}

TEST_CASE("over a network that tells nothing, who looks seldom loses nothing", "[rails][sessions][silence]") {
    Couple pair(2, {}, 10, World::Network::mute);
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    for (int i = 0; i < 60; ++i) {
        run(pair.world, {&pair.a}, 5 * base::second);
        pair.b->say(0, "here I am");  // over the faster link
        run(pair.world, {&pair.a, pair.b.get()}, base::millisecond);
    }
    CHECK(pair.a.links_lost(1) == 0);
    CHECK(pair.b->links_lost(0) == 0);
}

TEST_CASE("who said goodbye is not chased", "[rails][sessions][recovery]") {
    Couple pair(2);
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    pair.world.fabric.cut("a/eth1", "b/eth1", sim::Cut::loud);
    pair.until([&] { return pair.both_have(1); });
    pair.world.restore();
    pair.b->manager.say_goodbye(World::now());
    pair.until([&] { return !pair.a.gone.empty(); });
    run(pair.world, {&pair.a, pair.b.get()}, 2 * base::second);
    CHECK(pair.both_have(1));
}

TEST_CASE("whatever is lost, late and given up, and when, the two find together again", "[rails][sessions]") {
    const auto instance_of_a = GENERATE(10, 30);
    for (unsigned seed = 1; seed <= 100; ++seed) {
        INFO("seed " << seed);
        std::mt19937 random(seed);
        Couple pair(2, impatient, instance_of_a);
        auto& a = pair.a;
        auto& b = *pair.b;
        int said = 0;
        const auto say = [&](Process& from, std::uint32_t to) {
            from.say(to, fmt::format("{:04}", ++said));  // so that they sort
            return fmt::format("{:04}", said);
        };
        for (int i = 0; i < 60; ++i) {
            const auto time = base::Nanoseconds{1000} << random() % 18;  // to 131 ms, beyond the patience of one
            const auto one = std::string("/eth") + (random() % 2 == 0 ? '0' : '1');
            switch (random() % 11) {
                case 0: say(a, 1); break;
                case 1: say(b, 0); break;
                case 2: pair.world.cut(sim::Cut::loud); break;
                case 3: pair.world.restore(); break;
                case 4: run(pair.world, {&a}, time); break;
                case 5: run(pair.world, {&b}, time); break;
                case 6: pair.world.fabric.advance(time); break;
                case 7: pair.world.fabric.cut("a" + one, "b" + one, sim::Cut::loud); break;
                case 8: pair.world.fabric.rail_down((i % 2 == 0 ? "a" : "b") + one, "pulled"); break;
                case 9: pair.world.restore_rails(); break;
                default: run(pair.world, {&a, &b}, time); break;
            }
        }
        pair.world.restore();
        pair.world.restore_rails();
        bool together = false;
        // A session that the other has given up ends when it is used: what is said then is lost, and that is told.
        for (int i = 0; i < 3 && !together; ++i) {
            const auto to_b = say(a, 1);
            const auto to_a = say(b, 0);
            const auto end = World::now() + 12 * base::second;
            pair.until([&] {
                together = pair.heard(a, to_a) && pair.heard(b, to_b);
                return together || World::now() > end;
            });
        }
        REQUIRE(together);
        for (const auto* heard : {&a.heard, &b.heard}) {  // each once, in order
            CHECK(std::adjacent_find(heard->begin(), heard->end(), std::greater_equal<>()) == heard->end());
        }
        pair.until([&] { return pair.both_have(2); });  // whatever was lost is back
    }
}

TEST_CASE("a rank that was started anew begins anew", "[rails][sessions]") {
    const std::uint64_t next_instance = GENERATE(5, 30);
    const auto how =
        GENERATE(as<std::string>(), "it said goodbye", "it crashed", "it crashed, we learn the new address");
    INFO(how);
    Couple pair(2);
    auto& a = pair.a;
    pair.talk();
    const auto old_address = pair.b->manager.own_address("b", 1);
    if (how == "it said goodbye") {
        pair.b->manager.say_goodbye(World::now());
        pair.until([&] { return !a.gone.empty() && pair.b->manager.idle(0); });
        pair.b->manager.close();
    } else {
        pair.world.cut(sim::Cut::silent);
    }
    pair.b = std::make_unique<Process>(pair.world, "x", Identity{.instance = next_instance, .rank = 1});
    auto& next = *pair.b;
    if (how == "it crashed, we learn the new address") {
        a.knows(next);
    } else {
        next.knows(a);
        next.say(0, "new");
        pair.until([&] { return pair.heard(a, "new"); });
    }
    a.manager.learn(old_address);  // old news
    a.say(1, "newer");
    pair.until([&] { return pair.heard(next, "newer"); });
    CHECK(next.heard == Strings{"newer"});                       // and nothing of the old session
    CHECK(a.gone.size() == (how == "it said goodbye" ? 2 : 1));  // the session is over when its links are
    CHECK(next.gone.empty());
    CHECK_FALSE(a.peer(1).left);
    CHECK(a.peer(1).failed == ErrorCode::ok);
    CHECK(a.peer(1).instance == next_instance);
    pair.world.restore();
    Process old(pair.world, "b", {.instance = 20, .rank = 1}, impatient);  // as if it were still alive
    old.knows(a);
    old.say(0, "old");
    until(pair.world, {&a, &next, &old}, [&] { return !old.gone.empty(); });
    CHECK(a.peer(1).instance == next_instance);
    pair.talk();
}

TEST_CASE("replayed hellos do not drive out one that waits for its proof", "[rails][sessions]") {
    Couple pair(1);
    auto& b = *pair.b;
    pair.talk();
    Hello hello{.version = wire_version,
                .epoch = 0,
                .rail = 0,
                .from = {.instance = 30, .rank = no_rank},
                .to = 20,
                .nonce = 1,
                .job = key.job};
    const auto stranger = pair.world.fabric.open("x", "eth0");
    static_cast<void>(stranger->connect(b.rail_address(), encode_hello(key, hello)));
    // Other hellos of that process, captured earlier, each again and again.
    for (int i = 0; i < 100; ++i) {
        hello.nonce = 2 + static_cast<std::uint64_t>(i % 3);
        static_cast<void>(stranger->connect(b.rail_address(), encode_hello(key, hello)));
    }
    std::array<transports::Event, 8> events;
    std::size_t up = 0, down = 0;
    const auto end = World::now() + base::second;
    pair.until([&] {
        const auto count = stranger->poll(events);
        for (const auto& event : std::span(events).first(count)) {
            up += event.kind == transports::EventKind::link_up;
            down += event.kind == transports::EventKind::link_down;
        }
        return World::now() >= end;
    });
    CHECK(up == 4);
    CHECK(down == 97);
}

TEST_CASE("a hello without a proof changes nothing", "[rails][sessions]") {
    Couple pair(1);
    auto& b = *pair.b;
    pair.talk();
    Hello hello{.version = wire_version,
                .epoch = 0,
                .rail = 0,
                .from = {.instance = 10, .rank = 0},
                .to = 20,
                .nonce = 1,
                .job = key.job};
    SECTION("a replay") {}
    SECTION("of a later session") { hello.epoch = 1; }
    SECTION("of another instance") { hello.from.instance = 30; }
    SECTION("of somebody unknown") { hello.from = {.instance = 30, .rank = no_rank}; }
    const auto links = b.manager.live_links(0);
    const auto known = b.manager.peers().size();
    const auto replayer = pair.world.fabric.open("x", "eth0");
    for (int i = 0; i < 3; ++i) static_cast<void>(replayer->connect(b.rail_address(), encode_hello(key, hello)));
    const auto end = World::now() + 5 * base::second;
    std::array<transports::Event, 8> events;
    std::size_t answers = 0;
    std::size_t soon = 0;
    bool kept = true;
    pair.until([&] {
        answers += replayer->poll(events);
        if (World::now() < end - 4 * base::second) soon = answers;
        kept = kept && b.manager.live_links(0) == links;
        return World::now() >= end;
    });
    CHECK(kept);
    CHECK(soon == 3);     // accepted; and refused, as the same hello waits already
    CHECK(answers == 4);  // ... and closed, as no proof came
    CHECK(b.peer(0).instance == 10);
    CHECK(b.peer(0).epoch == 0);
    CHECK(b.manager.peers().size() == known);
    CHECK(b.gone.empty());
    CHECK(pair.a.links_lost(1) == 0);
    pair.talk();
}

TEST_CASE("who does not know the key is told why he is refused, and nothing else", "[rails][sessions]") {
    Couple pair(1);
    pair.talk();
    Hello hello{.version = wire_version,
                .rail = 0,
                .from = {.instance = 30, .rank = no_rank},
                .to = 20,
                .nonce = 1,
                .job = key.job};
    auto other = key;
    const auto verdict = GENERATE(Verdict::wrong_key, Verdict::wrong_job, Verdict::wrong_version);
    if (verdict == Verdict::wrong_key) other.key = "guessed";
    if (verdict == Verdict::wrong_job) ++hello.job;
    if (verdict == Verdict::wrong_version) ++hello.version;
    const auto stranger = pair.world.fabric.open("x", "eth0");
    static_cast<void>(stranger->connect(pair.b->rail_address(), encode_hello(other, hello)));
    std::array<transports::Event, 8> events;
    std::optional<Reply> reply;
    Reply::Bytes bytes{};
    pair.until([&] {
        if (stranger->poll(events) == 0) return false;
        reply = parse_reply(events[0].data);
        if (reply) std::copy(events[0].data.begin(), events[0].data.end(), bytes.begin());
        return true;
    });
    REQUIRE(reply);
    CHECK(reply->verdict == verdict);
    CHECK(bytes == bare_refusal(verdict));
    CHECK(reply->from.instance == 0);
}

TEST_CASE("links that wait for their proof are few, and none waits for long", "[rails][sessions]") {
    constexpr int hellos = 1000;
    Couple pair(1, {.pair_limit = 3600 * base::second});
    pair.talk();
    const auto flooder = pair.world.fabric.open("x", "eth0");
    std::array<transports::Event, 64> events;
    std::size_t up = 0;
    std::size_t down = 0;
    const auto look = [&] {
        const auto count = flooder->poll(events);
        for (std::size_t i = 0; i < count; ++i) {
            up += events[i].kind == transports::EventKind::link_up ? 1U : 0U;
            down += events[i].kind == transports::EventKind::link_down ? 1U : 0U;
        }
    };
    for (int i = 0; i < hellos; ++i) {
        const Hello hello{.version = wire_version,
                          .rail = 0,
                          .from = {.instance = 1000U + static_cast<unsigned>(i), .rank = no_rank},
                          .to = 20,
                          .nonce = 1,
                          .job = key.job};
        static_cast<void>(flooder->connect(pair.b->rail_address(), encode_hello(key, hello)));
    }
    pair.until([&] {
        look();
        return up == hellos && down >= hellos - 512;
    });
    CHECK(down == hellos - 512);
    CHECK(pair.b->manager.live_links(0).size() == 1);
    pair.talk();
    const auto begun = World::now();
    pair.until([&] {
        look();
        return down == hellos;
    });
    CHECK(World::now() - begun < 5 * base::second);
    pair.talk();
    CHECK(pair.b->links_lost(0) == 0);
}

// --- Ends of processes, as told by the job ---------------------------------------------------------------------------

TEST_CASE("told that a peer's process has ended: who is not connected to it does not wait", "[rails][sessions]") {
    const auto how = GENERATE(ErrorCode::peer_left, ErrorCode::peer_lost);
    const int left = how == ErrorCode::peer_left ? 1 : 0;
    const bool waiting = GENERATE(false, true);
    Couple pair(1);
    auto& a = pair.a;
    pair.world.cut(sim::Cut::silent);
    if (waiting) {
        a.say(1, "never heard");
        run(pair.world, {&a}, 100 * base::millisecond);
    }
    a.manager.ended(1, 20, how, World::now());
    CHECK(a.gone == Codes{how});
    CHECK(a.left == left);
    a.manager.ended(1, 20, how, World::now());  // told again, as an answer
    CHECK(a.gone.size() == 1);
    a.manager.want(1, World::now());
    run(pair.world, {&a}, base::millisecond);
    CHECK(a.gone == Codes{how, how});
    CHECK(a.left == left);
    pair.world.restore();
    Process next(pair.world, "x", {.instance = 30, .rank = 1});
    a.knows(next);
    a.say(1, "new");
    until(pair.world, {&a, &next}, [&] { return pair.heard(next, "new"); });
    CHECK(a.gone.size() == 2);
}

TEST_CASE("told that a peer's process has ended: what its links bring still counts", "[rails][sessions]") {
    Couple pair(1);
    auto& a = pair.a;
    pair.talk();
    a.manager.ended(1, 20, ErrorCode::peer_lost, World::now());
    pair.b->say(0, "last words");
    pair.until([&] { return pair.heard(a, "last words"); });
    CHECK(a.gone.empty());
    pair.world.cut(sim::Cut::loud);
    const auto begin = World::now();
    until(pair.world, {&a}, [&] { return !a.gone.empty(); });
    CHECK(a.gone == Codes{ErrorCode::peer_lost});
    CHECK(World::now() - begin < 10 * base::millisecond);
}

TEST_CASE("what the job tells of a rank's processes may come after the processes themselves", "[rails][sessions]") {
    Couple pair(1);
    auto& a = pair.a;
    pair.talk();
    pair.world.cut(sim::Cut::loud);
    pair.world.restore();
    using Source = RailManager::Source;
    Process third(pair.world, "x", {.instance = 40, .rank = 1});
    const auto address_of = [&](std::uint64_t instance) {
        auto address = third.manager.own_address("x", 1);
        address.instance = instance;
        return address;
    };
    third.knows(a);
    third.say(0, "third");
    until(pair.world, {&a, &third}, [&] { return pair.heard(a, "third"); });
    const auto lost = a.gone.size();
    // Its predecessor, which it has never seen, and the one before.
    a.manager.ended(1, 20, ErrorCode::peer_lost, World::now());
    a.manager.learn(address_of(30), Source::job);
    a.manager.ended(1, 30, ErrorCode::peer_lost, World::now());
    a.manager.learn(address_of(40), Source::job);
    CHECK(a.gone.size() == lost);
    CHECK(a.peer(1).instance == 40);
    a.say(1, "still there");
    until(pair.world, {&a, &third}, [&] { return pair.heard(third, "still there"); });
    a.manager.ended(1, 40, ErrorCode::peer_left, World::now());
    a.manager.learn(address_of(50), Source::job);  // told in order: this is the next
    CHECK(a.peer(1).instance == 50);
}

TEST_CASE("who asks for a link with a process that leaves hears so at once", "[rails][sessions]") {
    Couple pair(1);
    pair.b->manager.say_goodbye(World::now());
    pair.a.say(1, "too late");
    const auto begin = World::now();
    pair.until([&] { return !pair.a.gone.empty(); });
    CHECK(pair.a.gone == Codes{ErrorCode::peer_left});
    CHECK(pair.a.left == 1);
    CHECK(World::now() - begin < 10 * base::millisecond);
}
