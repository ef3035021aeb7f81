#include "sched/node_load.hpp"

#include <algorithm>

namespace railmux::sched {

namespace {
// A look is worth so much of a moment, and more where many lines are to be read: those of busy processes come from other
// cores' caches, 50 to 100 ns each, which may take a tenth of the time at most.
constexpr base::Nanoseconds look_every = 5 * base::microsecond;
constexpr base::Nanoseconds look_every_line = base::microsecond;
// Longer than an engine that communicates is away, shorter than what a user notices.
constexpr base::Nanoseconds window = 10 * base::millisecond;
// A line that nobody has written to for so long is nobody's.
constexpr std::uint64_t stale = base::second;
// Our own lines are checked so often, and the list made anew, in case the table was damaged.
constexpr base::Nanoseconds list_every = base::second / 2;
// More than this is not on a rail: not within any time that matters.
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

// What is on the way to a peer may go at a part of the rail's rate, as others send there.
constexpr Ticks slower = 4;
// A rail of 8 Mbit/s, while its G is not known.
constexpr Ticks slowest = to_ticks(base::microsecond);

constexpr auto relaxed = std::memory_order_relaxed;
}  // namespace

std::uint64_t device_number(std::string_view name) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash | 1;
}

NodeLoad::NodeLoad(std::size_t rails) : own_(rails) {
    for (auto& own : own_) own.line = &nowhere_;
}

NodeLoad::~NodeLoad() {
    for (const auto& own : own_) {
        if (own.line == &nowhere_ || own.line->owner.load(relaxed) != owner_) continue;
        own.line->rail.store(0, relaxed);
        own.line->owner.store(0, std::memory_order_release);
        table_->changes.fetch_add(1, std::memory_order_release);
    }
}

void NodeLoad::join(LoadTable& table, std::uint64_t owner, Alive alive) {
    table_ = &table;
    owner_ = owner;
    alive_ = alive;
    next_look_ = 0;
    listed_.reserve(table.lines.size());  // so that a look never allocates
    scratch_.reserve(table.lines.size());
}

bool NodeLoad::share(std::uint32_t rail, std::uint64_t device) noexcept {
    auto& own = own_[rail];
    own.device = device;
    next_list_ = 0;
    take_line(own);
    return own.line != &nowhere_;
}

/// Lets go of a line that damage to the table has taken from us.
void NodeLoad::drop_damaged(Own& own) noexcept {
    if (own.line == &nowhere_) return;
    auto owner = own.line->owner.load(relaxed);
    if (owner == owner_ && own.line->rail.load(relaxed) == own.device) return;
    damaged_ = true;
    // Somebody may have found it free meanwhile: then it is theirs.
    if (owner == owner_) own.line->owner.compare_exchange_strong(owner, 0, std::memory_order_acq_rel);
    own.line = &nowhere_;
}

void NodeLoad::take_line(Own& own) noexcept {
    std::uint64_t known_alive = owner_;  // a process has its lines in a row, so that it is asked for once
    for (auto& line : table_->lines) {
        auto owner = line.owner.load(relaxed);
        if (owner != 0 && (owner == known_alive || owner == owner_)) continue;
        if (owner != 0 && alive_(owner)) {
            known_alive = owner;
            continue;
        }
        if (!line.owner.compare_exchange_strong(owner, owner_, std::memory_order_acq_rel)) continue;
        line.sent.store(own.sent, relaxed);
        line.gone.store(own.sent, relaxed);
        line.rail.store(own.device, std::memory_order_release);
        table_->changes.fetch_add(1, std::memory_order_release);
        own.line = &line;
        return;
    }
}

std::optional<std::uint32_t> NodeLoad::rail_of(const LoadLine& line) const noexcept {
    const auto device = line.rail.load(std::memory_order_acquire);
    if (device == 0 || line.owner.load(relaxed) == 0) return std::nullopt;
    std::optional<std::uint32_t> found;
    for (std::uint32_t rail = 0; rail < own_.size(); ++rail) {
        if (own_[rail].line == &line) return std::nullopt;
        if (own_[rail].device == device) found = rail;
    }
    return found;
}

