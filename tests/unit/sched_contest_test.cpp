#include <catch2/catch.hpp>

#include <array>
#include <vector>

#include "sched/contest.hpp"

using namespace railmux;
using sched::Candidate;
using sched::Contest;
using sched::to_ticks;

namespace {

constexpr auto ms = base::millisecond;

/// Rails that all look alike, and what they do with small messages, in messages a millisecond and direction.
struct Rails {
    explicit Rails(std::vector<std::uint32_t> rates) : per_ms(std::move(rates)), candidates(per_ms.size()) {
        for (std::uint32_t i = 0; i < candidates.size(); ++i) {
            const auto per_byte = to_ticks(1.0);
            candidates[i] = {.rail = i, .cost = {to_ticks(5000.0), per_byte, 0, per_byte}};
        }
    }
    std::vector<std::uint32_t> per_ms;
    std::vector<Candidate> candidates;
};

/// One of two processes, which chooses every 100 us.
struct Side {
    Rails rails;
    std::size_t predicted = 0;
    bool follows = false;
    bool sends = true;
    Contest contest{};
    Contest::Score score{};
    std::uint64_t done = 0;  // that it sent
    std::uint32_t changes = 0;
    std::size_t place = 0;
    base::Nanoseconds unrest = 0;  // after a change nothing comes through for so long
    base::Nanoseconds until{};

    void choose(std::size_t peers, base::Nanoseconds now) {
        for (std::size_t i = 0; i < rails.candidates.size(); ++i) rails.candidates[i].recent = follows && i == peers;
        const auto next = contest.favoured() == Contest::none ? predicted : contest.favoured();
        if (next != place) until = now + unrest;
        changes += next == place ? 0 : 1;
        place = next;
        contest.went(place, rails.candidates, score, follows, now);
    }
};

constexpr std::uint32_t steps_per_ms = 10;

/// Both send for so long; of what one does in a step all has arrived at its end.
void run(Side& a, Side& b, base::Nanoseconds& now, base::Nanoseconds time) {
    for (const auto end = now + time; now < end; now += ms / steps_per_ms) {
        a.choose(b.place, now);
        if (b.sends) b.choose(a.place, now);
        for (auto [from, to] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
            if (!from->sends || now < from->until) continue;
            const auto count = from->rails.per_ms[from->place] / steps_per_ms;
            from->done += count;
            from->score.sent += count;
            to->score.received += count;
        }
    }
}

}  // namespace

TEST_CASE("contest: both sides leave a rail that brings less", "[sched][contest]") {
    // Counters wrap around in between.
    const std::size_t follower = GENERATE(0, 1);
    std::array<Side, 2> sides{Side{Rails({700, 300}), 1}, Side{Rails({700, 300}), 1}};
    sides[follower].follows = true;
    for (auto& side : sides) side.score = {.sent = ~0U - 20'000, .received = ~0U - 20'000};
    base::Nanoseconds now = base::second;
    run(sides[0], sides[1], now, 60 * ms);
    CHECK(sides[0].place == 0);
    CHECK(sides[1].place == 0);
    run(sides[0], sides[1], now, 10 * base::second);
    CHECK(sides[0].place == 0);
    CHECK(sides[1].place == 0);
}

TEST_CASE("contest: what a change costs at once is not held against a rail", "[sched][contest]") {
    Side one{Rails({360, 300}), 1};
    Side other{Rails({360, 300}), 1, true};
    one.unrest = other.unrest = 300 * base::microsecond;
    base::Nanoseconds now = base::second;
    run(one, other, now, 60 * ms);
    CHECK(one.place == 0);
    CHECK(other.place == 0);
}

TEST_CASE("contest: so do two that predict different ones", "[sched][contest]") {
    std::array<Side, 2> sides{Side{Rails({700, 300}), 1}, Side{Rails({700, 300}), 0}};
    sides[0].follows = GENERATE(false, true);
    sides[1].follows = !sides[0].follows;
    base::Nanoseconds now = base::second;
    run(sides[0], sides[1], now, 60 * ms);
    CHECK(sides[0].place == 0);
    CHECK(sides[1].place == 0);
}

