// What peers cost: the budgets of 256 bytes for a peer that is known, and 16 KiB for one that is connected, beside
// what the kernel keeps for its sockets. TEST_FIGURES=1 prints what was counted.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "engine/counted_memory.hpp"
#include "engine/pair.hpp"
#include "rails/process_address.hpp"

using namespace railmux;
using test::MemoryScope;
using test::scoped_bytes;

namespace {

void figure(const char* what, std::int64_t bytes) {
    if (std::getenv("TEST_FIGURES") != nullptr) std::printf("%s: %lld bytes\n", what, static_cast<long long>(bytes));
}

/// One context among others in this process, whose memory is counted.
class Hub {
public:
    explicit Hub(const Config& config) {
        const MemoryScope scope;
        context_ = std::make_unique<Context>(config);
    }
    ~Hub() {
        const MemoryScope scope;
        context_.reset();
    }
    Hub(const Hub&) = delete;
    Hub& operator=(const Hub&) = delete;

    template <typename Use>
    auto use(Use use_it) {
        const MemoryScope scope;
        return use_it(*context_);
    }

private:
    std::unique_ptr<Context> context_;
};

/// Whether all are over; a request may be asked once only after its end.
bool finish(Context& context, std::vector<Request>& requests) {
    context.progress();
    std::erase_if(requests, [&](Request& request) { return context.test(request).has_value(); });
    return requests.empty();
}

/// Connects another context to the hub at address `own` over both rails, and has messages of each protocol exchanged in both
/// directions.
void talk(Hub& hub, std::span<const std::byte> own, Context& other) {
    const auto to_hub = other.add_peer(own);
    const auto there = other.address();
    const auto to_other = hub.use([&](Context& c) { return c.add_peer(there); });
    for (const std::size_t bytes : {8U, 4096U, 300'000U, 8U}) {
        const std::vector<std::byte> out(bytes);
        std::vector<std::byte> in_hub(bytes);
        std::vector<std::byte> in_other(bytes);
        std::vector<Request> hubs(2);
        std::vector<Request> others(2);
        hub.use([&](Context& c) {
            hubs[0] = c.isend(to_other, 1, out);
            hubs[1] = c.irecv(to_other, 1, in_hub);
        });
        others[0] = other.isend(to_hub, 1, out);
        others[1] = other.irecv(to_hub, 1, in_other);
        for (bool done = false; !done;) {  // both sides progress each time
            const bool here = hub.use([&](Context& c) { return finish(c, hubs); });
            done = finish(other, others) && here;
        }
    }
    const auto both_rails = [&](Context& c, Peer peer) {
        c.progress();
        return c.models(peer).size() >= 2;
    };
    for (bool done = false; !done;) {
        const bool here = hub.use([&](Context& c) { return both_rails(c, to_other); });
        done = both_rails(other, to_hub) && here;
    }
}

}  // namespace

TEST_CASE("a peer that is known costs 256 bytes at most", "[engine][memory]") {
    if (!test::counts_memory) return;
    constexpr std::uint64_t peers = 20'000;
    Hub hub(test::two_rails());
    const auto own = hub.use([](Context& c) { return c.address(); });
    auto other = *rails::ProcessAddress::parse(own);  // a process with rails like these, somewhere else
    other.host = "node0123";
    const auto add = [&](std::uint64_t instance) {
        other.instance = instance;
        const auto address = other.encode();
        hub.use([&](Context& c) { return c.add_peer(address); });
    };
    add(1);
    const auto before = scoped_bytes();
    for (std::uint64_t i = 2; i < 2 + peers; ++i) add(i);
    const auto each = (scoped_bytes() - before) / static_cast<std::int64_t>(peers);
    figure("a known peer with two IPv4 rails", each);
    figure("of which its address", static_cast<std::int64_t>(other.encode().size()));
    CHECK(each <= 256);
}

TEST_CASE("a peer that is connected costs 16 KiB at most, beside what the kernel keeps", "[engine][memory]") {
    if (!test::counts_memory) return;
    constexpr std::size_t peers = 24;
    const std::string policy = GENERATE("vft", "round_robin");
    auto config = test::two_rails();
    // What peers say of each other's end is of no interest: nobody progresses the first ones while the last one connects.
    config.set("policy", policy).set("close.timeout", "0s").set("log", "off");
    Hub hub(config);
    const auto own = hub.use([](Context& c) { return c.address(); });
    std::vector<std::unique_ptr<Context>> others;
    const auto connect = [&](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) talk(hub, own, *others.emplace_back(std::make_unique<Context>(config)));
    };
    connect(8);  // pools are filled
    const auto before = scoped_bytes();
    connect(peers);
    const auto each = (scoped_bytes() - before) / static_cast<std::int64_t>(peers);
    figure(("a connected peer, two rails, " + policy).c_str(), each);
    CHECK(each <= 16 * 1024);
}
