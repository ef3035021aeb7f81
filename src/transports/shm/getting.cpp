// shm::Rail: gets, and the share that the other side has in them.
#include <algorithm>

#include "transports/shm/rail.hpp"
#include "transports/shm/waking.hpp"

namespace railmux::transports::shm {

// --- Getting ---------------------------------------------------------------------------------------------------------

bool Rail::write_get(Link& link, const Work& work) noexcept {
    if (link.gets == nullptr) link.gets = std::make_unique<Gets>();
    auto& gets = *link.gets;
    if (gets.count == Gets::most) return false;
    auto& get = gets.ones[(gets.first + gets.count) % Gets::most];
    get.cookie = work.cookie;
    get.key = work.remote;
    get.offset = work.offset;
    get.source = Source(work.segments).in(get.segments);
    if (++gets.count == 1) begin_turn(link);
    link.restless = true;
    ++link.undone;
    return true;
}

/// Whether the other side's board allows all that is left of it.
bool Rail::may_get(const Link& link, const Gets::One& get) noexcept {
    return link.board() != nullptr && link.board()->address_of(get.key, get.offset, get.source.left()) != 0;
}

/// The other side can begin with its share at once.
void Rail::begin_turn(Link& link) noexcept {
    auto& gets = *link.gets;
    auto& get = gets.oldest();
    const auto piece = get.source.front(fetch_step);
    const bool shared = piece.size() >= least_shared && link.theirs->can_fetch.load(std::memory_order_relaxed) == 1 &&
                        may_get(link, get);
    gets.ours = shared ? piece.first(piece.size() / 2) : piece;
    gets.theirs = piece.subspan(gets.ours.size());
    gets.here = false;
    if (!shared) return;
    auto& share = link.ours->share;
    share.key_id.store(get.key.id, std::memory_order_relaxed);
    share.key_secret.store(get.key.secret, std::memory_order_relaxed);
    share.offset.store(get.offset + gets.ours.size(), std::memory_order_relaxed);
    share.bytes.store(gets.theirs.size(), std::memory_order_relaxed);
    share.address.store(reinterpret_cast<std::uintptr_t>(gets.theirs.data()), std::memory_order_relaxed);
    share.word.store(++gets.number * Share::states + Share::open, std::memory_order_seq_cst);  // waking.hpp
    if (get.source.left() >= least_waking) wake(link, Sleep::until_news);
}

/// A turn of the oldest, or what is left of it.
void Rail::get_some(Link& link) noexcept {
    auto& gets = *link.gets;
    auto& get = gets.oldest();
    if (!gets.here) {
        const bool timed = bulk_.judge && gets.ours.size() + gets.theirs.size() >= least_timed;
        gets.begun = timed ? base::now_ns() : 0;
        gets.status = read_shown(link, gets.ours, get.offset);
        gets.here = true;
        moved_ = true;
        if (gets.begun != 0) link.put_timer.pause(base::now_ns() - gets.begun);
    }
    if (!gets.theirs.empty()) {
        const auto state = take_back(link);
        if (state == Share::taken) return;
        moved_ = true;
        if (state != Share::done && gets.status == WorkStatus::ok) {
            gets.status = read_shown(link, gets.theirs, get.offset + gets.ours.size());
        }
    }
    const auto bytes = gets.ours.size() + gets.theirs.size();
    if (gets.begun != 0 && gets.status == WorkStatus::ok) time_fetch(link, gets.begun, bytes);
    get.source.skip(bytes);
    get.offset += bytes;
    if (gets.status != WorkStatus::ok || get.source.left() == 0) {
        events_.done(link.id, get.cookie, gets.status);
        gets.first = (gets.first + 1) % Gets::most;
        --gets.count;
    }
    gets.theirs = {};
    if (gets.count > 0) begin_turn(link);
}

/// What the other side's board shows, at that place of the oldest's region. Nothing is read if any of it may not be.
WorkStatus Rail::read_shown(Link& link, std::span<std::byte> to, std::uint64_t offset) noexcept {
    const auto& get = link.gets->oldest();
    if (!may_get(link, get)) return WorkStatus::access_denied;
    const auto* const board = link.board();
    const auto address = board->address_of(get.key, offset, to.size());
    if (address == 0) return WorkStatus::access_denied;  // since then
    if (!to.empty() && !link.process.read(address, to)) {
        return link.process.alive() ? WorkStatus::access_denied : WorkStatus::link_lost;
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return board->shows(get.key) ? WorkStatus::ok : WorkStatus::access_denied;
}

/// The share, if nobody has taken it. Whatever else stands there than what the other side may write means that it failed.
Share::State Rail::take_back(Link& link) noexcept {
    const auto base = link.gets->number * Share::states;
    auto& word = link.ours->share.word;
    auto seen = base + Share::open;
    if (word.compare_exchange_strong(seen, base + Share::none, std::memory_order_acq_rel)) return Share::none;
    if (seen == base + Share::taken) return Share::taken;
    return seen == base + Share::done ? Share::done : Share::failed;
}

// --- Helping ---------------------------------------------------------------------------------------------------------

/// Copies the share of what the other side gets. What makes no sense is left to it: it finds out why.
void Rail::help(Link& link) noexcept {
    auto& share = link.theirs->share;
    auto word = share.word.load(std::memory_order_acquire);
    const RegionKey key{share.key_id.load(std::memory_order_relaxed), share.key_secret.load(std::memory_order_relaxed)};
    const auto offset = share.offset.load(std::memory_order_relaxed);
    const auto bytes = share.bytes.load(std::memory_order_relaxed);
    const auto address = share.address.load(std::memory_order_relaxed);
    if (word % Share::states != Share::open) return;
    const bool sane = bytes > 0 && bytes <= fetch_step && link.readable;
    const auto from = sane ? regions_.find(key, offset, bytes, Access::remote_read) : std::nullopt;
    if (!from) {
        link.declined = word;
        return;
    }
    // If the word is still the same, what was read with it belongs together.
    const auto base = word - Share::open;
    if (!share.word.compare_exchange_strong(word, base + Share::taken, std::memory_order_acq_rel)) return;
    const bool good = link.process.write(address, *from);
    moved_ = true;
    share.word.store(base + (good ? Share::done : Share::failed), std::memory_order_seq_cst);
    wake(link, Sleep::until_room);
}

}  // namespace railmux::transports::shm
