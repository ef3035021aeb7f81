// Two hosts on simulated networks, for tests of large messages of which the first bytes follow the announcement.
//
// Threads: one.
// Lifetime: a World outlives what is sent in it.
#pragma once

#include <algorithm>

#include "engine/hostile.hpp"
#include "messaging/wire.hpp"

namespace railmux::inlined {

inline constexpr std::size_t most = 16 * 1024;  // eager.max

struct Network {
    transports::sim::Timing timing = test::sim::simple_timing(10'000, 300, 300, 400, 1.0);
    bool get = false;
    bool by_processors = false;
};

/// Hosts a and b on these networks.
struct World {
    World(std::string_view inlined, const std::vector<Network>& networks, std::string_view scheme = "auto",
          const test::FaultyTransport::Plans& plans = {}, std::uint64_t seed = 1, std::string_view policy = "vft",
          std::string_view eager_max = {}, std::string_view probe = {})
        : hosts(seed, plans) {
        for (std::size_t i = 0; i < networks.size(); ++i) {
            for (const char* host : {"a", "b"}) {
                test::sim::RailOptions options{.device = "eth" + std::to_string(i),
                                               .network = "net" + std::to_string(i)};
                options.timing = networks[i].timing;
                options.get = networks[i].get;
                options.by_processors = networks[i].by_processors;
                hosts.fabric.add_rail(host, options);
            }
        }
        hosts.settings = {
            {"bulk.inlined", std::string(inlined)}, {"bulk.scheme", std::string(scheme)}, {"recover.patience", "1s"}};
        if (!eager_max.empty()) hosts.settings.emplace_back("eager.max", std::string(eager_max));
        if (!probe.empty()) hosts.settings.emplace_back("probe", std::string(probe));
        hosts.look_each = 1000;
        a = hosts.start("a", policy);
        b = hosts.start("b", policy);
        to_b = a->add_peer(b->address());
        to_a = b->add_peer(a->address());
        deliver(100'000);  // so that all links are up
    }
    void deliver(std::size_t bytes) { hosts.deliver(*a, to_b, *b, to_a, bytes); }
    struct Lone {
        base::Nanoseconds took = base::second;
        std::uint64_t moved = ~std::uint64_t{0};  // bytes put and got: all but those inlined
    };
    /// What lone messages take: the least of several.
    [[nodiscard]] Lone lone(std::size_t bytes) {
        Lone least;
        for (int i = 0; i < 10; ++i) {
            const auto rest = hosts.fabric.now() + 10 * base::millisecond;
            until([&] { return hosts.fabric.now() > rest; });
            const auto begin = hosts.fabric.now();
            const auto before = moved();
            deliver(bytes);
            least.took = std::min(least.took, hosts.fabric.now() - begin);
            least.moved = std::min(least.moved, moved() - before);
        }
        return least;
    }
    [[nodiscard]] std::uint64_t moved() const {
        std::uint64_t bytes = 0;
        for (const auto& rail : a->rails()) {
            const auto counters = hosts.fabric.counters("a/" + rail.device);
            bytes += counters.put_bytes + counters.get_bytes;
        }
        return bytes;
    }
    template <typename Holds>
    void until(Holds holds) {
        hosts.until({a.get(), b.get()}, holds);
    }
    Request send(Tag tag, std::span<const std::byte> data) {
        const ConstBuffer out(data);
        return a->isend(to_b, tag, {&out, 1}, nullptr);
    }
    Request receive(Tag tag, std::span<std::byte> room, Peer from) {
        const MutableBuffer in(room);
        return b->irecv(from, TagMatch(tag), {&in, 1}, nullptr);
    }
    Status finish(messaging::Engine& side, Request& request) {
        std::optional<Status> status;
        until([&] { return (status = side.test(request)).has_value(); });
        return *status;
    }
    [[nodiscard]] std::uint64_t sent() const {
        std::uint64_t bytes = 0;
        for (const auto& rail : a->traffic()) bytes += rail.sent_bytes;
        return bytes;
    }

    test::SimHosts hosts;
    std::unique_ptr<messaging::Engine> a, b;
    Peer to_b, to_a;
};

}  // namespace railmux::inlined
