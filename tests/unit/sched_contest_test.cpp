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

/// Rails that all look alike, and what they do with messages, in messages a millisecond and direction.
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
    Contest::Kind kind = Contest::Kind::light;
    std::uint32_t spread = 0;  // of heavy ones, a millisecond, if they go as predicted: over all rails in turn
    Contest contest{kind, rails.per_ms.size()};
    Contest::Score score{};
    std::uint64_t done = 0;  // that it sent
    std::uint32_t changes = 0;
    std::size_t place = 0;
    bool spreads = kind == Contest::Kind::heavy;
    base::Nanoseconds unrest = 0;  // after a change nothing comes through for so long
    base::Nanoseconds until{};

    [[nodiscard]] bool heavy() const { return kind == Contest::Kind::heavy; }
    void choose(std::size_t peers, base::Nanoseconds now) {
        for (std::size_t i = 0; i < rails.candidates.size(); ++i) rails.candidates[i].recent = follows && i == peers;
        const bool predicts = contest.favoured() == Contest::none;
        const bool over_all = predicts && heavy();
        const auto turn = static_cast<std::size_t>(now / (ms / 10)) % rails.candidates.size();
        const auto next = over_all ? turn : predicts ? predicted : contest.favoured();
        const bool changed = over_all != spreads || (!over_all && next != place);
        if (changed) until = now + unrest;
        changes += changed ? 1 : 0;
        place = next;
        spreads = over_all;
        score.handed = score.sent;
        contest.went(place, rails.candidates, score, follows, now);
    }
    [[nodiscard]] std::uint32_t rate() const { return spreads ? spread : rails.per_ms[place]; }
};

constexpr std::uint32_t steps_per_ms = 10;

/// Both send for so long; of what one does in a step all has arrived at its end.
void run(Side& a, Side& b, base::Nanoseconds& now, base::Nanoseconds time) {
    for (const auto end = now + time; now < end; now += ms / steps_per_ms) {
        a.choose(b.place, now);
        if (b.sends) b.choose(a.place, now);
        for (auto [from, to] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
            if (!from->sends || now < from->until) continue;
            const auto count = from->rate() / steps_per_ms;
            from->done += count;
            from->score.sent += count;
            to->score.received += count;
            if (from->heavy()) to->rails.candidates[from->place].heavy_received += count;
        }
    }
}

/// That sends heavy frames over two rails; what each of them does with all of these, and what both do.
Side heavy_side(std::vector<std::uint32_t> alone, std::uint32_t together) {
    return {.rails = Rails(std::move(alone)), .kind = Contest::Kind::heavy, .spread = together};
}

/// Two such, of which the second does as the first one does; and some time in which that is found.
struct HeavyPair {
    HeavyPair(const std::vector<std::uint32_t>& alone, std::uint32_t together)
        : one(heavy_side(alone, together)), other(one) {
        other.follows = true;
    }
    void pass(base::Nanoseconds time) { run(one, other, now, time); }
    Side one;
    Side other;
    base::Nanoseconds now = base::second;
};

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

TEST_CASE("contest: where others go between, and after pauses, there is nothing to compare", "[sched][contest]") {
    const bool heavy = GENERATE(true, false);
    auto one = heavy ? heavy_side({300, 700}, 200) : Side{Rails({300, 700})};
    auto other = one;
    other.follows = true;
    base::Nanoseconds now = base::second;
    const bool large = GENERATE(true, false);
    for (int i = 0; i < 1000; ++i) {
        run(one, other, now, 3 * ms);
        if (large) {
            ++one.score.others;
        } else {
            now += 11 * ms;
        }
    }
    CHECK(one.changes == 0);
}

TEST_CASE("contest: heavy frames keep to one rail if that is better than all", "[sched][contest]") {
    const auto better = GENERATE(0, 1);
    auto one =
        heavy_side(better == 0 ? std::vector<std::uint32_t>{300, 140} : std::vector<std::uint32_t>{140, 300}, 150);
    auto other = one;
    const auto who = GENERATE(0, 1, 2);  // both send, only the one that does not follow, only the one that does
    one.follows = who == 2;
    other.follows = who != 2;
    other.sends = who == 0;
    base::Nanoseconds now = base::second;
    run(one, other, now, (better == 0 ? 60 : 250) * ms);
    CHECK_FALSE(one.spreads);
    if (other.sends) CHECK_FALSE(other.spreads);
    one.done = 0;
    run(one, other, now, 5 * base::second);
    CHECK_FALSE(one.spreads);
    CHECK(static_cast<int>(one.place) == better);
    CHECK(one.done > 290 * 4950);
}

TEST_CASE("contest: they are spread where that is better", "[sched][contest]") {
    HeavyPair pair({100, 90}, 190);
    pair.other.sends = GENERATE(true, false);
    pair.pass(5 * base::second);
    CHECK(pair.one.spreads);
    CHECK(pair.one.changes > 1);
    CHECK(pair.one.done > 190 * 4950);
}

