// Several processes over the same rails, under the fake clock of sched/world.hpp: what they reach together, with and without
// seeing each other. TEST_FIGURES=1 prints the figures of docs/scheduling-figures.md.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>

#include <fmt/core.h>

#include "sched/vft.hpp"
#include "sched/world.hpp"
#include "sched_sizes.hpp"

using namespace railmux;
using sched::Message;
using sched::RailSpec;
using sched::World;
using test::kib;
using test::mib;

namespace {

/// Processes of one node, each with its own policy and one peer over all rails.
class Node {
public:
    Node(const std::vector<RailSpec>& rails, bool share)
        : share_(share), wires_(rails.begin(), rails.end()), table_(std::make_unique<sched::LoadTable>()) {}
    Node(const std::vector<RailSpec>& rails, std::size_t processes, bool share) : Node(rails, share) {
        Way all;
        for (std::uint32_t rail = 0; rail < rails.size(); ++rail) all.push_back(rail);
        for (std::size_t i = 0; i < processes; ++i) add(all);
    }
    using Way = std::vector<std::uint32_t>;
    /// A process whose peer is reached by those rails.
    void add(const Way& rails) {
        policies_.push_back(std::make_unique<sched::Vft>(wires_.size()));
        senders_.push_back(std::make_unique<World>(*policies_.back(), wires_, std::vector<Way>{rails}));
        if (share_) REQUIRE(senders_.back()->join(*table_, senders_.size()));
    }

