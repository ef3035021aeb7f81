// A trace as it is read back: decisions in their order, with what came of each. Nothing in a file is trusted.
//
// Threads: pure functions; a Trace is a value.
// Lifetime: a Trace owns what it holds; it refers to nothing of the file.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sched/policy.hpp"
#include "trace/format.hpp"

namespace railmux::trace {

/// A link while its cost stayed the same.
struct LinkState {
    std::uint32_t peer = 0;
    std::uint8_t rail = 0;
    std::uint8_t remote_rail = 0;
    sched::Cost cost{};
};

struct Option {
    std::uint32_t link = 0;  // place in Trace::links
    base::Nanoseconds predicted = 0;
    std::uint64_t backlog = 0;
    std::uint64_t claimed = 0;
};

struct Decision {
    base::Nanoseconds time = 0;  // since the start of the trace, as all times
    std::uint32_t peer = 0;
    std::uint32_t bytes = 0;
    std::uint64_t message = 0;  // of a piece: which large message; 0: a frame of its own
    std::uint32_t first = 0;    // of its options in Trace::options
    std::uint16_t options = 0;
    std::uint16_t choice = 0;          // among its options
    std::uint16_t recent = no_option;  // likewise
    std::uint8_t type = 0;             // of the frame
    bool again = false;                // the link of its first try died
    bool acknowledged = false;
    bool timed = false;               // `delivered` is right; else it was delivered then or before
    base::Nanoseconds delivered = 0;  // 0 until acknowledged
};

/// A large message may go.
struct Offer {
    base::Nanoseconds time = 0;
    std::uint32_t peer = 0;
    std::uint64_t message = 0;
    std::uint64_t bytes = 0;
};

struct Trace {
    Header header;
    std::unordered_map<std::uint32_t, std::string> peers;  // names
    std::vector<LinkState> links;
    std::vector<Option> options;
    std::vector<Decision> decisions;
    std::vector<Offer> offers;
    bool cut = false;  // it ends within a record: the process was killed, or its disk full

    [[nodiscard]] std::span<const Option> options_of(const Decision& decision) const noexcept {
        return std::span(options).subspan(decision.first, decision.options);
    }
    [[nodiscard]] const Option& chosen(const Decision& decision) const noexcept {
        return options[decision.first + decision.choice];
    }
    [[nodiscard]] std::uint8_t rail_of(const Decision& decision) const noexcept {
        return links[chosen(decision).link].rail;
    }
    [[nodiscard]] std::string name_of(std::uint32_t peer) const;
};

/// Throws Error(invalid_argument) saying what is wrong and where.
[[nodiscard]] Trace parse(std::span<const std::byte> bytes);

/// The same for a file, which the error names.
[[nodiscard]] Trace read_file(const std::string& path);

}  // namespace railmux::trace
