// What a rail moves by itself, with nothing to hand up: whoever waits is told, or he would sleep while there is more to do.
#include <catch2/catch.hpp>

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "transports/shm/rail.hpp"

using namespace railmux;
using namespace railmux::transports;

namespace {

/// Two rails that share memory, each other's only peer.
struct Movers {
    base::Logger log{base::LogLevel::off};
    struct One {
        shm::Rail rail;
        LinkId link{};
        bool up = false;
        std::size_t notified = 0, done = 0, moved = 0;
        std::size_t poll() {
            std::array<Event, 32> events;
            const auto count = rail.poll(events);
            for (const auto& event : std::span(events).first(count)) {
                if (event.kind == EventKind::connect_request) rail.accept(link = event.link, {});
                up = up || event.kind == EventKind::link_up;
                notified += event.kind == EventKind::notified ? 1 : 0;
                done += event.kind == EventKind::done && event.status == WorkStatus::ok ? 1 : 0;
                moved += event.kind == EventKind::moved ? 1 : 0;
            }
            return count;
        }
    };
    One from, to;
    std::vector<std::byte> source, place;
    Region shown, open;

    Movers(const shm::Bulk& bulk, std::size_t bytes)
        : from{{"shm:node", bulk, log}}, to{{"shm:node", bulk, log}}, source(bytes, std::byte{7}), place(bytes) {
        from.link = from.rail.connect(to.rail.address(), {});
        for (int i = 0; i < 100'000 && !(from.up && to.up); ++i) from.poll(), to.poll();
        REQUIRE((from.up && to.up));
        shown = from.rail.add_region(source, Access::remote_read).take();
        open = to.rail.add_region(place, Access::remote_write).take();
    }
    static void post(One& one, Op op, const RegionKey& remote, std::span<std::byte> bytes) {
        const Segment segment{bytes.data(), bytes.size()};
        const Work work{
            .op = op, .notify = op == Op::put, .link = one.link, .segments = {&segment, 1}, .remote = remote};
        REQUIRE(one.rail.post({&work, 1}) == 1);
    }
    /// Goes to sleep; the descriptor that wakes it.
    static int sleep(One& one) {
        for (int tries = 0; tries < 100; ++tries) {
            if (const auto descriptor = one.rail.arm(); descriptor >= 0) return descriptor;
            while (one.poll() > 0) continue;
        }
        return -1;
    }
    static bool woken(int descriptor) {
        pollfd waker{descriptor, POLLIN, 0};
        return ::poll(&waker, 1, 0) == 1;
    }
};

constexpr shm::Bulk out_of_the_ring{};
constexpr shm::Bulk fetched{.fetch_from = shm::least_fetch};

}  // namespace

TEST_CASE("a look that moves a put on has found something, at both sides", "[shm][moving]") {
    Movers movers(out_of_the_ring, 1 << 20);
    Movers::post(movers.from, Op::put, movers.open.key, movers.source);
    std::size_t in_vain = 0;
    for (int turn = 0; turn < 10'000 && (movers.to.notified == 0 || movers.from.done == 0); ++turn) {
        if (movers.to.poll() == 0) ++in_vain;
        if (movers.from.done == 0 && movers.from.poll() == 0) ++in_vain;
    }
    CHECK(movers.place == movers.source);
    CHECK(movers.to.moved > 10);
    CHECK(movers.from.moved > 10);
    CHECK(in_vain < 5);
}

TEST_CASE("who sleeps is woken for his half of a large get, and has found something then", "[shm][moving]") {
    Movers movers(fetched, 4 << 20);
    const auto descriptor = Movers::sleep(movers.from);
    REQUIRE(descriptor >= 0);
    SECTION("large") {
        Movers::post(movers.to, Op::get, movers.shown.key, movers.place);
        CHECK(Movers::woken(descriptor));
        CHECK(movers.from.poll() > 0);
        CHECK(movers.from.moved == 1);
        for (int turn = 0; turn < 10'000 && movers.to.done == 0; ++turn) movers.to.poll(), movers.from.poll();
        CHECK(movers.place == movers.source);
        CHECK(movers.to.moved >= 15);
        CHECK(movers.from.moved >= 8);
    }
    SECTION("less than waking takes") {
        Movers::post(movers.to, Op::get, movers.shown.key, std::span(movers.place).first(100'000));
        CHECK_FALSE(Movers::woken(descriptor));
        for (int turn = 0; turn < 10'000 && movers.to.done == 0; ++turn) movers.to.poll();
        CHECK(std::ranges::count(movers.place, std::byte{7}) == 100'000);
    }
}

TEST_CASE("a share that may not be copied keeps nobody awake", "[shm][moving]") {
    Movers movers(fetched, 4 << 20);
    Movers::post(movers.to, Op::get, movers.shown.key, movers.place);
    movers.from.rail.drop_region(movers.shown);
    auto other = std::vector<std::byte>(1000);
    const auto shown = movers.from.rail.add_region(other, Access::remote_read).take();  // something is on the board
    CHECK(Movers::sleep(movers.from) >= 0);
    movers.from.rail.drop_region(shown);
}