TEST_CASE("contest: trials of rails that bring next to nothing cost little", "[sched][contest]") {
    Side one{Rails({700, 10, 70, 350})};
    Side other{Rails({700, 10, 70, 350}), 0, true};
    base::Nanoseconds now = base::second;
    run(one, other, now, base::second);
    CHECK(static_cast<double>(one.done + other.done) > 0.985 * 2 * 700 * 1000);  // the first ones come closer together
    CHECK(one.changes > 4);
    one.done = other.done = 0;
    run(one, other, now, 20 * base::second);
    CHECK(static_cast<double>(one.done + other.done) > 0.998 * 2 * 700 * 20'000);
    CHECK(one.place == 0);
}

TEST_CASE("contest: of rails that bring as much the one that was predicted is kept", "[sched][contest]") {
    Side one{Rails({500, 520})};
    Side other{Rails({500, 520}), 0, true};
    base::Nanoseconds now = base::second;
    run(one, other, now, 10 * base::second);
    CHECK(one.place == 0);
    CHECK(one.changes > 4);
    CHECK(one.changes < 40);
}

TEST_CASE("contest: each of several has its turn", "[sched][contest]") {
    Side one{Rails({300, 200, 100, 600}), 1};
    Side other{Rails({300, 200, 100, 600}), 1, true};
    base::Nanoseconds now = base::second;
    run(one, other, now, base::second);
    CHECK(one.place == 3);
    CHECK(other.place == 3);
}

TEST_CASE("contest: who sends to one that hardly sends tries by himself", "[sched][contest]") {
    Side one{Rails({700, 300}), 1};
    Side other{Rails({700, 300}), 1};
    one.follows = GENERATE(false, true);
    other.sends = false;
    other.place = 1;  // its acknowledgements
    base::Nanoseconds now = base::second;
    run(one, other, now, 60 * ms);
    CHECK(one.place == 0);
}

TEST_CASE("contest: what changes is noticed again", "[sched][contest]") {
    Side one{Rails({700, 300})};
    Side other{Rails({700, 300}), 0, true};
    base::Nanoseconds now = base::second;
    run(one, other, now, 10 * base::second);
    for (auto* side : {&one, &other}) side->rails.per_ms = {300, 700};
    run(one, other, now, 1100 * ms);
    CHECK(one.place == 1);
    CHECK(other.place == 1);
}

TEST_CASE("contest: a rail known to be slow, or spare, is not tried, nor kept", "[sched][contest]") {
    Side one{Rails({300, 700})};
    Side other{Rails({300, 700}), 0, true};
    auto& second = one.rails.candidates[1];
    const auto before = second;
    const auto unfit = GENERATE(0, 1, 2);
    const auto spoil = [&] {
        if (unfit == 0) second.spare = true;
        if (unfit == 1) second.cost.per_byte = to_ticks(80.0);  // 100 Mbit/s
        if (unfit == 2) second.cost.latency = to_ticks(5'000'000.0);
    };
    spoil();
    base::Nanoseconds now = base::second;
    run(one, other, now, base::second);
    CHECK(one.changes == 0);
    second = before;
    run(one, other, now, 60 * ms);
    CHECK(one.place == 1);
    spoil();
    run(one, other, now, ms);
    CHECK(one.place == 0);
}

TEST_CASE("contest: where large messages go between, and after pauses, there is nothing to compare",
          "[sched][contest]") {
    Side one{Rails({300, 700})};
    Side other{Rails({300, 700}), 0, true};
    base::Nanoseconds now = base::second;
    const bool large = GENERATE(true, false);
    for (int i = 0; i < 1000; ++i) {
        run(one, other, now, 3 * ms);
        if (large) {
            ++one.score.large;
        } else {
            now += 11 * ms;
        }
    }
    CHECK(one.changes == 0);
}
