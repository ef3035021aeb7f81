// One-sided operations whose memory or peer goes while they are under way.
#include <algorithm>
#include <atomic>
#include <memory>

#include "engine/one_sided_world.hpp"
#include "engine/sim_pair.hpp"

using namespace railmux;
using test::OneSidedWorld;
using test::Pair;
using test::pattern;

namespace {

constexpr std::size_t more_than_sockets_hold = 50'000'000;

bool sending(const Context& context) {
    return std::ranges::any_of(context.traffic(), [](const RailTraffic& rail) { return rail.sent_bytes > 0; });
}

}  // namespace

TEST_CASE("one-sided: memory may go while peers use it", "[engine]") {
    OneSidedWorld world(GENERATE(false, true));
    const std::size_t bytes = 8'000'000;
    auto memory = std::make_unique<std::byte[]>(bytes);
    std::optional region(world.target.register_memory({memory.get(), bytes}));
    const auto key = region->key();
    const auto data = pattern(bytes);
    std::vector<std::byte> got(bytes);
    const auto wait = GENERATE(0, 3, 10, 30);
    const bool getting = GENERATE(false, true);
    auto request = getting ? world.origin.iget(world.peer, {key, 0}, got)
                           : world.origin.iput(world.peer, {key, 0}, data, {.end = PutEnd::remote});
    for (int i = 0; i < wait; ++i) {
        world.origin.progress();
        world.target.progress();
    }
    if (&world.origin == &world.target || !getting) {
        region.reset();
    } else {  // the origin must go on while the target waits for its get to end
        std::atomic<bool> gone = false;
        std::thread other([&] {
            region.reset();
            gone = true;
        });
        while (!gone) world.origin.progress();
        other.join();
    }
    memory.reset();  // a write from now on is one into freed memory
    const auto status = world.finish(std::move(request));
    CHECK((status.ok() || status.code == ErrorCode::access_denied));
    if (getting && status.ok()) CHECK(std::ranges::all_of(got, [](std::byte byte) { return byte == std::byte{}; }));
}

TEST_CASE("one-sided: memory goes though who reads it stands still", "[engine]") {
    auto config = test::two_rails();
    config.set("close.timeout", "50ms").set("log", "off");
    Pair pair(config);
    const std::size_t bytes = more_than_sockets_hold;
    auto memory = std::make_unique<std::byte[]>(bytes);
    std::optional region(pair.b.register_memory({memory.get(), bytes}));
    std::vector<std::byte> got(bytes);
    auto get = pair.a.iget(pair.to_b, {region->key(), 0}, got);
    pair.until([&] { return sending(pair.b); });
    region.reset();
    memory.reset();  // a rail that still sends it reads freed memory
    CHECK(!pair.finish(pair.a, get).ok());
}

