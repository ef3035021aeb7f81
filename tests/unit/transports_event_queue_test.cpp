#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "transports/event_queue.hpp"

using namespace railmux::transports;

namespace {

enum class Phase : std::uint8_t { free, up };
struct Link {
    LinkId id;
    Phase phase = Phase::free;
    std::uint32_t undone = 0;
    std::string label;
};

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

TEST_CASE("dones come before what is told, however small the batches", "[transports]") {
    EventQueue queue;
    LinkTable<Link> links;
    Link& link = links.add(Phase::up);
    link.undone = 2;
    queue.tell({.kind = EventKind::link_down, .link = link.id}, "over");
    queue.done(link.id, 1, WorkStatus::ok);
    queue.done(link.id, 2, WorkStatus::link_lost);
    std::array<Event, 2> events;
    Batch first{events};
    queue.hand_out(first, links);
    REQUIRE(first.count == 2);
    CHECK(events[0].cookie == 1);
    CHECK(events[1].cookie == 2);
    CHECK(events[1].status == WorkStatus::link_lost);
    CHECK(link.undone == 0);
    CHECK_FALSE(queue.empty());
    Batch second{events};
    queue.take_back(links);
    queue.hand_out(second, links);
    REQUIRE(second.count == 1);
    CHECK(events[0].kind == EventKind::link_down);
    CHECK(queue.empty());
}

TEST_CASE("what an event lends stays until it is taken back", "[transports]") {
    EventQueue queue;
    LinkTable<Link> links;
    const auto id = links.add(Phase::up).id;
    std::string text = "a cause of more than a few letters", data = "a reply of more than a few letters";
    queue.tell({.kind = EventKind::link_down, .link = id}, text, bytes_of(data));
    text.assign(text.size(), '?');
    data.assign(data.size(), '?');
    std::array<Event, 4> events;
    Batch batch{events};
    queue.hand_out(batch, links);
    queue.tell({.kind = EventKind::rail_down}, "later");
    CHECK(events[0].text == "a cause of more than a few letters");
    CHECK(std::ranges::equal(events[0].data, bytes_of("a reply of more than a few letters")));
}

TEST_CASE("a link's place is another's only after its link_down, under another id", "[transports]") {
    EventQueue queue;
    LinkTable<Link> links;
    Link& link = links.add(Phase::up);
    link.label = "the first";
    const auto id = link.id;
    CHECK(links.find(id) == &link);
    link.phase = Phase::free;
    CHECK(links.find(id) == nullptr);
    queue.tell({.kind = EventKind::link_down, .link = id});
    CHECK(links.add(Phase::up).id.index != id.index);
    std::array<Event, 4> events;
    Batch batch{events};
    queue.hand_out(batch, links);
    CHECK(links.add(Phase::up).id.index != id.index);
    queue.take_back(links);
    const Link& heir = links.add(Phase::up);
    CHECK(&heir == &link);
    CHECK(heir.id.index == id.index);
    CHECK(heir.id != id);
    CHECK(heir.label.empty());
    CHECK(links.find(id) == nullptr);
}

TEST_CASE("a request is withdrawn only while nobody has heard of it", "[transports]") {
    EventQueue queue;
    LinkTable<Link> links;
    const auto id = links.add(Phase::up).id, other = links.add(Phase::up).id;
    queue.tell({.kind = EventKind::connect_request, .link = id});
    queue.tell({.kind = EventKind::connect_request, .link = other});
    CHECK(queue.withdraw_request(id));
    CHECK_FALSE(queue.withdraw_request(id));
    std::array<Event, 4> events;
    Batch batch{events};
    queue.hand_out(batch, links);
    REQUIRE(batch.count == 1);
    CHECK(events[0].link == other);
    CHECK_FALSE(queue.withdraw_request(other));
}
