// Memory that puts and gets are about, and what tests of both do with it.
//
// Threads: one.
// Lifetime: a Target before its rail.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>

#include "world.hpp"

namespace railmux::contract {

inline constexpr std::size_t largest = 3 << 20;  // of what a test puts at once, where a rail would take more

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
inline void transfer(World& world, const End& from, Op op, std::span<std::byte> local, const RegionKey& key,
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
inline void mend(World& world, End& near, End& far) {
    world.until_done(near);
    world.settle();
    if (!world.log(near).down && !world.log(far).down) return;
    world.until("the other end down", [&] { return world.log(near).down && world.log(far).down; });
    std::tie(near, far) = world.link();
}

/// A frame, and that it has arrived: what was put before it is in place where the rail orders them.
inline void barrier(World& world, const End& near, const End& far) {
    const auto before = world.log(far).frames.size();
    world.send(near, {});
    world.until("the frame", [&] { return world.log(far).frames.size() == before + 1; });
    world.until_done(near);
    world.settle();  // for rails that do not order
}

}  // namespace railmux::contract
