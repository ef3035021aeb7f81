#include "base/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include <railmux/error.hpp>

#include "base/clock.hpp"
#include "base/selector.hpp"
#include "base/speeds.hpp"
#include "base/text.hpp"
#include "base/values.hpp"

namespace railmux::base {
namespace {

using enum ParameterType;

constexpr std::uint64_t kib = 1024, mib = 1024 * kib, gib = 1024 * mib;
constexpr std::uint64_t day_ns = 86'400ull * second;  // no time limit is longer: nanoseconds stay far from overflow
constexpr std::uint64_t most_ranks = 1u << 24;

// clang-format off
constexpr auto table = std::to_array<ParameterSpec>({
    // name, type, unit, default, help; then choices, or the smallest and the largest value
    {"rails", selector, "", "all", "rails to use, e.g. tcp:eth*,^tcp:eth3"},
    {"transports", selector, "", "all",
        "kinds of networks to use, e.g. tcp or ^self; of their devices those that rails selects"},
    {"rail.speeds", speeds, "", "",
        "bits per second of rails, where the system does not know them or is wrong, e.g. tcp:eth0=1G,tcp:eth1=100M"},
    {"policy", choice, "", "vft", "how messages are spread over rails",
        "vft|wfq|weighted_round_robin|round_robin|fixed"},
    {"probe", choice, "", "cached",
        "which links get a quick measurement as they come up; full: every one, reusing nothing; shared: one of a kind; cached: "
        "one of a kind, where no earlier run measured it; off: none",
        "full|shared|cached|off"},
    {"probe.store", text, "", "", "folder for the models of earlier runs; empty: railmux in XDG_CACHE_HOME or ~/.cache"},
    {"node.share", flag, "", "on", "count what other processes of this host have on the rails (by /dev/shm)"},
    {"thread_level", choice, "", "single",
        "who may call a context: one thread at a time (serialized is the same as single), or any",
        "single|serialized|multiple"},

    {"progress", choice, "", "hybrid",
        "how a wait waits: spin, sleep, or spin a little and then sleep; thread: so, and a thread progresses while nobody "
        "waits",
        "poll|block|hybrid|thread"},
    {"progress.spin", duration, "us", "50us", "how long hybrid spins at most before it sleeps", "", 0, second},

    {"eager.max", bytes, "B", "16K",
        "largest message sent along with its header; not set: at most so much, less where a link's model says so", "", 0,
        16 * kib},
    {"eager.window", bytes, "B", "1M", "eager bytes a peer may send ahead of its receiver", "", 4 * kib, gib},
    {"fragment.size", bytes, "B", "1M",
        "largest piece in which a large message is spread over rails; slower rails get smaller ones", "", 4 * kib, mib},
    {"bulk.scheme", choice, "", "auto",
        "large messages where a rail can both write and read remote memory: written, read, or the cheaper one",
        "auto|write|read"},
    {"bulk.inlined", choice, "", "auto",
        "first bytes of a large message, as many as eager.max, or, if that is not set, all of one of up to 128K, sent before "
        "its receiver asks for it: where that saves time, always, or never",
        "auto|always|never"},
    {"ack.delay", duration, "us", "100us", "how long an acknowledgement waits for data to ride on", "", 0, second},

    {"connect.timeout", duration, "s", "2s", "limit for connecting one pair of rails", "", millisecond, day_ns},
    {"connect.patience", duration, "s", "10s", "how long operations wait for the first link to a peer before they fail",
        "", 0, day_ns},
    {"recover.patience", duration, "s", "30s", "how long operations wait for a peer all of whose links were lost", "", 0,
        day_ns},
    {"recover.first", duration, "ms", "50ms", "until a lost link is asked for anew; doubled with each try", "", millisecond,
        day_ns},
    {"recover.longest", duration, "ms", "500ms",
        "longest time from one such try to the next; up to ten times that where many links are gone for 30 s", "", millisecond,
        day_ns},
    {"link.keepalive", duration, "ms", "250ms",
        "idle time after which it is made sure that a link is still there (tcp, verbs, ofi); 0: none is looked after",
        "", 0, day_ns},
    {"link.silence", duration, "s", "1s",
        "silence of the network after which a link is lost (tcp, verbs); sooner, if the peer is heard over another (tcp)",
        "", 10 * millisecond, day_ns},
    {"link.unheard", duration, "s", "120s",
        "silence of the peer after which a link is lost whose network tells nothing (ofi): longer than any process computes "
        "without a call",
        "", second, day_ns},
    {"link.checksum", flag, "", "off",
        "check all that links carry (CRC32C), so that what is corrupted is sent again; on, if either side wants it"},

    {"close.timeout", duration, "s", "2s", "how long closing a context waits for what was sent", "", 0, day_ns},

    {"tcp.interfaces", selector, "", "all", "interfaces to use, by name, glob, address or network; ^ excludes"},
    {"tcp.families", choice, "", "any", "address families to use", "any|ipv4|ipv6"},
    {"tcp.ports", ports, "", "0", "listening ports, e.g. 5000-5100 for a firewall; 0: any free one"},
    {"tcp.send_buffer", bytes, "B", "0", "kernel send buffer of a link; 0: the kernel's choice", "", 0, gib},
    {"tcp.receive_buffer", bytes, "B", "0", "kernel receive buffer of a link; 0: the kernel's choice", "", 0, gib},
    {"tcp.congestion", text, "", "", "congestion control of the kernel, e.g. cubic; empty: the kernel's choice"},
    {"tcp.nodelay", flag, "", "on", "send small frames at once (TCP_NODELAY)"},
    {"tcp.encryption", flag, "", "off", "encrypt what tcp links carry (TLS 1.3 by the job's key); on both sides alike"},
    {"tcp.busy_poll", duration, "us", "0", "kernel busy polling of a socket (SO_BUSY_POLL); 0: off", "", 0, second},

    {"shm.bulk", choice, "", "auto",
        "large messages within a node: fetched from the sender's memory, copied by way of shared memory, or the cheaper one",
        "auto|fetch|copy"},

    {"verbs.bulk", choice, "", "auto",
        "memory of large messages to an RDMA device: registered, copied into registered memory, or the cheaper one",
        "auto|register|copy"},

    {"ofi.providers", selector, "", "all",
        "libfabric providers to use, e.g. all,shm or tcp;ofi_rxm:eth0; those off by default must be named"},

    {"report", flag, "", "off", "print at the end which rail carried how much to whom"},
    {"trace", text, "", "", "write every scheduling decision to this file for `railmux trace`; %p: process id, %r: rank"},
    {"explain", count, "", "0", "explain so many scheduling decisions on standard error, from the first one on"},
    {"log", choice, "", "warning", "least serious kind of line to log to standard error",
        "debug|info|warning|error|off"},
    {"config", text, "", "", "file of `name = value` lines, read before the environment"},

    // Set for each process by `railmux run`.
    {"job.id", text, "", "", "the job this process belongs to"},
    {"job.key", secret, "", "", "the job's key, which every handshake proves"},
    {"job.rank", count, "", "0", "this process's number in its job", "", 0, most_ranks - 1},
    {"job.size", count, "", "1", "processes in the job", "", 1, most_ranks},
    {"job.server", text, "", "", "where the job's processes find each other, HOST:PORT"},
});
// clang-format on

/// As people write it: 16K rather than 16384, 2s rather than 2000000000.
std::string written(const ParameterSpec& spec, std::uint64_t value) {
    using Unit = std::pair<std::uint64_t, std::string_view>;
    static constexpr std::array<Unit, 3> sizes{{{1U << 30, "G"}, {1U << 20, "M"}, {1U << 10, "K"}}};
    static constexpr std::array<Unit, 3> times{{{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}}};
    if (value == 0 || (spec.type != bytes && spec.type != duration)) return std::to_string(value);
    for (const auto& [unit, name] : spec.type == bytes ? sizes : times) {
        if (value % unit == 0) return fmt::format("{}{}", value / unit, name);
    }
    return fmt::format("{}{}", value, spec.type == bytes ? "" : "ns");
}

std::string with_range(const ParameterSpec& spec, std::string text) {
    const auto range = range_of(spec);
    return range.empty() ? text : text + ", " + range;
}

std::string allowed(const ParameterSpec& spec) {
    switch (spec.type) {
        case bytes: return with_range(spec, "a size such as 65536, 64K, 1M or 1GiB (K is 1024)");
        case count: return with_range(spec, "a whole number");
        case duration: return with_range(spec, "a time such as 100us, 1ms or 2s");
        case flag: return "yes or no (also 1/0, on/off, true/false)";
        case choice: return fmt::format("one of {}", spec.choices);
        case ports: return "a port such as 5000, a range such as 5000-5100, or 0";
        case selector: return "names, globs, addresses or networks, separated by commas";
        case speeds: return "names and speeds such as tcp:eth0=1G, separated by commas";
        case text:
        case secret: return "a text";
    }
    return {};
}

// The value as a number, or nothing when it is malformed.
std::optional<std::uint64_t> to_number(const ParameterSpec& spec, std::string_view value) {
    switch (spec.type) {
        case bytes: return parse_bytes(value);
        case count: return parse_count(value);
        case duration: return parse_duration(value, spec.unit);
        case flag: return parse_flag(value);
        case choice: {
            const auto words = split(spec.choices, '|');
            return std::find(words.begin(), words.end(), value) != words.end() ? std::optional(0) : std::nullopt;
        }
        case ports: return parse_ports(value) ? std::optional(0) : std::nullopt;
        case selector: static_cast<void>(Selector::parse(value)); return 0;
        case speeds: static_cast<void>(Speeds::parse(value)); return 0;
        case text:
        case secret: return 0;
    }
    return std::nullopt;
}

}  // namespace

std::span<const ParameterSpec> parameter_table() noexcept { return table; }

std::string range_of(const ParameterSpec& spec) {
    const bool upper = spec.at_most != std::numeric_limits<std::uint64_t>::max();
    if (!upper && spec.at_least == 0) return {};
    return upper ? fmt::format("from {} to {}", written(spec, spec.at_least), written(spec, spec.at_most))
                 : fmt::format("at least {}", written(spec, spec.at_least));
}

std::optional<std::size_t> find_parameter(std::string_view name) noexcept {
    const auto at = std::find_if(table.begin(), table.end(), [&](const auto& spec) { return spec.name == name; });
    if (at == table.end()) return std::nullopt;
    return static_cast<std::size_t>(at - table.begin());
}

std::string variable_name(std::string_view parameter) {
    std::string name = "RAILMUX_";
    for (const char c : parameter) {
        name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    return name;
}

std::vector<std::string> parameter_names() {
    std::vector<std::string> names;
    names.reserve(table.size());
    for (const auto& spec : table) names.emplace_back(spec.name);
    return names;
}

std::vector<std::string> variable_names() {
    std::vector<std::string> names;
    names.reserve(table.size());
    for (const auto& spec : table) names.push_back(variable_name(spec.name));
    return names;
}

std::string_view to_string(ParameterType type) noexcept {
    switch (type) {
        case bytes: return "bytes";
        case count: return "count";
        case duration: return "duration";
        case flag: return "flag";
        case choice: return "choice";
        case selector: return "selector";
        case speeds: return "speeds";
        case ports: return "ports";
        case text:
        case secret: return "text";
    }
    return "text";
}

std::uint64_t check_value(const ParameterSpec& spec, std::string_view value, std::string_view where) {
    try {
        const auto number = to_number(spec, value);
        if (number && *number >= spec.at_least && *number <= spec.at_most) return *number;
        // A number that has no limits of its own (a choice, a text) is 0, which its default limits let through.
        if (number) {
            throw Error(ErrorCode::invalid_config, fmt::format("\"{}\" is out of range: {}", value, range_of(spec)),
                        "`railmux info --config` explains every parameter");
        }
    } catch (const Error& error) {
        throw Error(ErrorCode::invalid_config, fmt::format("{}: {}", where, error.what()), error.cure());
    }
    throw Error(ErrorCode::invalid_config, fmt::format("{}: \"{}\" is not {}", where, value, allowed(spec)),
                "`railmux info --config` explains every parameter");
}

}  // namespace railmux::base
