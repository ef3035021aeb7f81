// verbs::Rail: from the completion queue to the events of poll().
#include <algorithm>
#include <array>

#include "base/bytes.hpp"
#include "base/in_line.hpp"
#include "transports/verbs/rail.hpp"

namespace railmux::transports::verbs {

namespace {
constexpr std::uint64_t receive_tag = std::uint64_t{1} << 63;  // wr_id of a receive; below it the slab
}

std::size_t Rail::poll(std::span<Event> events) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    ++polls_;
    Batch batch{events};
    take_back();
    if (armed_ || polls_ >= next_look_) look();
    take_completions(batch);
    if (down_) settle_port();
    if (!granting_.empty()) grant_all();
    return batch.count;
}

/// What the last poll lent or reported is ours again.
void Rail::take_back() noexcept {
    events_.take_back(links_);
    if (lent_slabs_.empty()) return;
    for (const auto& lent : lent_slabs_) receive_slabs_.give(lent.slab);
    post_receives();
    for (const auto& lent : lent_slabs_) {
        if (Link* link = links_.find(lent.link); link != nullptr) grant(*link);
    }
    lent_slabs_.clear();
    grant_all();
}

/// At what is not in the completion queue.
void Rail::look() noexcept {
    next_look_ = polls_ + look_period;
    if (std::exchange(armed_, false)) {
        ibv_cq* queue = nullptr;
        void* unused = nullptr;
        while (ibv_get_cq_event(wakeups_.get(), &queue, &unused) == 0) ibv_ack_cq_events(queue, 1);
    }
    for (News news; next_news(news);) take_news(news);
    take_device_news();
}

int Rail::arm() noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    if (!events_.empty() || found_at_ < found_end_ || std::exchange(room_, false)) return -1;
    if (!std::exchange(armed_, true) && !gone_) ibv_req_notify_cq(completions_.get(), 0);
    return more_completions() ? -1 : epoll_.get();  // one may have come before the request to be told
}

/// What is queued goes first: a frame comes after the link_up of its link.
void Rail::take_completions(Batch& batch) noexcept {
    bool all_found = false;
    while (true) {
        if (!events_.empty()) events_.hand_out(batch, links_);
        if (batch.full() || !events_.empty()) return;
        if (found_at_ == found_end_) {
            if (all_found || !more_completions()) return;
            all_found = found_end_ < found_.size();  // the queue was empty behind these
        }
        const auto& completion = found_[found_at_];
        if ((completion.wr_id & receive_tag) == 0) {
            take_send(completion);
        } else if (!take_frame(completion, batch) && !take_receive(completion, batch)) {
            continue;  // again, behind what it queued
        }
        ++found_at_;
    }
}

bool Rail::more_completions() noexcept {
    const int count = gone_ ? 0 : ibv_poll_cq(completions_.get(), static_cast<int>(found_.size()), found_.data());
    found_at_ = 0;
    found_end_ = static_cast<std::size_t>(std::max(count, 0));
    return found_end_ > 0;
}

/// What nearly all completions of receives are: a frame, over a link in good order. False: it is something else.
RAILMUX_IN_LINE bool Rail::take_frame(const ibv_wc& completion, Batch& batch) noexcept {
    Link* const link = recent_.queue == completion.qp_num ? recent_.link : nullptr;
    if (link == nullptr || link->phase != Phase::up || link->closed || completion.status != IBV_WC_SUCCESS ||
        completion.opcode != IBV_WC_RECV || completion.byte_len > frame_bytes ||
        (completion.wc_flags & IBV_WC_WITH_IMM) == 0) {
        return false;
    }
    const auto returned = ntohl(completion.imm_data);  // credits, and nothing else
    if (returned > link_credits - link->credits || link->held >= link_credits) return false;
    --posted_;
    ++link->received;
    link->credits += returned;
    ++link->held;
    found_room();
    const auto slab = static_cast<std::uint32_t>(completion.wr_id);
    lent_slabs_.push_back({link->id, slab});
    batch.next(EventKind::received, link->id).data = {receive_slabs_[slab].data, completion.byte_len};
    return true;
}

