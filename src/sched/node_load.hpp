// NodeLoad: what the other processes of this node have on the rails they share with us, and what we have, for them to see.
//
// All of them map one LoadTable. A process takes a line of it (a cache line, which it alone writes) for each of its rails,
// and notes there how many bytes it has handed to the rail and how many of these are off it again. Nobody waits for anybody:
// a process may end at any instant, and the worst that its line can do is to be wrong. So nothing in the table is believed
// beyond what is harmless: of a backlog counts only what has moved in the last 10 to 20 ms, because what neither was handed
// over nor came through in that time is not what keeps the rail busy; what nobody has written to for a second does not count.
// Nor does what has not been seen to change for so long that the rail has carried all that anybody has on it, be it at a
// quarter of its rate: whoever handed that over computes, and has not looked for the acknowledgement.
// Lines of the dead, and whatever else does not move, are therefore nothing, without anybody having to clean up.
//
// Threads: one thread at a time per object; any number of objects, in any number of processes, share a table.
// Lifetime: the table outlives it. The lines are given back at the end.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "sched/pace.hpp"

namespace railmux::sched {

struct alignas(64) LoadLine {
    std::atomic<std::uint64_t> owner{0};      // a process; 0: free
    std::atomic<std::uint64_t> rail{0};       // the same number for the same device in all processes
    std::atomic<std::uint64_t> sent{0};       // bytes handed to the rail
    std::atomic<std::uint64_t> gone{0};       // of these acknowledged, or lost
    std::atomic<base::Nanoseconds> stamp{0};  // when either changed
};
static_assert(sizeof(LoadLine) == 64 && std::atomic<std::uint64_t>::is_always_lock_free);

/// All zero is an empty table, and any other content is harmless.
struct LoadTable {
    static constexpr std::uint64_t railmux_table =
        0x31'78'75'6d'6c'69'61'72;  // "railmux1", read as a little-endian number

    alignas(64) std::atomic<std::uint64_t> mark{0};  // railmux_table; 0 before the first process came
    std::atomic<std::uint64_t> changes{0};           // lines taken or given back: who reads looks them through anew
    std::array<LoadLine, 1023> lines;                // 64 processes with 16 rails, or 1000 with one
};
static_assert(sizeof(LoadTable) == 64 * 1024 && offsetof(LoadTable, mark) == 0);

/// A device's number by its name, which is the same in all processes. Never 0.
[[nodiscard]] std::uint64_t device_number(std::string_view name) noexcept;

class NodeLoad {
public:
    /// Whether the process is still there. Asked only when a line is looked for.
    using Alive = bool (*)(std::uint64_t owner);

    /// Sees nobody until it joins a table.
    explicit NodeLoad(std::size_t rails);
    ~NodeLoad();
    NodeLoad(const NodeLoad&) = delete;
    NodeLoad& operator=(const NodeLoad&) = delete;

    /// From now on `table` is used, in the name of `owner`, which is not 0 and nobody else's.
    void join(LoadTable& table, std::uint64_t owner, Alive alive);
    /// The rail is one that others use as well, by the name of `device`, which is not 0. False: the table has no free line,
    /// so that the others do not see us; we see them all the same.
    [[nodiscard]] bool share(std::uint32_t rail, std::uint64_t device) noexcept;

    /// `bytes` have been handed to the rail.
    void sent(std::uint32_t rail, std::uint64_t bytes, base::Nanoseconds now) noexcept {
        auto& own = own_[rail];
        own.sent += bytes;
        own.line->sent.store(own.sent, std::memory_order_relaxed);
        own.line->stamp.store(now, std::memory_order_relaxed);
    }
    /// Of what has been handed to it, `backlog` is left.
    void left(std::uint32_t rail, std::uint64_t backlog, base::Nanoseconds now) noexcept {
        auto& own = own_[rail];
        own.line->gone.store(own.sent - backlog, std::memory_order_relaxed);
        own.line->stamp.store(now, std::memory_order_relaxed);
    }

    /// Notes what the others have on the rails, unless it was done a moment ago. `paces`: of our rails, if they are known.
    void look(base::Nanoseconds now, std::span<const Pace> paces = {}) noexcept {
        if (now >= next_look_) look_now(now, paces);
    }
    /// As seen by the last look.
    [[nodiscard]] const Others& others(std::uint32_t rail) const noexcept { return own_[rail].others; }
    /// Whether something else wrote to our lines since this was last asked; they have been taken anew.
    [[nodiscard]] bool take_damage() noexcept { return std::exchange(damaged_, false); }
    /// Bytes that the others have handed to the rail since this was last asked, as far as they are on it still.
    [[nodiscard]] std::uint64_t take_arrivals(std::uint32_t rail) noexcept {
        auto& own = own_[rail];
        return own.arrivals == 0 ? 0 : std::min(std::exchange(own.arrivals, 0), own.others.backlog);
    }

private:
    static constexpr auto never = base::never;

    struct Own {
        LoadLine* line = nullptr;  // or nowhere_
        std::uint64_t sent = 0;
        std::uint64_t device = 0;  // 0: not shared
        Others others;
        std::uint64_t arrivals = 0;  // not taken yet
        std::uint64_t lines = 0;     // what the others' lines tell of the backlog
    };
    struct Counts {
        std::uint64_t sent = 0;
        std::uint64_t gone = 0;
    };
    struct Listed {  // a line of somebody else for one of our rails
        const LoadLine* line = nullptr;
        std::uint32_t rail = 0;
        Counts before;                  // 10 to 20 ms ago, or at the look before this one
        Counts middle;                  // less than 10 ms ago
        Counts last;                    // at the last look
        base::Nanoseconds changed = 0;  // when that was seen to be different from before
        std::uint64_t counted = 0;      // of its backlog
    };

    void look_now(base::Nanoseconds now, std::span<const Pace> paces) noexcept;
    void leave_out_carried(std::span<const Pace> paces, base::Nanoseconds now) noexcept;
    void note(Listed& listed, base::Nanoseconds now, bool turn) noexcept;
    void list(base::Nanoseconds now) noexcept;
    void drop_damaged(Own& own) noexcept;
    void take_line(Own& own) noexcept;
    [[nodiscard]] std::optional<std::uint32_t> rail_of(const LoadLine& line) const noexcept;
    [[nodiscard]] static Counts read(const LoadLine& line) noexcept;

    LoadTable* table_ = nullptr;
    std::uint64_t owner_ = 0;
    Alive alive_ = nullptr;
    LoadLine nowhere_;      // what is written about rails without a line
    std::vector<Own> own_;  // by local rail
    std::vector<Listed> listed_;
    std::vector<Listed> scratch_;
    std::uint64_t changes_ = 0;  // of the table, as listed
    bool damaged_ = false;
    base::Nanoseconds next_look_ = never;
    base::Nanoseconds next_list_ = 0;
    base::Nanoseconds window_end_ = 0;
};

}  // namespace railmux::sched
