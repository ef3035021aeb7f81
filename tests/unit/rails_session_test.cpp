#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "rails/session.hpp"

using namespace railmux::rails;

namespace {

struct Fixture {
    FramePool pool;
    Session session{pool};

    Frame* frame(std::uint8_t flags = 0) {
        Frame* f = pool.take(FrameHeader::size);
        f->type = FrameType::eager;
        f->flags = flags;
        f->bytes = FrameHeader::size;
        return f;
    }
    Frame* enter(std::uint8_t flags = 0) {
        Frame* f = frame(flags);
        session.enter(*f, {});
        return f;
    }
};

}  // namespace

TEST_CASE("frames are numbered and released by acknowledgement", "[rails][session]") {
    Fixture t;
    for (std::uint32_t i = 0; i < 5; ++i) CHECK(t.enter()->seq == i);
    std::vector<std::uint32_t> released;
    const auto note = [&](Frame& f) { released.push_back(f.seq); };
    CHECK(t.session.acknowledged(3, {}, note));
    CHECK(released == std::vector<std::uint32_t>{0, 1, 2});
    CHECK(t.session.acknowledged(2, {}, note));  // overtaken on another link
    CHECK(released.size() == 3);
    CHECK_FALSE(t.session.acknowledged(6, {}, note));  // never sent
    CHECK(t.session.acknowledged(5, {}, note));
    CHECK(t.session.all_acknowledged());
}

TEST_CASE("selective acknowledgements release what is beyond a gap", "[rails][session]") {
    Fixture t;
    for (int i = 0; i < 10; ++i) t.enter();
    std::vector<std::uint32_t> released;
    const auto note = [&](Frame& f) { released.push_back(f.seq); };
    const std::array sack{std::byte{0b0001'0110}};
    CHECK(t.session.acknowledged(0, sack, note));
    CHECK(released == std::vector<std::uint32_t>{1, 2, 4});
    CHECK(t.session.acknowledged(1, {}, note));
    CHECK(released == std::vector<std::uint32_t>{1, 2, 4, 0});
    const std::array beyond{std::byte{0}, std::byte{0b1000'0000}};
    CHECK_FALSE(t.session.acknowledged(3, beyond, note));
}

TEST_CASE("an acknowledgement that was overtaken still says what is beyond its gap", "[rails][session]") {
    Fixture t;
    for (int i = 0; i < 6; ++i) t.enter();
    std::vector<std::uint32_t> released;
    const auto note = [&](Frame& f) { released.push_back(f.seq); };
    CHECK(t.session.acknowledged(2, {}, note));
    const std::array sack{std::byte{0b0001'0011}};
    CHECK(t.session.acknowledged(0, sack, note));
    CHECK(released == std::vector<std::uint32_t>{0, 1, 4});
    const std::array beyond{std::byte{0b1000'0000}};
    CHECK_FALSE(t.session.acknowledged(1, beyond, note));
}

TEST_CASE("the window closes and opens", "[rails][session]") {
    Fixture t;
    while (t.session.open_for_messages()) t.enter();
    CHECK(t.session.open());  // a part is kept for answers
    while (t.session.open()) t.enter();
    CHECK(t.session.acknowledged(Session::window, {}, [](Frame&) {}));
    CHECK(t.session.open_for_messages());
}

TEST_CASE("every number is fresh once, in any order", "[rails][session]") {
    Fixture t;
    std::mt19937 random(7);
    std::vector<std::uint32_t> order(3000);
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    for (std::size_t i = 0; i + 64 <= order.size(); i += 64) {  // shuffled within blocks, as uneven rails do
        std::shuffle(order.begin() + static_cast<long>(i), order.begin() + static_cast<long>(i) + 64, random);
    }
    for (const auto seq : order) {
        CHECK(t.session.arrived(seq) == Session::Arrival::fresh);
        CHECK(t.session.arrived(seq) == Session::Arrival::duplicate);
    }
    CHECK(t.session.ack() == order.size());
    CHECK(t.session.arrived(t.session.ack() + Session::window) == Session::Arrival::impossible);
}

TEST_CASE("what one side has seen, the other side's bits say", "[rails][session]") {
    Fixture receiver;
    Fixture sender;
    for (int i = 0; i < 40; ++i) sender.enter();
    const std::set<std::uint32_t> seen{0, 1, 5, 9, 38};
    for (const auto seq : seen) CHECK(receiver.session.arrived(seq) == Session::Arrival::fresh);
    std::array<std::byte, Session::max_sack_bytes> sack;
    const auto bytes = receiver.session.write_sack(sack);
    std::set<std::uint32_t> released;
    CHECK(receiver.session.ack() == 2);
    const auto note = [&](Frame& f) { released.insert(f.seq); };
    CHECK(sender.session.acknowledged(receiver.session.ack(), {}, note));
    CHECK(sender.session.acknowledged(receiver.session.ack(), std::span(sack).first(bytes), note));
    CHECK(released == seen);
}

TEST_CASE("ordered frames go up in order with their content", "[rails][session]") {
    Fixture t;
    std::mt19937 random(3);
    std::vector<std::uint32_t> order(500);
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::uint32_t> up;
    for (const auto number : order) {
        std::array<std::byte, 4> body;
        railmux::base::store(body.data(), number);
        const FrameHeader header{.type = FrameType::eager, .flags = frame_flag::ordered, .order = number};
        CHECK(t.session.in_order(header, body, [&](const FrameHeader& in, std::span<const std::byte> bytes) {
            CHECK(railmux::base::load<std::uint32_t>(bytes.data()) == in.order);
            up.push_back(in.order);
        }));
    }
    CHECK(std::is_sorted(up.begin(), up.end()));
    CHECK(up.size() == order.size());
}

TEST_CASE("impossible order numbers are refused", "[rails][session]") {
    Fixture t;
    const auto up = [](const FrameHeader&, std::span<const std::byte>) {};
    FrameHeader header{.type = FrameType::eager, .flags = frame_flag::ordered, .order = Session::window};
    CHECK_FALSE(t.session.in_order(header, {}, up));
    header.order = 3;
    CHECK(t.session.in_order(header, {}, up));
    CHECK_FALSE(t.session.in_order(header, {}, up));  // twice the same
}

TEST_CASE("a sequence ring keeps what it holds while it grows", "[rails][session]") {
    SequenceRing<std::uint32_t> ring(0xFFFFFFF0U);  // wraps around on the way
    for (std::uint32_t i = 0; i < 20; ++i) ring.at(0xFFFFFFF0U + i) = i + 1;
    ring.at(0xFFFFFFF0U + 1000) = 77;
    for (std::uint32_t i = 0; i < 20; ++i) {
        CHECK(ring.get(ring.base()) == i + 1);
        ring.pop();
    }
    CHECK(ring.get(0xFFFFFFF0U + 1000) == 77);
}
