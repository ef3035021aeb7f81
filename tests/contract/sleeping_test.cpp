// arm(): a descriptor to sleep on instead of polling.
#include <poll.h>

#include <algorithm>
#include <chrono>

#include "target.hpp"

using namespace railmux::contract;

namespace {

bool readable(int descriptor, int milliseconds) {
    pollfd entry{.fd = descriptor, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, milliseconds) == 1;
}

/// Polls the rail of who is awake, and rests once many polls in a row brought nothing: those that take a part of a large frame
/// bring nothing either.
class Awake {
public:
    Awake(World& world, Rail& rail) : world_(world), rail_(rail) {}

    /// Whether the other's descriptor becomes readable before this one has to poll again.
    bool readable_meanwhile(int descriptor) {
        if (readable(descriptor, idle_polls_ < enough ? 0 : 1)) return true;
        idle_polls_ = world_.poll(rail_) > 0 ? 0 : idle_polls_ + 1;
        return false;
    }

private:
    static constexpr int enough = 100;
    World& world_;
    Rail& rail_;
    int idle_polls_ = 0;
};

/// Until it is true `rail` is polled only when its descriptor says so; the other rail is polled all the time.
void sleep_until(World& world, Rail& rail, const char* what, const std::function<bool()>& came) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    Awake other(world, &rail == &world.a() ? world.b() : world.a());
    int first = -1;
    while (!came()) {
        if (std::chrono::steady_clock::now() > limit) FAIL("took too long; awaited: " << what);
        if (world.poll(rail) > 0) continue;
        const int descriptor = rail.arm();
        if (descriptor < 0) continue;
        if (first >= 0) REQUIRE(descriptor == first);
        first = descriptor;
        while (!(world.one_rail() ? readable(descriptor, 1000) : other.readable_meanwhile(descriptor))) {
            if (std::chrono::steady_clock::now() > limit) FAIL("the descriptor never woke for " << what);
        }
    }
}

/// Polls until there is a descriptor, as an engine does before it sleeps.
int fall_asleep(World& world, Rail& rail) {
    int descriptor = -1;
    world.until("a descriptor to sleep on", [&] {
        if (world.poll(rail) == 0) descriptor = rail.arm();
        return descriptor >= 0;
    });
    return descriptor;
}

}  // namespace

TEST_CASE("the armed descriptor wakes for whatever comes", "[contract]") {
    on_each_fixture([](World& world) {
        if (!world.a().traits().events) {
            CHECK(world.a().arm() == -1);
            return;
        }
        End near, far;
        std::tie(near, far) = world.link();
        world.settle();
        fall_asleep(world, world.b());
        world.send(near, pattern(10, 1));
        sleep_until(world, world.b(), "a frame", [&] { return !world.log(far).frames.empty(); });
        fall_asleep(world, world.b());
        End asked;
        world.on_event = [&](Rail& rail, const Event& event) {
            if (event.kind == EventKind::connect_request) asked = {&rail, event.link};
        };
        const auto next = world.connect(world.a(), world.b().address(), pattern(1, 1));
        sleep_until(world, world.b(), "a request", [&] { return asked.rail != nullptr; });
        fall_asleep(world, world.b());
        world.b().accept(asked.id, {});
        sleep_until(world, world.b(), "link_up", [&] { return world.log(asked).up; });
        world.until("both ends up", [&] { return world.log(next).up; });
        fall_asleep(world, world.b());
        world.disconnect(near);
        sleep_until(world, world.b(), "link_down", [&] { return world.log(far).down; });
        fall_asleep(world, world.b());
        const End stale = far;
        world.send(stale, pattern(1, 1));
        sleep_until(world, world.b(), "a lost work", [&] { return world.log(stale).undone == 0; });
    });
}

TEST_CASE("whoever looks seldom, and everywhere, finds at once what has come", "[contract]") {
    on_each_fixture(plain_fixtures(), [](World& world) {
        // The descriptor, which is what tells here that something has come, is to say so to who is awake, too: that of
        // libfabric's providers does not.
        const auto& traits = world.b().traits();
        if (!traits.events || traits.posts_need_polls || world.one_rail()) return;
        const int descriptor = fall_asleep(world, world.b());
        world.poll(world.b());  // it is awake
        End asked;
        world.on_event = [&](Rail& rail, const Event& event) {
            if (event.kind == EventKind::connect_request) asked = {&rail, event.link};
        };
        static_cast<void>(world.connect(world.a(), world.b().address(), pattern(1, 1)));
        Awake other(world, world.a());
        int looks = 0;
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (asked.rail == nullptr && std::chrono::steady_clock::now() < limit) {
            if (!other.readable_meanwhile(descriptor)) continue;
            world.b().look_everywhere();
            world.poll(world.b());
            ++looks;
        }
        REQUIRE(asked.rail != nullptr);
        CHECK(looks <= 8);
    });
}

