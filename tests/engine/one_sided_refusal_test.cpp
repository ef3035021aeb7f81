// One-sided operations that are not allowed or make no sense: they fail at the origin and touch nothing at the target.
#include <algorithm>
#include <array>
#include <random>

#include "engine/one_sided_world.hpp"

using namespace railmux;
using test::OneSidedWorld;
using test::Pair;
using test::pattern;

TEST_CASE("one-sided: what is not allowed fails here and touches nothing there", "[engine]") {
    OneSidedWorld world(GENERATE(false, true));
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
    OneSidedWorld world(false);
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
    CHECK(test::same(memory, data));
    CHECK(flush().ok());  // told once
    bad =
        pair.a.iput(pair.to_b, {region.key(), memory.size() - 7}, ConstBuffer(data).first(8), {.end = PutEnd::remote});
    auto all = pair.a.iflush();
    CHECK(pair.finish(pair.a, bad).code == ErrorCode::access_denied);
    CHECK(pair.finish(pair.a, all).ok());  // its own request has told
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
