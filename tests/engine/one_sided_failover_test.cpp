// One-sided operations while links die: whatever dies, at whatever moment, each takes effect exactly once.
#include <numeric>
#include <optional>

#include "engine/sim_pair.hpp"

using namespace railmux;
using messaging::AtomicOp;
using messaging::Engine;
using test::pattern;
using test::SimPair;

namespace {

// In a frame, and over all rails.
constexpr std::array<std::size_t, 4> sizes = {0, 8, 16384, 600'000};
constexpr std::size_t room = 630'000;
constexpr std::size_t adds = 20;

/// What one side does to the other.
struct Half {
    Engine& origin;
    Engine& target;
    Peer peer;
    unsigned seed;

    std::vector<std::byte> written{};  // over there
    std::vector<std::byte> read{};     // over there
    std::vector<std::byte> cleared{};  // over there: by its process, as soon as it is told that all is there
    std::uint64_t counter = 0;         // over there
    std::vector<std::byte> data{};     // for all puts
    std::vector<std::byte> got{};
    std::array<std::uint64_t, adds> before{};
    std::vector<MemoryRegion> regions{};
    std::vector<Request> requests{};
    Request told{};
    std::size_t late = 0;

    void start() {
        written.resize(room);
        cleared.resize(room);
        got.resize(room);
        read = pattern(room, seed);
        data = pattern(room, seed + 1);
        for (auto* memory : {&written, &read, &cleared}) {
            regions.push_back(target.register_memory(*memory, Rights::read_write));
        }
        regions.push_back(target.register_memory(std::as_writable_bytes(std::span(&counter, 1)), Rights::read_write));
        told =
            target.inotified(regions[2], 2, [this](const Status&) { std::memset(cleared.data(), 0, cleared.size()); });
        std::size_t at = 0;
        std::size_t add = 0;
        for (const auto bytes : sizes) {
            const ConstBuffer out = ConstBuffer(data).subspan(at, bytes);
            const MutableBuffer in = MutableBuffer(got).subspan(at, bytes);
            requests.push_back(origin.iput(peer, {regions[0].key(), at}, {&out, 1}, {}, nullptr));
            requests.push_back(origin.iget(peer, {regions[1].key(), at}, {&in, 1}, nullptr));
            for (std::size_t i = 0; i < adds / sizes.size(); ++i, ++add) {
                requests.push_back(
                    origin.atomic(peer, {regions[3].key(), 0}, {AtomicOp::fetch_add, 8, 1, 0, &before[add]}, nullptr));
            }
            at += bytes;
        }
        for (const auto bytes : {std::size_t{9000}, std::size_t{100'000}}) {
            const ConstBuffer out = ConstBuffer(data).first(bytes);
            requests.push_back(origin.iput(peer, {regions[2].key(), 0}, {&out, 1}, {.notify = true}, nullptr));
        }
        requests.push_back(origin.iflush(peer, nullptr));
    }

    [[nodiscard]] bool over() {
        bool all = true;
        for (auto& request : requests) {
            if (!request.active()) continue;
            const auto status = origin.test(request);
            if (status && !status->ok()) FAIL("one failed as " << to_string(status->code));
            all = all && status;
        }
        if (told.active()) all = target.test(told).has_value() && all;
        return all;
    }

    void check() const {
        std::size_t end = 0;
        for (const auto bytes : sizes) end += bytes;
        CHECK(test::same(std::span(data).first(end), std::span(written).first(end)));
        CHECK(test::same(std::span(read).first(end), std::span(got).first(end)));
        CHECK(counter == adds);
        std::array<std::uint64_t, adds> expected{};
        std::iota(expected.begin(), expected.end(), std::uint64_t{0});
        CHECK(before == expected);
        CHECK(test::same(cleared, std::vector<std::byte>(cleared.size())));
        CHECK(regions[2].notified() == 2);
    }
};

void exchange(SimPair& pair) {
    std::array halves{Half{*pair.a, *pair.b, pair.to_b, 1}, Half{*pair.b, *pair.a, pair.to_a, 5}};
    for (auto& half : halves) half.start();
    pair.until([&] {
        const bool first = halves[0].over();
        return halves[1].over() && first;
    });
    // What was sent twice may still come, and must not be written any more.
    const auto end = pair.hosts.fabric.now() + 20 * base::millisecond;
    pair.until([&] { return pair.hosts.fabric.now() > end; });
    for (const auto& half : halves) half.check();
}

}  // namespace

TEST_CASE("one-sided-failover: two rails that overtake each other", "[engine]") {
    SimPair pair(GENERATE("round_robin", "vft"));
    exchange(pair);
}

TEST_CASE("one-sided-failover: a link killed at each step", "[engine]") {
    const auto* policy = GENERATE("round_robin", "vft");
    const auto* device = GENERATE("eth0", "eth1");
    test::with_link_killed_at_each_step(policy, device, exchange);
}

TEST_CASE("one-sided-failover: random faults on every rail", "[engine]") {
    const std::string faults =
        GENERATE(",duplicate=30%", ",delay=30%:9", ",kill_link=3%,refuse=20%,delay=10%:5,duplicate=10%",
                 ",kill_work=2%,delay_work=10%:5,duplicate=10%");
    test::with_random_faults(faults, exchange);
}

TEST_CASE("one-sided-failover: a lost peer ends everything, and the flush says so", "[engine]") {
    SimPair pair("vft", {}, 1, 1);
    std::vector<std::byte> memory(300'000);
    const auto region = pair.b->register_memory(memory, Rights::read_write);
    const auto data = pattern(memory.size());
    const ConstBuffer out(data);
    std::vector<std::byte> got(memory.size());
    const MutableBuffer in(got);
    std::uint64_t before = 0;
    auto ended = pair.a->iput(pair.to_b, {region.key(), 0}, {&out, 1}, {}, nullptr);
    pair.until([&] { return pair.a->test(ended).has_value(); });
    std::vector<Request> requests;
    const ConstBuffer few = out.first(8);
    auto put = pair.a->iput(pair.to_b, {region.key(), 0}, {&few, 1}, {}, nullptr);
    requests.push_back(pair.a->iget(pair.to_b, {region.key(), 0}, {&in, 1}, nullptr));
    requests.push_back(pair.a->iput(pair.to_b, {region.key(), 0}, {&out, 1}, {}, nullptr));
    requests.push_back(pair.a->atomic(pair.to_b, {region.key(), 0}, {AtomicOp::fetch_add, 8, 1, 0, &before}, nullptr));
    requests.push_back(pair.a->iflush(pair.to_b, nullptr));
    CHECK(pair.a->test(put)->ok());
    pair.hosts.fabric.cut("a/eth0", "b/eth0", test::sim::Cut::loud);
    for (auto& request : requests) {
        std::optional<Status> status;
        pair.hosts.until(
            {pair.a.get(), pair.b.get()}, [&] { return (status = pair.a->test(request)).has_value(); },
            40 * base::second);  // recover.patience
        CHECK((status->code == ErrorCode::unreachable || status->code == ErrorCode::peer_lost));
    }
}

TEST_CASE("one-sided-failover: memory goes though who reads it stands still", "[engine]") {
    SimPair pair("vft");
    std::vector<std::byte> memory(2'000'000);
    std::optional region(pair.b->register_memory(memory, Rights::read_write));
    std::vector<std::byte> got(memory.size());
    const MutableBuffer in(got);
    const auto traffic = [&] {
        std::uint64_t sent = 0;
        for (const auto& rail : pair.b->traffic()) sent += rail.sent_bytes;
        return sent;
    };
    auto get = pair.a->iget(pair.to_b, {region->key(), 0}, {&in, 1}, nullptr);
    pair.until([&] { return traffic() > 0; });
    region.reset();  // a does nothing any more; close.timeout is 0 here
    std::optional<Status> status;
    pair.until([&] { return (status = pair.a->test(get)).has_value(); });
    CHECK(!status->ok());
}

TEST_CASE("one-sided-failover: rails that end links for a put that is no longer allowed", "[engine]") {
    const int rails = GENERATE(1, 2);
    const bool with_answer = GENERATE(false, true);
    test::SimHosts hosts;
    for (int i = 0; i < rails; ++i) {
        const auto timing = transports::sim::simple_timing(2000 + 30000 * i, 300, 300, 400, i == 0 ? 1.0 : 4.0);
        for (const char* host : {"a", "b"}) {
            hosts.fabric.add_rail(host, {.device = "eth" + std::to_string(i),
                                         .network = "net" + std::to_string(i),
                                         .timing = timing,
                                         .done_is_delivered = true,
                                         .bad_put_ends_link = true});
        }
    }
    const auto a = hosts.start("a", "vft");
    const auto b = hosts.start("b", "vft");
    const auto to_b = a->add_peer(b->address());
    const auto to_a = b->add_peer(a->address());
    std::vector<std::byte> memory(20'000'000);
    std::optional region(b->register_memory(memory, Rights::read_write));
    const auto data = pattern(memory.size());
    const ConstBuffer out(data);
    const RemotePlace place{region->key(), 0};
    auto put = a->iput(to_b, place, {&out, 1}, {.end = with_answer ? PutEnd::remote : PutEnd::local}, nullptr);
    const auto under_way = [&] {
        std::uint64_t bytes = 0;
        for (const auto& rail : a->traffic()) bytes += rail.sent_bytes;
        return bytes > 1'000'000;
    };
    hosts.until({a.get(), b.get()}, under_way);
    region.reset();
    std::ranges::fill(memory, std::byte{0xaa});
    std::optional<Status> status;
    hosts.until({a.get(), b.get()}, [&] { return (status = a->test(put)).has_value(); });
    auto flush = a->iflush(to_b, nullptr);
    std::optional<Status> flushed;
    hosts.until({a.get(), b.get()}, [&] { return (flushed = a->test(flush)).has_value(); });
    if (with_answer) {
        CHECK(status->code == ErrorCode::access_denied);
    } else {
        CHECK(!(status->ok() && flushed->ok()));
    }
    CHECK(std::ranges::all_of(memory, [](std::byte byte) { return byte == std::byte{0xaa}; }));
    std::uint64_t lost = 0;
    for (const auto& rail : a->traffic()) lost += rail.links_lost;
    CHECK(lost <= 4);  // not one for each piece
    hosts.deliver(*a, to_b, *b, to_a, 100'000);
}

TEST_CASE(
    "one-sided-failover: atomics take effect in the order of their calls, though acknowledgements make room between "
    "them",
    "[engine]") {
    SimPair pair("vft");
    std::uint64_t word = 0;
    std::optional region(pair.b->register_memory(std::as_writable_bytes(std::span(&word, 1)), Rights::read_write));
    const RemotePlace place{region->key(), 0};
    std::vector<std::byte> room(1 << 20);
    std::optional other(pair.b->register_memory(room, Rights::read_write));
    const auto data = pattern(16384);
    const ConstBuffer out(data);
    constexpr std::uint64_t swaps = 40'000;
    std::vector<std::uint64_t> before(swaps);
    std::vector<Request> requests;
    for (std::uint64_t i = 0; i < 63; ++i) {
        requests.push_back(pair.a->iput(pair.to_b, {other->key(), 0}, {&out, 1}, {.end = PutEnd::remote}, nullptr));
    }
    for (std::uint64_t i = 0; i < swaps; ++i) {
        requests.push_back(pair.a->atomic(
            pair.to_b, place, {.op = AtomicOp::swap, .width = 8, .operand = i + 1, .before = &before[i]}, nullptr));
    }
    for (auto& request : requests) {
        pair.until([&] { return !request.active() || pair.a->test(request).has_value(); });
    }
    for (std::uint64_t i = 0; i < swaps; ++i) {
        if (before[i] != i) FAIL("swap " << i << " came behind " << before[i]);
    }
    CHECK(word == swaps);
}