TEST_CASE("contest: where the other way becomes better, that is found", "[sched][contest]") {
    HeavyPair pair({300, 280}, 150);
    pair.pass(100 * ms);
    CHECK_FALSE(pair.one.spreads);
    pair.one.spread = pair.other.spread = 500;
    pair.pass(2500 * ms);
    CHECK(pair.one.spreads);
    CHECK(pair.other.spreads);
    pair.one.spread = pair.other.spread = 150;
    pair.pass(2500 * ms);
    CHECK_FALSE(pair.one.spreads);
    CHECK_FALSE(pair.other.spreads);
}

TEST_CASE("contest: short pauses of the application are no reason for trials of heavy frames", "[sched][contest]") {
    HeavyPair pair({300, 280}, 150);
    pair.other.sends = false;
    pair.pass(2 * base::second);
    CHECK_FALSE(pair.one.spreads);
    const auto before = pair.one.changes;
    for (int i = 0; i < 25; ++i) {
        pair.pass(30 * ms);
        pair.now += 9 * ms;
    }
    CHECK(pair.one.changes - before <= 4);  // a second
}

TEST_CASE("contest: a rail for heavy frames that has become much slower is left soon", "[sched][contest]") {
    HeavyPair pair({300, 280}, 250);
    pair.pass(base::second);
    CHECK_FALSE(pair.one.spreads);
    for (auto* side : {&pair.one, &pair.other}) side->rails.per_ms[side->place] = 60;
    pair.pass(100 * ms);
    CHECK(pair.one.rate() >= 250);
    CHECK(pair.other.rate() >= 250);
}

TEST_CASE("contest: a rail that is much slower than another is not tried with heavy frames", "[sched][contest]") {
    auto one = heavy_side({100, 200}, 150);
    auto other = one;
    other.sends = false;
    auto& slow = one.rails.candidates[1];
    slow.cost.per_byte = slow.cost.per_byte * 8 / 5;
    base::Nanoseconds now = base::second;
    run(one, other, now, 2 * base::second);
    CHECK(one.spreads);
    slow.cost.per_byte = one.rails.candidates[0].cost.per_byte * 4 / 3;
    run(one, other, now, 4 * base::second);
    CHECK_FALSE(one.spreads);
    CHECK(one.place == 1);
    slow.cost.per_byte = to_ticks(80.0);  // 100 Mbit/s
    run(one, other, now, ms);
    CHECK(one.spreads);
}

TEST_CASE("contest: who gets nothing but light frames is not led by them", "[sched][contest]") {
    auto one = heavy_side({100, 90}, 190);
    one.follows = true;
    Side other{Rails({100, 90})};
    base::Nanoseconds now = base::second;
    run(one, other, now, base::second);
    CHECK(one.spreads);
    one.rails.per_ms = {300, 280};
    run(one, other, now, 2 * base::second);
    CHECK_FALSE(one.spreads);
}

TEST_CASE("contest: what its peer did before is nothing to go by when it sends no more", "[sched][contest]") {
    HeavyPair pair({300, 280}, 150);
    pair.pass(200 * ms);
    CHECK_FALSE(pair.other.spreads);
    pair.one.sends = false;
    pair.other.spread = 500;
    run(pair.other, pair.one, pair.now, 100 * ms);
    CHECK(pair.other.spreads);
}

TEST_CASE("contest: what was on the rails before a trial does not count", "[sched][contest]") {
    // As long as that arrives, 12 ms, less is done than before, and then twice as much.
    Rails rails({0, 0});
    Contest contest(Contest::Kind::heavy, 2);
    Contest::Score score{.handed = ~0U - 3000, .sent = ~0U - 3000};  // wraps around
    base::Nanoseconds now = base::second;
    std::uint32_t old = 0;
    int single_steps = 0;
    for (int step = 0; step < 1000; ++step, now += ms / 10) {
        const bool single = contest.favoured() != Contest::none;
        if (!single) old = 1200;  // are under way
        const auto arrived = !single ? 20U : old > 0 ? 10U : 40U;
        old -= std::min(old, arrived);
        score.sent += arrived;
        score.handed = score.sent + 1200;
        contest.went(single ? contest.favoured() : static_cast<std::size_t>(step % 2), rails.candidates, score, false,
                     now);
        single_steps += single ? 1 : 0;
    }
    CHECK(contest.favoured() != Contest::none);
    CHECK(single_steps > 600);  // it was not given up in between
}

TEST_CASE("contest: a trial that stops the sender is not soon followed by another", "[sched][contest]") {
    // All credit waits on the one rail then.
    Rails rails({0, 0, 0, 0});
    Contest contest(Contest::Kind::heavy, 4);
    Contest::Score score;
    int trials = 0;
    bool single = false;
    for (base::Nanoseconds now = base::second; now < 3 * base::second; now += (single ? 120 : 1) * ms / 10) {
        trials += !single && contest.favoured() != Contest::none ? 1 : 0;
        single = contest.favoured() != Contest::none;
        score.handed = score.sent += 20;
        contest.went(single ? contest.favoured() : 0, rails.candidates, score, false, now);
    }
    CHECK(trials > 0);
    CHECK(trials <= 3);
}

TEST_CASE("contest: a trial in which nothing arrives ends", "[sched][contest]") {
    auto one = heavy_side({0, 0}, 190);
    auto other = one;
    other.sends = false;
    base::Nanoseconds now = base::second;
    run(one, other, now, 40 * ms);
    CHECK(one.changes > 0);
    CHECK(one.spreads);
}
