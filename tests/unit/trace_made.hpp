// Traces made by hand: records in memory, as a file has them.
//
// Threads: one thread.
// Lifetime: owns its bytes.
#pragma once

#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/reader.hpp"

namespace railmux::trace::test {

inline constexpr base::Nanoseconds started = 1'000'000'000;

/// Two rails of 1 Gbit/s and 100 Mbit/s; peer 1 behind both, by links 10 and 11.
inline Header two_rails() {
    return {.rank = 3,
            .pid = 42,
            .started = started,
            .wall = 5 * started,
            .host = "host-a",
            .policy = "vft",
            .rails = {{"tcp:eth0", 1'000'000'000}, {"tcp:eth1", 100'000'000}}};
}

inline LinkRecord link_record(std::uint32_t link, std::uint8_t rail, std::uint32_t peer = 1) {
    return {.rail = rail,
            .remote_rail = rail,
            .link = link,
            .peer = peer,
            .latency = sched::to_ticks(10'000.0),
            .slope = sched::to_ticks(rail == 0 ? 8.0 : 80.0),
            .gap = sched::to_ticks(1000.0),
            .per_byte = sched::to_ticks(rail == 0 ? 8.0 : 80.0)};
}

class Made {
public:
    explicit Made(const Header& header = two_rails()) : bytes_(encode(header)) {}

    template <typename Record>
    Made& add(const Record& record) {
        return add_bytes(std::as_bytes(std::span(&record, 1)));
    }
    Made& add_peer(std::uint32_t peer, std::string_view name) {
        add(PeerRecord{.name_bytes = static_cast<std::uint16_t>(name.size()), .peer = peer});
        return add_bytes(std::as_bytes(std::span(name)));
    }
    Made& add_links() { return add_peer(1, "rank 1 (host-b)").add(link_record(10, 0)).add(link_record(11, 1)); }

    struct Sent {
        std::uint32_t seq = 0;
        base::Nanoseconds at = 0;
        std::uint16_t choice = 0;
        std::uint32_t bytes = 1000;
        std::uint64_t message = 0;
        std::uint8_t flags = 0;
        std::uint32_t predicted_0 = 18'000;
        std::uint32_t predicted_1 = 90'000;
        std::uint32_t claimed_0 = 9;
    };
    /// A frame for peer 1, which could go over both links.
    Made& add_sent(const Sent& sent) {
        add(DecisionRecord{.flags = sent.flags,
                           .options = 2,
                           .choice = sent.choice,
                           .type = sent.message == 0 ? std::uint8_t{16} : std::uint8_t{19},
                           .peer = 1,
                           .seq = sent.seq,
                           .time = static_cast<std::uint64_t>(started + sent.at),
                           .message = sent.message,
                           .bytes = sent.bytes,
                           .recent = 0});
        add(OptionRecord{.link = 10, .predicted_ns = sent.predicted_0, .backlog = 7, .claimed = sent.claimed_0});
        return add(OptionRecord{.link = 11, .predicted_ns = sent.predicted_1});
    }
    /// The acknowledgement that came in at `at` tells of `seq`; the newest frame it tells of arrived `back` before.
    Made& add_acknowledged(std::uint32_t seq, base::Nanoseconds at, std::uint32_t back = 5000,
                           std::uint8_t flags = acknowledged_flag::held_known) {
        return add(AcknowledgedRecord{
            .flags = flags, .peer = 1, .seq = seq, .back_ns = back, .time = static_cast<std::uint64_t>(started + at)});
    }

    [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
    [[nodiscard]] Trace parsed() const { return parse(bytes_); }

private:
    Made& add_bytes(std::span<const std::byte> more) {
        bytes_.insert(bytes_.end(), more.begin(), more.end());
        return *this;
    }

    std::vector<std::byte> bytes_;
};

}  // namespace railmux::trace::test
