// Which messages go with their header, and which are asked for first: as the model of the link has it.
#include <algorithm>

#include "engine/sim_pair.hpp"
#include "forwarding_rail.hpp"

using namespace railmux;
using test::SimHosts;

namespace {

class RegisteringRail final : public ForwardingRail {
public:
    explicit RegisteringRail(std::unique_ptr<Rail> rail) : ForwardingRail(std::move(rail)) {
        own_traits().copies_puts = true;
    }
};

constexpr std::size_t eager_bound = 16 * 1024;

/// Two hosts with a rail of each latency (ns), measured as they come up.
struct World {
    explicit World(const std::vector<double>& latencies, bool registers = false, const char* probe = "shared",
                   const char* most = nullptr) {
        hosts.look_each = 50;
        for (std::size_t i = 0; i < latencies.size(); ++i) {
            const auto number = std::to_string(i);
            const auto timing = test::sim::simple_timing(latencies[i], 50, 50, 50, 0.08);
            for (const char* host : {"a", "b"})
                hosts.fabric.add_rail(host, {.device = "eth" + number, .network = "net" + number, .timing = timing});
        }
        if (registers) {
            hosts.around = [](std::unique_ptr<transports::Rail> rail) {
                return std::make_unique<RegisteringRail>(std::move(rail));
            };
        }
        hosts.settings = {{"probe", probe}};
        if (most != nullptr) hosts.settings.emplace_back("eager.max", most);
        a = hosts.start("a", "vft");
        b = hosts.start("b", "vft");
        to_b = a->add_peer(b->address());
        to_a = b->add_peer(a->address());
        hosts.deliver(*a, to_b, *b, to_a, 8);
        hosts.until({a.get(), b.get()}, [&] {
            const auto links = a->models(to_b);
            return links.size() == latencies.size() &&
                   (probe == std::string_view("off") ||
                    std::ranges::none_of(links, [](const auto& link) { return link.source == ModelSource::guess; }));
        });
    }

    /// Whether a message of so many bytes is put into its place.
    [[nodiscard]] bool asks_first(std::size_t bytes) {
        const auto before = hosts.fabric.counters("a/eth0").puts;
        hosts.deliver(*a, to_b, *b, to_a, bytes);
        return hosts.fabric.counters("a/eth0").puts > before;
    }
    /// The same, of memory that is registered.
    [[nodiscard]] bool asks_first_registered(std::size_t bytes) {
        auto data = test::pattern(bytes);
        const auto region = a->register_memory(data, Rights::read);
        const auto before = hosts.fabric.counters("a/eth0").puts + hosts.fabric.counters("a/eth0").gets;
        std::vector<std::byte> got(bytes);
        const MutableBuffer in(got);
        const ConstBuffer out(data);
        auto receive = b->irecv(to_a, 1, {&in, 1}, nullptr);
        auto send = a->isend(to_b, 1, {&out, 1}, nullptr);
        hosts.until({a.get(), b.get()}, [&] {
            if (send.active()) static_cast<void>(a->test(send));
            if (receive.active()) static_cast<void>(b->test(receive));
            return !send.active() && !receive.active();
        });
        CHECK(test::same(got, data));
        return hosts.fabric.counters("a/eth0").puts + hosts.fabric.counters("a/eth0").gets > before;
    }
    [[nodiscard]] std::uint64_t eager_max() const { return a->models(to_b).front().eager_max; }

    SimHosts hosts;
    std::unique_ptr<messaging::Engine> a, b;
    Peer to_b, to_a;
};

}  // namespace

TEST_CASE("near peers are asked where the payload goes sooner than far ones") {
    World world({600});  // 2 x 700 + 100 ns for asking: what copying 7.5 KB at both ends takes
    const auto limit = world.eager_max();
    CHECK(limit > 6 * 1024);
    CHECK(limit < 9 * 1024);
    CHECK(!world.asks_first(limit));
    CHECK(world.asks_first(limit + 1));
    CHECK(!world.a->explain(world.to_b, limit).rendezvous);
    CHECK(world.a->explain(world.to_b, limit + 1).rendezvous);
}

TEST_CASE("far peers get along with the header what fits a frame") {
    World world({10'000});
    CHECK(world.eager_max() == eager_bound);
    CHECK(!world.asks_first(eager_bound));
    CHECK(world.asks_first(eager_bound + 1));
}

TEST_CASE("what would be copied all the same is sent along") {
    World world({600}, true);
    const auto limit = world.eager_max();
    CHECK(limit < 9 * 1024);
    CHECK(!world.asks_first(limit + 1));
    CHECK(!world.asks_first(eager_bound));
    CHECK(world.asks_first(eager_bound + 1));
    CHECK(!world.asks_first_registered(limit));
    CHECK(world.asks_first_registered(limit + 1));
    CHECK(!world.a->explain(world.to_b, limit + 1).rendezvous);  // of other memory
    CHECK(world.a->explain(world.to_b, eager_bound + 1).rendezvous);
}

TEST_CASE("of several links the one that brings it first decides") {
    World world({10'000, 600});
    CHECK(world.a->explain(world.to_b, 12 * 1024).rendezvous);
    world.hosts.fabric.rail_down("a/eth1", "pulled");
    world.hosts.until({world.a.get(), world.b.get()}, [&] { return world.a->models(world.to_b).size() == 1; });
    CHECK(!world.a->explain(world.to_b, eager_bound).rendezvous);
}

TEST_CASE("a guess is no reason to ask first") {
    World world({0}, false, "off");
    CHECK(world.eager_max() == eager_bound);
    CHECK(!world.asks_first(eager_bound));
}

TEST_CASE("who sets eager.max gets what he asks for") {
    World world({600}, false, "shared", "12K");
    CHECK(world.eager_max() == 12 * 1024);
    CHECK(!world.asks_first(12 * 1024));
    CHECK(world.asks_first(12 * 1024 + 1));
}
