// Traces and explanations of whole engines, against what a simulated fabric really does.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>

#include "captured.hpp"
#include "engine/pair.hpp"
#include "engine/sim_pair.hpp"
#include "rails/process_address.hpp"
#include "scratch.hpp"
#include "trace/analysis.hpp"
#include "trace/replay.hpp"

using namespace railmux;
using test::pattern;
using test::SimHosts;

namespace {

/// Two hosts over `rails` rails of 1 and 4 ns a byte; the first one writes a trace.
class Traced {
public:
    explicit Traced(int rails, std::string_view policy = "vft") {
        for (int i = 0; i < rails; ++i) {
            const auto timing = test::sim::simple_timing(5000 + 3000 * i, 300, 300, 400, i == 0 ? 1.0 : 4.0);
            for (const char* host : {"a", "b"}) {
                hosts.fabric.add_rail(
                    host, {.device = fmt::format("eth{}", i), .network = fmt::format("net{}", i), .timing = timing});
            }
        }
        REQUIRE(::mkdtemp(folder_.data()) != nullptr);
        hosts.settings = {{"log", "warning"}};
        a = hosts.start("a", policy, nullptr, Config().set("trace", file()));
        b = hosts.start("b", policy);
        to_b = a->add_peer(b->address());
        to_a = b->add_peer(a->address());
    }
    ~Traced() { std::filesystem::remove_all(folder_); }
    Traced(const Traced&) = delete;
    Traced& operator=(const Traced&) = delete;

    struct Sent {
        base::Nanoseconds at = 0;
        base::Nanoseconds arrived = 0;
        Status status;
    };
    Sent send(std::size_t bytes) {
        const auto data = pattern(bytes);
        std::vector<std::byte> got(bytes);
        const MutableBuffer in(got);
        auto receive = b->irecv(to_a, 1, {&in, 1}, nullptr);
        const ConstBuffer out(data);
        Sent sent{.at = hosts.fabric.now()};
        auto request = a->isend(to_b, 1, {&out, 1}, nullptr);
        std::optional<Status> status;
        until([&] {
            if (receive.active() && b->test(receive)) sent.arrived = hosts.fabric.now();
            if (!status) status = a->test(request);
            return status && !receive.active();
        });
        CHECK(test::same(got, data));
        sent.status = *status;
        return sent;
    }
    /// Everything acknowledged, links measured.
    void settle() {
        const auto end = hosts.fabric.now() + 20 * base::millisecond;
        until([&] { return hosts.fabric.now() >= end; });
    }
    template <typename Holds>
    void until(Holds holds) {
        hosts.until({a.get(), b.get()}, holds);
    }
    /// The trace, which is over then.
    trace::Trace read() {
        a.reset();
        return trace::read_file(file());
    }
    [[nodiscard]] std::string file() const { return folder_ + "/trace"; }

    SimHosts hosts;
    std::unique_ptr<messaging::Engine> a;
    std::unique_ptr<messaging::Engine> b;
    Peer to_b;
    Peer to_a;

private:
    std::string folder_ = (std::filesystem::temp_directory_path() / "railmux-test-XXXXXX").string();
};

constexpr std::uint8_t eager = 16;
constexpr std::uint8_t piece = 19;

std::vector<trace::Decision> of_type(const trace::Trace& read, std::uint8_t type) {
    std::vector<trace::Decision> found;
    for (const auto& decision : read.decisions) {
        if (decision.type == type) found.push_back(decision);
    }
    return found;
}

}  // namespace

TEST_CASE("tracing: that decisions are missing because of a new rail is said once", "[engine]") {
    Traced pair(1);
    pair.send(8);
    const auto said = test::captured([&] {
        for (const char* host : {"a", "b"}) pair.hosts.fabric.add_rail(host, {.device = "eth9", .network = "net9"});
        const auto both = [&] { return pair.a->models(pair.to_b).size() == 2; };
        pair.until(both);
        for (int i = 0; i < 3; ++i) pair.send(8);
    });
    CHECK_THAT(said, Catch::Matchers::Contains("eth9 came after the trace began"));
    CHECK(said.find("after the trace began") == said.rfind("after the trace began"));
    CHECK(of_type(pair.read(), eager).size() == 1);
}

