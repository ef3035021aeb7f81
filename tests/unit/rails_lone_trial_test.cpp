#include <catch2/catch.hpp>

#include <string>
#include <utility>

#include "unit/rails_world.hpp"

using namespace railmux::rails;
namespace base = railmux::base;
namespace sched = railmux::sched;

namespace {

constexpr std::uint32_t near = 0;  // rails of the world:
constexpr std::uint32_t far = 1;   // 2 and 32 us away

/// As after a probe that was held up.
void believe(rails_world::Process& process, std::uint32_t peer, std::uint32_t rail, base::Nanoseconds latency) {
    auto& talk = *process.manager.peers()[peer].talk;
    for (std::size_t i = 0; i < talk.links.size(); ++i) {
        if (talk.candidates[i].rail == rail) talk.costs[i].latency = sched::to_ticks(latency);
    }
}

struct Sent {
    std::uint64_t near_frames, far_frames;
};
Sent sent(rails_world::Couple& pair) {
    const auto& of_a = pair.a.peer(1).traffic;
    const auto& of_b = pair.b->peer(0).traffic;
    return {of_a[near].sent_frames + of_b[near].sent_frames, of_a[far].sent_frames + of_b[far].sent_frames};
}

}  // namespace

TEST_CASE("messages that go alone find out that a rail is nearer than its probe said", "[rails]") {
    const auto burst = GENERATE(std::size_t{1}, std::size_t{4});
    const bool both = GENERATE(true, false);
    rails_world::Couple pair;
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    for (const std::uint32_t rank : {0U, 1U}) {
        auto& process = rank == 0 ? pair.a : *pair.b;
        believe(process, 1 - rank, far, 32 * base::microsecond);
        if (both || rank == 0) believe(process, 1 - rank, near, base::millisecond);
    }
    pair.exchange(500, 64, burst);
    const auto before = sent(pair);
    pair.exchange(500, 64, burst);
    const auto after = sent(pair);
    CAPTURE(burst, both, before.near_frames, before.far_frames, after.near_frames, after.far_frames);
    CHECK(after.far_frames - before.far_frames <= (after.near_frames - before.near_frames) / 10);
}

TEST_CASE("a rail that is further is tried with few of the messages that go alone", "[rails]") {
    rails_world::Couple pair;
    pair.talk();
    pair.exchange(100, 64, 1);
    const auto before = sent(pair);
    pair.exchange(20000, 64, 1);
    const auto after = sent(pair);
    CAPTURE(after.near_frames - before.near_frames, after.far_frames - before.far_frames);
    CHECK(after.far_frames - before.far_frames <= 200);
}
