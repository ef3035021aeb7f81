// Models of earlier runs: a later one verifies them, and measures only where they do not hold.
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include "base/host.hpp"
#include "base/log.hpp"
#include "engine/pair.hpp"
#include "engine/sim_pair.hpp"
#include "model/store.hpp"
#include "scratch.hpp"

using namespace railmux;
using messaging::Engine;
using test::SimHosts;

namespace {

/// What verifying one link may take the side that does it: four messages, and the one that tells the other side.
constexpr std::uint64_t verification = 5;

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
        if (word.front() != "probing") continue;
        REQUIRE(word.size() == 5);
        for (auto& seen : all) {
            if (seen.rail == word[1]) seen.probe_messages = std::stoull(word[2]);
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

const auto this_host = base::host_name();  // which is that of all hosts of a simulated fabric

std::string named(std::string_view rail, std::string_view to) {
    return model::StoreEntry::for_people(model::StoreEntry::link_from(this_host, rail, to));
}

std::multiset<std::string> names_in(const std::string& folder) {
    base::Logger log;
    std::multiset<std::string> names;
    for (const auto& kept : model::Store({.folder = folder}, log).content().models) names.insert(kept.entry.link);
    return names;
}

/// A message to one who knows nothing of whoever comes, until both know both links; what those that are kept are called.
std::multiset<std::string> come_unknown(SimHosts& hosts, Engine& from, Engine& to) {
    const auto there = from.add_peer(to.address());
    const auto data = test::pattern(8);
    std::vector<std::byte> got(8);
    const MutableBuffer in(got);
    const ConstBuffer out(data);
    auto receive = to.irecv(any_source, 1, {&in, 1}, nullptr);
    auto send = from.isend(there, 1, {&out, 1}, nullptr);
    std::optional<Peer> back;
    hosts.look_each = 500;
    const auto told = [&] {
        if (!back) return false;
        const auto models = to.models(*back);
        return models.size() == 2 &&
               std::ranges::all_of(models, [](const auto& m) { return m.source == ModelSource::told; });
    };
    hosts.until({&from, &to}, [&] {
        if (send.active()) static_cast<void>(from.test(send));
        if (receive.active()) {
            if (const auto status = to.test(receive)) back = status->peer;
        }
        return !send.active() && told();
    });
    return names_in(test::scratch_folder() + "/railmux");
}

}  // namespace

TEST_CASE("store: links are named by hosts, never by who was there in one job", "[engine][store]") {
    SimHosts hosts;
    add_rails(hosts, {"s", "t"});
    const auto s = hosts.start("s", "vft");
    const auto t = hosts.start("t", "vft");
    CHECK(come_unknown(hosts, *s, *t) ==
          std::multiset<std::string>{named("sim:eth0", this_host), named("sim:eth1", this_host),
                                     named("sim:eth0", "an unnamed peer"), named("sim:eth1", "an unnamed peer")});
}

TEST_CASE("store: a link that an earlier run went over itself keeps its name", "[engine][store]") {
    check(run(Starts::s), ModelSource::probed, true);
    SimHosts hosts;
    add_rails(hosts, {"s", "t"}, 3);  // so that all is measured and kept anew
    const auto s = hosts.start("s", "vft");
    const auto t = hosts.start("t", "vft");
    CHECK(come_unknown(hosts, *s, *t) ==
          std::multiset<std::string>{named("sim:eth0", this_host), named("sim:eth0", this_host),
                                     named("sim:eth1", this_host), named("sim:eth1", this_host)});
}

TEST_CASE("store: who comes from this machine is known by its rails", "[engine][store]") {
    auto config = test::two_rails();
    config.set("tcp.interfaces", "127.0.1.1");
    Context a(config);
    const auto folder = test::scratch_folder() + "/of_b";  // else a's own entry would be there already
    Context b(config.set("probe.store", folder));
    const auto to_b = a.add_peer(b.address());
    const auto data = test::pattern(8);
    std::vector<std::byte> got(8);
    const auto told = [&](Peer peer) {
        const auto models = b.models(peer);
        return !models.empty() && models.front().source == ModelSource::told;
    };
    // Where others take the processor all the time it may be measured at a later attempt only.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    bool over = false;
    while (!over && std::chrono::steady_clock::now() < end) {
        auto receive = b.irecv(any_source, 1, got);
        auto send = a.isend(to_b, 1, data);
        while (receive.active() && std::chrono::steady_clock::now() < end) {
            a.progress();
            if (const auto status = b.test(receive)) over = told(status->peer);
        }
        a.wait(send);
    }
    REQUIRE(over);
    CHECK(names_in(folder) == std::multiset<std::string>{named(a.models(to_b).front().rail, this_host)});
}

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
