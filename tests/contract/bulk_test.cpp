// Puts and gets: the right bytes in the right place, and nowhere else.
#include "world.hpp"

#include <algorithm>

using namespace railmux::contract;

namespace {

constexpr std::size_t largest = 3 << 20;  // of what a test puts at once, where a rail would take more

/// Memory at the far end with a guard on both sides.
class Target {
public:
    Target(Rail& rail, std::size_t size, Access access)
        : rail_(rail), memory_(size + 2 * guard, std::byte{0x55}), region_(rail.add_region(inside(), access).take()) {}
    ~Target() {
        if (!dropped_) drop();
    }
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;

    [[nodiscard]] std::span<std::byte> inside() {
        return std::span(memory_).subspan(guard, memory_.size() - 2 * guard);
    }
    [[nodiscard]] const RegionKey& key() const { return region_.key; }
    void drop() {
        rail_.drop_region(region_);
        dropped_ = true;
    }
    [[nodiscard]] bool untouched(std::byte value = std::byte{0x55}) {
        return std::ranges::all_of(inside(), [&](std::byte b) { return b == value; }) && guards_whole();
    }
    [[nodiscard]] bool guards_whole() {
        const auto whole = [](std::byte b) { return b == std::byte{0x55}; };
        return std::ranges::all_of(std::span(memory_).first(guard), whole) &&
               std::ranges::all_of(std::span(memory_).last(guard), whole);
    }

private:
    static constexpr std::size_t guard = 64;
    Rail& rail_;
    Bytes memory_;
    Region region_;
    bool dropped_ = false;
};

/// One put or get of all of `local`.
void transfer(World& world, const End& from, Op op, std::span<std::byte> local, const RegionKey& key,
              std::uint64_t offset) {
    const Segment segment{local.data(), local.size()};
    const Work work{.op = op,
                    .link = from.id,
                    .segments = {&segment, 1},
                    .remote = key,
                    .offset = offset,
                    .cookie = world.next_cookie()};
    world.post_all(*from.rail, {&work, 1});
}

/// Where a put that is not allowed ends its link: waits until all works are done, and makes a new link if there is none left.
void mend(World& world, End& near, End& far) {
    world.until_done(near);
    world.settle();
    if (!world.log(near).down && !world.log(far).down) return;
    world.until("the other end down", [&] { return world.log(near).down && world.log(far).down; });
    std::tie(near, far) = world.link();
}

/// A frame, and that it has arrived: what was put before it is in place where the rail orders them.
void barrier(World& world, const End& near, const End& far) {
    const auto before = world.log(far).frames.size();
    world.send(near, {});
    world.until("the frame", [&] { return world.log(far).frames.size() == before + 1; });
    world.until_done(near);
    world.settle();  // for rails that do not order
}

}  // namespace

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
