// Models of earlier runs: a later one verifies them, and measures only where they do not hold.
#include <filesystem>
#include <sstream>

#include "engine/pair.hpp"
#include "engine/sim_pair.hpp"
#include "scratch.hpp"

using namespace railmux;
using messaging::Engine;
using test::SimHosts;

namespace {

/// What verifying one link may take, in both directions.
constexpr std::uint64_t verification = 8;

struct Seen {
    std::string rail;
    ModelSource source = ModelSource::guess;
    std::uint64_t probe_messages = 0;  // of all links of that rail
};

/// What an engine knows of its links to a peer; the messages stand in its report only.
std::vector<Seen> seen_by(Engine& engine, Peer peer) {
    std::vector<Seen> all;
    for (const auto& link : engine.models(peer)) all.push_back({link.rail, link.source});
    std::istringstream report(engine.report());
    for (std::string line; std::getline(report, line);) {
        std::istringstream words(line);
        const std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
        if (word.front() != "model") continue;
        REQUIRE(word.size() == 13);
        for (auto& seen : all) {
            if (seen.rail == word[1]) seen.probe_messages = std::stoull(word[11]);
        }
    }
    return all;
}

/// Two rails from host s to each of the others; bytes take `slow` times as long as they might, and the way out of these hosts
/// is so much longer, in ns.
void add_rails(SimHosts& hosts, std::initializer_list<const char*> names, double slow = 1, double farther = 0) {
    for (const char* name : names) {
        hosts.fabric.add_rail(name, {.device = "eth0",
                                     .network = "net0",
                                     .timing = test::sim::simple_timing(5000 + farther, 300, 300, 400, slow)});
        hosts.fabric.add_rail(name, {.device = "eth1",
                                     .network = "net1",
                                     .timing = test::sim::simple_timing(9000 + farther, 300, 300, 400, 4 * slow)});
    }
}

/// A message, and then whatever is left to be measured. The peer that it went to.
Peer meet(SimHosts& hosts, Engine& from, Engine& to) {
    const auto there = from.add_peer(to.address());
    const auto back = to.add_peer(from.address());
    const auto data = test::pattern(8);
    std::vector<std::byte> got(8);
    const MutableBuffer in(got);
    const ConstBuffer out(data);
    auto receive = to.irecv(back, 1, {&in, 1}, nullptr);
    auto send = from.isend(there, 1, {&out, 1}, nullptr);
    hosts.look_each = 500;
    const auto told = [&] {
        const auto models = to.models(back);
        return models.size() == 2 &&
               std::ranges::all_of(models, [](const auto& m) { return m.source == ModelSource::told; });
    };
    hosts.until({&from, &to}, [&] {
        if (send.active()) static_cast<void>(from.test(send));
        if (receive.active()) static_cast<void>(to.test(receive));
        return told() && !send.active() && !receive.active();
    });
    CHECK(test::same(got, data));
    return there;
}

enum class Starts { s, t };

/// One run of two hosts; what the one that starts knows of its links at the end.
std::vector<Seen> run(Starts starts, double slow = 1, std::string_view probe = "cached") {
    SimHosts hosts;
    hosts.settings = {{"probe", std::string(probe)}};
    add_rails(hosts, {"s", "t"}, slow);
    const auto s = hosts.start("s", "vft");
    const auto t = hosts.start("t", "vft");
    auto& first = starts == Starts::s ? *s : *t;
    const auto peer = meet(hosts, first, starts == Starts::s ? *t : *s);
    return seen_by(first, peer);
}

void check(const std::vector<Seen>& links, ModelSource source, bool measured) {
    REQUIRE(links.size() == 2);
    for (const auto& link : links) {
        INFO(link.rail << ": " << to_string(link.source) << ", " << link.probe_messages << " messages");
        CHECK(link.source == source);
        CHECK((link.probe_messages > verification) == measured);
    }
}

}  // namespace

TEST_CASE("store: a later run verifies what an earlier one measured, whichever side begins", "[engine][store]") {
    check(run(Starts::s), ModelSource::probed, true);
    check(run(Starts::s), ModelSource::verified, false);
    check(run(Starts::t), ModelSource::verified, false);
    check(run(Starts::s), ModelSource::verified, false);
}

TEST_CASE("store: what no longer holds is measured again, and verified from then on", "[engine][store]") {
    check(run(Starts::s), ModelSource::probed, true);
    check(run(Starts::s, 3), ModelSource::probed, true);
    check(run(Starts::s, 3), ModelSource::verified, false);
}

TEST_CASE("store: it is used only if it is wanted", "[engine][store]") {
    check(run(Starts::s, 1, "shared"), ModelSource::probed, true);
    check(run(Starts::s, 1, "shared"), ModelSource::probed, true);
    CHECK(std::filesystem::is_empty(test::scratch_folder()));
}