NodeLoad::Counts NodeLoad::read(const LoadLine& line) noexcept {
    // In this order, so that the difference is never more than there was, however long it takes in between.
    const auto sent = line.sent.load(std::memory_order_acquire);
    return {.sent = sent, .gone = std::min(line.gone.load(relaxed), sent)};
}

/// Finds the lines of others for our rails. Those that were listed keep what is known of them.
void NodeLoad::list(base::Nanoseconds now) noexcept {
    changes_ = table_->changes.load(std::memory_order_acquire);
    next_list_ = now + list_every;
    for (auto& own : own_) drop_damaged(own);
    for (auto& own : own_) {
        if (own.device != 0 && own.line == &nowhere_) take_line(own);
    }
    std::swap(listed_, scratch_);
    listed_.clear();
    auto known = scratch_.begin();
    for (const auto& line : table_->lines) {
        const auto rail = rail_of(line);
        if (!rail) continue;
        while (known != scratch_.end() && known->line < &line) ++known;
        if (known != scratch_.end() && known->line == &line && known->rail == *rail) {
            listed_.push_back(*known);
        } else {
            const auto gone = read(line).gone;  // the rest may have been handed over a moment ago
            const Counts counts{.sent = gone, .gone = gone};
            listed_.push_back({.line = &line, .rail = *rail, .before = counts, .middle = counts, .last = counts});
        }
    }
}

void NodeLoad::look_now(base::Nanoseconds now, std::span<const Pace> paces) noexcept {
    if (now >= next_list_ || table_->changes.load(std::memory_order_acquire) != changes_) list(now);
    next_look_ = now + look_every + static_cast<base::Nanoseconds>(listed_.size()) * look_every_line;
    for (auto& own : own_) own.others.backlog = 0;
    const bool turn = now >= window_end_;
    if (turn) window_end_ = now + window;
    for (auto& listed : listed_) note(listed, now, turn);
    if (!paces.empty()) leave_out_carried(paces, now);
}

/// The rail serves all who have something on it by turns: until it has had the time for all of that nobody's may have gone. By
/// our own eyes, as what is charged late says that it was handed over long ago.
void NodeLoad::leave_out_carried(std::span<const Pace> paces, base::Nanoseconds now) noexcept {
    for (auto& own : own_) own.lines = own.others.backlog;
    for (const auto& listed : listed_) {
        const auto silent = now - listed.changed - acknowledged_within;
        if (listed.counted == 0 || silent <= 0) continue;
        auto& own = own_[listed.rail];
        const auto& pace = paces[listed.rail];
        const auto per_byte = pace.per_byte() > 0 ? slower * pace.per_byte() : slowest;
        const auto carried = static_cast<std::uint64_t>(to_ticks(silent) / per_byte);
        if (carried >= own.lines + pace.backlog()) own.others.backlog -= listed.counted;
    }
}

void NodeLoad::note(Listed& listed, base::Nanoseconds now, bool turn) noexcept {
    const auto counts = read(*listed.line);
    if (turn) {
        listed.before = listed.middle;
        listed.middle = counts;
    }
    auto& own = own_[listed.rail];
    const auto arrived = counts.sent - listed.last.sent;
    const auto went = counts.gone - listed.last.gone;
    if (arrived < most_bytes) own.arrivals += arrived;
    if (went < most_bytes) own.others.gone += went;
    // Counters only grow, and one that did not is damaged: as a difference it is beyond any limit.
    const auto backlog = counts.sent - counts.gone;
    const auto moved = (counts.sent - listed.before.sent) + (counts.gone - listed.before.gone);
    // Both ways: they may have read their clock after we read ours. Without signs, because a stamp may be anything.
    const auto age = static_cast<std::uint64_t>(now) - static_cast<std::uint64_t>(listed.line->stamp.load(relaxed));
    const bool fresh = age + stale < 2 * stale;
    listed.counted = fresh && backlog < most_bytes ? std::min(backlog, moved) : 0;
    if (arrived != 0 || went != 0) listed.changed = now;
    own.others.backlog += listed.counted;
    listed.last = counts;
}

}  // namespace railmux::sched
