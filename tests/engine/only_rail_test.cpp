// A large message that only one of the rails can take, because the receiver could not register its memory with the other.
#include <algorithm>

#include "engine/sim_pair.hpp"
#include "forwarding_rail.hpp"

namespace railmux {

namespace {

/// Others may not write into the memory of this host over the rail: it registers none.
class ClosedRail final : public ForwardingRail {
public:
    using ForwardingRail::ForwardingRail;
    [[nodiscard]] base::Result<transports::Region> add_region(std::span<std::byte>, transports::Access) override {
        return Error(ErrorCode::system, "no more", "");
    }
};

}  // namespace

TEST_CASE("failover: the only rail that can take a large message is lost and comes back, while another one is up") {
    for (int step = 1; step < 40; ++step) {
        INFO("cut after " << step * 20 << " us");
        test::SimHosts hosts;
        hosts.settings = {{"probe", "off"}};
        for (const char* device : {"eth0", "eth1"}) {
            const auto timing = test::sim::simple_timing(2000, 300, 300, 400, 1.0);
            for (const char* host : {"a", "b"})
                hosts.fabric.add_rail(host,
                                      {.device = device, .network = std::string("net-") + device, .timing = timing});
        }
        hosts.around = [](std::unique_ptr<transports::Rail> rail) -> std::unique_ptr<transports::Rail> {
            if (rail->traits().name.find("eth0") != std::string::npos) return rail;
            return std::make_unique<ClosedRail>(std::move(rail));
        };
        const auto a = hosts.start("a", "vft");
        const auto b = hosts.start("b", "vft");
        const auto to_b = a->add_peer(b->address());
        const auto to_a = b->add_peer(a->address());
        for (int i = 0; i < 4; ++i) hosts.deliver(*a, to_b, *b, to_a, 8);

        const auto data = test::pattern(1 << 20);
        std::vector<std::byte> got(data.size());
        const ConstBuffer out(data);
        const MutableBuffer in(got);
        auto receive = b->irecv(to_a, 1, {&in, 1}, nullptr);
        auto send = a->isend(to_b, 1, {&out, 1}, nullptr);
        const auto begin = hosts.fabric.now();
        const auto run = [&](auto until) {
            hosts.until({a.get(), b.get()}, [&] {
                if (send.active()) static_cast<void>(a->test(send));
                if (receive.active()) static_cast<void>(b->test(receive));
                return (!send.active() && !receive.active()) || until();
            });
        };
        run([&] { return hosts.fabric.now() > begin + step * 20 * base::microsecond; });
        hosts.fabric.cut("a/eth0", "b/eth0", test::sim::Cut::loud);
        run([&] { return hosts.fabric.now() > begin + 20 * base::millisecond; });
        hosts.fabric.restore("a/eth0", "b/eth0");
        const auto restored = hosts.fabric.now();
        run([&] { return hosts.fabric.now() > restored + 30 * base::second; });
        REQUIRE(!receive.active());
        REQUIRE(!send.active());
        CHECK(std::ranges::equal(got, data));
    }
}

}  // namespace railmux
