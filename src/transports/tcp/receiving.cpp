// tcp::Rail: from the socket to the events of poll().
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/bytes.hpp"
#include "transports/tcp/rail.hpp"
#include "transports/tcp/stamps.hpp"

namespace railmux::transports::tcp {

namespace {
// All sockets that are not hot are looked at once in this many polls: a look costs about as much as a read, and whatever
// comes first on such a socket waits some ten microseconds at most.
constexpr std::uint64_t epoll_period = 64;
// A link that has not received for this many polls, about 5 ms, is no longer hot: finding the next message by epoll takes some
// microseconds more.
constexpr std::uint64_t hot_polls = 16384;
// Nothing that TLS has decrypted stays behind in it, where no epoll would tell of it: see Rail::room_to_read.
static_assert(max_frame + StreamHeader::max_size >= Tls::most_read);
}  // namespace

std::size_t Rail::poll(std::span<Event> events) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    ++polls_;
    Batch batch{events};
    events_.take_back(links_);
    if (!events_.empty()) events_.hand_out(batch, links_);
    if (staging_at_ == staging_end_) {
        staging_at_ = staging_end_ = 0;
    } else {  // what the last poll had no room for; reading goes on behind it, because it is lent from here
        if (!batch.full()) parse(links_[staging_link_], batch);
    }
    if (staging_at_ < staging_end_ || batch.full()) return batch.count;
    // The others first: a link that keeps every batch full must not keep them waiting.
    if (polls_ >= next_look_ || writers_ > 0) poll_epoll(batch);
    poll_hot(batch);
    if (!events_.empty()) events_.hand_out(batch, links_);
    return batch.count;
}

int Rail::arm() noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    const bool waiting = !events_.empty() || staging_at_ < staging_end_ || std::exchange(room_, false);
    while (!waiting && !hot_.empty()) cool(links_[hot_.back()]);
    if (!waiting) next_look_ = polls_;  // whoever slept on the descriptor was woken by it
    return waiting ? -1 : epoll_.get();
}

void Rail::poll_hot(Batch& batch) noexcept {
    const auto count = hot_.size();
    for (std::size_t i = 0; i < count && !hot_.empty() && !batch.full() && room_to_read(); ++i) {
        next_hot_ = next_hot_ + 1 < hot_.size() ? next_hot_ + 1 : 0;
        Link& link = links_[hot_[next_hot_]];
        receive(link, batch);
        if (staging_at_ < staging_end_) return;
        if (polls_ - link.last_received > hot_polls) cool(link);
    }
}

void Rail::poll_epoll(Batch& batch) noexcept {
    std::array<epoll_event, 32> ready;
    const auto found = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
    const auto count = static_cast<std::size_t>(std::max(found, 0));
    next_look_ = polls_ + epoll_period;
    bool time_over = false;
    for (std::size_t i = 0; i < count; ++i) {
        const auto& event = ready[(i + polls_) % count];  // the kernel keeps their order: another first each time
        if (event.data.u32 == netlink_tag) {
            read_netlink();
        } else if (event.data.u32 == timer_tag) {
            time_over = true;
        } else if (event.data.u32 >= listener_tag) {
            accept_some(event.data.u32 - listener_tag);
        } else {
            serve(links_[event.data.u32], event.events, batch);
        }
    }
    if (time_over) expire_strangers();  // last: what they have said by now counts
}