    /// When all of all processes' messages have arrived, unless it is ended before.
    base::Nanoseconds run(const std::vector<std::vector<Message>>& messages, std::size_t window,
                          base::Nanoseconds until = World::never) {
        for (std::size_t i = 0; i < senders_.size(); ++i) senders_[i]->start(messages[i], window);
        while (true) {
            const auto next = std::min_element(senders_.begin(), senders_.end(), [](const auto& a, const auto& b) {
                return a->next_event() < b->next_event();
            });
            if ((*next)->next_event() >= until) break;
            (*next)->step();
        }
        base::Nanoseconds end = 0;
        for (const auto& sender : senders_) end = std::max(end, sender->finished());
        return end;
    }
    [[nodiscard]] const World& sender(std::size_t process) const { return *senders_[process]; }

private:
    bool share_;
    std::vector<sched::Wire> wires_;
    std::unique_ptr<sched::LoadTable> table_;
    std::vector<std::unique_ptr<sched::Vft>> policies_;
    std::vector<std::unique_ptr<World>> senders_;
};

/// `count` messages dealt out to the processes in turn; sizes between `least` and `most`, log-uniform.
std::vector<std::vector<Message>> deal(std::size_t count, double least, double most, std::size_t processes) {
    std::mt19937_64 random(11);
    std::vector<std::vector<Message>> dealt(processes);
    for (std::size_t i = 0; i < count; ++i) {
        const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
        const auto bytes = static_cast<std::uint64_t>(least * std::exp(unit * std::log(most / least)));
        dealt[i % processes].push_back({0, bytes});
    }
    return dealt;
}

struct Work {
    const char* name;
    std::size_t count;
    double least;
    double most;
    std::size_t window;  // of all processes together
};

struct Network {
    const char* name;
    std::vector<RailSpec> rails;
};

std::vector<Network> networks() {
    return {
        {"1 Gbit + 1 Gbit", {{.per_byte_ns = 8}, {.per_byte_ns = 8}}},
        {"1 Gbit + 100 Mbit", {{.per_byte_ns = 8}, {.latency_ns = 20'000, .per_byte_ns = 80}}},
        {"1 Gbit + 400 Mbit + 100 Mbit",
         {{.per_byte_ns = 8}, {.latency_ns = 15'000, .per_byte_ns = 20}, {.latency_ns = 20'000, .per_byte_ns = 80}}}};
}

std::vector<Work> works() {
    return {{"4 KiB", 20'000, 4 * kib, 4 * kib, 64},
            {"64 KiB", 4'000, 64 * kib, 64 * kib, 64},
            {"1 B to 1 MiB", 5'000, 1, mib, 64},
            {"1 MiB", 400, mib, mib, 16}};
}

/// The time of the same messages sent by one process, over that of so many: what they reach together.
double together(const Network& network, const Work& work, std::size_t processes, bool share) {
    Node one(network.rails, 1, false);
    const auto alone = one.run(deal(work.count, work.least, work.most, 1), work.window);
    Node many(network.rails, processes, share);
    const auto all = many.run(deal(work.count, work.least, work.most, processes), work.window / processes);
    return static_cast<double>(alone) / static_cast<double>(all);
}

/// The mean delivery time of messages that a process with two equal rails sends at equal distances, while another one, which
/// has but the first of the rails, floods it.
double beside_a_flood(bool share, std::uint64_t bytes, base::Nanoseconds every) {
    Node node({{.per_byte_ns = 8}, {.per_byte_ns = 8}}, share);
    node.add({0, 1});
    node.add({0});
    std::vector<Message> seldom;
    for (int i = 0; i < 200; ++i) seldom.push_back({0, bytes, base::millisecond + i * every});
    const auto lasting = static_cast<std::size_t>(200 * every / (500 * base::microsecond));  // 64 KiB take 524 us
    const std::vector<Message> flood(lasting, {0, 64 * kib});
    const std::vector messages{seldom, flood};
    node.run(messages, 8);
    return node.sender(0).mean_delivery_ns();
}

void figure(const char* what, double with, double without) {
    if (std::getenv("TEST_FIGURES") != nullptr)
        fmt::print("{}: {:.3f}, without seeing each other {:.3f}\n", what, with, without);
}

}  // namespace

TEST_CASE("two and four processes that see each other reach together what one does", "[sched][node][world]") {
    for (const auto& network : networks()) {
        for (const auto& work : works()) {
            for (const std::size_t processes : {2U, 4U}) {
                const auto with = together(network, work, processes, true);
                if (std::getenv("TEST_FIGURES") != nullptr) {
                    const auto without = together(network, work, processes, false);
                    fmt::print("{}, {}: {} processes reach {:.3f}, without seeing each other {:.3f}\n", network.name,
                               work.name, processes, with, without);
                }
                INFO(network.name << ", " << work.name << ", " << processes << " processes");
                CHECK(with >= 0.97);
            }
        }
    }
}

TEST_CASE("a process keeps clear of a rail that another one floods", "[sched][node][world]") {
    const auto with = beside_a_flood(true, 4 * kib, 300 * base::microsecond) / 1000;
    const auto without = beside_a_flood(false, 4 * kib, 300 * base::microsecond) / 1000;
    figure("4 KiB beside a flood, us", with, without);
    CHECK(with < 0.5 * without);
    CHECK(with < 100);  // alone: 10 us of latency and 33 us
}

TEST_CASE("a large message takes from a rail that another one floods what there is", "[sched][node][world]") {
    const auto with = beside_a_flood(true, 256 * kib, 5 * base::millisecond) / 1000;
    const auto without = beside_a_flood(false, 256 * kib, 5 * base::millisecond) / 1000;
    figure("256 KiB beside a flood, us", with, without);
    CHECK(with < without);
}

TEST_CASE("the rate of a shared rail is that of the rail, and not what one gets of it", "[sched][node][pace]") {
    const std::vector<RailSpec> rails{{.per_byte_ns = 8}, {.per_byte_ns = 20}};
    const std::size_t processes = GENERATE(2U, 4U);
    Node node(rails, processes, true);
    const std::vector<Message> flood(1000, {0, 256 * kib});
    node.run(std::vector(processes, flood), 16, 200 * base::millisecond);
    for (std::size_t process = 0; process < processes; ++process) {
        const auto& sender = node.sender(process);
        for (std::size_t rail = 0; rail < rails.size(); ++rail) {
            UNSCOPED_INFO(sender.per_byte_ns(rail) << " ns, alone " << sender.own_per_byte_ns(rail));
            CHECK(sender.per_byte_ns(rail) == Approx(rails[rail].per_byte_ns).epsilon(0.1));
            CHECK(sender.own_per_byte_ns(rail) > 1.5 * sender.per_byte_ns(rail));
        }
    }
}
