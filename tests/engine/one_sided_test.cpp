// One-sided operations between two contexts over real sockets, and of a context with itself: what they do.
#include <algorithm>
#include <array>
#include <limits>

#include "base/numa.hpp"
#include "engine/one_sided_world.hpp"

using namespace railmux;
using test::OneSidedWorld;
using test::Pair;
using test::pattern;

namespace {

// Around the sizes at which the way changes: eager.max is 16 KiB, a piece of bulk has 1 MiB at most.
constexpr std::array<std::size_t, 8> access_sizes = {0, 1, 8, 4096, 16384, 16385, 300'000, 3'000'000};

}  // namespace

TEST_CASE("one-sided: a region tells on which node it lies", "[engine]") {
    OneSidedWorld world(true);
    auto memory = pattern(100'000);
    const auto region = world.target.register_memory(memory);
    CHECK(region.numa_node() == base::node_of(memory));
}

TEST_CASE("one-sided: a process reaches itself over the rail for that, whatever else does", "[engine]") {
    const bool left_out = GENERATE(false, true);
    auto config = test::two_rails();  // over either of which it could reach itself, too
    if (left_out) config.set("rails", "tcp:*,^self");
    Context context(config);
    const auto itself = context.add_peer(context.address());
    std::array<std::byte, 8> memory{};
    const auto region = context.register_memory(memory);
    const auto data = pattern(memory.size());
    auto put = context.iput(itself, {region.key(), 0}, data, {.end = PutEnd::remote});
    CHECK(context.wait(put).ok());
    CHECK(test::same(memory, data));
    const auto links = context.models(itself);
    CHECK(links.size() == 2);  // the two ends of one
    for (const auto& link : links) CHECK(link.rail == (left_out ? "tcp:127.0.1.1" : "self"));
}

TEST_CASE("one-sided: puts and gets of all sizes", "[engine]") {
    OneSidedWorld world(GENERATE(false, true));
    const auto bytes = GENERATE(from_range(access_sizes));
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
    OneSidedWorld world(GENERATE(false, true));
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
    CHECK(test::same(memory, data));
    CHECK(world.finish(world.origin.iget(world.peer, {region.key(), 0}, scatter)).ok());
    for (std::size_t i = 0; i < 6; ++i) {
        CHECK(
            (std::equal(scatter[i].begin(), scatter[i].end(), data.begin() + static_cast<std::ptrdiff_t>(i * piece))));
    }
}

namespace {

template <typename T>
void check_atomics(OneSidedWorld& world) {
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
    OneSidedWorld world(GENERATE(false, true));
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
    OneSidedWorld world(GENERATE(false, true));
    std::vector<std::byte> memory(1'000'000);
    std::optional region(world.target.register_memory(memory));
    const auto data = pattern(memory.size());
    auto first = world.target.inotified(*region, 1);
    auto third = world.target.inotified(*region, 3);
    auto never = world.target.inotified(*region, 4);
    auto put = world.origin.iput(world.peer, {region->key(), 0}, data, {.notify = true});
    CHECK(world.pair.finish(world.target, first).ok());
    CHECK(test::same(memory, data));
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
