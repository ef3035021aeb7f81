// Links end: what was under way flushes, link_down comes once, and then nothing.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "world.hpp"

using namespace railmux::contract;

namespace {

/// A child that keeps all descriptors of this process, and does nothing.
class IdleChild {
public:
    IdleChild() : number_(::fork()) {
        while (number_ == 0) ::pause();
    }
    ~IdleChild() {
        if (number_ < 0) return;
        ::kill(number_, SIGKILL);
        ::waitpid(number_, nullptr, 0);
    }
    IdleChild(const IdleChild&) = delete;
    IdleChild& operator=(const IdleChild&) = delete;
    [[nodiscard]] bool runs() const { return number_ > 0; }

private:
    pid_t number_;
};

/// Whether this process can sleep on the rail's descriptor: nothing wakes it all the time.
bool can_sleep(World& world, Rail& rail) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < limit) {
        if (world.poll(rail) > 0) continue;
        pollfd entry{.fd = rail.arm(), .events = POLLIN, .revents = 0};
        if (entry.fd >= 0 && ::poll(&entry, 1, 20) == 0) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("links end though a child of the process has kept their descriptors", "[contract]") {
    on_each_fixture(plain_fixtures(), [](World& world) {
        for (const bool from_far : {false, true}) {
            End near, far;
            std::tie(near, far) = world.link();
            for (auto* rail : {&world.a(), &world.b()}) {
                if (rail->traits().events) CHECK(can_sleep(world, *rail));
            }
            const IdleChild child;
            REQUIRE(child.runs());
            world.disconnect(from_far ? far : near);
            world.until("both ends down", [&] { return world.log(near).down && world.log(far).down; });
            for (auto* rail : {&world.a(), &world.b()}) {
                if (rail->traits().events) CHECK(can_sleep(world, *rail));
            }
            std::tie(near, far) = world.link();  // in the place of the one that has ended
            const auto bytes = pattern(100, 1);
            world.send(near, bytes);
            world.until("the frame", [&] { return !world.log(far).frames.empty(); });
            world.disconnect(near);
            world.until("both ends down", [&] { return world.log(near).down && world.log(far).down; });
        }
    });
}

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
