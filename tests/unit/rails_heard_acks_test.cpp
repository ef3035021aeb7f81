// Acknowledgements that came with frames, until they are taken.
#include <catch2/catch.hpp>

#include <cstdint>
#include <utility>
#include <vector>

#include "rails/heard_acks.hpp"

using namespace railmux;
using namespace railmux::rails;

namespace {

struct Heard {
    Heard() {
        for (std::uint32_t i = 0; i < 2; ++i) {
            Link& link = links.add(0, {.index = i, .generation = 1});
            link.state = LinkState::live;
            slots.push_back(link.slot);
        }
    }
    void hear(std::size_t link, std::uint32_t ack, bool credit, base::Nanoseconds now) {
        acks.note(links.at(slots[link]), {.type = FrameType::eager, .ack = ack}, credit, now, now - 10);
    }
    [[nodiscard]] std::vector<std::pair<std::uint32_t, Link::Heard>> take() {
        std::vector<std::pair<std::uint32_t, Link::Heard>> taken;
        any =
            acks.take(links, [&](const Link& link, const Link::Heard& heard) { taken.emplace_back(link.slot, heard); });
        return taken;
    }

    LinkTable links{1};
    std::vector<std::uint32_t> slots;
    HeardAcks acks;
    bool any = false;
};

}  // namespace

TEST_CASE("of the acknowledgements that a link brings the newest is taken, once", "[rails][acks]") {
    Heard f;
    CHECK(f.take().empty());
    CHECK_FALSE(f.any);
    f.hear(0, 5, true, 100);
    f.hear(1, 6, false, 110);
    f.hear(0, 7, false, 120);
    CHECK(f.acks.any());
    const auto taken = f.take();
    CHECK(f.any);
    REQUIRE(taken.size() == 2);
    const auto& [slot, heard] = taken.front();
    CHECK(slot == f.slots[0]);
    CHECK(heard.header.ack == 7);
    CHECK(heard.credit);  // that one before it brought counts
    CHECK(heard.at == 120);
    CHECK(heard.taken == 110);
    CHECK_FALSE(taken.back().second.credit);
    CHECK_FALSE(f.acks.any());
    CHECK(f.take().empty());
}

TEST_CASE("what a link has brought that is over by then is nobody's", "[rails][acks]") {
    Heard f;
    f.hear(0, 5, false, 100);
    f.links.at(f.slots[0]).state = LinkState::closing;
    CHECK(f.take().empty());
    f.hear(1, 6, false, 110);
    f.links.remove(f.links.at(f.slots[1]));
    f.links.add(0, {.index = 1, .generation = 2}).state = LinkState::live;  // in the same place
    CHECK(f.take().empty());
}

TEST_CASE("whoever waits for what they release waits until they are taken", "[rails][acks]") {
    Heard f;
    CHECK_FALSE(f.acks.awaited());
    f.hear(0, 5, false, 100);
    f.acks.await();
    CHECK(f.acks.awaited());
    static_cast<void>(f.take());
    CHECK_FALSE(f.acks.awaited());
}
