// What the tools read from trace files, and what they make of what was read.
#include <cstdint>
#include <span>

#include <railmux/error.hpp>

#include "trace/analysis.hpp"
#include "trace/replay.hpp"

using namespace railmux;

namespace {

void check(bool holds) {
    if (!holds) __builtin_trap();
}

void check_consistent(const trace::Trace& read) {
    for (const auto& decision : read.decisions) {
        check(decision.choice < decision.options);
        check(decision.recent == trace::no_option || decision.recent < decision.options);
        check(read.rail_of(decision) < read.header.rails.size());
        check(!decision.timed || decision.acknowledged);
        check(!decision.acknowledged || decision.delivered >= decision.time);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
    try {
        const auto read = trace::parse(std::as_bytes(std::span(data, size)));
        check_consistent(read);
        const auto rails = trace::analyse({&read, 1});
        check(rails.back().frames == read.decisions.size());
        // A replay takes its time for each piece of a large message.
        constexpr std::uint64_t most_bytes = 16 * 1024 * 1024;
        if (rails.back().bytes > most_bytes) return 0;
        const trace::Replay recorded(read);
        for (const char* policy : {"vft", "vft:same_size", "wfq", "round_robin"}) {
            const auto result = recorded.run(policy);
            check(result.bytes <= rails.back().bytes && result.median <= result.p99);
        }
    } catch (const Error&) {  // refused, or nothing to replay
    }
    return 0;
}
