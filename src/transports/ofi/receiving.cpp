// ofi::Rail: from the completion queue to the events of poll().
#include <rdma/fi_errno.h>

#include <algorithm>
#include <utility>

#include "base/bytes.hpp"
#include "transports/ofi/rail.hpp"

namespace railmux::transports::ofi {

std::size_t Rail::poll(std::span<Event> events) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    Batch batch{events};
    take_back();
    if (fading_.any()) fading_.poll(base::now_ns());
    if (down_) {
        come_back();
        hand_out(batch);
        return batch.count;
    }
    if (!greetings_.empty()) send_greetings();
    if (!putting_.empty()) go_on_with_puts();
    if (!events_.empty()) hand_out(batch);
    if (!ready_.empty()) deliver_early(batch);
    take_completions(batch);
    if (endpoint_->receive_buffers.idle()) {
        if (const auto trouble = endpoint_->receive_buffers.post(); !trouble.empty())
            rail_down("no receive buffer: " + trouble);
    } else if (endpoint_->receive_buffers.exhausted()) {
        give_up_earliest();
    }
    if (!greetings_.empty() || !impatient_.empty()) lose_patience();
    if (starved_bytes_ > 0 || stranded_since_ > 0) look_for_stranded();
    if (obstruction_.suspected() && all_read_ && !down_) look_for_obstruction();
    if (!events_.empty()) hand_out(batch);
    if (std::exchange(moved_, false) && batch.count == 0 && !batch.full()) batch.next(EventKind::moved, LinkId{});
    return batch.count;
}

/// What the last poll lent or reported is ours again.
void Rail::take_back() noexcept {
    events_.take_back(links_);
    for (auto* buffer : lent_views_) endpoint_->receive_buffers.drop_view(*buffer);
    lent_views_.clear();
}

int Rail::arm() noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    if (!traits_.events || !events_.empty()) return -1;
    if (down_) return endpoint_ == nullptr ? awake_.get() : -1;
    if (found_at_ < found_end_ || !ready_.empty() || !greetings_.empty() || untold_since_ > 0) return -1;
    if (std::exchange(room_, false)) return -1;
    // Where nothing is on its way, nothing tells when there is room: it is told once, at once.
    bool silent_refusal = false;
    std::erase_if(refused_, [&](LinkId id) {
        Link* link = links_.find(id);
        if (link == nullptr || !link->refused) return true;
        const bool nothing_coming = link->sending == 0;
        if (nothing_coming) link->refused = false;
        silent_refusal = silent_refusal || nothing_coming;
        return nothing_coming;
    });
    if (silent_refusal) return -1;
    const auto silent = [&](LinkId id) {
        const Link* link = links_.find(id);
        return link == nullptr || link->sending == 0;
    };
    if (std::ranges::any_of(putting_, silent)) return -1;
    auto* queue = &endpoint_->port.completions->fid;
    return fi_trywait(endpoint_->port.fabric.get(), &queue, 1) == FI_SUCCESS ? awake_.get() : -1;
}

/// Of a link that is up frames may follow, and those that came before have their turn.
void Rail::hand_out(Batch& batch) noexcept {
    const auto before = batch.count;
    events_.hand_out(batch, links_);
    for (const auto& event : batch.events.subspan(before, batch.count - before)) {
        if (event.kind != EventKind::link_up) continue;
        Link* link = links_.find(event.link);
        if (link == nullptr) continue;
        link->announced = true;
        if (!link->early.empty() && !std::exchange(link->ready, true)) ready_.push_back(link->id);
    }
}

// --- Completions -----------------------------------------------------------------------------------------------------

/// Asks the provider no more once it has brought something to hand out: what it has to do first may take system calls.
void Rail::take_completions(Batch& batch) noexcept {
    const auto before = batch.count;
    while (!batch.full() && !down_) {
        if (found_at_ == found_end_ && (batch.count > before || !more_completions())) return;
        take_completion(found_[found_at_++], batch);
    }
}

bool Rail::more_completions() noexcept {
    while (found_at_ == found_end_) {
        found_at_ = found_end_ = 0;
        const auto count = fi_cq_read(endpoint_->port.completions.get(), found_.data(), found_.size());
        all_read_ = count == -FI_EAGAIN;
        if (count == -FI_EAVAIL) {
            if (take_error()) continue;
            const auto now = base::now_ns();
            if (untold_since_ == 0) untold_since_ = now;
            if (now - untold_since_ > untold_limit)
                rail_down("its completion queue has an error that the provider does not tell");
            return false;
        }
        untold_since_ = 0;
        if (count > 0) {
            found_end_ = static_cast<std::size_t>(count);
            break;
        }
        if (count != -FI_EAGAIN && count != 0) rail_down("its completion queue failed: " + in_words(count));
        return false;
    }
    return true;
}

void Rail::take_completion(const fi_cq_data_entry& completion, Batch& batch) noexcept {
    auto* operation = static_cast<Operation*>(completion.op_context);
    if (operation == nullptr) return;
    if (!operation->receive) {
        sent(*static_cast<SendBuffer*>(operation));
        return;
    }
    auto& buffer = *static_cast<ReceiveBuffer*>(operation);
    if (completion.len > 0) {
        const auto message = buffer.message(completion, endpoint_->port);
        take_message(buffer, message, batch);
        endpoint_->receive_buffers.came(buffer, message);
    }
    if (!endpoint_->port.multi_receive || (completion.flags & FI_MULTI_RECV) != 0)
        endpoint_->receive_buffers.filled(buffer);
}

