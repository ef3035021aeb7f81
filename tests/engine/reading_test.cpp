// Large messages that the receiver reads out of the sender's memory (bulk.scheme), alone and together with rails that only
// write.
#include <algorithm>

#include "engine/sim_pair.hpp"
#include "repeats.hpp"

namespace railmux {

namespace {

using transports::FaultPlan;

/// Two hosts with two rails; the first of the two networks can read, the second perhaps.
struct ReadingWorld {
    explicit ReadingWorld(bool second_reads, const test::FaultyTransport::Plans& plans = {},
                          std::string_view policy = "vft", std::string_view scheme = "read", std::uint64_t seed = 1)
        : hosts(seed, plans) {
        for (const char* device : {"eth0", "eth1"}) {
            for (const char* host : {"a", "b"}) {
                test::sim::RailOptions options{.device = device, .network = std::string("net-") + device};
                options.timing = test::sim::simple_timing(2000, 300, 300, 400, 1.0);
                options.get = second_reads || device[3] == '0';
                hosts.fabric.add_rail(host, options);
            }
        }
        hosts.settings = {{"probe", "off"}, {"bulk.scheme", std::string(scheme)}, {"recover.patience", "1s"}};
        a = hosts.start("a", policy, &rails_a);
        b = hosts.start("b", policy, &rails_b);
        to_b = a->add_peer(b->address());
        to_a = b->add_peer(a->address());
        deliver(100'000);  // so that all links are up
    }
    void deliver(std::size_t bytes) { hosts.deliver(*a, to_b, *b, to_a, bytes); }
    template <typename Holds>
    void until(Holds holds) {
        hosts.until({a.get(), b.get()}, holds);
    }
    [[nodiscard]] std::uint64_t read(const char* device) const {
        return hosts.fabric.counters(std::string("a/") + device).get_bytes;
    }
    [[nodiscard]] std::uint64_t written(const char* device) const {
        return hosts.fabric.counters(std::string("a/") + device).put_bytes;
    }

    test::SimHosts hosts;
    test::FaultyTransport* rails_a = nullptr;  // owned by the engines
    test::FaultyTransport* rails_b = nullptr;
    std::unique_ptr<messaging::Engine> a, b;
    Peer to_b, to_a;
};

/// Messages of all kinds at the same time, in both directions.
void exchange_kinds(ReadingWorld& world) {
    struct Message {
        std::vector<std::byte> data;
        std::vector<std::byte> got;
        Request send, receive;
    };
    std::vector<Message> messages(6);
    for (std::size_t i = 0; i < messages.size(); ++i) {
        auto& [data, got, send, receive] = messages[i];
        const bool forth = i % 3 != 2;
        auto& from = forth ? *world.a : *world.b;
        auto& to = forth ? *world.b : *world.a;
        data = test::pattern(i == 1 ? 1000 : 200'000 * (i + 1), static_cast<unsigned>(i));
        got.resize(data.size());
        const ConstBuffer out(data);
        send = from.isend(forth ? world.to_b : world.to_a, static_cast<Tag>(i), {&out, 1}, nullptr);
        const std::array<MutableBuffer, 2> in{std::span(got).first(700), std::span(got).subspan(700)};
        receive = to.irecv(forth ? world.to_a : world.to_b, TagMatch(static_cast<Tag>(i)),
                           i == 4 ? std::span(in) : std::span<const MutableBuffer>(), nullptr);
        if (i != 4) {
            CHECK(to.cancel(receive));
            static_cast<void>(to.test(receive));
            const MutableBuffer whole(got);
            receive = to.irecv(forth ? world.to_a : world.to_b, TagMatch(static_cast<Tag>(i)), {&whole, 1}, nullptr);
        }
    }
    world.until([&] {
        bool over = true;
        for (std::size_t i = 0; i < messages.size(); ++i) {
            auto& [data, got, send, receive] = messages[i];
            const bool forth = i % 3 != 2;
            if (send.active()) {
                if (const auto status = (forth ? world.a : world.b)->test(send)) CHECK(status->ok());
            }
            if (receive.active()) {
                if (const auto status = (forth ? world.b : world.a)->test(receive)) CHECK(status->ok());
            }
            over = over && !send.active() && !receive.active();
        }
        return over;
    });
    for (const auto& message : messages) CHECK(message.data == message.got);
}

bool is_loss(ErrorCode code) { return code == ErrorCode::peer_lost || code == ErrorCode::unreachable; }

}  // namespace

TEST_CASE("reading: the receiver gets what it can get over all rails, and nothing is put") {
    ReadingWorld world(true);
    world.deliver(5 << 20);
    CHECK(world.written("eth0") + world.written("eth1") == 0);
    CHECK(world.read("eth0") > 2 << 20);
    CHECK(world.read("eth1") > 2 << 20);
}

TEST_CASE("reading: by default a rail that could do both is written to") {
    ReadingWorld world(true, {}, "vft", "auto");
    world.deliver(5 << 20);
    CHECK(world.read("eth0") + world.read("eth1") == 0);
}

TEST_CASE("reading: one message is got over one rail and put over another at the same time") {
    for (const char* policy : {"vft", "round_robin", "fixed", "weighted_round_robin", "wfq"}) {
        INFO(policy);
        ReadingWorld world(false, {}, policy);
        const auto before = world.written("eth1");
        world.deliver(5 << 20);
        CHECK(world.read("eth0") + world.written("eth1") + world.written("eth0") >= 5 << 20);
        CHECK(world.written("eth0") == 0);
        if (policy == std::string("fixed")) continue;
        CHECK(world.read("eth0") > 2 << 20);
        CHECK(world.written("eth1") - before > 2 << 20);
    }
}

TEST_CASE("reading: messages of all kinds, expected and not") {
    for (const bool second_reads : {true, false}) {
        ReadingWorld world(second_reads);
        exchange_kinds(world);
        std::vector<std::byte> room(150'000);  // less than comes
        const auto data = test::pattern(1 << 20);
        const ConstBuffer out(data);
        auto send = world.a->isend(world.to_b, 7, {&out, 1}, nullptr);
        auto unwanted = world.a->isend(world.to_b, 8, {&out, 1}, nullptr);
        std::optional<Message> message;
        world.until([&] { return (message = world.b->mprobe(world.to_a, TagMatch(8))).has_value(); });
        message.reset();
        const MutableBuffer in(room);
        auto receive = world.b->irecv(world.to_a, TagMatch(7), {&in, 1}, nullptr);
        world.until([&] {
            if (receive.active()) {
                if (const auto status = world.b->test(receive)) CHECK(status->truncated());
            }
            if (send.active()) static_cast<void>(world.a->test(send));
            if (unwanted.active()) static_cast<void>(world.a->test(unwanted));
            return !send.active() && !receive.active() && !unwanted.active();
        });
        CHECK(std::equal(room.begin(), room.end(), data.begin()));
    }
}

TEST_CASE("reading: links die at every step, and every message arrives whole") {
    for (const bool second_reads : {true, false}) {
        for (const char* rail : {"a/eth0", "b/eth0", "b/eth1"}) {
            for (int step = 20; step < 260; step += test::each(3)) {
                const auto plan = "kill_link@" + std::to_string(step);
                INFO(rail << " " << plan << " " << second_reads);
                ReadingWorld world(second_reads, {{rail, FaultPlan::parse(plan)}});
                exchange_kinds(world);
            }
        }
    }
}

TEST_CASE("reading: with faults of all kinds on all rails every message arrives whole") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const auto plans = test::faults_of_all_kinds(seed);
        INFO(seed);
        ReadingWorld world(seed % 3 != 0, plans, seed % 2 == 0 ? "vft" : "round_robin", "read", seed);
        exchange_kinds(world);
    }
}

TEST_CASE("reading: who is lost while it is read from fails the receive, which nothing is written to any more") {
    for (int looks = 0; looks < 60; looks += 4) {
        ReadingWorld world(looks % 8 == 0);
        const auto data = test::pattern(3 << 20);
        std::vector<std::byte> got(data.size());
        const MutableBuffer in(got);
        const ConstBuffer out(data);
        auto receive = world.b->irecv(world.to_a, 1, {&in, 1}, nullptr);
        auto send = world.a->isend(world.to_b, 1, {&out, 1}, nullptr);
        int look = 0;
        world.until([&] { return ++look > looks; });
        for (const std::string device : {"eth0", "eth1"}) {
            world.hosts.fabric.cut("a/" + device, "b/" + device, test::sim::Cut::loud);
        }
        std::optional<Status> received, sent;
        world.until([&] {
            if (!received) received = world.b->test(receive);
            if (!sent) sent = world.a->test(send);
            return received && sent;
        });
        CHECK((received->ok() ? test::same(got, data) : is_loss(received->code)));
        CHECK((sent->ok() || is_loss(sent->code)));
        const auto kept = got;
        for (const std::string device : {"eth0", "eth1"}) world.hosts.fabric.restore("a/" + device, "b/" + device);
        world.deliver(300'000);
        CHECK(got == kept);
    }
}

}  // namespace railmux
