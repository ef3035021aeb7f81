// Links end: what was under way flushes, link_down comes once, and then nothing.
#include "world.hpp"

using namespace railmux::contract;

TEST_CASE("disconnect flushes what is outstanding, then one link_down", "[contract]") {
    on_each_fixture([](World& world) {
        for (int round = 0; round < 10; ++round) {
            End near, far;
            std::tie(near, far) = world.link();
            const auto bytes = pattern(5000, 1);
            for (int i = 0; i < 2 * round; ++i) {
                world.send(near, bytes);
                world.send(far, bytes);
            }
            for (int i = 0; i < round; ++i) world.round();
            world.disconnect(round % 2 == 0 ? near : far);
            world.disconnect(near);  // twice, or from both sides at once: no difference
            world.until("both ends down", [&] { return world.log(near).down && world.log(far).down; });
            CHECK(world.log(near).undone == 0);  // World checks that this came first, and that nothing comes after
            CHECK(world.log(far).undone == 0);
            world.settle();
        }
    });
}

TEST_CASE("disconnect with everything the link takes outstanding", "[contract]") {
    on_each_fixture([](World& world) {
        End near, far;
        std::tie(near, far) = world.link();
        auto bytes = pattern(world.a().traits().max_frame, 1);
        const Segment segment{bytes.data(), bytes.size()};
        const std::vector<Work> works(world.a().traits().tx_depth, Work{.link = near.id, .segments = {&segment, 1}});
        const auto taken = world.post(world.a(), works);
        world.disconnect(near);
        world.until("both ends down", [&] { return world.log(near).down && world.log(far).down; });
        CHECK(world.log(near).done == taken);
    });
}

TEST_CASE("posts between the end of a link and its link_down complete before it", "[contract]") {
    on_each_fixture([](World& world) {
        End near, far;
        std::tie(near, far) = world.link();
        world.disconnect(near);
        for (int i = 0; i < 5; ++i) world.send(near, pattern(10, 1));
        world.until("both ends down", [&] { return world.log(near).down && world.log(far).down; });
        world.until_done(near);  // a refusal may have put some of them behind the link_down
        CHECK(world.log(near).lost == 5);
        for (int i = 0; i < 5; ++i) world.send(near, pattern(10, 1));
        world.until_done(near);
        CHECK(world.log(near).lost == 10);
        world.settle();
        CHECK(world.log(far).frames.empty());
    });
}

TEST_CASE("what was sent well before a disconnect has arrived", "[contract]") {
    on_each_fixture([](World& world) {
        End near, far;
        std::tie(near, far) = world.link();
        for (std::size_t i = 0; i < 20; ++i) world.send(near, pattern(100, i));
        world.until("all frames", [&] { return world.log(far).frames.size() == 20; });
        world.disconnect(near);
        world.until("both ends down", [&] { return world.log(near).down && world.log(far).down; });
        CHECK(world.log(near).done == 20);
    });
}

TEST_CASE("the end of one link leaves the others alone", "[contract]") {
    on_each_fixture([](World& world) {
        End near, far;
        std::tie(near, far) = world.link();
        End other_near, other_far;
        std::tie(other_near, other_far) = world.link();
        for (std::size_t i = 0; i < 10; ++i) {
            world.send(near, pattern(1000, i));
            world.send(other_near, pattern(1000, i));
        }
        world.disconnect(far);
        world.until("both ends down", [&] { return world.log(near).down && world.log(far).down; });
        for (std::size_t i = 10; i < 20; ++i) world.send(other_near, pattern(1000, i));
        world.until("all frames", [&] { return world.log(other_far).frames.size() == 20; });
        world.until_done(other_near);
        CHECK(world.log(other_near).lost == 0);
    });
}

TEST_CASE("a rail is destroyed with links alive and works outstanding", "[contract]") {
    on_each_fixture([](World& world) {
        End near, far;
        std::tie(near, far) = world.link();
        const auto pending = world.connect(world.a(), world.b().address(), {});
        for (std::size_t i = 0; i < 10; ++i) {
            world.send(near, pattern(1000, i));
            world.send(far, pattern(1000, i));
        }
        if (world.one_rail()) return;  // the World's end destroys it
        world.close_b();
        world.until("links down", [&] { return world.log(near).down && world.log(pending).down; });
        CHECK(world.log(near).undone == 0);
    });
}
