// What must stay bounded: memory under a flood, allocations in steady state.
#include <algorithm>
#include <fstream>

#include "engine/counted_memory.hpp"
#include "engine/pair.hpp"
#include "engine/sim_pair.hpp"

using namespace railmux;
using test::Pair;
using test::pattern;

namespace {

std::size_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::size_t total = 0;
    std::size_t resident = 0;
    statm >> total >> resident;
    return resident * 4096;
}

/// Allocations in 200 rounds once they are steady: the fewest of three times. What is allocated with a message is so every
/// time; a pool grows once, and late where a pause of the machine makes messages go another way (a rendezvous) for a while.
template <typename Round>
std::uint64_t steady_allocations(Round round) {
    auto fewest = ~std::uint64_t{0};
    for (int i = 0; i < 200; ++i) round();
    for (int times = 0; times < 3; ++times) {
        const auto before = test::allocations();
        for (int i = 0; i < 200; ++i) round();
        fewest = std::min(fewest, test::allocations() - before);
    }
    return fewest;
}

}  // namespace

TEST_CASE("steady traffic allocates nothing", "[engine]") {
    if (!test::counts_memory) return;
    const std::size_t bytes = GENERATE(std::size_t{8}, std::size_t{4096}, std::size_t{200000});
    INFO(bytes << " bytes");
    auto config = test::two_rails();
    config.set("probe", "off");  // a probe keeps its samples, once for each link: that is not steady traffic
    Pair pair(config);
    const auto data = pattern(bytes);
    std::vector<std::byte> got(bytes);
    std::vector<Request> sends(16);
    std::vector<Request> receives(16);
    const auto round = [&] {
        for (std::size_t i = 0; i < sends.size(); ++i) receives[i] = pair.b.irecv(pair.to_a, i, got);
        for (std::size_t i = 0; i < sends.size(); ++i) sends[i] = pair.a.isend(pair.to_b, i, data);
        for (std::size_t i = 0; i < sends.size(); ++i) {
            pair.finish(pair.b, receives[i]);
            pair.finish(pair.a, sends[i]);
        }
    };
    const auto per_message = static_cast<double>(steady_allocations(round)) / (200.0 * 16);
    CHECK(per_message < 0.01);
}

TEST_CASE("steady one-sided traffic allocates nothing", "[engine]") {
    if (!test::counts_memory) return;
    const std::size_t bytes = GENERATE(std::size_t{8}, std::size_t{4096}, std::size_t{200000});
    INFO(bytes << " bytes");
    auto config = test::two_rails();
    config.set("probe", "off");
    Pair pair(config);
    const auto data = pattern(bytes);
    std::vector<std::byte> got(bytes);
    std::vector<std::byte> memory(bytes);
    const auto region = pair.b.register_memory(memory);
    std::uint64_t before_it = 0;
    std::vector<Request> requests(24);
    const auto round = [&] {
        for (std::size_t i = 0; i < requests.size(); i += 3) {
            requests[i] = pair.a.iput(pair.to_b, {region.key(), 0}, data, {.notify = true});
            requests[i + 1] = pair.a.iget(pair.to_b, {region.key(), 0}, got);
            requests[i + 2] = pair.a.ifetch_add(pair.to_b, {region.key(), 0}, 1, before_it);
        }
        auto flush = pair.a.iflush(pair.to_b);
        for (auto& request : requests) pair.finish(pair.a, request);
        pair.finish(pair.a, flush);
    };
    const auto per_operation = static_cast<double>(steady_allocations(round)) / (200.0 * 24);
    CHECK(per_operation < 0.01);
}

TEST_CASE("a flood of puts that nobody answers stays small", "[engine]") {
    Pair pair;
    std::vector<std::byte> memory(16384);
    const auto region = pair.b.register_memory(memory);
    const auto data = pattern(memory.size());
    auto first = pair.a.iput(pair.to_b, {region.key(), 0}, ConstBuffer(data).first(0), {.end = PutEnd::remote});
    pair.finish(pair.a, first);  // connected
    const auto before = resident_bytes();
    std::vector<Request> puts;
    for (int i = 0; i < 20'000; ++i) {  // 320 MB
        puts.push_back(pair.a.iput(pair.to_b, {region.key(), 0}, data));
        if (i % 64 == 0) pair.a.progress();
    }
    const auto after = resident_bytes();
    if (test::counts_memory) CHECK(after - std::min(after, before) < 64U << 20);
    auto flush = pair.a.iflush(pair.to_b);
    CHECK(pair.finish(pair.a, flush).ok());
    for (auto& put : puts) REQUIRE(pair.finish(pair.a, put).ok());
    CHECK(test::same(memory, data));
}

