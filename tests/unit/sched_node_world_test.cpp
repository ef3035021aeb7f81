// Several processes over the same rails, under the fake clock of sched_world.hpp: what they reach together, with and without
// seeing each other. SCHED_FIGURES=1 prints the figures of docs/scheduling.md.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdlib>

#include <fmt/core.h>

#include "sched/vft.hpp"
#include "sched_sender.hpp"

using namespace railmux;
using sched::test::Message;
using sched::test::RailSpec;
using sched::test::Sender;

namespace {

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;

/// Processes of one node, each with its own policy and one peer over all rails.
class Node {
public:
    Node(const std::vector<RailSpec>& rails, std::size_t processes, bool share)
        : wires_(Sender::wires_of(rails)), table_(std::make_unique<sched::LoadTable>()) {
        std::vector<std::vector<std::uint32_t>> reach(1);
        for (std::uint32_t rail = 0; rail < rails.size(); ++rail) reach[0].push_back(rail);
        for (std::size_t i = 0; i < processes; ++i) {
            policies_.push_back(std::make_unique<sched::Vft>(rails.size()));
            senders_.push_back(std::make_unique<Sender>(*policies_[i], wires_, reach));
            if (share) REQUIRE(senders_[i]->join(*table_, i + 1));
        }
    }

    /// When all of all processes' messages have arrived.
    base::Nanoseconds run(const std::vector<std::vector<Message>>& messages, std::size_t window) {
        for (std::size_t i = 0; i < senders_.size(); ++i) senders_[i]->start(messages[i], window);
        while (true) {
            const auto next = std::min_element(senders_.begin(), senders_.end(), [](const auto& a, const auto& b) {
                return a->next_event() < b->next_event();
            });
            if ((*next)->next_event() == Sender::never) break;
            (*next)->step();
        }
        base::Nanoseconds end = 0;
        for (const auto& sender : senders_) end = std::max(end, sender->finished());
        return end;
    }
    [[nodiscard]] const Sender& sender(std::size_t process) const { return *senders_[process]; }

private:
    std::shared_ptr<std::vector<sched::test::Wire>> wires_;
    std::unique_ptr<sched::LoadTable> table_;
    std::vector<std::unique_ptr<sched::Vft>> policies_;
    std::vector<std::unique_ptr<Sender>> senders_;
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
    return {{"1 Gbit + 1 Gbit", {{.per_byte_ns = 8}, {.per_byte_ns = 8}}},
            {"1 Gbit + 100 Mbit", {{.per_byte_ns = 8}, {.latency_ns = 20'000, .per_byte_ns = 80}}},
            {"1 Gbit + 400 Mbit + 100 Mbit",
             {{.per_byte_ns = 8},
              {.latency_ns = 15'000, .per_byte_ns = 20},
              {.latency_ns = 20'000, .per_byte_ns = 80}}}};
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

}  // namespace

TEST_CASE("two and four processes that see each other reach together what one does", "[sched][node][world]") {
    for (const auto& network : networks()) {
        for (const auto& work : works()) {
            for (const std::size_t processes : {2, 4}) {
                const auto with = together(network, work, processes, true);
                const auto without = together(network, work, processes, false);
                if (std::getenv("SCHED_FIGURES") != nullptr)
                    fmt::print("{}, {}: {} processes reach {:.3f}, without seeing each other {:.3f}\n", network.name,
                               work.name, processes, with, without);
                INFO(network.name << ", " << work.name << ", " << processes << " processes");
                CHECK(with >= 0.97);
            }
        }
    }
}