TEST_CASE("tracing: every message, when it was sent, and when it really arrived", "[engine]") {
    const int rails = GENERATE(1, 2);
    CAPTURE(rails);
    Traced pair(rails);
    pair.send(8);
    pair.settle();
    std::vector<Traced::Sent> sent;
    for (int i = 0; i < 50; ++i) {
        sent.push_back(pair.send(i % 2 == 0 ? 8 : 4000));
        pair.settle();
    }
    const auto read = pair.read();
    CHECK(!read.cut);
    CHECK(read.header.policy == "vft");
    CHECK(read.header.rails.size() == static_cast<std::size_t>(rails));
    const auto decisions = of_type(read, eager);
    REQUIRE(decisions.size() == sent.size() + 1);
    for (std::size_t i = 0; i < sent.size(); ++i) {
        const auto& decision = decisions[i + 1];
        CAPTURE(i);
        CHECK(read.header.started + decision.time == sent[i].at);
        CHECK(decision.options == rails);
        CHECK(sent[i].status.rails == 1ULL << read.rail_of(decision));
        REQUIRE(decision.acknowledged);
        CHECK(decision.timed);
        CHECK(std::abs(read.header.started + decision.delivered - sent[i].arrived) < 2000);
    }
    const auto all = trace::analyse({&read, 1}).back();
    // With two rails the peer's latest one is tried before its latency is known.
    if (rails == 1) CHECK(all.error_median < 0.2);
    CHECK(trace::Replay(read).run("vft").messages == all.frames);
}

TEST_CASE("tracing: a burst is recorded in the order in which it was sent", "[engine]") {
    const int rails = GENERATE(1, 2);
    CAPTURE(rails);
    Traced pair(rails);
    pair.send(8);
    pair.settle();
    const auto begun = pair.hosts.fabric.now();
    constexpr int messages = 3000;
    std::array<std::byte, 100> data{};
    std::vector<Request> receives;
    std::vector<Request> sends;
    for (int i = 0; i < messages; ++i) {
        const MutableBuffer in(data);
        receives.push_back(pair.b->irecv(pair.to_a, 1, {&in, 1}, nullptr));
        const ConstBuffer out(data);
        sends.push_back(pair.a->isend(pair.to_b, 1, {&out, 1}, nullptr));
    }
    pair.until([&] {
        bool all = true;
        for (auto& request : sends) all = (!request.active() || pair.a->test(request)) && all;
        for (auto& request : receives) all = (!request.active() || pair.b->test(request)) && all;
        return all;
    });
    pair.settle();
    const auto read = pair.read();
    std::uint64_t count = 0;
    base::Nanoseconds last = begun - read.header.started;
    for (const auto& decision : of_type(read, eager)) {
        if (decision.time < begun - read.header.started) continue;
        ++count;
        CHECK(decision.time >= last);
        CHECK(decision.acknowledged);
        CHECK(decision.delivered > decision.time);
        last = decision.time;
    }
    CHECK(count + of_type(read, 17).size() == messages);  // without credit some go by rendezvous
}

TEST_CASE("tracing: messages take the rails that they take untraced", "[engine]") {
    // Heavy ones and bursts of light ones each way, under way together and one by one.
    struct Went {
        std::vector<std::uint64_t> rails;  // bits, by message
        std::vector<base::Nanoseconds> done;
    };
    const Config shared = Config().set("probe", "shared");  // nothing is known of the links from before
    const auto exchange = [&](const Config& of_a) {
        std::optional<test::SimPair> pair;
        const auto instance = [](const messaging::Engine& engine) {
            return rails::ProcessAddress::parse(engine.address())->instance;
        };
        do {  // which side takes whose rail is by their random names
            pair.emplace("vft", test::FaultyTransport::Plans{}, 1, 2, of_a, shared);
        } while (instance(*pair->a) > instance(*pair->b));
        pair->hosts.deliver(*pair->a, pair->to_b, *pair->b, pair->to_a, 8);
        pair->until([&] { return pair->a->models(pair->to_b).size() == 2; });
        Went went;
        std::array<std::byte, 8000> data{};
        std::array<std::byte, 8000> got{};
        for (int round = 0; round < 60; ++round) {
            const int count = std::array{1, 4, 90}[round % 3];
            std::vector<Request> receives;
            std::vector<Request> sends;
            for (int i = 0; i < count; ++i) {
                const MutableBuffer in(got);
                receives.push_back(pair->b->irecv(pair->to_a, 1, {&in, 1}, nullptr));
            }
            const MutableBuffer in(got);
            auto answered = pair->a->irecv(pair->to_b, 1, {&in, 1}, nullptr);
            for (int i = 0; i < count; ++i) {
                const ConstBuffer out(data.data(), std::array{8, 8, 200, 8, 8, 1500, 40}[(i + round) % 7]);
                sends.push_back(pair->a->isend(pair->to_b, 1, {&out, 1}, nullptr));
            }
            const ConstBuffer out(data.data(), 8);
            auto answer = pair->b->isend(pair->to_a, 1, {&out, 1}, nullptr);
            std::vector<std::optional<Status>> ends(sends.size());
            pair->until([&] {
                bool all = true;
                for (std::size_t i = 0; i < sends.size(); ++i) {
                    if (!ends[i]) ends[i] = pair->a->test(sends[i]);
                    all = all && ends[i];
                }
                for (auto& receive : receives) all = (!receive.active() || pair->b->test(receive)) && all;
                all = (!answered.active() || pair->a->test(answered)) && all;
                return (!answer.active() || pair->b->test(answer)) && all;
            });
            for (const auto& end : ends) went.rails.push_back(end->rails);
            went.done.push_back(pair->hosts.fabric.now());
        }
        const auto end = pair->hosts.fabric.now() + base::millisecond;
        pair->until([&] { return pair->hosts.fabric.now() >= end; });  // all is acknowledged
        return went;
    };
    const auto file = test::scratch_folder() + "/trace";
    const auto untraced = exchange(shared);
    const auto traced = exchange(Config(shared).set("trace", file));
    CHECK((traced.rails == untraced.rails));  // in no more words: there are hundreds
    CHECK(traced.done == untraced.done);
    CHECK(std::ranges::count(untraced.rails, 1U) > 0);
    CHECK(std::ranges::count(untraced.rails, 2U) > 0);

    const auto read = trace::read_file(file);
    const auto decisions = of_type(read, eager);
    REQUIRE(decisions.size() == 1 + untraced.rails.size());  // after the one that brought up the links
    for (std::size_t i = 0; i < untraced.rails.size(); ++i) {
        CAPTURE(i);
        const auto& decision = decisions[1 + i];
        CHECK(untraced.rails[i] == 1ULL << read.rail_of(decision));
        CHECK(decision.options == 2);
        CHECK(decision.acknowledged);
    }
}