void Rail::serve(Link& link, std::uint32_t what, Batch& batch) noexcept {
    if (link.phase == LinkPhase::connecting) {
        finish_connect(link);
    } else if (link.phase == LinkPhase::awaiting_reply || link.phase == LinkPhase::greeting) {
        read_greeting(link);
    } else if (link.phase == LinkPhase::up) {
        if ((what & EPOLLOUT) != 0) write_partial(link);
        if ((what & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0 || link.phase != LinkPhase::up) return;
        next_look_ = polls_ + 1;  // it may go on, without being hot
        if (!batch.full() && room_to_read()) receive(link, batch);
    }
}

bool Rail::room_to_read() const noexcept {
    // A carried beginning and the largest work must fit, whatever is lent in front.
    return staging_at_ == staging_end_ && staging_bytes - staging_end_ >= 2 * (max_frame + StreamHeader::max_size);
}

/// With its stamp, where that is worth it.
ssize_t Rail::read_plain(Link& link, std::span<iovec> into) noexcept {
    auto& read = link.read;
    ssize_t got = 0;
    if (read.stamping.takes()) {
        got = read_stamped(link.socket.get(), into, wall_clock_, read.came);
    } else {
        got = into.size() > 1 ? ::readv(link.socket.get(), into.data(), 2)
                              : ::recv(link.socket.get(), into[0].iov_base, into[0].iov_len, MSG_DONTWAIT);
        read.came = 0;
    }
    const auto turn = got > 0 ? read.stamping.came(got) : Stamping::Turn::none;
    if (turn != Stamping::Turn::none && !set_stamping(link.socket.get(), turn)) [[unlikely]]
        read.stamping.give_up();
    return got;
}

void Rail::receive(Link& link, Batch& batch) noexcept {
    auto& read = link.read;
    auto* const start = staging_.get() + staging_end_;
    const auto carried = read.carry.size();
    base::copy(start, read.carry.data(), carried);
    const bool in_put = read.put_left > 0;
    const auto direct = read.put_place != nullptr ? read.put_left : 0;
    const auto room = std::min(staging_bytes - staging_end_ - carried, read_ahead);
    std::array<iovec, 2> vectors{iovec{read.put_place, direct}, iovec{start + carried, room}};
    const auto into = std::span(vectors).subspan(direct > 0 ? 0 : 1);
    const auto got = link.tls != nullptr ? link.tls->read(into) : read_plain(link, into);
    if (got <= 0) {
        link.early_acks.waited();
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
        kill(link, got == 0 ? "closed by the other side" : cause_of(link));
        return;
    }
    if (carried > 0) {
        read.carry.clear();
        spare_carries_.push_back(std::move(read.carry));
        read.carry = {};
    }
    if (link.watched) heat(link);
    link.last_received = polls_;
    // A watched one may be slept on.
    if (!link.watched && link.early_acks.came(in_put ? 0 : static_cast<std::size_t>(got))) [[unlikely]]
        acknowledge_early(link.socket.get(), link.early_acks.now());
    auto rest = static_cast<std::size_t>(got);
    if (direct > 0) {
        const auto placed = std::min(rest, direct);
        rest -= placed;
        advance_put(link, placed);
    }
    staging_link_ = link.id.index;
    staging_at_ = staging_end_;
    staging_end_ += carried + rest;
    parse(link, batch);
}

void Rail::parse(Link& link, Batch& batch) noexcept {
    while (staging_at_ < staging_end_ && !batch.full() && take_work(link, batch)) {
    }
}

bool Rail::take_work(Link& link, Batch& batch) noexcept {
    const std::span<const std::byte> bytes(staging_.get() + staging_at_, staging_end_ - staging_at_);
    if (auto& read = link.read; read.put_left > 0) {
        const auto count = std::min(read.put_left, bytes.size());
        if (read.put_place != nullptr) base::copy(read.put_place, bytes.data(), count);
        staging_at_ += count;
        advance_put(link, count);
        return true;
    }
    StreamHeader header;
    const auto parsed = tcp::parse(bytes, header);
    if (parsed == Parsed::malformed || parsed == Parsed::corrupted) {
        kill(link, parsed == Parsed::corrupted ? "corrupted data (the checksum of the header of a put is wrong)"
                                               : "it sent bytes that are no railmux stream");
        return false;
    }
    if (parsed == Parsed::incomplete || (header.op == Op::send && bytes.size() < header.size() + header.length)) {
        carry_rest(link);
        return false;
    }
    staging_at_ += header.size();
    if (header.op == Op::put) {
        if (link.early_acks.bulk()) acknowledge_early(link.socket.get(), link.early_acks.now());
        begin_put(link, header);
        return true;
    }
    auto& event = batch.next(EventKind::received, link.id);
    event.data = bytes.subspan(header.size(), header.length);
    staging_at_ += header.length;
    // The note is of the last byte that was read: what ended long before that came earlier than it says.
    event.came = staging_end_ - staging_at_ <= stamped_tail ? link.read.came : 0;
    return true;
}

void Rail::begin_put(Link& link, const StreamHeader& header) {
    const auto place = regions_.find(header.key, header.offset, header.length, Access::remote_write);
    auto& read = link.read;
    read.put_left = header.length;
    read.put_place = place && header.length > 0 ? place->data() : nullptr;
    read.put_region = header.key.id;
    read.notify = place && header.notify;
    read.immediate = header.immediate;
    if (!place && !std::exchange(link.complained, true)) {
        log_.info("rail {}: {} put {} bytes to no open region; discarded", traits_.name, link.label, header.length);
    }
    if (header.length == 0) advance_put(link, 0);
}

void Rail::advance_put(Link& link, std::size_t bytes) {
    auto& read = link.read;
    read.put_left -= bytes;
    if (read.put_place != nullptr) read.put_place += bytes;
    if (read.put_left > 0) return;
    read.put_place = nullptr;
    if (std::exchange(read.notify, false)) {
        events_.tell({.kind = EventKind::notified, .immediate = read.immediate, .link = link.id});
    }
}

void Rail::carry_rest(Link& link) {
    if (!spare_carries_.empty()) {
        link.read.carry = std::move(spare_carries_.back());
        spare_carries_.pop_back();
    }
    link.read.carry.assign(staging_.get() + staging_at_, staging_.get() + staging_end_);
    // What was carried is not lent: only the bytes in front of it are, and they stay where they are.
    staging_at_ = staging_end_;
}

}  // namespace railmux::transports::tcp
