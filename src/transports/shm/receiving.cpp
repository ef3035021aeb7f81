// shm::Rail: from the ring, and the sockets, to the events of poll().
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "transports/shm/rail.hpp"
#include "transports/shm/tags.hpp"
#include "transports/shm/waking.hpp"

namespace railmux::transports::shm {

std::size_t Rail::poll(std::span<Event> events) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    ++polls_;
    Batch batch{events};
    if (armed_) rise();
    if (std::exchange(lent_, false)) take_back();
    if (polls_ >= next_look_) {
        look_at_sockets();
        lent_ = true;  // links that nobody has heard of may be over, too
    }
    if (!events_.empty()) {
        lent_ = true;
        events_.hand_out(batch, links_);
        if (!events_.empty() || batch.full()) return batch.count;  // nothing of a link before its link_up
    }
    for (auto looks = std::min(active_.size(), links_per_poll); looks > 0 && !batch.full(); --looks) {
        next_active_ = next_active_ + 1 < active_.size() ? next_active_ + 1 : 0;
        Link& link = *active_[next_active_];
        if (!link.restless && !link.reader.ready()) [[likely]]
            continue;
        lent_ = true;
        serve(link, batch);
        if (active_.empty()) break;
    }
    if (!events_.empty()) events_.hand_out(batch, links_);
    return batch.count;
}

/// What the last poll lent or reported is ours again.
void Rail::take_back() noexcept {
    events_.take_back(links_);
    staged_ = 0;
    for (auto& frame : lent_frames_) spare_frames_.push_back(std::move(frame));
    lent_frames_.clear();
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

void Rail::serve(Link& link, Batch& batch) noexcept {
    if (link.phase == LinkPhase::ending) {
        if (!still_read(link)) finish(link, link.cause, {}, ErrorCode::unreachable);
        return;
    }
    bool tell = false;
    for (auto turns = slots_per_turn; turns > 0 && !batch.full() && link.reader.ready(); --turns) {
        if (link.hung_up && --link.last_slots == 0)
            break;  // more than the ring holds: it is being filled by nobody sane
        const auto head = link.reader.head();
        if (!take_slot(link, head, batch)) break;
        const bool in_data = head.kind == Kind::piece || head.kind == Kind::put;
        tell = link.reader.pop(in_data ? head.size : 0) || head.kind == Kind::fetch || tell;
    }
    if (link.phase != LinkPhase::up) return;
    if (tell) {
        link.reader.tell();
        wake(link, Sleep::until_room);
    }
    if (!link.restless) return;
    if (link.partial.source.left() > 0) push_partial(link);
    if (!link.fetched.empty()) end_fetched(link);
    link.settle_restless();
    if (link.writer.broken()) {
        kill(link, "it wrote nonsense into the shared memory");
    } else if (link.hung_up && (link.last_slots == 0 || !link.reader.ready())) {
        kill(link, "closed by the other side");
    }
}

}  // namespace railmux::transports::shm
