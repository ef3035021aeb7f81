// ofi::Rail: from post() to the provider.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <utility>

#include "base/bytes.hpp"
#include "transports/ofi/rail.hpp"

namespace railmux::transports::ofi {

std::size_t Rail::post(std::span<const Work> works) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    std::size_t posted = 0;
    for (; posted < works.size(); ++posted) {
        const auto& work = works[posted];
        Link* link = links_.find(work.link);
        if (link == nullptr || link->phase != Phase::up) {
            if (!work.quiet) events_.done(work.link, work.cookie, WorkStatus::link_lost);
            continue;
        }
        const auto result = send(*link, work);
        link->refused = result == Sent::not_now;
        if (link->refused) {
            if (std::ranges::find(refused_, work.link) == refused_.end()) refused_.push_back(work.link);
            break;
        }
        if (work.quiet) continue;
        if (result == Sent::failed) {
            events_.done(work.link, work.cookie, WorkStatus::link_lost);
            continue;
        }
        ++link->undone;
        if (!link->put.open) events_.done(work.link, work.cookie, WorkStatus::ok);
    }
    return posted;
}

bool Rail::send_short(LinkId id, std::span<std::byte> frame, bool slow) noexcept {
    const auto size = Header::size + frame.size();
    Link* const link = links_.find(id, Phase::up);
    const bool free = link != nullptr && !link->put.open && link->peer->waiting == 0 && link->undone < tx_depth &&
                      link->peer->turns.idle();
    if (!free || size > inject_bytes_) [[unlikely]]
        return transports::Rail::send_short(id, frame, slow);  // which finds out why, and what to do
    {
        [[maybe_unused]] const auto scope = guard_.enter();
        std::array<std::byte, inject_most> message;
        write(message.data(), Header{.kind = Kind::frame, .number = link->next_number, .to = link->theirs});
        base::copy(message.data() + Header::size, frame.data(), frame.size());
        if (fi_inject(endpoint_->port.endpoint.get(), message.data(), size, link->peer->at) == 0) {
            ++link->next_number;
            link->refused = false;
            return true;
        }
    }
    return transports::Rail::send_short(id, frame, slow);  // the same again, for what is to be done about it
}

Rail::Sent Rail::send(Link& link, const Work& work) noexcept {
    assert(work.segments.size() <= max_segments);
    // What was to be sent before on this link, or about it, has not all been taken.
    if (link.put.open || link.peer->waiting > 0 || link.undone >= tx_depth) return Sent::not_now;
    if (!link.peer->turns.may_ask(link.id)) return Sent::not_now;
    if (work.op == Op::send) return send_frame(link, work);
    assert(work.op == Op::put);
    auto& put = link.put;
    put = {.notify = work.notify,
           .immediate = work.immediate,
           .cookie = work.cookie,
           .offset = work.offset,
           .key = work.remote,
           .source = Source(work)};
    const auto whole = put.source.left;
    const auto result = send_pieces(link);
    if (result != Sent::not_now || put.source.left == whole) return result;
    put.open = true;  // accepted: the rest follows
    putting_.push_back(link.id);
    return Sent::yes;
}

Rail::Sent Rail::send_frame(Link& link, const Work& work) noexcept {
    Source source(work);
    return send_message(link, Kind::frame, nullptr, 0, source, source.left);
}

/// The pieces of the open put that have not been sent; `yes` when that was the last.
Rail::Sent Rail::send_pieces(Link& link) noexcept {
    auto& put = link.put;
    const auto most = link.message_bytes - put_overhead;
    while (true) {
        const auto bytes = std::min(put.source.left, most);
        const auto rest = static_cast<std::uint32_t>(put.source.left - bytes);
        const PutHeader header{.key = put.key, .offset = put.offset, .immediate = put.immediate, .rest = rest};
        const auto flags = put.notify && rest == 0 ? Header::notify : std::uint8_t{0};
        const auto result = send_message(link, Kind::put, &header, flags, put.source, bytes);
        if (result != Sent::yes) return result;
        put.offset += bytes;
        if (rest == 0) return Sent::yes;
    }
}

