// What single steps of the hot path cost.
#include <benchmark/benchmark.h>

#include <array>
#include <vector>

#include <railmux/context.hpp>

#include "base/bytes.hpp"
#include "base/crc32c.hpp"
#include "messaging/matcher.hpp"
#include "rails/session.hpp"
#include "sched/policy.hpp"
#include "transports/shm/rail.hpp"

using namespace railmux;

static void tag_match(benchmark::State& state) {
    messaging::Matcher matcher;
    std::vector<messaging::Posted> posted(static_cast<std::size_t>(state.range(0)));
    for (std::size_t i = 0; i < posted.size(); ++i) {
        posted[i].peer = 1;
        posted[i].tag = i;
        matcher.post(posted[i]);
    }
    std::size_t i = 0;
    for ([[maybe_unused]] auto _ : state) {
        auto* found = matcher.match(1, i);
        benchmark::DoNotOptimize(found);
        matcher.post(*found);
        i = i + 1 < posted.size() ? i + 1 : 0;
    }
}
BENCHMARK(tag_match)->Arg(1)->Arg(1000);

/// A frame's payload, with the target so many bytes further behind the beginning of a page than the source (base/bytes.hpp).
static void copy_ahead(benchmark::State& state) {
    constexpr std::size_t bytes = 16 * 1024;
    constexpr std::size_t page = 4096;
    std::vector<std::byte> memory(2 * bytes + 2 * page);
    auto* const from = memory.data();
    auto* const to = from + bytes + page + static_cast<std::size_t>(state.range(0));
    for ([[maybe_unused]] auto _ : state) {
        base::copy(to, from, bytes);
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}
BENCHMARK(copy_ahead)->Arg(0)->Arg(16)->Arg(64);

/// 1 Gbit/s and faster, some microseconds away, with a few messages under way: what choose sees under load.
static sched::Candidate busy_rail(std::uint32_t rail) {
    const double per_byte_ns = 8.0 / (rail + 1);
    return {.rail = rail,
            .speed_bps = (rail + 1) * 1'000'000'000ULL,
            .cost = {.latency = sched::to_ticks(8'000.0 + 100 * rail),
                     .slope = sched::to_ticks(per_byte_ns + 0.1),
                     .gap = sched::to_ticks(700.0 + 10 * rail),
                     .per_byte = sched::to_ticks(per_byte_ns)},
            .backlog = 500 + 64 * rail,
            .silent = 20 * base::microsecond};
}

static void decide(benchmark::State& state, const char* name) {
    const auto rails = static_cast<std::size_t>(state.range(0));
    auto policy = sched::make_policy(name, rails);
    std::vector<sched::Candidate> candidates;
    for (std::uint32_t i = 0; i < rails; ++i) candidates.push_back(busy_rail(i));
    base::Nanoseconds now = 0;
    for (const auto& candidate : candidates) policy->charge(candidate, 4096, now);
    for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(policy->choose(candidates, 64, ++now));
}
BENCHMARK_CAPTURE(decide, vft, "vft")->Arg(2)->Arg(16);
BENCHMARK_CAPTURE(decide, fixed, "fixed")->Arg(2)->Arg(16);
BENCHMARK_CAPTURE(decide, round_robin, "round_robin")->Arg(2)->Arg(16);
BENCHMARK_CAPTURE(decide, weighted_round_robin, "weighted_round_robin")->Arg(2)->Arg(16);

static void session_frame(benchmark::State& state) {
    rails::FramePool pool;
    rails::Session sender(pool);
    rails::Session receiver(pool);
    for ([[maybe_unused]] auto _ : state) {
        auto* frame = pool.take(64);
        frame->type = rails::FrameType::eager;
        frame->flags = rails::frame_flag::ordered;
        frame->bytes = 64;
        sender.enter(*frame, {});
        const auto header = rails::parse_header({frame->data(), frame->bytes});
        benchmark::DoNotOptimize(receiver.arrived(header->seq));
        benchmark::DoNotOptimize(receiver.in_order(*header, {}, [](const auto&, auto) {}));
        benchmark::DoNotOptimize(sender.acknowledged(receiver.ack(), {}, [&](rails::Frame& f) { pool.give(&f); }));
    }
}
BENCHMARK(session_frame);

/// What checksums (link.checksum) cost a byte, by each way that this processor knows.
static void checksum(benchmark::State& state, std::size_t way) {
    if (way >= base::crc32c_ways().size()) return state.SkipWithError("this processor has no instruction for it");
    const std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)));
    for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(base::crc32c_ways()[way].checksum(bytes, 0));
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}
BENCHMARK_CAPTURE(checksum, table, 0)->Arg(40)->Arg(1 << 20);
BENCHMARK_CAPTURE(checksum, instruction, 1)->Arg(40)->Arg(1024)->Arg(16 << 10)->Arg(256 << 10)->Arg(1 << 20);
BENCHMARK_CAPTURE(checksum, folding, 2)->Arg(1024)->Arg(16 << 10)->Arg(256 << 10)->Arg(1 << 20);

/// Two shm rails in one process, with links from the first to the second: what they cost a CPU, the way between cores aside.
struct NodePair {
    base::Logger log{base::LogLevel::warning};
    transports::shm::Rail a{"shm:a", {}, log};
    transports::shm::Rail b{"shm:b", {}, log};
    transports::LinkId link;
    std::array<transports::Event, 64> events;

    explicit NodePair(std::int64_t links) {
        for (std::int64_t i = 0; i < links; ++i) {
            link = a.connect(b.address(), {});
            for (int up = 0; up < 2;) {
                for (auto* rail : {&a, &b}) {
                    for (const auto& event : std::span(events).first(rail->poll(events))) {
                        if (event.kind == transports::EventKind::connect_request) b.accept(event.link, {});
                        up += event.kind == transports::EventKind::link_up ? 1 : 0;
                    }
                }
            }
        }
    }
};

/// A frame that fits into its slot: posted, received, and reported as done.
static void shm_frame(benchmark::State& state) {
    NodePair node(1);
    std::array<std::byte, 40> bytes{};
    const transports::Segment segment{bytes.data(), bytes.size()};
    const transports::Work work{.link = node.link, .segments = {&segment, 1}};
    for ([[maybe_unused]] auto _ : state) {
        benchmark::DoNotOptimize(node.a.post({&work, 1}));
        while (node.b.poll(node.events) == 0) continue;
        while (node.a.poll(node.events) == 0) continue;
    }
}
BENCHMARK(shm_frame);

static void shm_empty_poll(benchmark::State& state) {
    NodePair node(state.range(0));
    for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(node.a.poll(node.events));
}
BENCHMARK(shm_empty_poll)->Arg(1)->Arg(8)->Arg(100);
