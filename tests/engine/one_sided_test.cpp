// One-sided operations between two contexts over real sockets, and of a context with itself: what they do, and what they
// refuse.
#include <algorithm>
#include <atomic>
#include <limits>
#include <random>

#include "engine/pair.hpp"

using namespace railmux;
using test::Pair;
using test::pattern;

namespace {

// Around the sizes at which the way changes: eager.max is 16 KiB, a piece of bulk 256 KiB.
constexpr std::array<std::size_t, 8> sizes = {0, 1, 8, 4096, 16384, 16385, 300'000, 3'000'000};

/// What one side of a pair does to the other's memory, or, over the rail self, to its own.
struct World {
    explicit World(bool self) : pair(config(self)), origin(pair.a), target(self ? pair.a : pair.b) {
        peer = self ? pair.a.add_peer(pair.a.address()) : pair.to_b;
    }
    static Config config(bool self) {
        auto all = test::two_rails();
        if (self) all.set("rails", "self");
        return all;
    }
    Status finish(Request request) { return pair.finish(origin, request); }

    Pair pair;
    Context& origin;
    Context& target;
    Peer peer;
};

}  // namespace

TEST_CASE("one-sided: puts and gets of all sizes", "[engine]") {
    World world(GENERATE(false, true));
    const auto bytes = GENERATE(from_range(sizes));
    INFO(bytes << " bytes");
    constexpr std::size_t margin = 100;
    std::vector<std::byte> memory(bytes + 2 * margin, std::byte{0x5a});
    const auto region = world.target.register_memory(memory);
    const auto key = RemoteKey::from(region.key().bytes());  // as it would come over there
    const auto data = pattern(bytes);

    const auto put = world.finish(world.origin.iput(world.peer, {key, margin}, data, {.end = PutEnd::remote}));
    CHECK(put.ok());
    CHECK(put.bytes == bytes);
    CHECK((std::equal(data.begin(), data.end(), memory.begin() + margin)));
    const auto untouched = [](std::byte byte) { return byte == std::byte{0x5a}; };
    CHECK(std::all_of(memory.begin(), memory.begin() + margin, untouched));
    CHECK(std::all_of(memory.end() - margin, memory.end(), untouched));

    std::vector<std::byte> got(bytes + margin);
    const auto get = world.finish(world.origin.iget(world.peer, {key, margin / 2}, got));
    CHECK(get.ok());
    CHECK(get.bytes == got.size());
    CHECK((std::equal(got.begin(), got.end(), memory.begin() + margin / 2)));
}

TEST_CASE("one-sided: gather and scatter lists", "[engine]") {
    World world(GENERATE(false, true));
    const std::size_t piece = GENERATE(std::size_t{7}, std::size_t{100'000});
    std::vector<std::byte> memory(6 * piece);
    const auto region = world.target.register_memory(memory);
    const auto data = pattern(6 * piece);
    std::vector<ConstBuffer> gather;
    std::vector<std::byte> got(6 * piece);
    std::vector<MutableBuffer> scatter;
    for (std::size_t i = 0; i < 6; ++i) {
        gather.push_back(ConstBuffer(data).subspan(i * piece, piece));
        scatter.push_back(MutableBuffer(got).subspan((5 - i) * piece, piece));
    }
    CHECK(world.finish(world.origin.iput(world.peer, {region.key(), 0}, gather, {.end = PutEnd::remote})).ok());
    CHECK((memory == data));
    CHECK(world.finish(world.origin.iget(world.peer, {region.key(), 0}, scatter)).ok());
    for (std::size_t i = 0; i < 6; ++i) {
        CHECK(
            (std::equal(scatter[i].begin(), scatter[i].end(), data.begin() + static_cast<std::ptrdiff_t>(i * piece))));
    }
}

namespace {

template <typename T>
void check_atomics(World& world) {
    alignas(T) std::array<std::byte, 4 * sizeof(T)> memory{};
    const auto region = world.target.register_memory(memory);
    const RemotePlace place{region.key(), 2 * sizeof(T)};
    const auto value = [&] {
        T word{};
        std::memcpy(&word, memory.data() + place.offset, sizeof word);
        return word;
    };
    constexpr auto most = std::numeric_limits<T>::max();
    T before{};
    CHECK(world.finish(world.origin.iswap(world.peer, place, most, before)).ok());
    CHECK(before == 0);
    CHECK(value() == most);
    const auto status = world.finish(world.origin.ifetch_add(world.peer, place, 3, before));
    CHECK(status.bytes == sizeof(T));
    CHECK(before == most);
    CHECK(value() == static_cast<T>(std::numeric_limits<T>::min() + 2));
    CHECK(world.finish(world.origin.icompare_swap(world.peer, place, 7, 9, before)).ok());
    CHECK(before == static_cast<T>(std::numeric_limits<T>::min() + 2));
    CHECK(value() == before);
    CHECK(world.finish(world.origin.icompare_swap(world.peer, place, before, 9, before)).ok());
    CHECK(value() == 9);
    constexpr std::byte nothing{};
    CHECK(std::all_of(memory.begin(), memory.begin() + 2 * sizeof(T), [](std::byte b) { return b == nothing; }));
    CHECK(std::all_of(memory.begin() + 3 * sizeof(T), memory.end(), [](std::byte b) { return b == nothing; }));
}

}  // namespace

TEST_CASE("one-sided: atomics of both widths", "[engine]") {
    World world(GENERATE(false, true));
    check_atomics<std::int32_t>(world);
    check_atomics<std::uint32_t>(world);
    check_atomics<std::int64_t>(world);
    check_atomics<std::uint64_t>(world);
}

TEST_CASE("one-sided: atomics are applied in the order of the calls, once", "[engine]") {
    Pair pair;  // two rails that overtake each other
    std::uint64_t counter = 0;
    const auto region = pair.b.register_memory(std::as_writable_bytes(std::span(&counter, 1)));
    std::vector<std::uint64_t> before(5000);
    std::vector<Request> requests;
    for (std::size_t i = 0; i < before.size(); ++i) {
        requests.push_back(pair.a.iswap(pair.to_b, {region.key(), 0}, i + 1, before[i]));
    }
    for (auto& request : requests) REQUIRE(pair.finish(pair.a, request).ok());
    for (std::size_t i = 0; i < before.size(); ++i) REQUIRE(before[i] == i);
    CHECK(counter == before.size());
}

TEST_CASE("one-sided: what is not allowed fails here and touches nothing there", "[engine]") {
    World world(GENERATE(false, true));
    const std::size_t large = 100'000;
    std::vector<std::byte> memory(large, std::byte{1});
    alignas(8) std::array<std::byte, 16> words{};
    const auto region = world.target.register_memory(memory);
    const auto readable = world.target.register_memory(memory, Rights::read);
    const auto writable = world.target.register_memory(memory, Rights::write);
    const auto atomic = world.target.register_memory(words);
    const auto before = memory;
    const auto data = pattern(large);
    std::vector<std::byte> got(large, std::byte{2});
    const auto untouched = got;

    const auto put = [&](const RemotePlace& place, std::size_t bytes) {
        return world
            .finish(world.origin.iput(world.peer, place, ConstBuffer(data).first(bytes), {.end = PutEnd::remote}))
            .code;
    };
    const auto get = [&](const RemotePlace& place, std::size_t bytes) {
        return world.finish(world.origin.iget(world.peer, place, MutableBuffer(got).first(bytes))).code;
    };
    const auto add = [&](const RemotePlace& place) {
        std::uint64_t word = 0;
        return world.finish(world.origin.ifetch_add(world.peer, place, 1, word)).code;
    };
    constexpr auto denied = ErrorCode::access_denied;
    constexpr auto top = ~std::uint64_t{0};
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{60'000}}) {
        INFO(bytes << " bytes");
        const auto from_offsets = {large - bytes + 1, large, large + 1, std::size_t{1} << 63, top - bytes + 1, top};
        for (const auto offset : from_offsets) {
            CHECK(put({region.key(), offset}, bytes) == denied);
            CHECK(get({region.key(), offset}, bytes) == denied);
        }
        CHECK(put({readable.key(), 0}, bytes) == denied);
        CHECK(get({writable.key(), 0}, bytes) == denied);
        CHECK(put({{}, 0}, bytes) == denied);
        CHECK(get({{}, 0}, bytes) == denied);
        for (std::size_t at = 0; at < RemoteKey::size; ++at) {  // one bit wrong, anywhere
            std::array<std::byte, RemoteKey::size> key;
            std::ranges::copy(region.key().bytes(), key.begin());
            key[at] ^= std::byte{4};
            CHECK(put({RemoteKey::from(key), 0}, bytes) == denied);
            CHECK(get({RemoteKey::from(key), 0}, bytes) == denied);
        }
    }
    CHECK(put({region.key(), large + 1}, 0) == denied);
    CHECK(get({region.key(), large}, 0) == ErrorCode::ok);
    CHECK(add({atomic.key(), 9}) == denied);
    CHECK(add({atomic.key(), top - 3}) == denied);
    CHECK(add({readable.key(), 0}) == denied);
    CHECK(add({writable.key(), 0}) == denied);
    for (const std::uint64_t offset : {1, 2, 4, 7}) CHECK(add({atomic.key(), offset}) == ErrorCode::invalid_argument);
    std::uint32_t half = 0;
    CHECK(world.finish(world.origin.ifetch_add(world.peer, {atomic.key(), 12}, 0, half)).ok());
    CHECK(world.finish(world.origin.ifetch_add(world.peer, {atomic.key(), 13}, 0, half)).code == denied);
    CHECK((memory == before));
    CHECK((got == untouched));
    CHECK(words == std::array<std::byte, 16>{});
    CHECK(put({region.key(), 0}, large) == ErrorCode::ok);  // and all goes on
}

TEST_CASE("one-sided: hostile places, by the thousand", "[engine]") {
    World world(false);
    constexpr std::uint64_t size = 40'000;
    std::vector<std::byte> memory(size, std::byte{1});
    const auto region = world.target.register_memory(memory, Rights::write);
    std::mt19937_64 random(7);
    const auto data = pattern(2 * size);
    std::uint64_t allowed = 0;
    for (int i = 0; i < 5000; ++i) {
        const auto bytes = random() % (i % 10 == 0 ? 2 * size : 100);
        // Near the border, near the end of all numbers, anywhere.
        const std::array<std::uint64_t, 4> offsets = {size - bytes + random() % 3 - 1, 0 - random() % 100, random(),
                                                      random() % size};
        const auto offset = offsets[random() % offsets.size()];
        std::array<std::byte, RemoteKey::size> key;
        std::ranges::copy(region.key().bytes(), key.begin());
        const bool right_key = random() % 2 == 0;
        if (!right_key) key[random() % key.size()] ^= static_cast<std::byte>(1U << random() % 8);
        const bool inside = right_key && offset <= size && bytes <= size - offset;
        allowed += inside ? 1 : 0;
        const auto code = world
                              .finish(world.origin.iput(world.peer, {RemoteKey::from(key), offset},
                                                        ConstBuffer(data).first(bytes), {.end = PutEnd::remote}))
                              .code;
        REQUIRE(code == (inside ? ErrorCode::ok : ErrorCode::access_denied));
    }
    CHECK(allowed > 200);
}

TEST_CASE("one-sided: a key is worth nothing at another peer, or once withdrawn", "[engine]") {
    Pair pair;
    std::vector<std::byte> memory(1000);
    std::vector<std::byte> other(1000);
    std::optional region(pair.b.register_memory(memory));
    const auto there = pair.a.register_memory(other);
    const auto key = region->key();
    const auto data = pattern(100);
    auto put = pair.a.iput(pair.to_b, {there.key(), 0}, data, {.end = PutEnd::remote});
    CHECK(pair.finish(pair.a, put).code == ErrorCode::access_denied);
    region.reset();
    const auto again = pair.b.register_memory(memory);  // in the same slot
    CHECK(again.key() != key);
    put = pair.a.iput(pair.to_b, {key, 0}, data, {.end = PutEnd::remote});
    CHECK(pair.finish(pair.a, put).code == ErrorCode::access_denied);
    CHECK(std::ranges::all_of(memory, [](std::byte byte) { return byte == std::byte{}; }));
}

TEST_CASE("one-sided: errors of puts that ended before are told by the flush", "[engine]") {
    Pair pair;
    std::vector<std::byte> memory(100'000);
    const auto region = pair.b.register_memory(memory);
    const auto data = pattern(memory.size());
    const auto flush = [&] {
        auto request = pair.a.iflush(pair.to_b);
        return pair.finish(pair.a, request);
    };
    CHECK(flush().ok());
    auto bad = pair.a.iput(pair.to_b, {region.key(), memory.size() - 7}, ConstBuffer(data).first(8));
    CHECK(pair.finish(pair.a, bad).ok());  // the buffer may be reused: that is all it says
    auto good = pair.a.iput(pair.to_b, {region.key(), 0}, data);
    const auto status = flush();
    CHECK(status.code == ErrorCode::access_denied);
    CHECK(status.peer == pair.to_b);
    CHECK(pair.finish(pair.a, good).ok());
    CHECK((memory == data));
    CHECK(flush().ok());  // told once
    bad =
        pair.a.iput(pair.to_b, {region.key(), memory.size() - 7}, ConstBuffer(data).first(8), {.end = PutEnd::remote});
    auto all = pair.a.iflush();
    CHECK(pair.finish(pair.a, bad).code == ErrorCode::access_denied);
    CHECK(pair.finish(pair.a, all).ok());  // its own request has told
}

TEST_CASE("one-sided: a flush waits for what was started before, and for nothing else", "[engine]") {
    Pair pair;
    std::vector<std::byte> memory(2'000'000);
    const auto region = pair.b.register_memory(memory);
    const auto first = pattern(1'000'000);
    const auto second = pattern(1'000'000, 2);
    auto one = pair.a.iput(pair.to_b, {region.key(), 0}, first);
    auto flush = pair.a.iflush(pair.to_b);
    auto two = pair.a.iput(pair.to_b, {region.key(), first.size()}, second);
    auto all = pair.a.iflush();
    auto own = pair.b.iflush();  // nothing of its own: over at once
    CHECK(pair.b.test(own).has_value());
    CHECK(pair.finish(pair.a, flush).ok());
    CHECK((std::equal(first.begin(), first.end(), memory.begin())));
    CHECK(pair.finish(pair.a, all).ok());
    CHECK((std::equal(second.begin(), second.end(), memory.begin() + 1'000'000)));
    CHECK(pair.finish(pair.a, one).ok());
    CHECK(pair.finish(pair.a, two).ok());
}

TEST_CASE("one-sided: the target counts notified puts when all their bytes are there", "[engine]") {
    World world(GENERATE(false, true));
    std::vector<std::byte> memory(1'000'000);
    std::optional region(world.target.register_memory(memory));
    const auto data = pattern(memory.size());
    auto first = world.target.inotified(*region, 1);
    auto third = world.target.inotified(*region, 3);
    auto never = world.target.inotified(*region, 4);
    auto put = world.origin.iput(world.peer, {region->key(), 0}, data, {.notify = true});
    CHECK(world.pair.finish(world.target, first).ok());
    CHECK((memory == data));
    CHECK(region->notified() == 1);
    CHECK(world.finish(std::move(put)).ok());
    CHECK(world.finish(world.origin.iput(world.peer, {region->key(), 0}, data)).ok());
    const auto outside =
        world.origin.iput(world.peer, {region->key(), memory.size() + 1}, ConstBuffer(), {.notify = true});
    CHECK(world.finish(world.origin.iput(world.peer, {region->key(), 5}, ConstBuffer(), {.notify = true})).ok());
    CHECK(world.finish(world.origin.iflush(world.peer)).code == ErrorCode::access_denied);
    CHECK(region->notified() == 2);
    CHECK(!world.target.test(third));
    CHECK(world.finish(world.origin.iput(world.peer, {region->key(), 0}, ConstBuffer(data).first(9), {.notify = true}))
              .ok());
    CHECK(world.pair.finish(world.target, third).ok());
    region.reset();
    CHECK(world.pair.finish(world.target, never).code == ErrorCode::cancelled);
}

TEST_CASE("one-sided: misuse throws", "[engine]") {
    Pair pair;
    std::vector<std::byte> memory(8);
    CHECK_THROWS_AS(static_cast<void>(pair.a.register_memory({})), Error);
    CHECK_THROWS_AS(static_cast<void>(pair.a.register_memory(memory, static_cast<Rights>(0))), Error);
    CHECK_THROWS_AS(static_cast<void>(pair.a.register_memory(memory, static_cast<Rights>(4))), Error);
    CHECK_THROWS_AS(static_cast<void>(RemoteKey::from(memory)), Error);
    CHECK_THROWS_AS(static_cast<void>(pair.a.iget(Peer(), {}, memory)), Error);
    CHECK_THROWS_AS(static_cast<void>(pair.a.iflush(Peer::from_index(99))), Error);
    auto region = pair.a.register_memory(memory);
    CHECK_THROWS_AS(static_cast<void>(pair.b.inotified(region, 1)), Error);
    const auto moved = std::move(region);
    CHECK(moved.memory().data() == memory.data());
    CHECK_THROWS_AS(static_cast<void>(pair.a.inotified(region, 1)), Error);  // NOLINT: what it says of an empty one
}

TEST_CASE("one-sided: memory may go while peers use it", "[engine]") {
    World world(GENERATE(false, true));
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
    const std::size_t bytes = 50'000'000;  // more than sockets hold
    auto memory = std::make_unique<std::byte[]>(bytes);
    std::optional region(pair.b.register_memory({memory.get(), bytes}));
    std::vector<std::byte> got(bytes);
    auto get = pair.a.iget(pair.to_b, {region->key(), 0}, got);
    const auto sending = [&] {
        return std::ranges::any_of(pair.b.traffic(), [](const RailTraffic& rail) { return rail.sent_bytes > 0; });
    };
    pair.until(sending);
    region.reset();
    memory.reset();  // a rail that still sends it reads freed memory
    CHECK(!pair.finish(pair.a, get).ok());
}

TEST_CASE("one-sided: a peer that leaves ends what was under way", "[engine]") {
    auto config = test::two_rails();
    config.set("connect.patience", "200ms");
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