TEST_CASE("store: whoever wants every link measured reuses nothing", "[engine][store]") {
    check(run(Starts::s), ModelSource::probed, true);
    check(run(Starts::s, 1, "full"), ModelSource::probed, true);
    check(run(Starts::s), ModelSource::verified, false);
}

TEST_CASE("store: without probes a link stays a guess, whatever earlier runs measured", "[engine][store]") {
    check(run(Starts::s), ModelSource::probed, true);
    SimHosts hosts;
    hosts.settings = {{"probe", "off"}};
    add_rails(hosts, {"s", "t"});
    const auto s = hosts.start("s", "vft");
    const auto t = hosts.start("t", "vft");
    const auto to_t = s->add_peer(t->address());
    const auto to_s = t->add_peer(s->address());
    hosts.deliver(*s, to_t, *t, to_s, 8);
    const auto end = hosts.fabric.now() + base::second;
    hosts.until({s.get(), t.get()}, [&] { return hosts.fabric.now() > end; });
    for (const auto& links : {seen_by(*s, to_t), seen_by(*t, to_s)}) {
        REQUIRE(links.size() == 2);
        for (const auto& link : links) {
            CHECK(link.source == ModelSource::guess);
            CHECK(link.probe_messages == 0);
        }
    }
}

TEST_CASE("store: a damaged file is as none", "[engine][store]") {
    check(run(Starts::s), ModelSource::probed, true);
    for (const auto& file : std::filesystem::directory_iterator(test::scratch_folder() + "/railmux")) {
        std::filesystem::resize_file(file, std::filesystem::file_size(file) - 2);
    }
    check(run(Starts::s), ModelSource::probed, true);
    check(run(Starts::s), ModelSource::verified, false);
}

TEST_CASE("store: what holds for a kind of links is known of each of them in the next run", "[engine][store]") {
    for (const bool again : {false, true}) {
        SimHosts hosts;
        add_rails(hosts, {"s", "t", "u"});
        const auto s = hosts.start("s", "vft");
        const auto t = hosts.start("t", "vft");
        const auto u = hosts.start("u", "vft");
        if (again) {  // u first: that it is known must not be owed to t
            check(seen_by(*s, meet(hosts, *s, *u)), ModelSource::verified, false);
            continue;
        }
        const auto before = seen_by(*s, meet(hosts, *s, *t));
        check(before, ModelSource::probed, true);
        const auto after = seen_by(*s, meet(hosts, *s, *u));
        REQUIRE(after.size() == 2);
        for (std::size_t i = 0; i < 2; ++i) {
            CHECK(after[i].source == ModelSource::verified);
            CHECK(after[i].probe_messages <= before[i].probe_messages + verification);
        }
    }
}

TEST_CASE("store: links of a kind have latencies of their own", "[engine][store]") {
    constexpr double farther = 600;
    SimHosts hosts;
    add_rails(hosts, {"s", "t"});
    add_rails(hosts, {"u"}, 1, farther);
    const auto s = hosts.start("s", "vft");
    const auto t = hosts.start("t", "vft");
    const auto u = hosts.start("u", "vft");
    const auto near = s->models(meet(hosts, *s, *t));
    const auto far = s->models(meet(hosts, *s, *u));
    REQUIRE(far.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(far[i].source == ModelSource::verified);
        const auto& here = near[i].model.ranges.front();
        const auto& there = far[i].model.ranges.front();
        CHECK((there.L.fixed - here.L.fixed).count() == Approx(farther / 2).margin(100));  // there and back, halved
        CHECK(there.G == here.G);
        CHECK(there.g == here.g);
    }
}

TEST_CASE("store: what holds for a kind of links is assumed of one that cannot be verified", "[engine][store]") {
    SimHosts hosts;
    add_rails(hosts, {"s", "t", "u"});
    const auto s = hosts.start("s", "vft");
    const auto t = hosts.start("t", "vft");
    const auto u = hosts.start("u", "vft");
    const auto to_t = meet(hosts, *s, *t);
    const auto known = s->models(to_t);
    const auto before = seen_by(*s, to_t);

    const auto to_u = s->add_peer(u->address());
    const auto data = test::pattern(8);
    const ConstBuffer out(data);
    const auto send = s->isend(to_u, 1, {&out, 1}, nullptr);
    hosts.until({s.get(), u.get()}, [&] { return s->models(to_u).size() == 2; });
    hosts.look_each = 50'000;
    int looks = 0;
    hosts.until({s.get()}, [&] {               // u does nothing any more
        if (++looks % 100 != 0) return false;  // a report takes longer than all the rest
        const auto after = seen_by(*s, to_u);
        return after[0].probe_messages > before[0].probe_messages && after[1].probe_messages > before[1].probe_messages;
    });
    const auto assumed = s->models(to_u);
    REQUIRE(assumed.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(assumed[i].source == ModelSource::shared);
        CHECK(assumed[i].rail == known[i].rail);
        CHECK(assumed[i].model == known[i].model);
    }
}
