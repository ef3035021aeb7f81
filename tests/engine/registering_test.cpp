// Large messages over rails that send registered memory as it is: what is registered, for how long, and who is told.
#include <algorithm>
#include <map>

#include "engine/sim_pair.hpp"
#include "forwarding_rail.hpp"

namespace railmux {

namespace {

using transports::Region;

/// A rail that takes registered memory as it is, and what it was given.
struct Registrations {
    struct Known {
        std::span<std::byte> memory;
        std::size_t named = 0;  // by works outstanding
    };
    std::map<std::uint64_t, Known> open;
    std::map<std::uint64_t, std::vector<std::uint64_t>> works;  // cookie -> regions it names
    std::uint64_t made = 0;
    std::size_t most_open = 0;  // bytes, at a time
    std::size_t bytes_open = 0;
    std::uint64_t wrong = 0;
    std::vector<std::uint64_t> gets;                 // cookies of those outstanding
    std::uint64_t gets_allowed = ~std::uint64_t{0};  // those beyond are answered as denied
    std::uint64_t refuse_from = ~std::uint64_t{0};   // registrations from this one on fail
};

class RegisteringRail final : public ForwardingRail {
public:
    RegisteringRail(std::unique_ptr<Rail> rail, std::uint64_t from, Registrations& seen)
        : ForwardingRail(std::move(rail)), seen_(seen) {
        own_traits().register_from = from;
        own_traits().copies_puts = true;
        own_traits().pins = own_traits().reuses_regions = true;
    }

    [[nodiscard]] base::Result<Region> add_region(std::span<std::byte> memory, transports::Access access) override {
        if (access != transports::Access::local && access != transports::Access::local_write) {
            return below().add_region(memory, access);
        }
        if (seen_.made >= seen_.refuse_from) return Error(ErrorCode::system, "no more", "");
        Region region;
        region.local = reinterpret_cast<std::uint64_t>(this) + ++seen_.made;  // no other rail knows it
        seen_.open[region.local] = {memory, 0};
        seen_.bytes_open += memory.size();
        seen_.most_open = std::max(seen_.most_open, seen_.bytes_open);
        return region;
    }
    void drop_region(const Region& region) noexcept override {
        if (region.local == 0) return below().drop_region(region);
        const auto known = seen_.open.find(region.local);
        if (known == seen_.open.end() || known->second.named > 0) ++seen_.wrong;
        if (known != seen_.open.end()) seen_.bytes_open -= known->second.memory.size();
        seen_.open.erase(region.local);
    }
    [[nodiscard]] std::size_t post(std::span<const transports::Work> works) noexcept override {
        const auto taken = below().post(works);
        for (const auto& work : works.first(taken)) {
            if (work.op == transports::Op::get) seen_.gets.push_back(work.cookie);
            for (const auto& segment : work.segments) note(work, segment);
        }
        return taken;
    }
    [[nodiscard]] std::size_t poll(std::span<transports::Event> events) noexcept override {
        const auto count = below().poll(events);
        for (auto& event : events.first(count)) {
            if (event.kind != transports::EventKind::done) continue;
            if (std::erase(seen_.gets, event.cookie) > 0 && seen_.gets_allowed-- == 0) {
                seen_.gets_allowed = 0;
                event.status = transports::WorkStatus::access_denied;
            }
            for (const auto region : seen_.works[event.cookie]) --seen_.open[region].named;
            seen_.works.erase(event.cookie);
        }
        return count;
    }

private:
    void note(const transports::Work& work, const transports::Segment& segment) {
        if (segment.region == 0 || segment.size == 0) return;
        const auto known = seen_.open.find(segment.region);
        if (known == seen_.open.end()) {
            ++seen_.wrong;
            return;
        }
        auto& [memory, named] = known->second;
        if (segment.data < memory.data() || segment.data + segment.size > memory.data() + memory.size()) ++seen_.wrong;
        ++named;
        seen_.works[work.cookie].push_back(segment.region);
    }

