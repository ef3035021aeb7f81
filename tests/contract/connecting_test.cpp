// Links come up, are refused, fail, and give their ids back.
#include "world.hpp"

using namespace railmux::contract;

TEST_CASE("traits keep their promises", "[contract]") {
    on_each_fixture([](World& world) {
        for (const auto* rail : {&world.a(), &world.b()}) {
            const auto& traits = rail->traits();
            CHECK_FALSE(traits.name.empty());
            CHECK(traits.max_frame >= least_max_frame);
            CHECK(traits.max_hello >= 56);
            CHECK(traits.max_reply >= 64);
            CHECK(traits.max_segments >= 1);
            CHECK(traits.tx_depth >= 1);
            CHECK((traits.max_put > 0) == (traits.put || traits.get));
            CHECK_FALSE(rail->address().empty());
            CHECK(rail->address().size() <= 256);
        }
        const auto reach = world.a().reach(world.b().address());
        CHECK(reach.reach != Reach::never);
        CHECK_FALSE(reach.why.empty());
    });
}

TEST_CASE("hello and reply arrive whole, at every size", "[contract]") {
    on_each_fixture([](World& world) {
        const auto& traits = world.a().traits();
        for (const std::size_t hello :
             {std::size_t{0}, std::size_t{1}, std::size_t{56}, std::size_t{traits.max_hello}}) {
            for (const std::size_t reply : {std::size_t{0}, std::size_t{1}, std::size_t{traits.max_reply}}) {
                const auto near = world.connect(world.a(), world.b().address(), pattern(hello, 1));
                const auto far = world.requested(world.b());
                CHECK(world.log(far).hello == pattern(hello, 1));
                world.b().accept(far.id, pattern(reply, 2));
                world.until("both ends up", [&] { return world.log(near).up && world.log(far).up; });
                CHECK(world.log(near).reply == pattern(reply, 2));
                CHECK_FALSE(world.a().describe(near.id).empty());
                world.disconnect(near);
                world.until("both ends down", [&] { return world.log(near).down && world.log(far).down; });
            }
        }
    });
}

TEST_CASE("a refused link goes down on both sides, with the reply", "[contract]") {
    on_each_fixture([](World& world) {
        for (const std::size_t size : {std::size_t{0}, std::size_t{world.a().traits().max_reply}}) {
            const auto near = world.connect(world.a(), world.b().address(), pattern(56, 1));
            const auto far = world.requested(world.b());
            world.b().refuse(far.id, pattern(size, 2));
            world.until("both ends down", [&] { return world.log(near).down && world.log(far).down; });
            CHECK_FALSE(world.log(near).up);
            CHECK_FALSE(world.log(far).up);
            CHECK(world.log(near).reply == pattern(size, 2));
        }
    });
}

TEST_CASE("a malformed address ends in link_down", "[contract]") {
    on_each_fixture([](World& world) {
        const auto good = world.b().address();
        std::vector<Bytes> bad{
            {}, {std::byte{0}}, pattern(7, 1), pattern(256, 2), Bytes(256, std::byte{0xff}), Bytes(64, std::byte{0})};
        for (std::size_t size = 1; size < good.size(); ++size) bad.emplace_back(good.begin(), good.begin() + int(size));
        for (const auto& address : bad) {
            CHECK(world.a().reach(address).reach == Reach::never);
            const auto near = world.connect(world.a(), address, pattern(56, 1));
            world.until("link_down", [&] { return world.log(near).down; });
        }
    });
}

TEST_CASE("disconnect while connecting", "[contract]") {
    on_each_fixture([](World& world) {
        const auto at_once = world.connect(world.a(), world.b().address(), {});
        world.disconnect(at_once);
        world.until("link_down", [&] { return world.log(at_once).down; });
        world.settle();  // the other side may have been asked or not
        CHECK_FALSE(world.log(at_once).up);

        const auto near = world.connect(world.a(), world.b().address(), pattern(1, 1));
        auto far = world.requested(world.b());
        while (world.log(far).hello.empty()) far = world.requested(world.b());  // the one given up above
        world.disconnect(near);
        world.until("link_down here", [&] { return world.log(near).down; });
        world.b().accept(far.id, {});
        world.until("link_down there", [&] { return world.log(far).down; });
    });
}

