// Whole rail managers on a simulated fabric, for tests of sessions and of the links under them.
//
// Threads: one.
// Lifetime: a World outlives its processes.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "rails/rail_manager.hpp"
#include "rails/way_down.hpp"
#include "transports/sim/fabric.hpp"

#include <catch2/catch.hpp>

namespace rails_world {

using namespace railmux;
using namespace railmux::rails;
namespace sim = railmux::transports::sim;

using Strings = std::vector<std::string>;
using Codes = std::vector<ErrorCode>;

inline const JobKey key = make_job_key("job", "secret");

/// Hosts a, b and x with rails eth0, eth1 ...; under the fabric's clock.
struct World {
    // mute: keepalives are wanted, and nothing is told; flat: each rail reaches all of the other side
    enum class Network : std::uint8_t { plain, mute, confirming, flat };

    explicit World(int rails = 2, Network network = Network::plain) {
        clock_of = &fabric;
        for (int i = 0; i < rails; ++i) {
            // The second is slower by far.
            const auto timing = sim::simple_timing(2000 + 30000 * i, 300, 300, 400, 1.0);
            const auto number = std::to_string(i);
            devices.push_back("eth" + number);
            for (const char* host : {"a", "b", "x"}) {
                fabric.add_rail(host, {.device = devices.back(),
                                       .network = network == Network::flat ? "net" : "net" + number,
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
        bool checksum = false;
        Tracer::Options tracer;
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
    /// Of these so many have a link to the peer.
    [[nodiscard]] std::size_t rails_to(std::uint32_t rank) {
        std::set<std::uint32_t> used;
        for (const auto link : manager.survey().links(rank)) used.insert(manager.survey().rail_of(link));
        return used.size();
    }
    [[nodiscard]] std::span<const std::byte> rail_address() const { return rails_[0].rail->address(); }

    Strings heard;
    Codes gone;  // how sessions ended
    int left = 0;
    std::vector<RailNews> news;
    std::function<void()> on_heard = [] {};

private:
    static Transports transports(World& world, const std::string& host) {
        Transports all;
        all.push_back(sim::make_transport(world.fabric, host));
        return all;
    }
    static RailManager::Options manager_options(Identity self, const Options& options) {
        RailManager::Options all;
        all.connector = {.self = self, .key = key, .pair_limit = options.pair_limit, .checksum = options.checksum};
        all.assessor.probe = false;
        all.tracer = options.tracer;
        all.clock = &World::now;
        all.patience = all.lost_patience = options.patience;
        all.share_node = false;
        return all;
    }

    bool on_frame(std::uint32_t, const FrameHeader&, std::span<const std::byte> body) override {
        heard.emplace_back(reinterpret_cast<const char*>(body.data()), body.size());
        on_heard();
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

inline void run(World& world, std::initializer_list<Process*> processes, base::Nanoseconds time) {
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
        rails_world::until(world, {&a, b.get()}, holds);
    }
    /// One message each way over whatever session there is.
    void talk() {
        const auto text = std::to_string(++talks);
        a.say(1, text);
        b->say(0, text);
        until([&] { return heard(a, text) && heard(*b, text); });
    }
    /// To and fro, so many times, each time so many in a row.
    void exchange(int times, std::size_t bytes, std::size_t burst) {
        for (int i = 0; i < times; ++i) {
            const std::string text(bytes, static_cast<char>('a' + i % 20));
            const auto before = std::pair(b->heard.size(), a.heard.size());
            for (std::size_t each = 0; each < burst; ++each) a.say(1, text);
            until([&] { return b->heard.size() == before.first + burst; });
            for (std::size_t each = 0; each < burst; ++each) b->say(0, text);
            until([&] { return a.heard.size() == before.second + burst; });
        }
    }
    /// All links die, and both notice.
    void lose_links() {
        world.cut(sim::Cut::loud);
        until([&] { return !a.manager.connected(1) && !b->manager.connected(0); });
    }
    [[nodiscard]] bool both_have(std::size_t links) {
        return a.manager.survey().links(1).size() == links && b->manager.survey().links(0).size() == links;
    }
    static bool heard(const Process& process, const std::string& text) {
        return !process.heard.empty() && process.heard.back() == text;
    }

    World world;
    Process a;
    std::unique_ptr<Process> b;
    int talks = 0;
};

inline constexpr Process::Options impatient{.patience = 100 * base::millisecond};

/// B has given a up, who has never heard of it.
inline void have_b_give_up(Couple& pair) {
    pair.world.cut(sim::Cut::loud);
    pair.b->say(0, "lost");
    pair.until([&] { return !pair.b->gone.empty(); });
    pair.world.restore();
}

}  // namespace rails_world