TEST_CASE("an idle rail's descriptor falls silent", "[contract]") {
    on_each_fixture([](World& world) {
        if (!world.b().traits().events) return;
        End near, far;
        std::tie(near, far) = world.link();
        for (std::size_t i = 0; i < 20; ++i) {
            world.send(near, pattern(100, i));
            world.send(far, pattern(100, i));
        }
        world.until("all frames",
                    [&] { return world.log(far).frames.size() == 20 && world.log(near).frames.size() == 20; });
        world.settle();
        for (auto* rail : {&world.a(), &world.b()}) {
            world.until("silence", [&] { return !readable(fall_asleep(world, *rail), 0); });
        }
    });
}

TEST_CASE("the armed descriptor wakes for room to send", "[contract]") {
    on_each_fixture([](World& world) {
        if (!world.a().traits().events) return;
        world.keep_frames = false;
        End near, far;
        std::tie(near, far) = world.link();
        auto bytes = pattern(world.a().traits().max_frame, 1);
        const Segment segment{bytes.data(), bytes.size()};
        const std::vector<Work> works(1000, Work{.link = near.id, .segments = {&segment, 1}});
        std::span<const Work> rest(works);
        sleep_until(world, world.a(), "room to send", [&] {
            rest = rest.subspan(world.post(world.a(), rest));
            return rest.empty();
        });
        world.until_done(near);
        world.until("all frames", [&, at = far] { return world.log(at).frames.size() == works.size(); });
    });
}

TEST_CASE("who was refused does not fall asleep once there is room, even if no event told of it", "[contract]") {
    on_each_fixture(plain_fixtures(), [](World& world) {
        const auto& traits = world.a().traits();
        if (!traits.events || world.one_rail()) return;
        world.keep_frames = false;
        for (const bool quiet : {false, true}) {
            if (quiet && traits.quiet_max == 0) continue;
            End near, far;
            std::tie(near, far) = world.link();
            auto bytes = pattern(quiet ? traits.quiet_max : traits.max_frame, 1);
            const Segment segment{bytes.data(), bytes.size()};
            const Work work{.quiet = quiet, .link = near.id, .segments = {&segment, 1}};
            std::size_t taken = 0;
            std::size_t before = 0;
            do {
                before = taken;
                while (world.post(world.a(), {&work, 1}) == 1) ++taken;
            } while (world.poll(world.a()) > 0 || taken > before);
            for (int idle = 0; idle < 100; ++idle) {
                if (world.poll(world.b()) > 0) idle = 0;
            }
            Awake other(world, world.b());
            const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
            bool told = world.poll(world.a()) > 0;
            const int descriptor = told ? -1 : world.a().arm();
            told = told || descriptor < 0;
            while (!told && std::chrono::steady_clock::now() < limit) told = other.readable_meanwhile(descriptor);
            CHECK(told);
            world.until_done(near);
            world.until("all frames", [&, at = far] { return world.log(at).frames.size() == taken; });
        }
    });
}

