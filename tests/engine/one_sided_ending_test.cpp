// One-sided operations whose memory or peer goes while they are under way.
#include <algorithm>
#include <atomic>
#include <memory>

#include "engine/one_sided_world.hpp"

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
    auto config = test::two_rails();
    config.set("close.timeout", "1s").set("tcp.send_buffer", "64K").set("log", "off");
    config.set("fragment.size", "64K");  // what is taken is seen by the piece
    Pair pair(config);
    const std::size_t bytes = more_than_sockets_hold;
    auto memory = std::make_unique<std::byte[]>(bytes);
    std::optional region(pair.b.register_memory({memory.get(), bytes}));
    std::vector<std::byte> other_memory(bytes);
    const auto other_region = pair.b.register_memory(other_memory);
    std::vector<std::byte> got(bytes);
    std::vector<std::byte> further(bytes / 2);  // made before anybody waits: that takes its time
    Request next;
    auto get = pair.a.iget(pair.to_b, {region->key(), 0}, got);
    pair.until([&] { return sending(pair.b); });
    std::atomic<bool> gone = false;
    std::thread other([&] {
        region.reset();
        gone = true;
    });
    for (int i = 0; !gone; ++i) {  // far slower than close.timeout allows for all of it
        if (i == 100)
            next = pair.a.iget(pair.to_b, {other_region.key(), 0}, further);  // there is more to send, not less
        pair.a.progress();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    other.join();
    CHECK(pair.finish(pair.a, get).ok());
    if (next.active()) CHECK(pair.finish(pair.a, next).ok());
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