TEST_CASE("an unexpected flood stays small and loses nothing", "[engine]") {
    constexpr std::uint64_t count = 1'000'000;
    Pair pair;
    std::vector<std::array<std::byte, 8>> data(8192);  // a buffer stays as it is while its send is under way
    const auto before = resident_bytes();
    // The receiver posts nothing while messages are accepted; what it can take is bounded, so at some point sends stay
    // under way. Both processes' memory is this process's.
    std::vector<Request> under_way;
    under_way.reserve(4096);
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::size_t most = 0;
    bool in_order = true;
    while (received < count) {
        for (int i = 0; i < 64 && sent < count && under_way.size() < 4096; ++i) {
            auto& buffer = data[sent % data.size()];
            std::memcpy(buffer.data(), &sent, sizeof sent);
            under_way.push_back(pair.a.isend(pair.to_b, 1, buffer));
            ++sent;
            if (pair.a.test(under_way.back())) {
                under_way.pop_back();  // done at once: the library has a copy
            } else if (under_way.size() > 1) {
                break;
            }
        }
        std::erase_if(under_way, [&](Request& request) { return pair.a.test(request).has_value(); });
        pair.b.progress();
        if (sent == count || under_way.size() > 1) {
            std::array<std::byte, 8> got{};
            for (int i = 0; i < 5000 && received < sent; ++i) {
                auto receive = pair.b.irecv(pair.to_a, 1, got);
                pair.finish(pair.b, receive);
                std::uint64_t value = 0;
                std::memcpy(&value, got.data(), sizeof value);
                in_order = in_order && value == received;
                ++received;
            }
        }
        most = std::max(most, resident_bytes());
    }
    CHECK(in_order);
    if (test::counts_memory) CHECK(most - std::min(most, before) < 64U << 20);
    for (auto& request : under_way) pair.finish(pair.a, request);
}

TEST_CASE("an empty message behind a flood ends as any other", "[engine]") {
    auto config = test::two_rails();
    config.set("eager.window", "4K");
    Pair pair(config);
    std::vector<Request> sends;
    const bool received = GENERATE(true, false);
    for (int i = 0; i < 200; ++i)
        sends.push_back(pair.a.isend(pair.to_b, 1, ConstBuffer{}));  // the last ones have no credit
    pair.until([&] { return pair.b.probe(pair.to_a, 1).has_value(); });
    for (int i = 0; i < 100; ++i) {
        pair.a.progress();
        pair.b.progress();
    }
    for (int i = 0; received && i < 200; ++i) {
        auto receive = pair.b.irecv(pair.to_a, 1, MutableBuffer{});
        REQUIRE(pair.finish(pair.b, receive).ok());
    }
    for (int i = 0; !received && i < 200; ++i) {
        std::optional<Message> message;
        pair.until([&] { return (message = pair.b.mprobe(pair.to_a, 1)).has_value(); });  // and it is dropped
    }
    for (auto& request : sends) REQUIRE(pair.finish(pair.a, request).ok());
}

TEST_CASE("a later message is found behind a flood", "[engine]") {
    Pair pair;
    const auto data = pattern(1000);
    std::vector<Request> sends;
    for (int i = 0; i < 20000; ++i) sends.push_back(pair.a.isend(pair.to_b, 1, data));
    const auto last = pattern(1000, 2);
    sends.push_back(pair.a.isend(pair.to_b, 2, last));
    std::vector<std::byte> got(1000);
    auto receive = pair.b.irecv(pair.to_a, 2, got);  // MPI requires that this ends, though nobody receives the flood
    CHECK(pair.finish(pair.b, receive).ok());
    CHECK(got == last);
    for (int i = 0; i < 20000; ++i) {
        receive = pair.b.irecv(pair.to_a, 1, got);
        REQUIRE(pair.finish(pair.b, receive).ok());
    }
    CHECK(test::same(got, data));
    for (auto& request : sends) REQUIRE(pair.finish(pair.a, request).ok());
}