TEST_CASE("who has polled for many frames in a row is woken by a byte as ever", "[contract]") {
    on_each_fixture(plain_fixtures(), [](World& world) {
        if (!world.a().traits().events) return;
        End near, far;
        std::tie(near, far) = world.link();
        std::size_t sent = 0, answered = 0;
        const auto longest = std::min<std::size_t>(world.a().traits().max_frame, 24'000);
        for (const bool conversing : {false, true, false, true}) {
            for (int i = 0; i < 100; ++i) {
                world.send(near, pattern(conversing ? longest : 5000, ++sent));
                world.until("a frame", [&] { return world.log(far).frames.size() == sent; });
                if (!conversing) continue;
                world.send(far, pattern(8, ++answered));
                world.until("an answer", [&] { return world.log(near).frames.size() == answered; });
            }
            world.settle();
            fall_asleep(world, world.b());
            world.send(near, pattern(1, ++sent));
            sleep_until(world, world.b(), "a byte", [&] { return world.log(far).frames.size() == sent; });
        }
    });
}

TEST_CASE("what is posted after arm() goes on its way, and what comes then wakes all the same", "[contract]") {
    on_each_fixture(plain_fixtures(), [](World& world) {
        const auto& traits = world.a().traits();
        if (!traits.events || traits.posts_need_polls || world.one_rail()) return;
        End near, far;
        std::tie(near, far) = world.link();
        for (std::size_t i = 0; i < 20; ++i) {
            world.settle();
            const int descriptor = fall_asleep(world, world.a());
            world.send(near, pattern(100, i));
            const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
            const auto in_time = [&] { return std::chrono::steady_clock::now() < limit; };
            while (world.log(far).frames.size() <= i && in_time()) world.poll(world.b());
            REQUIRE(world.log(far).frames.size() == i + 1);
            world.send(far, pattern(100, i));
            while (!readable(descriptor, 1) && in_time()) world.poll(world.b());
            CHECK(in_time());
            world.until("the answer", [&] { return world.log(near).frames.size() == i + 1; });
        }
    });
}

namespace {

/// Whether it becomes true in time though `rail`, which sleeps on `descriptor`, is polled only when that says so.
bool comes_in_sleep(World& world, Rail& rail, int descriptor, const std::function<bool()>& came) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    auto& other = &rail == &world.a() ? world.b() : world.a();
    Awake awake(world, other);
    while (!came() && std::chrono::steady_clock::now() < limit) {
        if (!awake.readable_meanwhile(descriptor)) continue;
        while ((world.poll(rail) > 0 || rail.arm() < 0) && std::chrono::steady_clock::now() < limit) world.poll(other);
    }
    return came();
}

}  // namespace

TEST_CASE("what is posted after arm() and takes several polls of the poster's goes on its way, too", "[contract]") {
    on_each_fixture(plain_fixtures(), [](World& world) {
        const auto& traits = world.a().traits();
        if (!traits.events || traits.posts_need_polls || world.one_rail()) return;
        End near, far;
        std::tie(near, far) = world.link();
        auto frame = pattern(traits.max_frame, 1);
        const Segment segment{frame.data(), frame.size(), 0};
        for (std::size_t works = 1; works <= 3; ++works) {  // more than one: what is refused wakes for room
            world.settle();
            const int descriptor = fall_asleep(world, world.a());
            const auto before = world.log(far).frames.size();
            const std::vector<Work> all(works, {.link = near.id, .segments = {&segment, 1}});
            const auto taken = world.post(world.a(), all);
            REQUIRE(comes_in_sleep(world, world.a(), descriptor,
                                   [&] { return world.log(far).frames.size() == before + taken; }));
            world.post_all(world.a(), std::span(all).subspan(taken));
            world.until("the rest", [&] { return world.log(far).frames.size() == before + works; });
            CHECK(world.log(far).frames.back() == frame);
            world.until_done(near);
        }
    });
}

TEST_CASE("a get posted after arm() goes on its way, and wakes who sleeps when it is done", "[contract]") {
    on_each_fixture(plain_fixtures(), [](World& world) {
        const auto& traits = world.a().traits();
        if (!traits.events || !traits.get || traits.posts_need_polls || world.one_rail()) return;
        End near, far;
        std::tie(near, far) = world.link();
        constexpr std::size_t most = 1 << 20;
        Target target(world.b(), most, Access::remote_read);
        const auto content = pattern(most, 7);
        std::ranges::copy(content, target.inside().begin());
        for (const std::size_t size : {std::size_t{100}, std::size_t{60 * 1024}, most}) {
            world.settle();
            const int descriptor = fall_asleep(world, world.a());
            Bytes local(size);
            const Segment segment{local.data(), local.size(), 0};
            const Work get{.op = Op::get,
                           .link = near.id,
                           .segments = {&segment, 1},
                           .remote = target.key(),
                           .cookie = world.next_cookie()};
            REQUIRE(world.post(world.a(), {&get, 1}) == 1);
            REQUIRE(comes_in_sleep(world, world.a(), descriptor, [&] { return world.log(near).undone == 0; }));
            CHECK(std::ranges::equal(local, std::span(content).first(size)));
        }
    });
}
