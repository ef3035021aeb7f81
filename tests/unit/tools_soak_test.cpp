// What a soak does follows from its seed, and what goes wrong is found and named.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <array>
#include <set>

#include "engine/pair.hpp"
#include "tools/soak_lanes.hpp"
#include "tools/soak_watchdog.hpp"

using namespace railmux;
using namespace railmux::tools;
using Catch::Matchers::Contains;

namespace {

constexpr std::uint64_t most = 5000;

/// The receiving lane of member 1 at side b; member 0 is played by hand.
struct Fixture {
    Fixture() { receives.step(); }
    ~Fixture() {  // nothing may be under way into the lane when it ends
        receives.end_at(0);
        for (int i = 0; i < 100; ++i) pair.b.progress();
    }

    void send(const SoakItem& item, std::uint64_t bytes) {
        sent.push_back(std::vector<std::byte>(bytes));
        write_content(sent.back(), item.content);
        requests.push_back(pair.a.isend(pair.to_b, soak_tag + item.tag, sent.back()));
    }
    void send(std::uint64_t number) { send(item(number), item(number).bytes); }
    [[nodiscard]] SoakItem item(std::uint64_t number) const {
        return soak_item(side.incoming(), SoakKind::message, number, most);
    }
    /// The first message from `first` on that is large enough to be recognised, and of the tag that is given.
    [[nodiscard]] std::uint64_t large(std::uint64_t first, std::optional<std::uint64_t> tag = {}) const {
        while (item(first).bytes < 100 || (tag && item(first).tag != *tag)) ++first;
        return first;
    }
    void receive(std::uint64_t count) {
        pair.until([&] {
            receives.step();
            return tally.operations() + over >= count;
        });
    }

    test::Pair pair;
    SoakTerms terms{.seed = 4, .max_bytes = most, .window = 64, .kinds = 31};
    SoakTally tally;
    SoakSide side{pair.b, terms, tally, pair.to_a, 1, 0};
    std::deque<std::vector<std::byte>> sent;
    std::vector<Request> requests;
    SoakReceives receives{side};
    std::uint64_t over = 0;
};

}  // namespace

TEST_CASE("both ends of a stream know what its messages are", "[tools][soak]") {
    const auto stream = soak_stream(1, 0, 1);
    CHECK(stream != soak_stream(1, 1, 0));
    CHECK(stream != soak_stream(2, 0, 1));
    std::set<std::uint64_t> sizes;
    std::set<std::uint64_t> contents;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        const auto item = soak_item(stream, SoakKind::message, i, most);
        CHECK(item.bytes <= most);
        CHECK(item.parts >= 1);
        sizes.insert(item.bytes);
        contents.insert(item.content);
    }
    CHECK(sizes.count(0) == 1);
    CHECK(*sizes.rbegin() > most / 2);
    CHECK(contents.size() == 1000);
}

TEST_CASE("what soaking processes tell each other comes through, or is refused", "[tools][soak]") {
    const SoakTerms terms{.seed = 1, .max_bytes = 2, .window = 3, .kinds = 4, .time = 5};
    CHECK(decode_soak_terms(encode(terms)) == terms);
    SoakTally tally;
    tally.add(SoakKind::get, 17);
    tally.faults = 2;
    tally.problem = "a byte";
    CHECK(decode_soak_tally(encode(tally)) == tally);
    CHECK(decode_soak_end(encode(SoakEnd{1, 2, 3})) == SoakEnd{1, 2, 3});
    CHECK(decode_soak_card(encode(SoakCard{.member = 9})).member == 9);
    auto bytes = encode(terms);
    CHECK_THROWS_WITH(decode_soak_end(bytes), Contains("malformed"));
    bytes[0] = std::byte{99};
    CHECK_THROWS_WITH(decode_soak_terms(bytes), Contains("version"));
}

TEST_CASE("what is right is counted", "[tools][soak]") {
    Fixture t;
    for (std::uint64_t i = 0; i < 200; ++i) t.send(i);
    t.receive(200);
    t.receives.end_at(200);
    CHECK(t.receives.over());
    CHECK(t.tally.faults == 0);
    CHECK(t.receives.outstanding().empty());
}

TEST_CASE("a message with another one's content is lost, doubled or out of order", "[tools][soak]") {
    Fixture t;
    const auto wrong = t.large(0);
    const auto instead = t.large(wrong + 1);
    for (std::uint64_t i = 0; i <= wrong; ++i) {
        auto item = t.item(i);
        if (i == wrong) item.content = t.item(instead).content;
        t.send(item, item.bytes);
    }
    t.receive(wrong + 1);
    CHECK(t.tally.faults == 1);
    CHECK_THAT(t.tally.problem, Contains(fmt::format("message {} ", wrong)));
    CHECK_THAT(t.tally.problem, Contains(fmt::format("it has the content of message {}", instead)));
}

TEST_CASE("a changed byte, and a length that is not the message's, are found", "[tools][soak]") {
    Fixture t;
    const auto wrong = t.large(0);
    for (std::uint64_t i = 0; i < wrong; ++i) t.send(i);
    auto item = t.item(wrong);
    SECTION("a byte") {
        t.sent.push_back(std::vector<std::byte>(item.bytes));
        write_content(t.sent.back(), item.content);
        t.sent.back()[item.bytes / 2] ^= std::byte{1};
        t.requests.push_back(t.pair.a.isend(t.pair.to_b, soak_tag + item.tag, t.sent.back()));
        t.receive(wrong + 1);
        CHECK_THAT(t.tally.problem, Contains(fmt::format("byte {} is not what was sent", item.bytes / 2)));
    }
    SECTION("the length") {
        t.send(item, item.bytes - 1);
        t.receive(wrong + 1);
        CHECK_THAT(t.tally.problem, Contains(fmt::format("{} bytes came", item.bytes - 1)));
    }
    CHECK(t.tally.faults == 1);
}

TEST_CASE("a message beyond the last one is a fault", "[tools][soak]") {
    Fixture t;
    for (std::uint64_t i = 0; i < 10; ++i) t.send(i);
    t.receive(10);
    t.send(10);
    SECTION("it has come already") { t.pair.finish(t.pair.a, t.requests.back()); }
    for (int i = 0; i < 1000; ++i) {
        t.pair.a.progress();
        t.pair.b.progress();
    }
    t.receives.end_at(10);
    CHECK(t.tally.faults == 1);
    CHECK_THAT(t.tally.problem, Contains("doubled, perhaps"));
}

TEST_CASE("what has not come is named", "[tools][soak]") {
    Fixture t;
    for (std::uint64_t i = 0; i < 7; ++i) t.send(i);
    t.receive(7);
    CHECK_THAT(t.receives.outstanding(), Contains("message 7 of "));
    t.receives.end_at(9);
    CHECK_THAT(t.receives.outstanding(), Contains("has not come, of 9"));
    CHECK_FALSE(t.receives.over());
}

TEST_CASE("the watchdog barks when nothing ends, and not before", "[tools][soak]") {
    SoakWatchdog watchdog(std::chrono::milliseconds(100), std::chrono::hours(1));
    using Clock = std::chrono::steady_clock;
    const auto begun = Clock::now();
    auto last = begun;
    while (!watchdog.barks() && Clock::now() - begun < std::chrono::milliseconds(150)) {
        last = Clock::now();  // or later: this thread may be kept from going on
        watchdog.ended();
        std::this_thread::yield();
    }
    while (!watchdog.barks()) std::this_thread::yield();
    CHECK(Clock::now() - last >= std::chrono::milliseconds(100));
}
