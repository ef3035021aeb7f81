// shm::Rail: what a slot of the ring brings. Its bytes are judged after they were copied, because their writer may still
// change them.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "transports/shm/rail.hpp"
#include "transports/shm/waking.hpp"

namespace railmux::transports::shm {

/// What is no small frame. False: nothing more of this link now, or ever.
bool Rail::take_rarer(Link& link, const Head& head, Batch& batch) noexcept {
    if (link.assembly.bytes && head.kind != Kind::piece) return broken(link);
    switch (head.kind) {
        case Kind::frame: break;
        case Kind::piece: return take_piece(link, head, batch);
        case Kind::put: return take_put(link, head);
        case Kind::fetch: return take_fetch(link, head);
    }
    return broken(link);
}

bool Rail::broken(Link& link) noexcept {
    kill(link, "it wrote nonsense into the shared memory");
    return false;
}

// --- Frames ----------------------------------------------------------------------------------------------------------

/// A frame that is one piece. False: it is something else, or there is no place to lend it from.
bool Rail::take_whole(const Link& link, const Head& head, Batch& batch) noexcept {
    const bool whole = head.kind == Kind::piece && (head.flags & flag_last) != 0 && !link.assembly.bytes;
    if (!whole || head.size == 0 || head.size > most_piece) return false;
    const auto room = lines_of(head.size) * cache_line;
    if (staging_bytes - staged_ < room) return false;
    auto* const to = staging_.get() + staged_;
    base::copy(to, link.reader.data(head.size), head.size);
    batch.next(EventKind::received, link.id).data = {to, head.size};
    staged_ += room;
    return true;
}

bool Rail::take_piece(Link& link, const Head& head, Batch& batch) noexcept {
    if (head.size == 0 || head.size > most_piece) return broken(link);
    const bool last = (head.flags & flag_last) != 0;
    auto& assembly = link.assembly;
    if (!assembly.bytes && last) return take_whole(link, head, batch);
    if (!assembly.bytes) {
        if (spare_frames_.empty()) spare_frames_.push_back(std::make_unique_for_overwrite<std::byte[]>(max_frame));
        assembly.bytes = std::move(spare_frames_.back());
        assembly.size = 0;
        spare_frames_.pop_back();
    }
    if (head.size > max_frame - assembly.size) return broken(link);
    base::copy(assembly.bytes.get() + assembly.size, link.reader.data(head.size), head.size);
    assembly.size += head.size;
    moved_ = true;
    if (!last) return true;
    batch.next(EventKind::received, link.id).data = {assembly.bytes.get(), assembly.size};
    lent_frames_.push_back(std::move(assembly.bytes));
    lent_ = true;
    return true;
}

// --- Puts ------------------------------------------------------------------------------------------------------------

/// Where a piece and all that follows it of its put may go; nothing when they may not, or what came before might not.
std::optional<std::span<std::byte>> Rail::place_of(Link& link, const PutHead& put) noexcept {
    if (link.put_denied) return std::nullopt;
    auto place = regions_.find({put.key_id, put.key_secret}, put.offset, put.left, Access::remote_write);
    link.put_denied = !place;
    if (!place && !std::exchange(link.complained, true)) {
        log_.info("rail {}: {} put {} bytes to no open region; discarded", traits_.name, link.label, put.left);
    }
    return place;
}

bool Rail::take_put(Link& link, const Head& head) noexcept {
    PutHead put;
    std::memcpy(&put, link.reader.body(), sizeof put);
    if (head.size > most_put_piece || put.left < head.size || link.fetch) return broken(link);
    const auto place = place_of(link, put);
    if (place) base::copy(place->data(), link.reader.data(head.size), head.size);
    moved_ = true;
    if (bulk_.judge) time_piece(link, head, put.left);
    if ((head.flags & flag_last) != 0) placed(link, (head.flags & flag_notify) != 0, put.immediate);
    return true;
}

void Rail::time_piece(Link& link, const Head& head, std::uint64_t left) noexcept {
    auto& timer = link.put_timer;
    const bool last = (head.flags & flag_last) != 0;
    const bool first = !std::exchange(timer.inside, !last);
    if (first) {
        timer.bytes = 0;
        timer.begun = left >= least_timed ? base::now_ns() : 0;
    } else if (timer.begun != 0) {
        timer.bytes += head.size;
        if (last && link.ways.ring.add(base::now_ns() - timer.begun, std::max<std::uint64_t>(timer.bytes, 1)))
            tell_way(link);
    }
}

/// That so much has been fetched since then, in one call.
void Rail::time_fetch(Link& link, base::Nanoseconds begun, std::uint64_t bytes) noexcept {
    const auto took = base::now_ns() - begun - static_cast<base::Nanoseconds>(bulk_.judge->fetch);
    if (link.ways.fetch.add(took, bytes)) tell_way(link);
}

void Rail::tell_way(Link& link) noexcept {
    const auto from = link.ways.fetch_from(bulk_.judge->fetch);
    constexpr std::uint64_t most = ~std::uint32_t{0};
    if (!from) return;
    link.ours->try_apart.store(link.ways.try_apart(bulk_.judge->fetch), std::memory_order_relaxed);
    link.ours->fetch_from.store(static_cast<std::uint32_t>(std::min(*from, most)), std::memory_order_relaxed);
}

/// A turn's worth of it. False: there is more, or it is the link's end.
bool Rail::take_fetch(Link& link, const Head& head) noexcept {
    if (!link.fetch) {
        auto& begun = link.fetch.emplace();
        std::memcpy(&begun.head, link.reader.body(), sizeof begun.head);
        begun.flags = head.flags;
        if (begun.head.bytes > max_put || begun.head.put.left < begun.head.bytes) return broken(link);
    }
    auto& under_way = *link.fetch;
    auto put = under_way.head.put;
    put.offset += under_way.done;
    put.left -= under_way.done;
    if (const auto place = place_of(link, put)) {
        const auto bytes = std::min(under_way.head.bytes - under_way.done, fetch_step);
        const auto begun = bulk_.judge && bytes >= least_timed ? base::now_ns() : 0;
        if (!fetch(link, place->first(static_cast<std::size_t>(bytes)), under_way.head.address + under_way.done))
            return false;
        if (begun != 0) time_fetch(link, begun, bytes);
        under_way.done += bytes;
        moved_ = true;
        if (under_way.done < under_way.head.bytes) return false;
    }
    if ((under_way.flags & flag_last) != 0) placed(link, (under_way.flags & flag_notify) != 0, put.immediate);
    link.fetch.reset();
    return true;
}

/// The other side may end the link meanwhile, and then waits until we say that we have stopped: each says what it does before
/// it looks what the other does. False: the link is over, and the bytes mean nothing.
bool Rail::fetch(Link& link, std::span<std::byte> to, std::uint64_t address) noexcept {
    link.ours->fetching.store(1, std::memory_order_seq_cst);
    bool good = link.theirs->closed.load(std::memory_order_seq_cst) == 0;
    const bool open = good;
    if (good) good = link.process.read(address, to);
    link.ours->fetching.store(0, std::memory_order_seq_cst);
    wake(link, Sleep::until_room);
    if (good && link.theirs->closed.load(std::memory_order_seq_cst) == 0) return true;
    kill(link, open && !good ? "the other process can no longer be read" : "closed by the other side");
    return false;
}

/// The last piece of a put.
void Rail::placed(Link& link, bool notify, std::uint32_t immediate) noexcept {
    const bool denied = std::exchange(link.put_denied, false);
    if (!notify || denied) return;
    events_.tell({.kind = EventKind::notified, .immediate = immediate, .link = link.id});
}

}  // namespace railmux::transports::shm