/// False when its link came up with it, which is to be reported before.
bool Rail::take_receive(const ibv_wc& completion, Batch& batch) noexcept {
    const auto slab = static_cast<std::uint32_t>(completion.wr_id);
    Link* link = link_of(completion.qp_num);
    if (link != nullptr && link->phase == Phase::accepting) {
        established(*link, {});
        return false;
    }
    --posted_;
    const bool heard = link != nullptr && !link->closed && completion.status == IBV_WC_SUCCESS;
    if (!heard) {
        receive_slabs_.give(slab);
        post_receives();
        if (link != nullptr && completion.status != IBV_WC_SUCCESS) end(*link, explain(completion.status));
        return true;
    }
    ++link->received;
    const auto immediate = ntohl(completion.imm_data);
    link->credits += immediate & ~credit_only;
    found_room();
    const bool frame = (immediate & credit_only) == 0;
    if (frame) ++link->held;
    // A write with an immediate value takes a buffer, too, but leaves nothing in it, however long it says that it is.
    const bool whole = completion.opcode == IBV_WC_RECV && completion.byte_len <= frame_bytes;
    if (!whole || link->credits > link_credits || link->held > link_credits ||
        (completion.wc_flags & IBV_WC_WITH_IMM) == 0) {
        receive_slabs_.give(slab);
        post_receives();
        end(*link, whole ? "it sent frames that it had no credits for" : "it sent what is no frame");
        return true;
    }
    if (!frame) {
        receive_slabs_.give(slab);
        post_receives();
        return true;
    }
    lent_slabs_.push_back({link->id, slab});
    batch.next(EventKind::received, link->id).data = {receive_slabs_[slab].data, completion.byte_len};
    return true;
}

/// Messages come in bursts from one link, and the table of all takes a division.
Link* Rail::link_of(std::uint32_t queue) noexcept {
    if (recent_.link == nullptr || recent_.queue != queue) {
        const auto entry = by_queue_.find(queue);
        if (entry == by_queue_.end()) return nullptr;
        recent_ = {queue, &links_[entry->second.index]};  // until its queue is no more
    }
    return recent_.link;
}

void Rail::take_send(const ibv_wc& completion) noexcept {
    const auto index = static_cast<std::uint32_t>(completion.wr_id >> 32);
    const auto number = static_cast<std::uint32_t>(completion.wr_id);
    Link& link = links_[index];
    if (link.phase == Phase::free || link.queue != completion.qp_num)
        return;  // of a link that ended without its device
    const bool ok = completion.status == IBV_WC_SUCCESS;
    link.acknowledged += ok ? 1 : 0;
    found_room();
    // The device completes in order: those before it went well, unless an error came before.
    while (link.first != number) {
        complete(link, link.request(link.first++), link.failed ? WorkStatus::link_lost : WorkStatus::ok);
    }
    auto& request = link.request(link.first++);
    if (completion.status == IBV_WC_REM_ACCESS_ERR) link.denied = true;
    link.failed = link.failed || !ok;
    complete(link, request, ok ? WorkStatus::ok : WorkStatus::link_lost);
    if (request.kind == RequestKind::last) {
        finish(link);
    } else if (!ok) {
        end(link, explain(completion.status));
    }
}

void Rail::complete(Link& link, Request& request, WorkStatus status) noexcept {
    if (status == WorkStatus::ok && !request.into.empty()) {
        base::copy(request.into.data(), bulk_slabs_[request.slab].data, request.into.size());
    }
    give_back(request);
    request.slab = no_slab;
    if (!request.ends_work) return;
    const bool denied = std::exchange(link.denied, false);
    events_.done(link.id, request.cookie, denied ? WorkStatus::access_denied : status);
}

/// Fills the receive queue, once there are no more buffers in it than all links may need; those that a link leaves behind are
/// used up by the others.
void Rail::post_receives() noexcept {
    const auto low_water = queues_ * receives_per_link;
    if (posted_ > low_water) return;
    while (posted_ < low_water + receives_in_reserve && receive_slabs_.free() > 0) {
        std::array<ibv_recv_wr, receives_in_reserve> requests{};
        std::array<ibv_sge, receives_in_reserve> places;
        const auto wanted = std::min<std::size_t>(
            {low_water + receives_in_reserve - posted_, receive_slabs_.free(), receives_in_reserve});
        for (std::size_t i = 0; i < wanted; ++i) {
            const auto slab = receive_slabs_.take();
            places[i] = {reinterpret_cast<std::uint64_t>(receive_slabs_[slab].data), frame_bytes,
                         receive_slabs_[slab].key};
            requests[i].wr_id = receive_tag | slab;
            requests[i].sg_list = &places[i];
            requests[i].num_sge = 1;
            if (i > 0) requests[i - 1].next = &requests[i];
        }
        ibv_recv_wr* refused = nullptr;
        const int code = ibv_post_srq_recv(receives_.get(), requests.data(), &refused);
        if (code == 0) {
            posted_ += static_cast<std::uint32_t>(wanted);
            continue;
        }
        // The device keeps those before, for as long as the queue lives.
        for (; refused != nullptr; refused = refused->next) {
            receive_slabs_.give(static_cast<std::uint32_t>(refused->wr_id));
        }
        return rail_gone(in_words(failure(traits_.name, "the device takes no receive", code)));
    }
}

}  // namespace railmux::transports::verbs