TEST_CASE("one-sided: memory waits for who reads it for as long as that one takes some", "[engine]") {
    test::SimHosts hosts;
    hosts.settings = {{"close.timeout", "3ms"}, {"probe", "off"}};
    for (const char* host : {"a", "b"}) {
        hosts.fabric.add_rail(host, {.device = "eth0", .timing = test::sim::simple_timing(2000, 300, 300, 400, 1.0)});
    }
    auto a = hosts.start("a", "vft");
    auto b = hosts.start("b", "vft");
    const auto to_b = a->add_peer(b->address());
    const auto to_a = b->add_peer(a->address());
    hosts.deliver(*a, to_b, *b, to_a, 8);
    const std::size_t bytes = 20'000'000;  // 20 ms
    std::vector<std::byte> memory(bytes), other_memory(bytes), got(bytes), further(bytes);
    std::optional region(b->register_memory(memory, Rights::read));
    std::optional other_region(b->register_memory(other_memory, Rights::read));
    const MutableBuffer into(got), further_into(further);
    auto get = a->iget(to_b, {region->key(), 0}, {&into, 1}, nullptr);
    hosts.until({a.get(), b.get()}, [&] { return b->traffic().front().sent_bytes > 1'000'000; });
    // What comes meanwhile has it ask for more: what is left to send grows.
    const auto signal = pattern(8);
    std::vector<std::byte> received(signal.size());
    const ConstBuffer from(signal);
    const MutableBuffer to(received);
    Request next;
    auto receive = a->irecv(to_b, 2, {&to, 1}, [&](const Status&) {
        next = a->iget(to_b, {other_region->key(), 0}, {&further_into, 1}, nullptr);
    });
    auto send = b->isend(to_a, 2, {&from, 1}, nullptr);
    const auto begun = hosts.fabric.now();
    {
        const auto meanwhile = hosts.keep_going(*a);
        region.reset();
    }
    CHECK(hosts.fabric.now() - begun > 15 * base::millisecond);
    REQUIRE(next.active());
    for (auto* request : {&get, &next, &receive}) {
        std::optional<Status> status;
        hosts.until({a.get(), b.get()}, [&] { return (status = a->test(*request)).has_value(); });
        CHECK(status->ok());
    }
    hosts.until({a.get(), b.get()}, [&] { return b->test(send).has_value(); });
    const auto meanwhile = hosts.keep_going(*a);  // or no time would go by for who waits for it
    other_region.reset();
    b.reset();
}

TEST_CASE("one-sided: memory goes when who reads it has said goodbye", "[engine]") {
    auto config = test::two_rails();
    config.set("close.timeout", "50ms").set("log", "off");
    Context b(config);
    std::optional<Context> a(std::in_place, config);
    const auto to_b = a->add_peer(b.address());
    const std::size_t bytes = more_than_sockets_hold;
    auto memory = std::make_unique<std::byte[]>(bytes);
    std::optional region(b.register_memory({memory.get(), bytes}));
    std::vector<std::byte> got(bytes);
    {
        auto get = a->iget(to_b, {region->key(), 0}, got);
        while (!sending(b)) {
            a->progress();
            b.progress();
        }
    }
    std::atomic<bool> gone = false;
    std::thread leaving([&] {
        a.reset();
        gone = true;
    });
    for (int i = 0; i < 5; ++i) b.progress();
    region.reset();
    std::fill_n(memory.get(), bytes, std::byte{0xff});  // whoever still sends it sends this
    while (!gone) b.progress();
    leaving.join();
    for (int i = 0; i < 100; ++i) b.progress();
    CHECK(std::ranges::count(got, std::byte{0xff}) == 0);
}

TEST_CASE("one-sided: a peer that leaves ends what was under way", "[engine]") {
    auto config = test::two_rails();
    config.set("connect.patience", "200ms").set("recover.patience", "200ms");
    Context a(config);
    std::optional<Context> b(std::in_place, config);
    const auto to_b = a.add_peer(b->address());
    std::vector<std::byte> memory(100);
    std::optional region(b->register_memory(memory));
    const auto key = region->key();
    std::uint64_t before = 0;
    auto atomic = a.ifetch_add(to_b, {key, 0}, 1, before);
    while (!a.test(atomic)) b->progress();
    region.reset();
    auto waiting = a.iget(to_b, {key, 0}, memory);
    std::atomic<bool> gone = false;
    std::thread leaving([&] {
        b.reset();
        gone = true;
    });
    while (!gone) a.progress();
    leaving.join();
    const auto code = a.wait(waiting).code;
    CHECK((code == ErrorCode::peer_left || code == ErrorCode::access_denied));  // it may still have answered
    auto put = a.iput(to_b, {key, 0}, memory);
    CHECK(a.wait(put).code == ErrorCode::peer_left);
    auto get = a.iget(to_b, {key, 0}, memory);
    CHECK(a.wait(get).code == ErrorCode::peer_left);
    auto flush = a.iflush();
    CHECK(a.wait(flush).ok());
}