/// One message with the next `bytes` of `source`, which moves on only if the provider takes it.
Rail::Sent Rail::send_message(Link& link, Kind kind, const PutHeader* put, std::uint8_t flags, Source& source,
                              std::size_t bytes) noexcept {
    const auto head = Header::size + (put != nullptr ? PutHeader::size : 0);
    const auto size = head + bytes;
    auto rest = source;
    const auto write_all = [&](std::byte* to) {
        write(to, Header{.kind = kind, .flags = flags, .number = link.next_number, .to = link.theirs});
        if (put != nullptr) write(to + Header::size, *put);
        rest.copy(to + head, bytes);
    };
    auto* const endpoint = endpoint_->port.endpoint.get();
    ssize_t code = 0;
    if (size <= inject_bytes_) {
        std::array<std::byte, inject_most> small;
        write_all(small.data());
        code = fi_inject(endpoint, small.data(), size, link.peer->at);
    } else {
        const bool room = link.sending < max_sending && link.sending_bytes < max_sending_bytes &&
                          endpoint_->send_buffers.on_their_way() < most_on_their_way_;
        auto* buffer = room ? endpoint_->send_buffers.take(size) : nullptr;
        if (buffer == nullptr) {
            starved_bytes_ = room ? size : starved_bytes_;
            return Sent::not_now;
        }
        write_all(buffer->data);
        buffer->peer = link.peer;
        buffer->link = link.id;
        buffer->bytes = size;
        const bool in_order = endpoint_->port.completes_in_order() && size > endpoint_->port.info->tx_attr->inject_size;
        buffer->number = in_order ? ++numbered_ : 0;
        code = fi_send(endpoint, buffer->data, size, buffer->descriptor, link.peer->at, &buffer->context);
        if (code == 0) {
            ++link.sending;
            link.sending_bytes += size;
            ++link.peer->sending;
        } else {
            endpoint_->send_buffers.give(*buffer);
        }
    }
    if (code == -FI_EAGAIN) {
        if (!link.put.open) link.peer->turns.wait(link.id);
        return Sent::not_now;
    }
    if (code != 0) {
        fail(link, code);
        return Sent::failed;
    }
    source = rest;
    ++link.next_number;
    return Sent::yes;
}

void Rail::go_on_with_puts() noexcept {
    std::erase_if(putting_, [&](LinkId id) {
        Link* link = links_.find(id);
        if (link == nullptr || !link->put.open) return true;
        const auto left = link->put.source.left;
        const auto result = send_pieces(*link);
        moved_ = moved_ || link->put.source.left < left;
        if (result == Sent::not_now) return false;
        if (result == Sent::yes) {
            events_.done(id, link->put.cookie, WorkStatus::ok);
            link->put.open = false;
        }
        return true;  // where it failed, the end of the link has told so
    });
}

/// Some providers never complete what goes to an endpoint that is no more, and its buffers cannot be had back but with the
/// whole endpoint.
void Rail::look_for_stranded() noexcept {
    const auto now = base::now_ns();
    if (now < next_look_for_stranded_) return;
    next_look_for_stranded_ = now + 100 * base::millisecond;
    const auto starved = std::exchange(starved_bytes_, 0);
    if (starved == 0 || !endpoint_->send_buffers.mostly_stranded(starved)) {
        stranded_since_ = 0;
    } else if (stranded_since_ == 0) {
        stranded_since_ = now;
    } else if (now - stranded_since_ > stranded_limit) {
        rail_down("most of its buffers are on their way to endpoints that are no more, and do not come back");
    }
}

void Rail::look_for_obstruction() noexcept {
    const auto now = base::now_ns();
    if (now < next_look_for_obstruction_) return;
    next_look_for_obstruction_ = now + base::millisecond;  // there may be a thousand buffers to look at
    const auto* oldest = endpoint_->send_buffers.oldest();
    bool wanted = false;  // by a link of its peer
    links_.for_each([&](const Link& link) {
        wanted = wanted || (oldest != nullptr && link.peer == oldest->peer && link.phase == Phase::up);
    });
    const auto number = oldest == nullptr ? std::nullopt : std::optional(oldest->number);
    if (!obstruction_.stands(number, !wanted, now)) return;
    links_.for_each([&](const Link& link) {
        if (link.phase == Phase::free || link.peer == nullptr || processes_.died(link.peer->process)) return;
        byes_.push_back({link.peer->at, bye_of(link)});
    });
    obstructed_ = true;
    rail_down("what was sent to a process that is no more is in the way of all that is sent (docs/ofi.md)");
}

void Rail::fail(Link& link, ssize_t code) { end(link, "the provider could not send: " + in_words(code)); }

}  // namespace railmux::transports::ofi
