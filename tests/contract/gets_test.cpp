// Gets: the right bytes, from where they may come from only.
#include <algorithm>

#include "target.hpp"

using namespace railmux::contract;

TEST_CASE("gets bring the bytes, and only where allowed", "[contract]") {
    on_each_fixture([](World& world) {
        const auto& traits = world.a().traits();
        if (!traits.get) return;
        End near, far;
        std::tie(near, far) = world.link();
        const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(traits.max_put, largest));
        Target target(world.b(), most, Access::remote_read);
        Target write_only(world.b(), 100, Access::remote_write);
        const auto content = pattern(most, 5);
        std::ranges::copy(content, target.inside().begin());
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{5000}, most}) {
            Bytes local(size);
            const auto offset = std::min<std::size_t>(most - size, 3);
            transfer(world, near, Op::get, local, target.key(), offset);
            world.until_done(near);
            CHECK(std::ranges::equal(local, std::span(content).subspan(offset, size)));
        }
        CHECK(world.log(near).denied == 0);
        Bytes local(100, std::byte{1});
        auto wrong = target.key();
        wrong.secret ^= std::uint64_t{1} << 40;  // not near: where it is an address that would be inside
        const auto refused = [&](const RegionKey& key, std::uint64_t offset) {
            const auto before = world.log(near).denied + world.log(near).lost;
            transfer(world, near, Op::get, local, key, offset);
            world.until_done(near);
            CHECK(world.log(near).denied + world.log(near).lost == before + 1);
            CHECK((traits.bad_put_ends_link || world.log(near).lost == 0));
            if (traits.bad_put_ends_link) mend(world, near, far);
        };
        refused(wrong, 0);
        refused(write_only.key(), 0);
        refused(target.key(), most - 99);
        refused(target.key(), ~std::uint64_t{0} - 50);
        target.drop();
        refused(target.key(), 0);
        CHECK(local == Bytes(100, std::byte{1}));
    });
}

TEST_CASE("gets go to registered memory, and to other memory between, and to nothing else", "[contract]") {
    on_each_fixture([](World& world) {
        if (!world.a().traits().get) return;
        End near, far;
        std::tie(near, far) = world.link();
        constexpr std::size_t piece = 70'000, pieces = 4, gap = 100;
        Target target(world.b(), pieces * piece, Access::remote_read);
        const auto content = pattern(pieces * piece, 6);
        std::ranges::copy(content, target.inside().begin());
        Bytes memory(pieces * (piece + gap));
        const auto region = world.a().add_region(memory, Access::local_write).take();
        // Which of them are registered: none, one, some, all.
        for (unsigned registered = 0; registered < 1U << pieces; ++registered) {
            std::ranges::fill(memory, std::byte{0x55});
            std::vector<Segment> segments;
            for (std::size_t i = 0; i < pieces; ++i) {
                const bool is = (registered >> i & 1) != 0;
                segments.push_back({memory.data() + i * (piece + gap), piece, is ? region.local : 0});
            }
            const Work work{.op = Op::get,
                            .link = near.id,
                            .segments = segments,
                            .remote = target.key(),
                            .cookie = world.next_cookie()};
            world.post_all(world.a(), {&work, 1});
            world.until_done(near);
            for (std::size_t i = 0; i < pieces; ++i) {
                const auto* const at = memory.data() + i * (piece + gap);
                CHECK(std::equal(at, at + piece, content.data() + i * piece));
                CHECK(std::all_of(at + piece, at + piece + gap, [](std::byte b) { return b == std::byte{0x55}; }));
            }
        }
        CHECK(world.log(near).denied + world.log(near).lost == 0);
        world.a().drop_region(region);
    });
}

TEST_CASE("many gets at a time: more than a device reads at once", "[contract]") {
    on_each_fixture([](World& world) {
        if (!world.a().traits().get) return;
        End near, far;
        std::tie(near, far) = world.link();
        constexpr std::size_t size = 3000, count = 400;
        Target target(world.b(), size * count, Access::remote_read);
        const auto content = pattern(size * count, 8);
        std::ranges::copy(content, target.inside().begin());
        Bytes memory(size * count);
        for (std::size_t i = 0; i < count; ++i) {
            transfer(world, near, Op::get, std::span(memory).subspan(i * size, size), target.key(), i * size);
        }
        world.until_done(near);
        CHECK(memory == content);
        CHECK(world.log(near).denied + world.log(near).lost == 0);
    });
}
