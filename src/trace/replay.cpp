#include "trace/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>

#include <railmux/error.hpp>

#include "base/text.hpp"
#include "sched/vft.hpp"

namespace railmux::trace {

namespace {

// Longer traces do not fit the ticks of the world.
constexpr base::Nanoseconds longest_job = 10 * 86'400 * base::second;

std::unique_ptr<sched::Policy> make(std::string_view name, std::size_t rails) {
    constexpr std::string_view prefix = "vft:";
    if (!name.starts_with(prefix)) return sched::make_policy(name, rails);
    const auto stages = base::split(Replay::stage_names, '|');
    const auto found = std::find(stages.begin(), stages.end(), name.substr(prefix.size()));
    if (found == stages.end()) {
        throw Error(ErrorCode::invalid_config, fmt::format("vft has no stage \"{}\"", name.substr(prefix.size())),
                    fmt::format("use one of {}", Replay::stage_names));
    }
    return std::make_unique<sched::Vft>(
        rails, sched::VftOptions{.stage = static_cast<sched::VftStage>(found - stages.begin())});
}

/// The messages behind a trace's decisions: a frame is one, and all pieces of a large message together.
class Gatherer {
public:
    struct Job {
        sched::Message message;
        std::vector<sched::Cost> costs;
    };

    explicit Gatherer(const Trace& trace) : trace_(trace) {
        for (const auto& decision : trace.decisions) {
            if (!decision.again) add(decision);
        }
        std::stable_sort(jobs.begin(), jobs.end(),
                         [](const Job& a, const Job& b) { return a.message.at < b.message.at; });
    }

    std::vector<Job> jobs;
    std::vector<std::vector<sched::World::Way>> ways;

private:
    using LinkName = std::pair<std::uint8_t, std::uint8_t>;
    using Large = std::pair<std::uint32_t, std::uint64_t>;  // peer and message

    void add(const Decision& decision) {
        if (decision.message != 0) {
            note_offers(decision.time);
            const auto known = large_.find({decision.peer, decision.message});
            if (known != large_.end() && known->second.job < jobs.size()) {
                jobs[known->second.job].message.bytes += decision.bytes;
                return;
            }
            auto& large = large_[{decision.peer, decision.message}];
            if (known == large_.end()) large.at = decision.time;
            large.job = jobs.size();
            make_job(decision, large.at, false);
            return;
        }
        make_job(decision, decision.time, true);
    }

    /// A name may be used again, by a later message.
    void note_offers(base::Nanoseconds until) {
        for (; next_offer_ < trace_.offers.size() && trace_.offers[next_offer_].time <= until; ++next_offer_) {
            const auto& offer = trace_.offers[next_offer_];
            large_[{offer.peer, offer.message}] = {.at = offer.time};
        }
    }

    void make_job(const Decision& decision, base::Nanoseconds at, bool whole) {
        Job job;
        for (const auto& option : trace_.options_of(decision)) job.costs.push_back(trace_.links[option.link].cost);
        job.message = {.peer = way_of(decision), .bytes = decision.bytes, .at = at, .whole = whole};
        jobs.push_back(std::move(job));
    }

    /// A peer as the world has them: with the links that it had then, in their order.
    std::size_t way_of(const Decision& decision) {
        std::vector<LinkName> names;
        for (const auto& option : trace_.options_of(decision)) {
            const auto& link = trace_.links[option.link];
            names.emplace_back(link.rail, link.remote_rail);
        }
        const auto [known, fresh] = known_ways_.try_emplace({decision.peer, std::move(names)}, ways.size());
        if (!fresh) return known->second;
        auto& way = ways.emplace_back();
        for (const auto& option : trace_.options_of(decision)) {
            const auto& link = trace_.links[option.link];
            way.push_back({link.rail, trace_.header.rails[link.rail].speed_bps, link.cost});
        }
        return known->second;
    }

    struct Begun {
        base::Nanoseconds at = 0;
        std::size_t job = ~std::size_t{0};
    };

    const Trace& trace_;
    std::size_t next_offer_ = 0;
    std::map<Large, Begun> large_;
    std::map<std::pair<std::uint32_t, std::vector<LinkName>>, std::size_t> known_ways_;
};

}  // namespace

Replay::Replay(const Trace& trace) : rails_(trace.header.rails.size()) {
    Gatherer gathered(trace);
    if (gathered.jobs.empty()) {
        throw Error(ErrorCode::invalid_argument, "the trace has no messages", "trace a process that sends some");
    }
    const auto first = gathered.jobs.front().message.at;
    if (gathered.jobs.back().message.at - first > longest_job) {
        throw Error(ErrorCode::invalid_argument, "the trace is longer than ten days", "trace a shorter run");
    }
    ways_ = std::move(gathered.ways);
    for (auto& job : gathered.jobs) {
        job.message.at -= first;
        messages_.push_back(job.message);
        costs_.push_back(std::move(job.costs));
    }
    for (std::size_t i = 0; i < messages_.size(); ++i) messages_[i].costs = costs_[i];
}

ReplayResult Replay::run(std::string_view name) const {
    const auto policy = make(name, rails_);
    std::vector<sched::Wire> rails(rails_, sched::Wire(sched::RailSpec{}));  // they become what the links are
    sched::World world(*policy, rails, ways_);
    ReplayResult result{.policy = std::string(name), .messages = messages_.size()};
    result.makespan = world.run(messages_, messages_.size());
    std::vector<base::Nanoseconds> took;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
        result.bytes += messages_[i].bytes;
        took.push_back(world.arrivals()[i] - messages_[i].at);
    }
    std::sort(took.begin(), took.end());
    const auto sum = std::accumulate(took.begin(), took.end(), 0.0, [](double total, base::Nanoseconds one) {
        return total + static_cast<double>(one);
    });
    result.mean_ns = sum / static_cast<double>(took.size());
    result.median = took[(took.size() - 1) / 2];
    result.p99 = took[(took.size() - 1) * 99 / 100];
    return result;
}

}  // namespace railmux::trace
