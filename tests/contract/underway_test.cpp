// What a rail tells of bytes that have not reached the other host.
#include "world.hpp"

#include <chrono>

using namespace railmux::contract;

TEST_CASE("what the other host has is no longer underway, though its process does not look", "[contract]") {
    on_each_fixture([](World& world) {
        End near, far;
        std::tie(near, far) = world.link();
        if (!world.a().underway(near.id)) return;  // it does not tell
        const auto most = world.a().traits().max_frame;
        std::size_t sent = 0;
        for (const std::size_t size : {std::size_t{1}, std::size_t{most}}) {
            world.send(near, pattern(size, size));
            const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
            while (world.a().underway(near.id) != 0) {
                world.poll(world.a());
                if (std::chrono::steady_clock::now() > deadline) FAIL("the other host never confirms");
            }
            ++sent;
        }
        auto whole = pattern(most, 3);
        const Segment segment{whole.data(), whole.size()};
        for (std::size_t taken = 1; taken > 0; sent += taken) {
            const Work work{.link = near.id, .segments = {&segment, 1}, .cookie = world.next_cookie()};
            taken = world.post(world.a(), {&work, 1});
            world.poll(world.a());
        }
        CHECK(world.a().underway(near.id) > 0);  // there is no room over there
        world.until("the frames", [&] { return world.log(far).frames.size() == sent; });
        world.disconnect(near);
        world.until("the end of the link", [&] { return world.log(near).down; });
        CHECK_FALSE(world.a().underway(near.id));
    });
}