    Registrations& seen_;
};

constexpr std::uint64_t from = 20'000;

/// Two hosts whose rails register: the frame's put and the frame itself share a cookie, so only the put's regions count.
struct World {
    explicit World(const test::FaultyTransport::Plans& plans = {}, std::string_view scheme = "auto") : hosts(1, plans) {
        for (const char* device : {"eth0", "eth1"}) {
            const auto timing = test::sim::simple_timing(2000, 300, 300, 400, 1.0);
            for (const char* host : {"a", "b"})
                hosts.fabric.add_rail(host,
                                      {.device = device, .network = std::string("net-") + device, .timing = timing});
        }
        hosts.settings = {{"probe", "off"}, {"bulk.scheme", std::string(scheme)}};
        hosts.around = [this](std::unique_ptr<transports::Rail> rail) {
            return std::make_unique<RegisteringRail>(std::move(rail), from,
                                                     *seen.emplace_back(std::make_unique<Registrations>()));
        };
        a = hosts.start("a", "vft");
        b = hosts.start("b", "vft");
        to_b = a->add_peer(b->address());
        to_a = b->add_peer(a->address());
    }
    /// Of a's rails.
    [[nodiscard]] std::uint64_t made() const { return seen[0]->made + seen[1]->made; }
    [[nodiscard]] std::uint64_t reused() const {
        std::uint64_t sum = 0;
        for (const auto& traffic : a->traffic()) sum += traffic.registrations_reused;
        return sum;
    }
    /// Bytes that were got from a.
    [[nodiscard]] std::uint64_t got() const {
        return hosts.fabric.counters("a/eth0").get_bytes + hosts.fabric.counters("a/eth1").get_bytes;
    }
    [[nodiscard]] std::uint64_t copied() const {
        std::uint64_t sum = 0;
        for (const auto& traffic : a->traffic()) sum += traffic.copied_bytes;
        return sum;
    }
    /// Nothing was named that was not open, and nothing is open any more.
    void check() const {
        for (const auto& rail : seen) {
            CHECK(rail->wrong == 0);
            CHECK(rail->open.empty());
        }
    }
    void send(std::span<std::byte> data) {
        std::vector<std::byte> got(data.size());
        const ConstBuffer out(data);
        send({&out, 1}, got);
        CHECK(std::ranges::equal(got, data));
    }
    void send(std::span<const ConstBuffer> gather, std::span<std::byte> in) {
        const MutableBuffer buffer(in);
        auto receive = b->irecv(to_a, 1, {&buffer, 1}, nullptr);
        auto send = a->isend(to_b, 1, gather, nullptr);
        hosts.until({a.get(), b.get()}, [&] {
            if (send.active()) static_cast<void>(a->test(send));
            if (receive.active()) static_cast<void>(b->test(receive));
            return !send.active() && !receive.active();
        });
    }

