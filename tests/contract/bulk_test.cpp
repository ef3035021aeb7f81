// Puts: the right bytes in the right place, and nowhere else; and what becomes of puts and gets when their link dies.
#include <algorithm>

#include "target.hpp"

using namespace railmux::contract;

TEST_CASE("puts of every size land at their offset", "[contract]") {
    on_each_fixture([](World& world) {
        const auto& traits = world.a().traits();
        if (!traits.put) return;
        End near, far;
        std::tie(near, far) = world.link();
        const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(traits.max_put, largest));
        Target target(world.b(), most + 100, Access::remote_write);
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4095}, std::size_t{70'000}, most}) {
            for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, std::size_t{100}}) {
                auto source = pattern(size, size + offset);
                transfer(world, near, Op::put, source, target.key(), offset);
                barrier(world, near, far);
                CHECK(is_pattern(target.inside().subspan(offset, size), size + offset));
                CHECK(target.guards_whole());
            }
        }
        CHECK(world.log(near).denied + world.log(near).lost == 0);
    });
}

TEST_CASE("a large region is put in slices, from gather lists", "[contract]") {
    on_each_fixture([](World& world) {
        const auto& traits = world.a().traits();
        if (!traits.put) return;
        End near, far;
        std::tie(near, far) = world.link();
        const std::size_t slice = 200'000;
        const std::size_t total = 10 * slice;
        Target target(world.b(), total, Access::remote_read_write);
        auto source = pattern(total, 4);
        for (std::size_t at = 0; at < total; at += slice) {
            std::vector<Segment> segments;
            const auto pieces = traits.max_segments;
            for (std::size_t i = 0; i < pieces; ++i) {
                const auto begin = slice * i / pieces, end = slice * (i + 1) / pieces;
                segments.push_back({source.data() + at + begin, end - begin});
            }
            const Work work{.op = Op::put,
                            .link = near.id,
                            .segments = segments,
                            .remote = target.key(),
                            .offset = at,
                            .cookie = world.next_cookie()};
            world.post_all(world.a(), {&work, 1});
        }
        barrier(world, near, far);
        CHECK(is_pattern(target.inside(), 4));
        CHECK(target.guards_whole());
    });
}

TEST_CASE("puts come from registered memory, and from other memory between", "[contract]") {
    on_each_fixture([](World& world) {
        if (!world.a().traits().put) return;
        End near, far;
        std::tie(near, far) = world.link();
        constexpr std::size_t piece = 70'000, pieces = 4;
        Target target(world.b(), pieces * piece, Access::remote_write);
        auto source = pattern(pieces * piece, 9);
        const auto region = world.a().add_region(source, Access::local).take();
        // Which of them are registered: none, one, some, all.
        for (unsigned registered = 0; registered < 1U << pieces; ++registered) {
            std::ranges::fill(target.inside(), std::byte{0});
            std::vector<Segment> segments;
            for (std::size_t i = 0; i < pieces; ++i) {
                const bool is = (registered >> i & 1) != 0;
                segments.push_back({source.data() + i * piece, piece, is ? region.local : 0});
            }
            const Work work{.op = Op::put,
                            .link = near.id,
                            .segments = segments,
                            .remote = target.key(),
                            .cookie = world.next_cookie()};
            world.post_all(world.a(), {&work, 1});
            barrier(world, near, far);
            CHECK(is_pattern(target.inside(), 9));
        }
        CHECK(target.guards_whole());
        world.a().drop_region(region);
    });
}

TEST_CASE("a frame after a put finds its bytes in place", "[contract]") {
    on_each_fixture([](World& world) {
        const auto& traits = world.a().traits();
        if (!traits.put || !traits.ordered) return;
        End near, far;
        std::tie(near, far) = world.link();
        constexpr std::size_t count = 50, size = 20'000;
        Target target(world.b(), count * size, Access::remote_write);
        std::size_t arrived = 0, wrong = 0;
        world.on_event = [&, at = far](Rail& rail, const Event& event) {
            if (event.kind != EventKind::received || &rail != at.rail || event.link != at.id) return;
            wrong += is_pattern(target.inside().subspan(arrived * size, size), arrived) ? 0 : 1;
            ++arrived;
        };
        std::vector<Bytes> sources;
        for (std::size_t i = 0; i < count; ++i) sources.push_back(pattern(size, i));
        for (std::size_t i = 0; i < count; ++i) {
            transfer(world, near, Op::put, sources[i], target.key(), i * size);
            world.send(near, pattern(8, i));
        }
        world.until("all frames", [&] { return arrived == count; });
        CHECK(wrong == 0);
        world.until_done(near);
    });
}

