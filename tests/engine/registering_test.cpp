// Large messages over rails that send registered memory as it is: what is registered, for how long, and who is told.
#include <algorithm>
#include <map>

#include "engine/sim_pair.hpp"

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
    std::uint64_t wrong = 0;
    std::uint64_t refuse_from = ~std::uint64_t{0};  // registrations from this one on fail
};

class RegisteringRail final : public transports::Rail {
public:
    RegisteringRail(std::unique_ptr<Rail> rail, std::uint64_t from, Registrations& seen)
        : rail_(std::move(rail)), traits_(rail_->traits()), seen_(seen) {
        traits_.register_from = from;
        traits_.copies_puts = true;
    }
    [[nodiscard]] const transports::RailTraits& traits() const noexcept override { return traits_; }
    [[nodiscard]] std::span<const std::byte> address() const noexcept override { return rail_->address(); }
    [[nodiscard]] transports::Reachability reach(std::span<const std::byte> to) const override {
        return rail_->reach(to);
    }
    [[nodiscard]] transports::LinkId connect(std::span<const std::byte> to, std::span<const std::byte> hello) override {
        return rail_->connect(to, hello);
    }
    void accept(transports::LinkId link, std::span<const std::byte> reply) override { rail_->accept(link, reply); }
    void refuse(transports::LinkId link, std::span<const std::byte> reply) override { rail_->refuse(link, reply); }
    void disconnect(transports::LinkId link) override { rail_->disconnect(link); }
    [[nodiscard]] std::string describe(transports::LinkId link) const override { return rail_->describe(link); }
    [[nodiscard]] int arm() noexcept override { return rail_->arm(); }

    [[nodiscard]] base::Result<Region> add_region(std::span<std::byte> memory, transports::Access access) override {
        if (access != transports::Access::local) return rail_->add_region(memory, access);
        if (seen_.made >= seen_.refuse_from) return Error(ErrorCode::system, "no more", "");
        Region region;
        region.local = reinterpret_cast<std::uint64_t>(this) + ++seen_.made;  // no other rail knows it
        seen_.open[region.local] = {memory, 0};
        return region;
    }
    void drop_region(const Region& region) noexcept override {
        if (region.local == 0) return rail_->drop_region(region);
        const auto known = seen_.open.find(region.local);
        if (known == seen_.open.end() || known->second.named > 0) ++seen_.wrong;
        seen_.open.erase(region.local);
    }
    [[nodiscard]] std::size_t post(std::span<const transports::Work> works) noexcept override {
        const auto taken = rail_->post(works);
        for (const auto& work : works.first(taken)) {
            for (const auto& segment : work.segments) note(work, segment);
        }
        return taken;
    }
    [[nodiscard]] std::size_t poll(std::span<transports::Event> events) noexcept override {
        const auto count = rail_->poll(events);
        for (const auto& event : events.first(count)) {
            if (event.kind != transports::EventKind::done) continue;
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

    std::unique_ptr<Rail> rail_;
    transports::RailTraits traits_;
    Registrations& seen_;
};

constexpr std::uint64_t from = 20'000;

/// Two hosts whose rails register: the frame's put and the frame itself share a cookie, so only the put's regions count.
struct World {
    explicit World(const test::FaultyTransport::Plans& plans = {}) : hosts(1, plans) {
        for (const char* device : {"eth0", "eth1"}) {
            const auto timing = test::sim::simple_timing(2000, 300, 300, 400, 1.0);
            for (const char* host : {"a", "b"})
                hosts.fabric.add_rail(host,
                                      {.device = device, .network = std::string("net-") + device, .timing = timing});
        }
        hosts.settings = {{"probe", "off"}};
        hosts.around = [this](std::unique_ptr<transports::Rail> rail) {
            return std::make_unique<RegisteringRail>(std::move(rail), from,
                                                     *seen.emplace_back(std::make_unique<Registrations>()));
        };
        a = hosts.start("a", "vft");
        b = hosts.start("b", "vft");
        to_b = a->add_peer(b->address());
        to_a = b->add_peer(a->address());
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
    CHECK((got == data));
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
    CHECK((got == data));
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
        CHECK((got == data));
        world.check();
    }
}

}  // namespace railmux
