// Large messages of which the first bytes follow the announcement (bulk.inlined): when, and what that gains.
#include "engine/inlined_world.hpp"

namespace railmux {

using inlined::most;
using inlined::Network;
using inlined::World;
using test::sim::simple_timing;

TEST_CASE("inlined: an rts without inlined bytes is what it was before there were any", "[engine]") {
    using messaging::RtsBody;
    const std::vector<rails::BulkTarget::Key> keys = {{.rail = 3, .key = {7, 8}}};
    std::vector<std::byte> body(RtsBody::size + messaging::bulk_key_size);
    messaging::write_rts(body.data(), {.tag = 5, .bytes = 100'000, .sender = {1, 2}}, keys);
    CHECK(base::load<std::uint64_t>(body.data() + 24) == 1);  // the count
    std::vector<rails::BulkTarget::Key> read;
    const auto parses = [&](std::uint64_t bytes, std::uint32_t inlined) {
        messaging::write_rts(body.data(), {.tag = 5, .bytes = bytes, .sender = {1, 2}, .inlined = inlined}, keys);
        const auto rts = messaging::parse_rts(body, read);
        CHECK((!rts || (rts->inlined == inlined && read.size() == 1)));
        return rts.has_value();
    };
    CHECK(parses(100'000, 0));
    CHECK(parses(0, 0));
    CHECK(parses(100'000, most));
    CHECK(parses(most + 1, most));
    CHECK(parses(200'000, rails::largest_inlined));
    CHECK_FALSE(parses(200'000, rails::largest_inlined + 1));
    CHECK_FALSE(parses(0, 1));
    CHECK_FALSE(parses(most, most + 1));
    CHECK_FALSE(parses(most, most));  // nothing is to be got of it, but there are keys
    messaging::write_rts(body.data(), {.tag = 5, .bytes = most, .inlined = most}, {});
    const auto whole = messaging::parse_rts(std::span(body).first(RtsBody::size), read);
    REQUIRE(whole);
    CHECK(whole->whole());
}

TEST_CASE("inlined: a lone message is there sooner, by what goes while the answer is awaited", "[engine]") {
    for (const std::size_t bytes : {140'000U, 300'000U}) {
        const auto never = World("never", {Network{}}).lone(bytes);
        const auto now = World("auto", {Network{}}).lone(bytes);
        INFO(bytes << " bytes: " << never.took << " ns, " << now.took << " ns");
        CHECK(never.moved == bytes);
        CHECK(now.moved == bytes - most);
        CHECK(now.took < never.took - 10'000);  // of 20 us that the answer takes
        CHECK(now.took > never.took - 25'000);
    }
}

TEST_CASE("inlined: a lone message that is not much larger than a frame is not asked for at all", "[engine]") {
    for (const std::size_t bytes : {17'000U, 20'000U, 33'000U, 64'000U}) {
        const auto never = World("never", {Network{}}).lone(bytes);
        const auto now = World("auto", {Network{}}).lone(bytes);
        INFO(bytes << " bytes: " << never.took << " ns, " << now.took << " ns");
        CHECK(never.moved == bytes);
        CHECK(now.moved == 0);
        CHECK(now.took < never.took - 20'000);  // announcement and answer
    }
}

TEST_CASE("inlined: over several links, too, in frames that spread over them", "[engine]") {
    const Network slow{.timing = simple_timing(10'000, 300, 300, 400, 8.0)};  // 1 Gbit/s
    for (const auto& network : {Network{}, slow}) {
        const std::vector<Network> both{network, network};
        for (const std::size_t bytes : {17'000U, 40'000U, 64'000U, 131'072U}) {
            const auto never = World("never", both).lone(bytes);
            World world("auto", both);
            const auto before = world.a->traffic();
            const auto now = world.lone(bytes);
            const auto after = world.a->traffic();
            INFO(bytes << " bytes: " << never.took << " ns, " << now.took << " ns");
            CHECK(never.moved == bytes);
            CHECK(now.moved == 0);
            CHECK(now.took < never.took - 15'000);  // announcement and answer
            for (std::size_t i = 0; i < after.size(); ++i)
                CHECK(after[i].sent_bytes - before[i].sent_bytes >= 3 * bytes);   // of 10
            const auto rest = world.hosts.fabric.now() + 10 * base::millisecond;  // until the last is acknowledged
            world.until([&] { return world.hosts.fabric.now() > rest; });
            const auto told = world.a->explain(world.to_b, bytes);
            CHECK_FALSE(told.rendezvous);
            CHECK(told.frames == messaging::inlined_frames(bytes, 2));
            CHECK(told.links[0].share_bytes + told.links[1].share_bytes == told.wire_bytes);
        }
    }
}

TEST_CASE("inlined: what goes unasked is cut into equal frames, as many for each link, none small for that",
          "[engine]") {
    using messaging::inlined_frames;
    CHECK(inlined_frames(0, 2) == 0);
    CHECK(inlined_frames(100, 2) == 1);  // what goes ahead where eager.max is set
    CHECK(inlined_frames(17'000, 0) == 2);
    CHECK(inlined_frames(17'000, 1) == 2);
    CHECK(inlined_frames(40'000, 2) == 4);
    CHECK(inlined_frames(40'000, 3) == 3);
    CHECK(inlined_frames(17'000, 8) == 4);
    CHECK(inlined_frames(rails::largest_inlined, 64) == messaging::most_inlined_frames);
    for (std::uint64_t bytes = 1; bytes <= rails::largest_inlined; bytes += 1021) {
        for (std::uint32_t links = 1; links <= 64; ++links) {
            const auto frames = inlined_frames(bytes, links);
            REQUIRE(frames > 0);
            REQUIRE(frames <= messaging::most_inlined_frames);
            REQUIRE((bytes + frames - 1) / frames <= messaging::largest_small);
        }
    }
}

TEST_CASE("inlined: by default nothing is where it costs a copy, or nothing would be saved", "[engine]") {
    const auto all_asked_for = [](const std::vector<Network>& networks, std::size_t bytes) {
        CHECK(World("auto", networks).lone(bytes).moved == bytes);
    };
    const Network reads{.get = true};
    const Network slow{.timing = simple_timing(2'000, 300, 300, 400, 80.0)};  // 100 Mbit/s: the answer is there at once
    all_asked_for({reads}, 64'000);
    all_asked_for({Network{}, reads}, 64'000);
    all_asked_for({Network{}, Network{}}, 200'000);
    all_asked_for({slow}, 64'000);
    all_asked_for({Network{.by_processors = true}}, 64'000);
    all_asked_for({Network{}}, 2'000'000);
}

TEST_CASE("inlined: who sets eager.max has larger messages asked for", "[engine]") {
    for (const char* inlined : {"auto", "always"}) {
        World world(inlined, {Network{}}, "auto", {}, 1, "vft", "4K");
        CHECK(world.lone(20'000).moved == 20'000 - 4096);
        CHECK(world.lone(64'000).moved == 64'000 - 4096);
    }
}

TEST_CASE("inlined: a smaller message just before makes no difference", "[engine]") {
    World world("auto", {Network{}});
    static_cast<void>(world.lone(20'000));
    const auto rest = world.hosts.fabric.now() + 10 * base::millisecond;
    world.until([&] { return world.hosts.fabric.now() > rest; });
    const auto header = test::pattern(2000);
    const auto data = test::pattern(20'000);
    const auto before = world.moved();
    auto first = world.send(1, header);
    CHECK_FALSE(world.a->explain(world.to_b, data.size()).rendezvous);
    CHECK(world.a->explain(world.to_b, 2'000'000).rendezvous);
    auto second = world.send(1, data);
    std::vector<std::byte> got(data.size());
    for (auto* send : {&first, &second}) {
        auto receive = world.receive(1, got, world.to_a);
        CHECK(world.finish(*world.b, receive).ok());
        CHECK(world.finish(*world.a, *send).ok());
    }
    CHECK(test::same(got, data));
    CHECK(world.moved() == before);
}

TEST_CASE("inlined: of a stream of messages only the first goes ahead", "[engine]") {
    World world("auto", {Network{}});
    static_cast<void>(world.lone(64'000));
    const auto rest = world.hosts.fabric.now() + 10 * base::millisecond;  // until that is acknowledged
    world.until([&] { return world.hosts.fabric.now() > rest; });
    const auto data = test::pattern(64'000);
    std::vector<std::vector<std::byte>> got(64, std::vector<std::byte>(data.size()));
    std::vector<Request> sends, receives;
    const auto before = world.moved();
    for (auto& one : got) receives.push_back(world.receive(1, one, world.to_a));
    for (std::size_t i = 0; i < got.size(); ++i) sends.push_back(world.send(1, data));
    for (auto& send : sends) REQUIRE(world.finish(*world.a, send).ok());
    for (auto& receive : receives) REQUIRE(world.finish(*world.b, receive).ok());
    for (const auto& one : got) REQUIRE(test::same(one, data));
    CHECK(world.moved() - before == (got.size() - 1) * data.size());
}

TEST_CASE("inlined: the next one goes unasked as soon as the answer says that the last has come", "[engine]") {
    World world("auto", {Network{}});
    static_cast<void>(world.lone(17'000));
    const auto data = test::pattern(17'000);
    std::vector<std::byte> there(data.size()), back(data.size());
    const MutableBuffer in(back);
    const ConstBuffer out(data);
    const auto rest = world.hosts.fabric.now() + 10 * base::millisecond;
    world.until([&] { return world.hosts.fabric.now() > rest; });
    const auto before = world.moved();
    for (int i = 0; i < 20; ++i) {
        auto answer = world.a->irecv(world.to_b, TagMatch(2), {&in, 1}, nullptr);
        auto send = world.send(1, data);
        auto receive = world.receive(1, there, world.to_a);
        REQUIRE(world.finish(*world.b, receive).ok());
        auto reply = world.b->isend(world.to_a, 2, {&out, 1}, nullptr);
        world.hosts.fabric.advance(base::millisecond);  // all of it is there, and nobody has looked
        world.hosts.until({world.a.get()}, [&] { return world.a->test(answer).has_value(); });
        REQUIRE(world.finish(*world.a, send).ok());
        REQUIRE(world.finish(*world.b, reply).ok());
    }
    CHECK(world.moved() == before);
}

TEST_CASE("inlined: over links that nobody has measured, too", "[engine]") {
    World world("auto", {Network{}, Network{}}, "auto", {}, 1, "vft", {}, "off");
    CHECK(world.lone(17'000).moved == 0);
    CHECK(world.lone(20'000).moved == 0);
}

TEST_CASE("inlined: while another transfer is under way, to whomever, nothing goes ahead", "[engine]") {
    World world("auto", {Network{}});
    world.hosts.fabric.add_rail("c", {.device = "eth0", .network = "net0", .timing = Network{}.timing});
    const auto c = world.hosts.start("c", "vft");
    const auto to_c = world.a->add_peer(c->address());
    const auto from_a = c->add_peer(world.a->address());
    const auto moved = [&](std::size_t bytes) {
        const auto before = world.moved();
        world.hosts.deliver(*world.a, to_c, *c, from_a, bytes);
        return world.moved() - before;
    };
    static_cast<void>(world.lone(64'000));
    const auto rest = world.hosts.fabric.now() + 100 * base::millisecond;
    static_cast<void>(moved(64'000));
    world.hosts.until({world.a.get(), c.get()}, [&] { return world.hosts.fabric.now() > rest; });
    CHECK(moved(64'000) == 0);
    const auto data = test::pattern(64'000);
    auto send = world.send(9, data);  // which nobody receives yet
    CHECK(moved(64'000) == 64'000);
    std::vector<std::byte> got(data.size());
    auto receive = world.receive(9, got, world.to_a);
    CHECK(world.finish(*world.b, receive).ok());
    CHECK(world.finish(*world.a, send).ok());
    CHECK(moved(64'000) == 0);
}

}  // namespace railmux
