// shm::Rail: from the ring, and the sockets, to the events of poll().
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/in_line.hpp"
#include "transports/shm/rail.hpp"
#include "transports/shm/tags.hpp"
#include "transports/shm/waking.hpp"

namespace railmux::transports::shm {

/// Most looks find nothing, and nearly all others one slot: what else there is to do is looked at in one place.
std::size_t Rail::poll(std::span<Event> events) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    ++polls_;
    staged_ = 0;  // what the last poll lent is ours again
    Batch batch{events};
    if (armed_ || lent_ || polls_ >= next_look_ || !events_.empty()) [[unlikely]] {
        if (!see_to_rest(batch)) return batch.count;
    }
    for (auto looks = std::min(active_.size(), links_per_poll); looks > 0; --looks) {
        Link& link = next_active();
        const bool more = link.restless || asks_for_help(link);
        if (!more && !link.reader.ready()) continue;
        if (more || !take_frames(link, batch)) return serve_from(link, looks, batch);
        if (looks > 1) return serve_others(looks, batch);
        break;
    }
    return batch.count;
}

/// What most slots are, of a link with nothing else to see to: whole frames. False: there is something else. A small one that
/// is alone is likely to be answered by one, in less time than the slot for that takes to come over.
RAILMUX_IN_LINE bool Rail::take_frames(Link& link, Batch& batch) noexcept {
    bool small = false;
    link.written_before = link.writer.written();
    for (auto turns = slots_per_turn; turns > 0 && !batch.full(); --turns) {
        const auto head = link.reader.head();
        if (!link.reader.ready(head)) {
            if (small && batch.count == 1) link.writer.prepare_slot();
            return true;
        }
        small = take_frame(link, head, batch);
        if (!small && !take_whole(link, head, batch)) [[unlikely]]
            return false;
        if (link.reader.pop(small ? 0 : head.size)) [[unlikely]] {
            link.reader.tell();
            wake(link, Sleep::until_room);
        }
    }
    return true;
}

/// False: it is something else, or there is no place to lend it from.
RAILMUX_IN_LINE bool Rail::take_frame(const Link& link, const Head& head, Batch& batch) noexcept {
    if (head.kind != Kind::frame || head.size > body_bytes || link.assembly.bytes) [[unlikely]]
        return false;
    if (staging_bytes - staged_ < cache_line) [[unlikely]]
        return false;
    auto* const to = staging_.get() + staged_;
    std::memcpy(to, link.reader.body(), body_bytes);  // always all of it: a copy of fixed size is a few moves
    batch.next(EventKind::received, link.id).data = {to, head.size};
    staged_ += cache_line;
    return true;
}

/// What the last poll left, and events that wait. False: slots are not looked at now.
bool Rail::see_to_rest(Batch& batch) noexcept {
    if (armed_) rise();
    if (lent_) take_back();
    if (polls_ >= next_look_) {
        look_at_sockets();
        lent_ = true;  // links that nobody has heard of may be over, too
    }
    hand_out(batch);
    return events_.empty() && !batch.full();  // nothing of a link before its link_up
}

Link& Rail::next_active() noexcept {
    next_active_ = next_active_ + 1 < active_.size() ? next_active_ + 1 : 0;
    return *active_[next_active_];
}

/// Serves a link that has something, and looks at those that are left.
std::size_t Rail::serve_from(Link& first, std::size_t looks, Batch& batch) noexcept {
    serve(first, batch);
    return serve_others(looks, batch);
}

std::size_t Rail::serve_others(std::size_t looks, Batch& batch) noexcept {
    while (--looks > 0 && !batch.full() && !active_.empty()) {
        Link& link = next_active();
        if (link.restless || link.reader.ready() || asks_for_help(link)) serve(link, batch);
    }
    hand_out(batch);
    // Who sleeps now keeps the other side waiting, which has more as soon as this is out of its way.
    if (std::exchange(moved_, false) && batch.count == 0 && !batch.full()) batch.next(EventKind::moved, LinkId{});
    return batch.count;
}

void Rail::hand_out(Batch& batch) noexcept {
    if (events_.empty()) return;
    lent_ = true;
    events_.hand_out(batch, links_);
}

