// What a rail tells of when its host had what it brings.
#include "world.hpp"

using namespace railmux::contract;
namespace base = railmux::base;

TEST_CASE("when the host had a frame is not before it was sent, and not after it was found", "[contract]") {
    on_each_fixture([](World& world) {
        End near, far;
        std::tie(near, far) = world.link();
        world.b().want_arrivals(far.id);
        world.b().want_arrivals({});  // of no link
        base::Nanoseconds posted = 0;
        world.on_event = [&](Rail& rail, const Event& event) {
            if (event.came == 0) return;
            CHECK(&rail == &world.b());
            CHECK(event.kind == EventKind::received);
            CHECK(event.came + base::millisecond > posted);  // a clock that is set may be off by a little
            CHECK(event.came <= base::now_ns());
        };
        for (std::size_t i = 1; i <= 20; ++i) {
            posted = base::now_ns();
            world.send(near, pattern(4000, i));
            world.until("the frame", [&] { return world.log(far).frames.size() == i; });
        }
        world.disconnect(near);
        world.until("the end of the link", [&] { return world.log(near).down; });
        world.b().want_arrivals(far.id);
    });
}

TEST_CASE("tcp tells when its host had a frame", "[contract]") {
    auto tcp = plain_fixtures();
    std::erase_if(tcp, [](const FixtureMaker& maker) { return maker.name != "tcp"; });
    on_each_fixture(tcp, [](World& world) {
        End near, far;
        std::tie(near, far) = world.link();
        world.b().want_arrivals(far.id);
        std::size_t told = 0;
        world.on_event = [&](Rail&, const Event& event) { told += event.came > 0 ? 1 : 0; };
        world.until("what a kernel tells that has begun to", [&] {
            world.send(near, pattern(4000, 1));
            return told > 0;
        });
    });
}
