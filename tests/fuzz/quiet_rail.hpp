// QuietRail: takes quiet sends for a rail that knows none: it copies them, and keeps their ends to itself.
//
// Threads: as the rail below.
// Lifetime: owns it.
#pragma once

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "forwarding_rail.hpp"

namespace railmux {

class QuietRail final : public ForwardingRail {
public:
    QuietRail(std::unique_ptr<Rail> below, std::uint32_t most) : ForwardingRail(std::move(below)) {
        own_traits().quiet_max = most;
    }

    [[nodiscard]] std::size_t post(std::span<const transports::Work> works) noexcept override {
        for (std::size_t i = 0; i < works.size(); ++i) {
            if (!(works[i].quiet ? post_copy(works[i]) : below().post(works.subspan(i, 1)) == 1)) return i;
        }
        return works.size();
    }
    [[nodiscard]] std::size_t poll(std::span<transports::Event> events) noexcept override {
        const auto all = events.first(below().poll(events));
        const auto end = std::remove_if(all.begin(), all.end(), [&](const transports::Event& event) {
            return event.kind == transports::EventKind::done && copies_.erase(event.cookie) > 0;
        });
        return static_cast<std::size_t>(end - all.begin());
    }

private:
    bool post_copy(const transports::Work& quiet) {
        auto bytes = std::make_unique<std::vector<std::byte>>();
        for (const auto& segment : quiet.segments) {
            bytes->insert(bytes->end(), segment.data, segment.data + segment.size);
        }
        const transports::Segment segment{bytes->data(), bytes->size(), 0};
        auto work = quiet;
        work.quiet = false;
        work.segments = {&segment, 1};
        work.cookie = reinterpret_cast<std::uint64_t>(bytes.get());  // nothing else is there
        if (below().post({&work, 1}) == 0) return false;
        copies_.emplace(work.cookie, std::move(bytes));
        return true;
    }

    std::unordered_map<std::uint64_t, std::unique_ptr<std::vector<std::byte>>> copies_;  // by cookie
};

}  // namespace railmux
