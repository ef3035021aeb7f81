// Processes: of those that this one shares memory with, which have died. Whoever dies within libfabric's shm (1.17) holds its
// locks for good: its memory is better left alone.
//
// Threads and lifetime: part of its rail.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/process.hpp"

namespace railmux::transports::ofi {

/// By both its end is not taken for that of a later process that got its number, and its address.
struct ProcessName {
    std::uint32_t number = 0;  // 0: none that memory is shared with
    std::uint64_t owner = 0;   // RailAddress::owner
};

class Processes {
public:
    /// Only who was alive when it was asked for before can have died (base/process.hpp).
    [[nodiscard]] bool died(const ProcessName& name) {
        if (name.number == 0) return false;
        auto at = std::ranges::find(seen_, name.owner, &Seen::owner);
        if (at == seen_.end()) {
            base::Process process(static_cast<pid_t>(name.number));
            if (!process.known()) return false;
            if (seen_.size() >= most) forget_one();
            at = seen_.insert(seen_.end(), {.owner = name.owner, .process = std::move(process)});
        }
        at->last_asked = ++asked_;
        return at->has_died();
    }

private:
    struct Seen {
        std::uint64_t owner = 0;
        base::Process process;
        bool died = false;
        std::uint64_t last_asked = 0;

        [[nodiscard]] bool has_died() {
            if (died || process.alive()) return died;
            process = {};  // its descriptor is not needed any more
            return died = true;
        }
    };
    /// The dead first: who lives may have a link, and not be asked for until it ends.
    void forget_one() {
        seen_.erase(
            std::ranges::min_element(seen_, {}, [](Seen& one) { return std::pair(!one.has_died(), one.last_asked); }));
    }

    // A descriptor each, while it lives. Links go to 254 at most (Port::max_peers); as many again leaves room for the dead.
    static constexpr std::size_t most = 512;
    std::vector<Seen> seen_;
    std::uint64_t asked_ = 0;
};

}  // namespace railmux::transports::ofi
