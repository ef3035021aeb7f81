#include "trace/analysis.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace railmux::trace {

namespace {

/// What was predicted for `option`. A piece of a large message would have gone there behind what was planned for it.
base::Nanoseconds promised(const Trace& trace, const Decision& decision, const Option& option) {
    if (decision.message == 0) return option.predicted;
    return option.predicted +
           sched::times(option.claimed, trace.links[option.link].cost.per_byte) / sched::ticks_per_ns;
}

/// What one rail did, or all of them.
struct Gathered {
    RailResult result;
    std::vector<double> errors;
    double regret_ns = 0;

    void add(const Trace& trace, const Decision& decision) {
        ++result.frames;
        result.bytes += decision.bytes;
        if (!decision.timed) return;
        ++result.timed;
        const auto real = decision.delivered - decision.time;
        const auto missed = std::abs(trace.chosen(decision).predicted - real);
        errors.push_back(static_cast<double>(missed) / static_cast<double>(std::max<base::Nanoseconds>(real, 1)));
        compare(trace, decision, real);
    }

    void compare(const Trace& trace, const Decision& decision, base::Nanoseconds real) {
        if (decision.options < 2) return;
        auto other = std::numeric_limits<base::Nanoseconds>::max();
        const auto options = trace.options_of(decision);
        for (std::size_t i = 0; i < options.size(); ++i) {
            if (i != decision.choice) other = std::min(other, promised(trace, decision, options[i]));
        }
        ++result.compared;
        if (real <= other) return;
        ++result.regretted;
        regret_ns += static_cast<double>(real - other);
        result.regret_most = std::max(result.regret_most, real - other);
    }

    RailResult finish(std::uint64_t all_bytes) {
        const auto quantile = [&](double q) {
            if (errors.empty()) return 0.0;
            const auto at = errors.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(errors.size() - 1));
            std::nth_element(errors.begin(), at, errors.end());
            return *at;
        };
        result.error_median = quantile(0.5);
        result.error_p90 = quantile(0.9);
        if (all_bytes > 0) result.share = static_cast<double>(result.bytes) / static_cast<double>(all_bytes);
        if (result.compared > 0) result.regret_mean_ns = regret_ns / static_cast<double>(result.compared);
        return std::move(result);
    }
};

}  // namespace

std::vector<RailResult> analyse(std::span<const Trace> traces) {
    std::vector<Gathered> rails;
    Gathered all;
    all.result.rail = "all";
    const auto of_name = [&](const std::string& name) -> Gathered& {
        const auto known =
            std::find_if(rails.begin(), rails.end(), [&](const Gathered& g) { return g.result.rail == name; });
        if (known != rails.end()) return *known;
        rails.emplace_back().result.rail = name;
        return rails.back();
    };
    for (const auto& trace : traces) {
        for (const auto& decision : trace.decisions) {
            of_name(trace.header.rails[trace.rail_of(decision)].name).add(trace, decision);
            all.add(trace, decision);
        }
    }
    std::vector<RailResult> results;
    results.reserve(rails.size() + 1);
    const auto bytes = all.result.bytes;
    for (auto& rail : rails) results.push_back(rail.finish(bytes));
    results.push_back(all.finish(bytes));
    return results;
}

}  // namespace railmux::trace
