// ... and by how many calls.
#include <utility>

#include "engine/inlined_world.hpp"
#include "forwarding_rail.hpp"

namespace railmux {

using inlined::Network;

namespace {

/// Counts calls that hand over more than `worth_counting`.
class CallsRail final : public ForwardingRail {
public:
    CallsRail(std::unique_ptr<Rail> below, int& calls) : ForwardingRail(std::move(below)), calls_(calls) {}
    [[nodiscard]] std::size_t post(std::span<const transports::Work> works) noexcept override {
        std::size_t bytes = 0;
        for (const auto& work : works) {
            for (const auto& segment : work.segments) bytes += segment.size;
        }
        calls_ += bytes > worth_counting ? 1 : 0;
        return ForwardingRail::post(works);
    }

private:
    static constexpr std::size_t worth_counting = 4000;
    int& calls_;
};

/// What hosts a and b send, in `calls` that hand over something large, over such rails.
struct Counted {
    explicit Counted(int rails) {
        for (int i = 0; i < rails; ++i) {
            const auto device = "eth" + std::to_string(i);
            const Network network;
            for (const char* host : {"a", "b"})
                hosts.fabric.add_rail(host, {.device = device, .network = device, .timing = network.timing});
        }
        hosts.settings = {{"bulk.inlined", "always"}, {"probe", "off"}};
        hosts.look_each = 1000;
        hosts.around = [&](std::unique_ptr<transports::Rail> rail) -> std::unique_ptr<transports::Rail> {
            return std::make_unique<CallsRail>(std::move(rail), calls);
        };
        a = hosts.start("a", "vft");
        b = hosts.start("b", "vft");
        to_b = a->add_peer(b->address());
        to_a = b->add_peer(a->address());
        for (int i = 0; i < 3; ++i) {
            hosts.deliver(*a, to_b, *b, to_a, 20'000);
            rest();
        }
    }
    void rest() {
        const auto end = hosts.fabric.now() + 20 * base::millisecond;
        hosts.until({a.get(), b.get()}, [&] { return hosts.fabric.now() > end; });
    }
    /// Of one message.
    int of(std::size_t bytes) {
        rest();
        const auto before = calls;
        hosts.deliver(*a, to_b, *b, to_a, bytes);
        return calls - before;
    }

    int calls = 0;
    test::SimHosts hosts;
    std::unique_ptr<messaging::Engine> a, b;
    Peer to_b, to_a;
};

}  // namespace

TEST_CASE("inlined: over one link goes by one call what the network passes on at once, and more by two", "[engine]") {
    Counted world(1);
    for (const std::size_t bytes : {17'000U, 33'000U, rails::passed_at_once}) {
        INFO(bytes);
        CHECK(world.of(bytes) == 1);
    }
    for (const std::size_t bytes : {rails::passed_at_once + 1, 100'000U}) {
        INFO(bytes);
        CHECK(world.of(bytes) == 2);
    }
}

TEST_CASE("inlined: where a message may be spread over several links, all but its last frame leave first", "[engine]") {
    Counted world(2);
    CHECK(world.of(33'000) == 3);  // of four frames
}

}  // namespace railmux
