#include <catch2/catch.hpp>

#include <deque>
#include <list>
#include <random>

#include "messaging/matcher.hpp"

using namespace railmux;
using namespace railmux::messaging;

namespace {

Posted receive(std::uint32_t peer, Tag tag, Tag mask = ~Tag{0}) {
    Posted posted;
    posted.peer = peer;
    posted.tag = tag & mask;
    posted.mask = mask;
    return posted;
}

Unexpected message(std::uint32_t peer, Tag tag) {
    Unexpected unexpected;
    unexpected.peer = peer;
    unexpected.tag = tag;
    return unexpected;
}

}  // namespace

TEST_CASE("receives match in the order they were posted, wild or not", "[messaging][matcher]") {
    Matcher matcher;
    auto exact = receive(1, 7);
    auto any = receive(anybody, 7);
    auto wild = receive(anybody, 0, 0);
    matcher.post(wild);
    matcher.post(any);
    matcher.post(exact);
    CHECK(matcher.match(1, 7) == &wild);
    CHECK(matcher.match(1, 7) == &any);
    CHECK(matcher.match(2, 7) == nullptr);
    CHECK(matcher.match(1, 7) == &exact);
    CHECK(matcher.match(1, 7) == nullptr);
}

TEST_CASE("masks select tags", "[messaging][matcher]") {
    Matcher matcher;
    auto high = receive(1, 0xAB00, 0xFF00);
    matcher.post(high);
    CHECK(matcher.match(1, 0xAC01) == nullptr);
    CHECK(matcher.match(1, 0xAB42) == &high);
}

TEST_CASE("messages are found in the order they came", "[messaging][matcher]") {
    Matcher matcher;
    auto a = message(1, 5);
    auto b = message(2, 5);
    auto c = message(1, 6);
    for (auto* m : {&a, &b, &c}) matcher.add(*m);
    CHECK(matcher.find(anybody, TagMatch::any()) == &a);
    CHECK(matcher.find(2, TagMatch::any()) == &b);
    CHECK(matcher.find(1, 6) == &c);
    CHECK(matcher.find(2, 6) == nullptr);
    matcher.take(a);
    CHECK(matcher.find(anybody, 5) == &b);
    matcher.take(b);
    matcher.take(c);
    CHECK(matcher.find(anybody, TagMatch::any()) == nullptr);
}

TEST_CASE("receives of a lost peer are withdrawn, others stay", "[messaging][matcher]") {
    Matcher matcher;
    auto a = receive(1, 5);
    auto b = receive(1, 0, 0);
    auto c = receive(2, 5);
    auto d = receive(anybody, 5);
    for (auto* r : {&a, &b, &c, &d}) matcher.post(*r);
    int withdrawn = 0;
    while (matcher.withdraw_any_of(1) != nullptr) ++withdrawn;
    CHECK(withdrawn == 2);
    CHECK(matcher.match(2, 5) == &c);
    CHECK(matcher.match(2, 5) == &d);
}

TEST_CASE("random traffic matches as a plain list would", "[messaging][matcher]") {
    const auto seed = GENERATE(1U, 2U, 3U, 4U);
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto pick = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    Matcher matcher;
    std::deque<Posted> receives;
    std::deque<Unexpected> messages;
    std::list<Posted*> posted;
    std::list<Unexpected*> waiting;
    const auto fits = [](const Posted& r, std::uint32_t peer, Tag tag) {
        return (r.peer == anybody || r.peer == peer) && ((r.tag ^ tag) & r.mask) == 0;
    };
    for (int step = 0; step < 20000; ++step) {
        if (pick(2) == 0) {
            const auto peer = pick(4) == 0 ? anybody : pick(3);
            receives.push_back(receive(peer, pick(20), pick(5) == 0 ? Tag{0x3} : ~Tag{0}));
            auto& r = receives.back();
            auto* found = matcher.find(r.peer, {r.tag, r.mask});
            const auto expected =
                std::find_if(waiting.begin(), waiting.end(), [&](Unexpected* m) { return fits(r, m->peer, m->tag); });
            REQUIRE(found == (expected == waiting.end() ? nullptr : *expected));
            if (found != nullptr) {
                matcher.take(*found);
                waiting.erase(expected);
            } else {
                matcher.post(r);
                posted.push_back(&r);
            }
        } else {
            const auto peer = pick(3);
            const Tag tag = pick(20);
            auto* found = matcher.match(peer, tag);
            const auto expected =
                std::find_if(posted.begin(), posted.end(), [&](Posted* r) { return fits(*r, peer, tag); });
            REQUIRE(found == (expected == posted.end() ? nullptr : *expected));
            if (found != nullptr) {
                posted.erase(expected);
            } else {
                messages.push_back(message(peer, tag));
                matcher.add(messages.back());
                waiting.push_back(&messages.back());
            }
        }
    }
}
