// Flooder: keeps links busy at the same time, to see what they bring together (model::Flood). On demand only.
//
// Threads: one engine at a time.
// Lifetime: owned by the rail manager. A flood ends with its last reply, or with the first of its links.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/flood.hpp"
#include "rails/assessor.hpp"

namespace railmux::rails {

class Flooder {
public:
    Flooder(LinkTable& links, FramePool& pool, Assessor& assessor) : links_(links), pool_(pool), assessor_(assessor) {}

    /// Begins a flood over links, by number; their probes are ended. A flood before it is given up.
    void start(std::span<const std::uint32_t> links);
    /// Ends it; what the links brought together, in bits per second: 0 if it was not over, or one of them died.
    double end() noexcept;
    void link_down(const Link& link) noexcept;
    /// The peer is leaving: what it has not read when it closes would be answered by a reset.
    void stop(std::uint32_t peer) noexcept;

    /// Whether the reply was to a train of the flood.
    bool on_reply(const Link& link, const model::ProbeReply& reply, base::Nanoseconds at);

    /// From 0 to 1; 1 as well when there is none, or no more.
    [[nodiscard]] double progress() const noexcept { return flood_ ? flood_->progress() : 1; }

private:
    // In the number of a train: tells replies apart from those to the assessor's.
    static constexpr std::uint32_t flood_train = std::uint32_t{1} << 31;

    struct Sender {
        std::uint32_t slot = 0;
        transports::LinkId id;
    };
    void send_train(std::size_t place);

    LinkTable& links_;
    FramePool& pool_;
    Assessor& assessor_;
    std::optional<model::Flood> flood_;
    std::vector<Sender> senders_;  // its links
};

}  // namespace railmux::rails