/// What the last poll lent or reported beside small frames is ours again.
void Rail::take_back() noexcept {
    lent_ = false;
    events_.take_back(links_);
    for (auto& frame : lent_frames_) keep_spare(std::move(frame));
    lent_frames_.clear();
}

void Rail::keep_spare(std::unique_ptr<std::byte[]> frame) noexcept {
    if (spare_frames_.size() < most_spare_frames) spare_frames_.push_back(std::move(frame));
}

// --- Sockets ---------------------------------------------------------------------------------------------------------

void Rail::look_at_sockets() noexcept {
    std::array<epoll_event, 32> ready;
    const auto found = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
    for (const auto& event : std::span(ready).first(static_cast<std::size_t>(std::max(found, 0)))) {
        if (event.data.u64 == listener_tag) {
            accept_some();
        } else if (event.data.u64 == bell_tag) {
            eventfd_t rings = 0;
            static_cast<void>(::eventfd_read(bell_.get(), &rings));
        } else if (Link* link = links_.find(link_of(event.data.u64)); link != nullptr) {
            hear(*link);
        }
    }
    if (strangers_ > 0) expire_strangers();
    next_look_ = polls_ + (setting_up_ > 0 ? look_period_setting_up : look_period);
}

/// A greeting, or the end: of its socket or of its process.
void Rail::hear(Link& link) noexcept {
    if (link.phase == LinkPhase::ending) {
        finish(link, link.cause, {}, ErrorCode::unreachable);
    } else if (const auto phase = link.phase; phase == LinkPhase::connecting || phase == LinkPhase::greeting) {
        read_greeting(link);  // first: who refused may have gone since
        if (link.phase == phase && !link.process.alive()) kill(link, "closed by the other side");
    } else if (link.phase == LinkPhase::up) {  // what it left in the ring has been sent
        link.hung_up = true;
        link.settle_restless();
        part(link);
    } else {
        kill(link, "closed by the other side");
    }
}

// --- The ring --------------------------------------------------------------------------------------------------------

/// False: nothing more of this link now, or ever.
RAILMUX_IN_LINE bool Rail::take_slot(Link& link, const Head& head, Batch& batch) noexcept {
    if (take_frame(link, head, batch)) [[likely]]
        return true;
    const bool no_place = head.kind == Kind::frame && staging_bytes - staged_ < cache_line;
    return !no_place && take_rarer(link, head, batch);
}

/// A link that has a slot ready, or is restless.
RAILMUX_IN_LINE void Rail::serve(Link& link, Batch& batch) noexcept {
    if (link.phase == LinkPhase::ending) [[unlikely]] {
        if (!still_used(link)) finish(link, link.cause, {}, ErrorCode::unreachable);
        return;
    }
    if (asks_for_help(link)) [[unlikely]]
        help(link);
    for (auto turns = slots_per_turn; turns > 0 && !batch.full(); --turns) {
        const auto head = link.reader.head();
        if (!link.reader.ready(head)) break;
        if (link.last_slots == 0) [[unlikely]]
            break;  // more than the ring holds: it is being filled by nobody sane
        if (!take_slot(link, head, batch)) break;
        if (link.hung_up) [[unlikely]]
            --link.last_slots;
        const bool in_data = head.kind == Kind::piece || head.kind == Kind::put;
        if (link.reader.pop(in_data ? head.size : 0) || head.kind == Kind::fetch) {
            link.reader.tell();
            wake(link, Sleep::until_room);
        }
    }
    if (link.phase != LinkPhase::up) return;
    if (!link.restless) return;
    if (link.partial.source.left() > 0) push_partial(link);
    if (!link.fetched.empty()) end_fetched(link);
    if (link.getting() && !link.hung_up) get_some(link);
    link.settle_restless();
    if (link.writer.broken()) {
        kill(link, "it wrote nonsense into the shared memory");
    } else if (link.hung_up && (link.last_slots == 0 || !link.reader.ready())) {
        kill(link, "closed by the other side");
    }
}

}  // namespace railmux::transports::shm