    std::vector<std::unique_ptr<Registrations>> seen;  // a's rails, then b's
    test::SimHosts hosts;
    std::unique_ptr<messaging::Engine> a, b;
    Peer to_b, to_a;
};

}  // namespace

TEST_CASE("a large message is registered with the rails that carry it, and copied by none") {
    World world;
    const auto data = test::pattern(10 << 20);
    std::vector<std::byte> got(data.size());
    const ConstBuffer out(data);
    world.send({&out, 1}, got);
    CHECK(test::same(got, data));
    CHECK(world.copied() == 0);
    CHECK(world.seen[0]->made > 0);
    CHECK(world.seen[1]->made > 0);
    CHECK(world.seen[0]->made <= 3);  // of 4 MiB each
    world.check();
}

TEST_CASE("what is too small to be worth it is copied") {
    World world;
    const auto data = test::pattern(from + 100 + from - 1);
    std::vector<std::byte> got(data.size());
    // Twice the same memory, but not as much of it: each is a piece of its own.
    const std::vector<ConstBuffer> out{std::span(data).first(from + 100), std::span(data).last(from - 1),
                                       std::span(data).first(from)};
    got.resize(data.size() + from);
    world.send(out, got);
    CHECK(std::equal(data.begin(), data.end(), got.begin()));
    CHECK(std::equal(data.begin(), data.begin() + from, got.begin() + static_cast<std::ptrdiff_t>(data.size())));
    CHECK(world.copied() == from - 1);
    world.check();
}

TEST_CASE("what cannot be registered is copied") {
    World world;
    for (auto& rail : world.seen) rail->refuse_from = 1;
    const auto data = test::pattern(20 << 20);
    std::vector<std::byte> got(data.size());
    const ConstBuffer out(data);
    world.send({&out, 1}, got);
    CHECK(test::same(got, data));
    CHECK(world.copied() > 0);
    world.check();
}

TEST_CASE("regions stay open while a rail reads them, and name nothing to the rail that takes over") {
    for (int step = 1; step < 200; step += 3) {
        World world({{"a/eth1", transports::FaultPlan::parse("kill_link@" + std::to_string(step))}});
        const auto data = test::pattern(3 << 20);
        std::vector<std::byte> got(data.size());
        const ConstBuffer out(data);
        world.send({&out, 1}, got);
        CHECK(test::same(got, data));
        world.check();
    }
}

TEST_CASE("a registration lasts no longer than its message") {
    World world;
    auto data = test::pattern(10 << 20);
    world.send(data);
    const auto once = world.made();
    world.check();
    for (auto& byte : data) byte ^= std::byte{0x5a};  // as if it were other memory at the same address
    world.send(data);
    CHECK(world.made() > once);
    CHECK(world.reused() == 0);
    world.check();
}

TEST_CASE("of a large message little is registered at a time") {
    World world;
    auto data = test::pattern(60 << 20);
    world.send(data);
    CHECK(world.copied() == 0);
    for (const auto& rail : {world.seen[0].get(), world.seen[1].get()}) {
        CHECK(rail->made > 10);
        CHECK(rail->most_open <= 3 * messaging::LastingRegions::chunk);
    }
    world.check();
}

TEST_CASE("memory that the application has registered is registered once with each rail") {
    World world;
    auto data = test::pattern(10 << 20);
    auto region = std::make_optional(world.a->register_memory(data, Rights::read_write));
    CHECK(world.made() == 0);  // not before a rail needs it
    world.send(data);
    world.send(data);  // by now each part has been over each rail, or nearly
    const auto made = world.made();
    CHECK(made <= 6);
    for (int i = 0; i < 4; ++i) {
        data[100] ^= std::byte{1};
        world.send(std::span(data).subspan(static_cast<std::size_t>(i) * 1000));
    }
    CHECK(world.made() <= 6);  // two rails, three parts of 4 MiB
    CHECK(world.reused() > 6);
    CHECK(world.copied() == 0);

    const auto put = std::make_shared<std::vector<std::byte>>(data.size());
    const auto there = world.b->register_memory(*put, Rights::write);
    const ConstBuffer out(data);
    auto request = world.a->iput(world.to_b, {there.key(), 0}, {&out, 1}, {.end = PutEnd::remote}, nullptr);
    world.hosts.until({world.a.get(), world.b.get()}, [&] { return world.a->test(request).has_value(); });
    CHECK(test::same(*put, data));
    CHECK(world.made() <= 6);

    for (const auto& rail : {world.seen[0].get(), world.seen[1].get()}) CHECK_FALSE(rail->open.empty());
    region.reset();
    world.check();  // nothing is open
    const auto before = world.made();
    world.send(data);
    CHECK(world.made() > before);  // memory like any other
    world.check();
}

TEST_CASE("registered memory that is taken back while messages come from it stays registered for these") {
    for (std::size_t steps = 0; steps < 60; steps += 3) {
        World world;
        auto data = test::pattern(12 << 20);
        auto region = std::make_optional(world.a->register_memory(data, Rights::read));
        auto again = std::make_optional(world.a->register_memory(std::span(data).subspan(5000), Rights::write));
        std::vector<std::byte> got(data.size());
        const MutableBuffer in(got);
        const ConstBuffer out(data);
        auto receive = world.b->irecv(world.to_a, 1, {&in, 1}, nullptr);
        auto send = world.a->isend(world.to_b, 1, {&out, 1}, nullptr);
        std::size_t looks = 0;
        world.hosts.until({world.a.get(), world.b.get()}, [&] {
            if (++looks == steps * 4) region.reset();
            if (looks == steps * 5) again.reset();
            if (send.active()) static_cast<void>(world.a->test(send));
            if (receive.active()) static_cast<void>(world.b->test(receive));
            return !send.active() && !receive.active();
        });
        CHECK(test::same(got, data));
        region.reset();
        again.reset();
        world.check();
    }
}

TEST_CASE("a rail that goes down and comes back finds registered memory as it was") {
    World world;
    auto data = test::pattern(6 << 20);
    auto region = std::make_optional(world.a->register_memory(data, Rights::read));
    world.send(data);
    world.hosts.fabric.rail_down("a/eth1", "pulled");
    world.send(data);
    world.hosts.fabric.restore_rail("a/eth1");
    for (int i = 0; i < 8; ++i) world.send(data);
    CHECK(world.made() <= 4);
    region.reset();
    world.check();
}

TEST_CASE(
    "a message goes the way that needs fewer registrations: read where only the receiver's memory stays registered") {
    for (const bool sender : {false, true}) {
        for (const bool receiver : {false, true}) {
            INFO("registered by the application: " << sender << " " << receiver);
            World world;
            auto data = test::pattern(1 << 20);
            std::vector<std::byte> got(data.size());
            std::optional<MemoryRegion> source, place;
            if (sender) source.emplace(world.a->register_memory(data, Rights::read));
            if (receiver) place.emplace(world.b->register_memory(got, Rights::write));
            const ConstBuffer out(data);
            world.send({&out, 1}, got);  // then the sender knows
            const auto before = world.got();
            data[5] ^= std::byte{1};
            world.send({&out, 1}, got);
            CHECK(test::same(got, data));
            CHECK((world.got() > before) == (receiver && !sender));
            source.reset();
            place.reset();
            world.check();
        }
    }
}

TEST_CASE("what is read goes straight to its place, registered while it comes") {
    for (int step = 1; step < 250; step += 3) {
        World world({{"b/eth1", transports::FaultPlan::parse("kill_link@" + std::to_string(step))}}, "read");
        const auto data = test::pattern(9 << 20);
        std::vector<std::byte> got(data.size());
        const ConstBuffer out(data);
        world.send({&out, 1}, got);
        CHECK(test::same(got, data));
        for (const auto& rail : world.seen) CHECK(rail->most_open <= 3 * messaging::LastingRegions::chunk);
        world.check();
    }
}

TEST_CASE("what may not be read any more is written") {
    for (std::uint64_t allowed = 0; allowed < 12; ++allowed) {
        World world({}, "read");
        for (const auto& rail : world.seen) rail->gets_allowed = allowed;
        const auto data = test::pattern(5 << 20);
        std::vector<std::byte> got(data.size());
        const ConstBuffer out(data);
        world.send({&out, 1}, got);
        CHECK(test::same(got, data));
        world.check();
    }
}

}  // namespace railmux