/// The provider is through with a buffer that was sent.
void Rail::sent(SendBuffer& buffer) noexcept {
    --buffer.peer->sending;
    if (buffer.peer->links == 0) stranded_since_ = 0;
    if (Link* link = links_.find(buffer.link); link != nullptr) {
        --link->sending;
        link->sending_bytes -= buffer.bytes;
        room_ = room_ || link->put.open || link->refused;
    }
    endpoint_->send_buffers.give(buffer);
}

/// False: the provider has said that there is an error, and does not say which.
bool Rail::take_error() noexcept {
    fi_cq_err_entry entry{};
    if (fi_cq_readerr(endpoint_->port.completions.get(), &entry, 0) != 1) return false;
    untold_since_ = 0;
    const auto words = in_words(endpoint_->port.completions.get(), entry);
    auto* operation = static_cast<Operation*>(entry.op_context);
    if (operation == nullptr) {
        // Of a small frame, and the provider does not say whose: any link may have a hole now that nothing would ever fill.
        links_.for_each([&](Link& link) {
            if (link.phase != Phase::free) end(link, "the provider could not send a message: " + words);
        });
        return true;
    }
    if (operation->receive) {
        auto& buffer = *static_cast<ReceiveBuffer*>(operation);
        log_.debug("rail {}: a message could not be received: {}", traits_.name, words);
        endpoint_->receive_buffers.lost(buffer);
        if (!endpoint_->port.multi_receive || (entry.flags & FI_MULTI_RECV) != 0)
            endpoint_->receive_buffers.filled(buffer);
        return true;
    }
    auto& buffer = *static_cast<SendBuffer*>(operation);
    const auto& peer = *buffer.peer;
    sent(buffer);
    end_all(peer, "the provider could not send: " + words);
    return true;
}

// --- Messages --------------------------------------------------------------------------------------------------------

void Rail::take_message(ReceiveBuffer& buffer, std::span<const std::byte> bytes, Batch& batch) noexcept {
    const auto header = take_header(bytes);
    if (!header) return;
    if (header->kind == Kind::hello) return take_hello(bytes);
    if (header->kind == Kind::bye) return take_bye(*header, bytes);
    if (header->kind != Kind::frame && header->kind != Kind::put) return take_answer(*header, bytes);
    Link* link = find(header->to);
    if (link == nullptr || link->phase == Phase::requested) return;  // of a link that is no more
    const Early message{header->number, header->kind, header->flags, bytes, &buffer};
    if (!link->announced || message.number != link->next_expected) {
        keep_early(*link, message);
        return;
    }
    deliver(*link, message, batch);
    if (!link->early.empty() && !std::exchange(link->ready, true)) {
        ready_.push_back(link->id);
        deliver_early(batch);
    }
}

void Rail::keep_early(Link& link, const Early& early) {
    const auto ahead = static_cast<std::uint16_t>(early.number - link.next_expected);
    if (ahead >= 0x8000) return;  // comes a second time
    if (link.early.size() == most_early || link.early_bytes > most_early_bytes) {
        say_bye(link);
        end(link, "a message is missing that others were sent behind");
        return;
    }
    ++early.buffer->views;
    link.early.push_back(early);
    link.early_bytes += early.body.size();
}

/// Nothing can be received any more, because early messages hold every buffer: the link that has most of them ends.
void Rail::give_up_earliest() {
    Link* worst = nullptr;
    links_.for_each([&](Link& link) {
        if (link.phase != Phase::free && (worst == nullptr || link.early.size() > worst->early.size())) worst = &link;
    });
    if (worst == nullptr || worst->early.empty()) return;  // they are lent to whoever polls
    say_bye(*worst);
    end(*worst, "a message is missing, and those sent behind it hold all of the rail's buffers");
}

/// In its turn: the batch has room for one event.
void Rail::deliver(Link& link, const Early& message, Batch& batch) noexcept {
    ++link.next_expected;
    if (message.kind == Kind::put) {
        moved_ = true;
        return place(link, message, batch);
    }
    batch.next(EventKind::received, link.id).data = message.body;
    ++message.buffer->views;
    lent_views_.push_back(message.buffer);
}

void Rail::deliver_early(Batch& batch) noexcept {
    std::erase_if(ready_, [&](LinkId id) {
        Link* link = links_.find(id);
        if (link == nullptr) return true;
        while (true) {
            const auto next = std::ranges::find(link->early, link->next_expected, &Early::number);
            if (next == link->early.end()) break;
            if (batch.full()) return false;
            const auto message = *next;
            link->early.erase(next);
            link->early_bytes -= message.body.size();
            deliver(*link, message, batch);
            endpoint_->receive_buffers.drop_view(*message.buffer);
        }
        link->ready = false;
        return true;
    });
}

void Rail::place(Link& link, const Early& message, Batch& batch) noexcept {
    auto bytes = message.body;
    const auto put = take_put_header(bytes);
    if (!put) {
        say_bye(link);
        end(link, "corrupted data (the checksum of the header of a put is wrong)");
        return;
    }
    // All that is to come of the put must be allowed, or nothing of it is placed.
    const auto whole = bytes.size() + std::uint64_t{put->rest};
    const auto place = regions_.find(put->key, put->offset, whole, Access::remote_write);
    if (!place) {
        if (!std::exchange(link.complained, true)) {
            log_.info("rail {}: {} put {} bytes to no open region; discarded", traits_.name, link.label, whole);
        }
        return;
    }
    base::copy(place->data(), bytes.data(), bytes.size());
    if (message.flags == Header::notify && put->rest == 0) {
        batch.next(EventKind::notified, link.id).immediate = put->immediate;
    }
}

}  // namespace railmux::transports::ofi