TEST_CASE("a put that notifies tells when the bytes are in place", "[contract]") {
    on_each_fixture([](World& world) {
        const auto& traits = world.a().traits();
        if (!traits.put || !traits.notify) return;
        End near, far;
        std::tie(near, far) = world.link();
        constexpr std::uint32_t count = 40;
        constexpr std::size_t size = 3000;
        Target target(world.b(), count * size, Access::remote_write);
        std::size_t wrong = 0;
        world.on_event = [&, at = far](Rail& rail, const Event& event) {
            if (event.kind != EventKind::notified || &rail != at.rail || event.link != at.id) return;
            const auto number = event.immediate - 0xfffffff0;
            wrong += is_pattern(target.inside().subspan(number * size, size), number) ? 0 : 1;
        };
        std::vector<Bytes> sources;
        for (std::size_t i = 0; i < count; ++i) sources.push_back(pattern(size, i));
        for (std::uint32_t i = 0; i < count; ++i) {
            const Segment segment{sources[i].data(), size};
            const Work work{.op = Op::put,
                            .notify = true,
                            .immediate = 0xfffffff0 + i,  // all 32 bits, over their end
                            .link = near.id,
                            .segments = {&segment, 1},
                            .remote = target.key(),
                            .offset = i * size,
                            .cookie = world.next_cookie()};
            world.post_all(world.a(), {&work, 1});
        }
        world.until("all notifications", [&] { return world.log(far).immediates.size() == count; });
        world.until_done(near);
        world.settle();
        CHECK(world.log(far).immediates.size() == count);
        CHECK(wrong == 0);
        auto seen = world.log(far).immediates;
        for (auto& number : seen) number -= 0xfffffff0;
        std::ranges::sort(seen);
        for (std::uint32_t i = 0; i < count; ++i) CHECK(seen[i] == i);
    });
}

TEST_CASE("puts that are not allowed are discarded and harm nothing", "[contract]") {
    on_each_fixture([](World& world) {
        if (!world.a().traits().put) return;
        End near, far;
        std::tie(near, far) = world.link();
        constexpr std::size_t size = 10'000;
        Target target(world.b(), size, Access::remote_write);
        Target read_only(world.b(), size, Access::remote_read);
        Target local(world.b(), size, Access::local);
        Target dropped(world.b(), size, Access::remote_write);
        dropped.drop();
        auto source = pattern(size, 1);
        auto wrong = target.key();
        wrong.secret ^= 1;
        auto unknown = target.key();
        unknown.id += 1'000'000;
        const bool ends = world.a().traits().bad_put_ends_link;
        const auto other = world.link();
        struct Bad {
            RegionKey key;
            std::uint64_t offset;
        };
        for (const auto& [key, offset] :
             {Bad{wrong, 0}, Bad{unknown, 0}, Bad{read_only.key(), 0}, Bad{local.key(), 0}, Bad{dropped.key(), 0},
              Bad{target.key(), 1}, Bad{target.key(), size}, Bad{target.key(), ~std::uint64_t{0}},
              Bad{target.key(), ~std::uint64_t{0} - size + 1}, Bad{RegionKey{}, 0}}) {
            const Segment segment{source.data(), source.size()};
            const Work work{.op = Op::put,
                            .notify = world.a().traits().notify,
                            .immediate = 7,
                            .link = near.id,
                            .segments = {&segment, 1},
                            .remote = key,
                            .offset = offset,
                            .cookie = world.next_cookie()};
            world.post_all(world.a(), {&work, 1});
            if (!ends) continue;
            const auto& log = world.log(near);
            world.until("the end of its link", [&] { return log.down; });
            CHECK(log.lost + log.denied == 1);
            mend(world, near, far);
        }
        barrier(world, near, far);
        barrier(world, other.first, other.second);  // no other link is harmed
        CHECK(world.log(far).immediates.empty());
        for (auto* each : {&target, &read_only, &local, &dropped}) CHECK(each->untouched());
        transfer(world, near, Op::put, source, target.key(), 0);  // the link is as good as before
        barrier(world, near, far);
        CHECK(is_pattern(target.inside(), 1));
    });
}

TEST_CASE("nothing is written to a region after drop_region", "[contract]") {
    on_each_fixture([](World& world) {
        if (!world.a().traits().put) return;
        End near, far;
        std::tie(near, far) = world.link();
        constexpr std::size_t size = 300'000;
        for (int rounds = 0; rounds < 12; ++rounds) {
            Target target(world.b(), size, Access::remote_write);
            auto source = pattern(size, 1);
            const Segment segment{source.data(), source.size()};
            const std::vector<Work> works(
                3, Work{.op = Op::put, .link = near.id, .segments = {&segment, 1}, .remote = target.key()});
            const auto taken = world.post(world.a(), works);
            for (int i = 0; i < rounds; ++i) world.round();  // the drop meets puts not begun, half there, and there
            target.drop();
            std::ranges::fill(target.inside(), std::byte{0xaa});
            world.post_all(world.a(), std::span(works).subspan(taken));
            if (world.a().traits().bad_put_ends_link) mend(world, near, far);
            barrier(world, near, far);
            CHECK(target.untouched(std::byte{0xaa}));
        }
    });
}

TEST_CASE("links die with puts and gets under way", "[contract]") {
    on_each_fixture([](World& world) {
        const auto& traits = world.a().traits();
        if (!traits.put) return;
        for (int rounds = 0; rounds < 12; ++rounds) {
            End near, far;
            std::tie(near, far) = world.link();
            constexpr std::size_t size = 300'000;
            Target target(world.b(), size, Access::remote_read_write);
            auto source = pattern(size, 1);
            const Segment segment{source.data(), source.size()};
            std::vector<Work> works;
            for (std::uint64_t i = 0; i < 6; ++i) {
                works.push_back({.op = traits.get && i % 2 == 1 ? Op::get : Op::put,
                                 .link = near.id,
                                 .segments = {&segment, 1},
                                 .remote = target.key(),
                                 .cookie = i});
            }
            static_cast<void>(world.post(world.a(), works));
            for (int i = 0; i < rounds; ++i) world.round();
            world.disconnect(rounds % 2 == 0 ? near : far);
            world.until("both ends down", [&] { return world.log(near).down && world.log(far).down; });
            world.settle();
            CHECK(target.guards_whole());
        }
    });
}
