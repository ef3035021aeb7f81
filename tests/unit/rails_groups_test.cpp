// Links that share a bottleneck: which of them are used, until when, and what is said of that.
#include <catch2/catch.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "rails/groups.hpp"
#include "unit/rails_made.hpp"

using namespace railmux;
using namespace railmux::rails;

namespace {

constexpr double grouped_bps = 900e6;
constexpr double gigabit = 941e6;  // what one port carries

/// Links to one peer over eth0, eth1, eth2, and over lo0 and lo1, which processors move.
struct Grouped {
    rails::test::Made made{traits()};
    EagerSwitch eager{{.by_model = false}, made.rails, made.links};
    Groups groups{made.rails, made.peers, made.links, made.ledger, eager, made.log};
    std::uint32_t peer = made.add_peer();
    std::vector<std::uint32_t> slots;

    explicit Grouped(std::vector<std::uint32_t> over = {0, 1, 2}) {
        for (const auto rail : over) slots.push_back(made.add_link(peer, rail).slot);
    }
    Conversation& talk() { return made.talk(peer); }
    Link& link(std::size_t place) { return made.links.at(slots[place]); }
    void note(std::vector<double> alone, std::vector<model::Bottleneck> found) {
        groups.note(peer, slots, alone, found);
    }
    /// The places of those that are given nothing.
    std::vector<std::size_t> spare() {
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < talk().candidates.size(); ++i) {
            if (talk().candidates[i].spare) places.push_back(i);
        }
        return places;
    }
    LinkModel described(std::size_t place) {
        LinkModel model;
        groups.describe(model, link(place));
        return model;
    }

private:
    static std::vector<transports::RailTraits> traits() {
        std::vector<transports::RailTraits> all;
        for (const char* name : {"eth0", "eth1", "eth2", "lo0", "lo1"}) {
            all.push_back(rails::test::made_traits(name));
            all.back().by_processors = all.back().name.starts_with("lo");
        }
        return all;
    }
};

using Places = std::vector<std::size_t>;
using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("groups: of links that share, the fastest are used until they fill what they share", "[rails][groups]") {
    Grouped f;
    f.note({800e6, 900e6, 500e6}, {{.rails = {0, 1}, .bps = gigabit}});
    CHECK(f.spare() == Places{0});
    f.note({300e6, 300e6, 300e6}, {{.rails = {0, 1, 2}, .bps = 900e6}});  // what was known is forgotten
    CHECK(f.spare().empty());
    f.note({300e6, 300e6, 300e6}, {{.rails = {0, 1, 2}, .bps = 620e6}});
    CHECK(f.spare() == Places{2});
    f.note({300e6, 300e6, 300e6}, {});
    CHECK(f.spare().empty());
    CHECK(f.talk().groups.empty());
}

TEST_CASE("groups: a link is in one of them at most, and one that is gone in none", "[rails][groups]") {
    Grouped f;
    const std::vector<model::Bottleneck> found{{.rails = {0, 1}, .bps = gigabit}, {.rails = {1, 2}, .bps = gigabit}};
    f.note({grouped_bps, grouped_bps, grouped_bps}, found);
    CHECK(f.talk().groups.size() == 1);
    CHECK(f.spare() == Places{1});
    f.made.lose(f.link(0));
    f.note({grouped_bps, grouped_bps, grouped_bps}, found);
    REQUIRE(f.talk().groups.size() == 1);
    CHECK(f.talk().groups[0].members[0].link == f.slots[1]);
    CHECK(f.spare() == Places{1});  // of two
}

TEST_CASE("groups: when a link of theirs is lost the others are used again", "[rails][groups]") {
    Grouped f;
    f.note({grouped_bps, grouped_bps, grouped_bps}, {{.rails = {0, 1}, .bps = gigabit}});
    Groups::forget(f.talk(), f.link(2));  // none of theirs
    CHECK(f.spare() == Places{1});
    Groups::forget(f.talk(), f.link(GENERATE(0, 1)));
    CHECK(f.spare().empty());
    CHECK(f.talk().groups.empty());
}

TEST_CASE("groups: one whose used links have slowed down for 100 ms is none any more", "[rails][groups]") {
    Grouped f;
    f.note({grouped_bps, grouped_bps, grouped_bps}, {{.rails = {0, 1}, .bps = gigabit}});
    const auto becomes = [&](double bps) { f.made.ledger.measured(0, sched::to_ticks(8e9 / bps)); };
    const auto review_after = [&](base::Nanoseconds time) { f.groups.review(f.talk(), f.made.now += time); };
    becomes(500e6);  // more than half
    review_after(base::second);
    review_after(base::second);
    CHECK(f.spare() == Places{1});
    becomes(100e6);  // for a moment: it was away
    review_after(0);
    review_after(90 * base::millisecond);
    becomes(grouped_bps);
    review_after(base::millisecond);
    becomes(100e6);
    review_after(base::millisecond);
    review_after(90 * base::millisecond);
    CHECK(f.spare() == Places{1});
    review_after(20 * base::millisecond);
    CHECK(f.spare().empty());
    CHECK(f.talk().groups.empty());
}

TEST_CASE("groups: what is told of a link names all that share with it, and why it is spare", "[rails][groups]") {
    Grouped f;
    f.note({grouped_bps, grouped_bps, grouped_bps}, {{.rails = {0, 1}, .bps = gigabit}});
    for (const std::size_t place : {0, 1}) {
        const auto model = f.described(place);
        CHECK(model.group.rails == Names{"eth0", "eth1"});
        CHECK(model.group.bits_per_second == gigabit);
    }
    CHECK(f.described(2).group.rails.empty());
    CHECK(f.described(2).while_shared == f.described(2).model);
    CHECK(f.groups.why_spare(f.link(0)).empty());
    CHECK(f.groups.why_spare(f.link(1)) == "in one bottleneck with eth0");
    CHECK(f.groups.why_spare(f.link(2)).empty());
}

TEST_CASE("groups: while all of one send, a byte takes longer by what they lack together", "[rails][groups]") {
    Grouped f;
    f.note({grouped_bps, grouped_bps, grouped_bps}, {{.rails = {0, 1}, .bps = grouped_bps}});
    LinkModel model;
    model.model.ranges[0].G.ns = 8;
    f.groups.describe(model, f.link(0));
    CHECK(model.model.ranges[0].G.ns == 8);
    CHECK(model.while_shared.ranges[0].G.ns == Approx(16));
}

TEST_CASE("groups: of links that processors move the fastest stands for all, in groups with others, too",
          "[rails][groups]") {
    Grouped f({0, 3, 4});
    f.talk().processors.choose(f.talk().candidates);
    const auto names = f.described(1).group.rails;
    CHECK(names == Names{"lo0", "lo1"});
    CHECK(f.described(1).group.bits_per_second == 0);
    REQUIRE(f.spare().size() == 1);
    const auto idle = f.spare().front();
    CHECK(f.groups.why_spare(f.link(idle)) == "moved by the same processors as lo" + std::to_string(2 - idle));
    f.note({40e9, 10e9, 20e9}, {{.rails = {0, 1, 2}, .bps = 40e9}});
    REQUIRE(f.talk().groups.size() == 1);
    const auto& members = f.talk().groups[0].members;
    REQUIRE(members.size() == 2);
    CHECK(members[1].link == f.slots[2]);
    f.talk().processors.choose(f.talk().candidates);  // as when the links are looked at again
    CHECK(f.spare() == Places{1, 2});
    for (const std::size_t place : {1, 2}) CHECK(f.groups.why_spare(f.link(place)) == "in one bottleneck with eth0");
}
