// A process that is never without something to do, because somebody sends it small messages all the time, learns from its own
// flood what its rails carry: what had come by its last look that took all there was is known (Looks::taken).
#include <initializer_list>
#include <list>
#include <utility>

#include "engine/sim_pair.hpp"
#include "forwarding_rail.hpp"

using namespace railmux;
using test::pattern;
using test::SimHosts;

namespace {

/// Counts looks that have found something.
class CountedRail final : public ForwardingRail {
public:
    CountedRail(std::unique_ptr<Rail> below, int& found) : ForwardingRail(std::move(below)), found_(found) {}
    [[nodiscard]] std::size_t poll(std::span<transports::Event> events) noexcept override {
        const auto count = ForwardingRail::poll(events);
        found_ += count > 0 ? 1 : 0;
        return count;
    }

private:
    int& found_;
};

/// Rails of which nobody tells what has landed, and that say 10 Gbit/s of themselves, whatever is shaped behind them.
struct Busy {
    explicit Busy(std::initializer_list<double> ns_per_byte, std::string_view policy = "vft") {
        int rails = 0;
        for (const double each : ns_per_byte) {
            const auto device = "eth" + std::to_string(rails++);
            const auto timing = test::sim::simple_timing(2000, 300, 300, 400, each);
            for (const char* host : {"a", "b"}) {
                hosts.fabric.add_rail(
                    host, {.device = device, .network = device, .timing = timing, .speed_bps = 10'000'000'000});
            }
        }
        hosts.settings = {{"probe", "off"}};
        hosts.around = [&](std::unique_ptr<transports::Rail> rail) -> std::unique_ptr<transports::Rail> {
            return std::make_unique<CountedRail>(std::move(rail), found);
        };
        a = hosts.start("a", policy);
        hosts.around = nullptr;
        b = hosts.start("b", policy);
        to_b = a->add_peer(b->address());
        to_a = b->add_peer(a->address());
        hosts.until({a.get(), b.get()}, [&] {
            hosts.deliver(*a, to_b, *b, to_a, 8);
            return a->models(to_b).size() == ns_per_byte.size();
        });
    }

    /// A message under way. Nobody looks at the rails to see whether it is over.
    struct Exchange {
        Exchange(messaging::Engine& from, Peer to, std::span<const std::byte> data, messaging::Engine& receiver,
                 Peer sender, std::span<std::byte> got) {
            const MutableBuffer in(got);
            const ConstBuffer out(data);
            receive = receiver.irecv(sender, 1, {&in, 1}, [this](const Status&) { ++over; });
            send = from.isend(to, 1, {&out, 1}, [this](const Status&) { ++over; });
        }
        Request receive;
        Request send;
        int over = 0;
    };

    /// A has so many messages under way to b for so long; before each look of a's a small message has come from b. Returns what
    /// was known of the rails before there was nothing to do again, in ns a byte.
    std::vector<double> flood(std::size_t bytes, std::size_t window, base::Nanoseconds time, base::Nanoseconds each) {
        const auto data = pattern(bytes);
        const auto small = pattern(8);
        std::vector<std::byte> got(bytes);
        std::vector<std::byte> got_small(8);
        std::list<Exchange> large;
        std::list<Exchange> others;
        const auto drop = [](auto& exchanges, auto& from, auto& to) {
            exchanges.remove_if([&](Exchange& exchange) {
                return exchange.over == 2 && from.test(exchange.send) && to.test(exchange.receive);
            });
        };
        const auto end = hosts.fabric.now() + time;
        while (hosts.fabric.now() < end) {
            while (large.size() < window) large.emplace_back(*a, to_b, data, *b, to_a, got);
            others.emplace_back(*b, to_a, small, *a, to_b, got_small);
            b->progress();
            hosts.fabric.advance(each);
            found = 0;
            a->progress();
            vain += found > 0 ? 0 : 1;
            b->progress();
            drop(large, *a, *b);
            drop(others, *b, *a);
        }
        std::vector<double> known;
        for (const auto& link : a->models(to_b)) known.push_back(link.model.range(1 << 16).G.ns);
        hosts.until({a.get(), b.get()}, [&] {
            drop(large, *a, *b);
            drop(others, *b, *a);
            return large.empty() && others.empty();
        });
        return known;
    }

    SimHosts hosts;
    int found = 0;
    int vain = 0;  // looks of a's that found nothing
    std::unique_ptr<messaging::Engine> a;
    std::unique_ptr<messaging::Engine> b;
    Peer to_b;
    Peer to_a;
};

}  // namespace

TEST_CASE("who is never without something to do learns what his rails carry", "[engine]") {
    const auto each = GENERATE(20, 100) * base::microsecond;
    const bool both = GENERATE(false, true);
    INFO(each << " ns between looks, " << (both ? "two rails" : "one rail"));
    Busy world(both ? std::initializer_list<double>{8, 20} : std::initializer_list<double>{8});
    const auto known = world.flood(4 << 20, 8, 150 * base::millisecond, each);
    CHECK(world.vain == 0);
    CHECK(known.front() == Approx(8).epsilon(0.1));
    if (both) CHECK(known.back() == Approx(20).epsilon(0.1));
}

TEST_CASE("a policy that does not predict sends where it says, whatever fares best", "[engine]") {
    Busy world({1, 1}, "fixed");
    static_cast<void>(world.flood(4096, 16, 300 * base::millisecond, 20 * base::microsecond));
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    for (const auto& rail : world.a->traffic()) (rail.rail == "sim:eth0" ? first : second) += rail.sent_bytes;
    CHECK(first > 0);
    CHECK(second == 0);
}
