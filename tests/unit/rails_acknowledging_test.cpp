// Acknowledgements that go by themselves, over links that are slow to take them.
#include <catch2/catch.hpp>

#include <array>
#include <string>

#include "unit/rails_world.hpp"

using namespace rails_world;  // NOLINT: the tests are about it

TEST_CASE("an acknowledgement that waits for its link is no reason for others to line up behind it", "[rails][acks]") {
    const int rails = GENERATE(1, 2);
    Couple pair(rails);
    pair.talk();
    // The way back takes half a millisecond for each; what comes in asks for five times as many.
    for (const auto& device : pair.world.devices) {
        pair.world.fabric.set_timing("b/" + device, sim::simple_timing(2000, 300, 300, 400, 20000.0));
    }
    for (int i = 0; i < 2000; ++i) {
        pair.a.say(1, "more");
        run(pair.world, {&pair.a, pair.b.get()}, 100 * base::microsecond);
    }
    // What b says goes behind those that the rails have taken, 64 each, and one for each that they have not.
    const auto begun = World::now();
    pair.b->say(0, "answer");
    pair.until([&] { return pair.a.heard.back() == "answer"; });
    CHECK(World::now() - begun < 60 * base::millisecond);
    pair.until([&] { return pair.a.manager.idle(1) && pair.b->manager.idle(0); });
    CHECK(pair.b->heard.size() == 2001);
}

TEST_CASE("a frame is taken out of a queue wherever it stands, and the others keep their order", "[rails]") {
    FramePool pool;
    std::array<Frame*, 3> frames{};
    for (auto& frame : frames) frame = pool.take(FrameHeader::size);
    for (const std::size_t taken : {0U, 1U, 2U}) {
        FrameQueue queue;
        for (auto* frame : frames) queue.push(frame);
        const auto is = [&](const Frame& frame) { return &frame == frames.at(taken); };
        CHECK(queue.take(is) == frames.at(taken));
        CHECK(queue.take(is) == nullptr);
        queue.push(frames.at(taken));
        for (std::size_t i = 0; i < frames.size(); ++i) {
            if (i != taken) CHECK(queue.pop() == frames.at(i));
        }
        CHECK(queue.take(is) == frames.at(taken));  // the only one
        CHECK(queue.empty());
        CHECK(queue.back() == nullptr);
    }
    for (auto* frame : frames) pool.give(frame);
}