TEST_CASE("what an answer makes room for is on its way when the answer is there", "[engine]") {
    // So far away that all is sent before anything arrives, and each answer leaves before more arrives: acknowledgements
    // travel with answers only.
    constexpr base::Nanoseconds latency = 100 * base::millisecond;
    test::SimHosts hosts;
    hosts.settings.emplace_back("probe", "off");
    for (const char* host : {"a", "b"}) {
        hosts.fabric.add_rail(
            host,
            {.device = "eth0", .network = "net0", .timing = test::sim::simple_timing(latency, 300, 300, 2000, 1.0)});
    }
    const auto a = hosts.start("a", "fixed");
    const auto b = hosts.start("b", "fixed");
    const auto to_b = a->add_peer(b->address());
    const auto to_a = b->add_peer(a->address());

    constexpr std::uint64_t count = 5000;  // more than a session lets be under way
    const std::array<std::byte, 8> data{};
    const ConstBuffer out(data);
    std::vector<std::array<std::byte, 8>> got(count);
    std::array<std::byte, 8> answer{};
    const MutableBuffer into(answer);
    std::vector<Request> requests;
    std::uint64_t received = 0;
    for (auto& one : got) {
        const MutableBuffer in(one);
        requests.push_back(b->irecv(to_a, {1}, {&in, 1}, [&](const Status&) {
            ++received;
            requests.push_back(b->isend(to_a, 2, {&out, 1}, nullptr));
        }));
    }
    const auto run = [&](messaging::Engine& engine, base::Nanoseconds time) {
        for (const auto end = hosts.fabric.now() + time; hosts.fabric.now() < end;) {
            static_cast<void>(engine.progress());
            hosts.fabric.advance_to(hosts.fabric.now() + 500);
        }
    };
    auto answered = a->irecv(to_b, {2}, {&into, 1}, nullptr);
    requests.push_back(a->isend(to_b, 1, {&out, 1}, nullptr));
    hosts.until({a.get(), b.get()}, [&] { return a->test(answered).has_value(); });

    answered = a->irecv(to_b, {2}, {&into, 1}, nullptr);
    for (std::uint64_t i = 1; i < count; ++i) requests.push_back(a->isend(to_b, 1, {&out, 1}, nullptr));
    run(*a, latency / 2);
    run(*b, latency);
    CHECK(received < count);
    const auto before = received;
    const auto limit = hosts.fabric.now() + 4 * latency;
    while (!a->test(answered)) {
        REQUIRE(hosts.fabric.now() < limit);
        hosts.fabric.advance_to(hosts.fabric.now() + 500);
    }
    run(*b, 2 * latency);  // a's application computes
    CHECK(received > before);
}

TEST_CASE("what answers at once acknowledges by its answers alone", "[engine]") {
    test::SimPair pair("fixed", {}, 1, 1);
    const std::array<std::byte, 8> data{};
    const ConstBuffer out(data);
    std::array<std::byte, 8> got{};
    const MutableBuffer in(got);
    const auto one_way = [&](messaging::Engine& from, Peer to, messaging::Engine& into, Peer sender) {
        auto receive = into.irecv(sender, {1}, {&in, 1}, nullptr);
        auto send = from.isend(to, 1, {&out, 1}, nullptr);
        pair.until([&] { return into.test(receive).has_value(); });
        static_cast<void>(from.wait(send));
    };
    constexpr std::uint64_t rounds = 1000;  // much longer than an acknowledgement is kept back
    const auto play = [&] {
        for (std::uint64_t i = 0; i < rounds; ++i) {
            one_way(*pair.a, pair.to_b, *pair.b, pair.to_a);
            one_way(*pair.b, pair.to_a, *pair.a, pair.to_b);
        }
    };
    play();  // the link comes up, and is measured
    const auto before_a = pair.rails_a->rails["eth0"]->works();
    const auto before_b = pair.rails_b->rails["eth0"]->works();
    play();
    CHECK(pair.rails_a->rails["eth0"]->works() - before_a <= rounds + 2);
    CHECK(pair.rails_b->rails["eth0"]->works() - before_b <= rounds + 2);
}
