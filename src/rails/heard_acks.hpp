// HeardAcks: acknowledgements that came with frames and are not taken yet. What they release is put off, as what their frames
// bring is more likely to be waited for; and of several from one link the newest says all.
//
// Threads: one engine at a time. Pure: time is an argument.
// Lifetime: part of the rail manager. What a link has brought last stands in the Link.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/in_line.hpp"
#include "rails/frame.hpp"
#include "rails/link.hpp"

namespace railmux::rails {

class HeardAcks {
public:
    /// One came over the link, in a frame with that header, `now`; it had not come by `taken`. `credit`: it brings some.
    RAILMUX_IN_LINE void note(Link& link, const FrameHeader& header, bool credit, base::Nanoseconds now,
                              base::Nanoseconds taken) {
        auto& heard = link.heard;
        if (!heard.listed) links_.push_back(link.slot);
        heard.listed = true;
        heard.credit = credit || heard.credit;
        heard.header = header;
        heard.at = now;
        heard.taken = taken;
    }
    [[nodiscard]] bool any() const noexcept { return !links_.empty(); }
    /// Something waits for what they release, until they are taken.
    void await() noexcept { awaited_ = true; }
    [[nodiscard]] bool awaited() const noexcept { return awaited_; }

    /// Calls take(link, heard) for each that a live link has brought. False: there was none to look at.
    template <typename Take>
    bool take(LinkTable& links, Take take) {
        awaited_ = false;
        if (links_.empty()) return false;
        taking_.swap(links_);
        for (const auto slot : taking_) {
            Link& link = links.at(slot);
            auto heard = std::exchange(link.heard, {});
            if (!heard.listed || link.state != LinkState::live) continue;  // it was that of a link before
            take(link, heard);
        }
        taking_.clear();
        return true;
    }

private:
    std::vector<std::uint32_t> links_;   // that have brought one
    std::vector<std::uint32_t> taking_;  // scratch of take
    bool awaited_ = false;
};

}  // namespace railmux::rails