TEST_CASE("tracing: the pieces of a large message, over both rails", "[engine]") {
    Traced pair(2, GENERATE("vft", "round_robin"));
    pair.send(8);
    pair.settle();
    constexpr std::size_t bytes = 4 << 20;
    const auto sent = pair.send(bytes);
    CHECK(sent.status.rails == 3);
    pair.settle();
    const auto read = pair.read();
    std::uint64_t over = 0;
    std::uint64_t in_pieces = 0;
    std::uint64_t headers = 0;
    for (const auto& decision : of_type(read, piece)) {
        REQUIRE(read.offers.size() == 1);
        CHECK(decision.message == read.offers[0].message);
        CHECK(decision.acknowledged);
        over |= 1ULL << read.rail_of(decision);
        in_pieces += decision.bytes;
        ++headers;
    }
    CHECK(over == 3);
    CHECK(read.offers[0].bytes == bytes);
    CHECK(in_pieces > bytes);
    CHECK(in_pieces < bytes + 100 * headers);
}

TEST_CASE("explain: what it says is what happens", "[engine]") {
    Traced pair(2);
    pair.send(8);
    pair.settle();
    const auto small = pair.a->explain(pair.to_b, 8);
    REQUIRE(small.links.size() == 2);
    CHECK(small.policy == "vft");
    CHECK(!small.rendezvous);
    CHECK(small.wire_bytes > 8);
    CHECK(small.links[small.choice].rail == "sim:eth0");
    CHECK(small.links[small.choice].share_bytes == small.wire_bytes);
    CHECK(!small.reason.empty());
    const auto sent = pair.send(8);
    CHECK(sent.status.rails == 1);
    const auto predicted = small.links[small.choice].delivery.count();
    CHECK(predicted == Approx(static_cast<double>(sent.arrived - sent.at)).margin(2000));

    pair.settle();
    const auto large = pair.a->explain(pair.to_b, 4 << 20);
    CHECK(large.rendezvous);
    CHECK(large.links[0].share_bytes + large.links[1].share_bytes == 4 << 20);
    CHECK(large.links[1].share_bytes > 0);
    CHECK_THAT(large.reason, Catch::Matchers::Contains("split over 2 rails"));
    CHECK_THROWS_AS(pair.a->explain(Peer(), 8), Error);
}

TEST_CASE("report: predictions against what came of them", "[engine]") {
    Traced pair(2);
    for (int i = 0; i < 400; ++i) {
        pair.send(8);
        pair.settle();
    }
    std::uint64_t timed = 0;
    for (const auto& traffic : pair.a->traffic()) {
        if (traffic.timed_frames == 0) continue;
        timed += traffic.timed_frames;
        CHECK(traffic.error <= traffic.predicted + traffic.real);
        CHECK(traffic.error < traffic.real);
    }
    CHECK(timed >= 5);  // one in sixty-four
    CHECK_THAT(pair.a->report(), Catch::Matchers::Contains("\ndelivery   sim:eth0"));
}

TEST_CASE("tracing: a file that cannot be written is refused", "[engine]") {
    SimHosts hosts;
    hosts.fabric.add_rail("a", {.device = "eth0", .network = "net0"});
    CHECK_THROWS_WITH(hosts.start("a", "vft", nullptr, Config().set("trace", "/nonexistent/trace")),
                      Catch::Matchers::Contains("/nonexistent/trace cannot be written"));
    CHECK_THROWS_WITH(hosts.start("a", "vft", nullptr, Config().set("trace", "/tmp/%q")),
                      Catch::Matchers::Contains("means nothing"));
}