TEST_CASE("a request that is disconnected is refused", "[contract]") {
    on_each_fixture([](World& world) {
        const auto near = world.connect(world.a(), world.b().address(), {});
        const auto far = world.requested(world.b());
        world.disconnect(far);
        world.until("both ends down", [&] { return world.log(near).down && world.log(far).down; });
        world.b().accept(far.id, {});  // too late: nothing
        world.b().refuse(far.id, {});
        world.settle();
        CHECK_FALSE(world.log(far).up);
    });
}

TEST_CASE("ids of links that are gone stay dead", "[contract]") {
    on_each_fixture([](World& world) {
        std::vector<End> gone;
        for (int i = 0; i < 20; ++i) {
            End near, far;
            std::tie(near, far) = world.link();  // World sees to it that the ids are new
            world.disconnect(i % 2 == 0 ? near : far);
            world.until("both ends down", [&] { return world.log(near).down && world.log(far).down; });
            gone.push_back(near);
        }
        End near, far;
        std::tie(near, far) = world.link();
        for (const auto& end : gone) {
            world.disconnect(end);  // nothing
            world.send(end, pattern(10, 1));
        }
        for (const auto& end : gone) world.until_done(end);
        for (const auto& end : gone) CHECK(world.log(end).lost == 1);
        world.send(near, pattern(10, 2));
        world.until("the frame", [&] { return world.log(far).frames.size() == 1; });
        CHECK(world.log(far).up);
        CHECK_FALSE(world.log(near).down);
    });
}

TEST_CASE("a post to a link that is not up completes as lost", "[contract]") {
    on_each_fixture([](World& world) {
        const End never{&world.a(), {.index = 12345, .generation = 3}};
        world.send(never, pattern(1, 1));
        world.until_done(never);
        CHECK(world.log(never).lost == 1);
        const End none{&world.a(), {}};
        world.send(none, {});
        world.until_done(none);
        CHECK(world.log(none).lost == 1);
        const auto near = world.connect(world.a(), world.b().address(), {});
        world.send(near, pattern(100, 1));
        const auto far = world.requested(world.b());
        world.b().accept(far.id, {});
        world.until("both ends up", [&] { return world.log(near).up && world.log(far).up; });
        world.until_done(near);
        CHECK(world.log(near).lost == 1);
        world.settle();
        CHECK(world.log(far).frames.empty());
    });
}

TEST_CASE("a storm of connects from both sides", "[contract]") {
    on_each_fixture([](World& world) {
        constexpr std::size_t count = 40;
        std::vector<End> ends;
        for (std::size_t i = 0; i < count; ++i) {
            ends.push_back(world.connect(world.a(), world.b().address(), pattern(8, i)));
            ends.push_back(world.connect(world.b(), world.a().address(), pattern(8, i)));
        }
        for (auto* rail : {&world.a(), &world.b()}) {
            const auto here = world.one_rail() ? 2 * count : count;
            for (std::size_t i = 0; i < here; ++i) {
                const auto end = world.requested(*rail);
                rail->accept(end.id, world.log(end).hello);
                ends.push_back(end);
            }
            if (world.one_rail()) break;
        }
        world.until("all up",
                    [&] { return std::ranges::all_of(ends, [&](const End& end) { return world.log(end).up; }); });
        for (std::size_t i = 0; i < 2 * count; ++i) CHECK(world.log(ends[i]).reply == pattern(8, i / 2));
        for (std::size_t i = 0; i < ends.size(); ++i) world.send(ends[i], pattern(100, i));
        world.until("a frame on each", [&] {
            return std::ranges::all_of(ends, [&](const End& end) { return world.log(end).frames.size() == 1; });
        });
        for (std::size_t i = 0; i < 2 * count; ++i) world.disconnect(ends[i]);
        world.until("all down",
                    [&] { return std::ranges::all_of(ends, [&](const End& end) { return world.log(end).down; }); });
    });
}

TEST_CASE("nobody answers at the address of a rail that is gone", "[contract]") {
    on_each_fixture([](World& world) {
        if (world.one_rail()) return;
        const auto address = world.b().address();
        const Bytes stale(address.begin(), address.end());
        End near, far;
        std::tie(near, far) = world.link();
        for (std::size_t i = 0; i < 8; ++i) world.send(near, pattern(1000, i));
        world.close_b();
        world.until("link_down", [&] { return world.log(near).down; });
        const auto again = world.connect(world.a(), stale, {});
        world.until("link_down", [&] { return world.log(again).down; });
        CHECK_FALSE(world.log(again).up);
    });
}
