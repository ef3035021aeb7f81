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
    struct Options {
        std::uint64_t seed = 1;
        bool by_processors = false;
        test::FaultyTransport::Plans plans{};
    };

    explicit TwoRails(const transports::sim::Timing& timing) : TwoRails(timing, timing, {}) {}
    TwoRails(const transports::sim::Timing& of_first, const transports::sim::Timing& of_second, const Options& options)
        : hosts(options.seed, options.plans) {
        for (const char* number : {"0", "1"}) {
            for (const char* host : {"a", "b"}) {
                hosts.fabric.add_rail(host, {.device = std::string("eth") + number,
                                             .network = std::string("net") + number,
                                             .timing = *number == '0' ? of_first : of_second,
                                             .by_processors = options.by_processors});
            }
        }
        a = hosts.start("a", "vft", &rails_a);
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

    /// So many under way at once, all with one tag: only their order tells them apart.
    void send_together(std::size_t messages, std::size_t bytes) {
        std::vector<std::vector<std::byte>> data;
        std::vector<std::vector<std::byte>> got(messages, std::vector<std::byte>(bytes));
        std::vector<Request> requests;
        for (std::size_t i = 0; i < messages; ++i) {
            data.push_back(pattern(bytes, static_cast<unsigned>(i + 1)));
            const ConstBuffer out(data.back());
            requests.push_back(a->isend(to_b, 1, {&out, 1}, nullptr));
        }
        for (auto& one : got) {
            const MutableBuffer in(one);
            requests.push_back(b->irecv(to_a, 1, {&in, 1}, nullptr));
        }
        hosts.until({a.get(), b.get()}, [&] {
            for (std::size_t i = 0; i < requests.size(); ++i) {
                if (!requests[i].active()) continue;
                const auto status = (i < messages ? a : b)->test(requests[i]);
                if (status) REQUIRE(status->ok());
            }
            return std::ranges::none_of(requests, &Request::active);
        });
        CHECK(std::ranges::equal(got, data, test::same));
    }
    /// By rail, what these were sent over.
    std::array<std::uint64_t, 2> shares_together(std::size_t messages, std::size_t bytes) {
        const auto before = sent();
        send_together(messages, bytes);
        const auto after = sent();
        return {after[0] - before[0], after[1] - before[1]};
    }
    void become(std::string_view device, const transports::sim::Timing& timing) {
        for (const char* host : {"a", "b"}) hosts.fabric.set_timing(fmt::format("{}/{}", host, device), timing);
    }
    void pass(base::Nanoseconds time) {
        const auto end = hosts.fabric.now() + time;
        hosts.until({a.get(), b.get()}, [&] { return hosts.fabric.now() >= end; });
    }

    SimHosts hosts;
    test::FaultyTransport* rails_a = nullptr;  // owned by the engine
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
        TwoRails rails(timing(0.01, 2000), timing(0.01, 2000), {.seed = seed});
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

namespace {

using Shares = std::array<std::uint64_t, 2>;

/// As memory, or as the loopback.
transports::sim::Timing quick() { return test::sim::simple_timing(200, 100, 100, 100, 0.2); }
transports::sim::Timing slower() { return test::sim::simple_timing(4000, 800, 800, 900, 0.4); }

/// Two rails that processors move, once they are known; the faster one is eth0, or eth1 where `turned`.
struct MovedByProcessors : TwoRails {
    explicit MovedByProcessors(bool turned)
        : TwoRails(turned ? slower() : quick(), turned ? quick() : slower(), {.by_processors = true}) {
        hosts.look_each = base::microsecond;
        send(8);
        pass(base::second / 20);
    }
};

}  // namespace

TEST_CASE("groups: of rails that processors move, the one that was measured to be faster carries all", "[engine]") {
    const bool turned = GENERATE(false, true);
    MovedByProcessors rails(turned);
    const auto all_over = [&](std::uint64_t bytes) { return turned ? Shares{0, bytes} : Shares{bytes, 0}; };
    for (const std::size_t bytes : {8, 4096, 16384, 65536, 1 << 20}) {
        for (int i = 0; i < 5; ++i) CHECK(rails.shares(bytes) == all_over(bytes));
        for (int i = 0; i < 5; ++i) CHECK(rails.shares_together(32, bytes) == all_over(32 * bytes));
    }
    const std::string used = turned ? "sim:eth1" : "sim:eth0";
    for (auto* side : {rails.a.get(), rails.b.get()}) {  // b has sent acknowledgements only
        const auto traffic = side->traffic();
        const auto frames = [&](bool of_used) {
            std::uint64_t sent = 0;
            for (const auto& t : traffic) sent += (t.rail == used) == of_used ? t.sent_frames : 0;
            return sent;
        };
        CHECK(frames(false) < 100);  // probes
        CHECK(frames(true) > 500);
    }
    for (const auto& model : rails.a->models(rails.to_b)) {
        CHECK(model.spare == (model.rail == used ? "" : "moved by the same processors as " + used));
        CHECK_THAT(model.group.rails,
                   Catch::Matchers::UnorderedEquals(std::vector<std::string>{"sim:eth0", "sim:eth1"}));
        CHECK(model.source == ModelSource::probed);
    }
    const auto told = rails.a->explain(rails.to_b, 1 << 20);
    CHECK(told.links[told.choice].rail == used);
    CHECK(told.links[1 - told.choice].spare == "moved by the same processors as " + used);
    CHECK(told.reason == "all others are spare");
}

TEST_CASE("groups: which of the rails that processors move is used follows what traffic shows", "[engine]") {
    MovedByProcessors rails(false);
    REQUIRE(rails.shares(1 << 20) == Shares{1 << 20, 0});
    auto slow = slower();
    slow.ranges.front().G = 8;
    rails.become("eth0", slow);
    for (int i = 0; i < 10; ++i) rails.send_together(8, 1 << 20);
    CHECK(rails.shares(65536) == Shares{0, 65536});
    CHECK(rails.shares_together(8, 1 << 20) == Shares{0, 8 << 20});
}

TEST_CASE("groups: a probe that met the application's messages on a rail that processors move is not believed",
          "[engine]") {
    TwoRails rails(quick(), slower(), {.by_processors = true});
    rails.hosts.look_each = base::microsecond;
    for (int i = 0; i < 50; ++i) rails.send_together(64, 65536);  // links come up meanwhile
    const auto known = [&] {
        const auto models = rails.a->models(rails.to_b);
        return *std::ranges::find(models, "sim:eth0", &LinkModel::rail);
    };
    CHECK(known().source == ModelSource::guess);
    for (int i = 0; i < 300; ++i) {
        rails.send(8);
        rails.pass(5 * base::millisecond);
    }
    CHECK(known().source == ModelSource::probed);
    CHECK(known().model.predict(1).delivery.count() == Approx(400).epsilon(0.1));  // believed at first: 6.8 us
}

TEST_CASE("groups: a load that slows down all that processors move changes little", "[engine]") {
    MovedByProcessors rails(false);
    const auto loaded = [](transports::sim::Timing timing) {
        timing.ranges.front().G = 20 * timing.ranges.front().G;
        return timing;
    };
    rails.become("eth0", loaded(quick()));
    rails.become("eth1", loaded(slower()));
    const std::size_t bytes = GENERATE(65536, 1 << 20);
    const std::size_t messages = (256 << 20) / bytes / 8;
    for (std::size_t i = 0; i < messages / 8; ++i) rails.send_together(8, bytes);
    Shares all{};
    for (std::size_t i = 0; i < messages; ++i) {
        const auto shares = rails.shares_together(8, bytes);
        all = {all[0] + shares[0], all[1] + shares[1]};
    }
    CAPTURE(messages, all[0], all[1]);
    CHECK(all[1] < all[0] / 20);
}

TEST_CASE("groups: rails that processors move count as one where they were measured to share with others", "[engine]") {
    MovedByProcessors rails(false);
    const auto found = rails.assess();
    CHECK(rails.shares(8 << 20) == Shares{8 << 20, 0});
    CHECK(rails.shares_together(8, 1 << 20) == Shares{8 << 20, 0});
    for (const auto& model : rails.a->models(rails.to_b)) CHECK(model.spare.empty() == (model.rail == "sim:eth0"));
}

TEST_CASE("groups: a link dies that processors move, at each step, and the spare one delivers once what it had",
          "[engine]") {
    const auto exchange = [](TwoRails& rails) {
        rails.send(8);
        for (const std::size_t bytes : {8, 4096, 60'000, 300'000}) rails.send_together(6, bytes);
    };
    const auto start = [](std::string_view plan) {
        TwoRails::Options options{.by_processors = true};
        if (!plan.empty()) options.plans["a/eth0"] = transports::FaultPlan::parse(plan);
        return std::make_unique<TwoRails>(quick(), slower(), options);
    };
    std::uint64_t steps = 0;
    {
        const auto whole = start("");
        exchange(*whole);
        steps = whole->rails_a->rails.at("eth0")->steps();
        CHECK(whole->sent()[1] == 0);
    }
    REQUIRE(steps > 20);
    bool took_over = false;
    for (std::uint64_t n = 1; n <= steps; ++n) {
        const auto plan = "kill_link@" + std::to_string(n);
        INFO(plan);
        const auto rails = start(plan);
        exchange(*rails);
        took_over = took_over || rails->sent()[1] > 0;
    }
    CHECK(took_over);
}
