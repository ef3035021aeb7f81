// Rails that share a bottleneck: found, used as one, and given back when one of them is lost or no longer what it was.
#include "engine/pair.hpp"
#include "engine/sim_pair.hpp"
#include "repeats.hpp"

using namespace railmux;
using test::pattern;
using test::SimHosts;

namespace {

/// Rails that could carry 16 Gbit/s each; `cpu` is what a byte takes of the sender's only CPU.
transports::sim::Timing timing(double cpu, double noise = 0) {
    auto timing = test::sim::simple_timing(5000, 300, 300, 400, 0.5);
    timing.ranges.front().o_s.ns_per_byte = cpu;
    timing.noise_mean_ns = noise;
    return timing;
}

/// Two hosts with two rails between them, of which the first does the work of both while the test waits for it.
struct TwoRails {
    explicit TwoRails(const transports::sim::Timing& timing, std::uint64_t seed = 1) : hosts(seed) {
        for (const char* number : {"0", "1"}) {
            for (const char* host : {"a", "b"}) {
                hosts.fabric.add_rail(
                    host,
                    {.device = std::string("eth") + number, .network = std::string("net") + number, .timing = timing});
            }
        }
        a = hosts.start("a", "vft");
        b = hosts.start("b", "vft");
        to_b = a->add_peer(b->address());
        to_a = b->add_peer(a->address());
    }

    SharingAssessment assess() {
        const auto meanwhile = hosts.keep_going(*b);
        return a->assess_sharing(to_b, "all", {});
    }

    void send(std::size_t bytes) { hosts.deliver(*a, to_b, *b, to_a, bytes); }

    /// By rail, what `bytes` more were sent over.
    std::array<std::uint64_t, 2> shares(std::size_t bytes) {
        const auto before = sent();
        send(bytes);
        const auto after = sent();
        return {after[0] - before[0], after[1] - before[1]};
    }
    std::array<std::uint64_t, 2> sent() {
        std::array<std::uint64_t, 2> bytes{};
        for (const auto& t : a->traffic()) bytes[t.rail == "sim:eth1" ? 1 : 0] += t.sent_bytes;
        return bytes;
    }

    SimHosts hosts;
    std::unique_ptr<messaging::Engine> a;
    std::unique_ptr<messaging::Engine> b;
    Peer to_b;
    Peer to_a;
};

}  // namespace

TEST_CASE("groups: rails that share the CPU are found, and count as one", "[engine]") {
    TwoRails rails(timing(1.0));  // 8 Gbit/s for both together
    const auto found = rails.assess();
    REQUIRE(found.pairs.size() == 1);
    INFO(found.pairs[0].text);
    CHECK(found.pairs[0].shared);
    REQUIRE(found.groups.size() == 1);
    CHECK(found.groups[0].rails == std::vector<std::string>{"sim:eth0", "sim:eth1"});
    CHECK(found.groups[0].bits_per_second == Approx(8e9).epsilon(0.1));

    const auto models = rails.a->models(rails.to_b);
    REQUIRE(models.size() == 2);
    for (const auto& model : models) {
        CHECK_THAT(model.group.rails, Catch::Matchers::UnorderedEquals(found.groups[0].rails));
        const auto alone = model.model.predict(1 << 20).rail;
        CHECK(model.while_shared.predict(1 << 20).rail / alone == Approx(2).epsilon(0.1));
    }

    const auto shares = rails.shares(8 << 20);
    CHECK(std::min(shares[0], shares[1]) < (8 << 20) / 100);
    std::array<std::uint64_t, 2> small{};
    for (int i = 0; i < 100; ++i) {
        const auto one = rails.shares(4096);
        small = {small[0] + one[0], small[1] + one[1]};
    }
    CHECK(std::min(small[0], small[1]) < 4096);
}

TEST_CASE("groups: rails of their own are never taken to share", "[engine]") {
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(test::repeats(50)); ++seed) {
        TwoRails rails(timing(0.01, 2000), seed);
        const auto found = rails.assess();
        REQUIRE(found.pairs.size() == 1);
        INFO("seed " << seed << ": " << found.pairs[0].text);
        CHECK_FALSE(found.pairs[0].shared);
        CHECK(found.groups.empty());
        CHECK(rails.a->models(rails.to_b).front().group.rails.empty());
        if (seed > 1) continue;
        const auto shares = rails.shares(8 << 20);
        CHECK(std::min(shares[0], shares[1]) > (8 << 20) / 3);
    }
}

TEST_CASE("groups: the spare rail takes over when the other one is lost", "[engine]") {
    TwoRails rails(timing(1.0));
    REQUIRE(rails.assess().groups.size() == 1);
    const auto before = rails.shares(8 << 20);
    const std::string_view used = before[0] > before[1] ? "eth0" : "eth1";
    rails.hosts.fabric.cut(fmt::format("a/{}", used), fmt::format("b/{}", used), test::sim::Cut::loud);
    const auto after = rails.shares(8 << 20);
    CHECK(after[used == "eth0" ? 1 : 0] == 8 << 20);
    for (const auto& model : rails.a->models(rails.to_b)) CHECK(model.group.rails.empty());
}

TEST_CASE("groups: a rail that becomes much slower is no longer spared for", "[engine]") {
    TwoRails rails(timing(1.0));
    REQUIRE(rails.assess().groups.size() == 1);
    const auto before = rails.shares(8 << 20);
    const std::string_view used = before[0] > before[1] ? "eth0" : "eth1";
    auto slow = timing(1.0);
    slow.ranges.front().G = 10;
    rails.hosts.fabric.set_timing(fmt::format("a/{}", used), slow);
    rails.send(16 << 20);
    const auto after = rails.shares(8 << 20);
    CHECK(after[used == "eth0" ? 1 : 0] > (8 << 20) / 2);
    for (const auto& model : rails.a->models(rails.to_b)) CHECK(model.group.rails.empty());
}
