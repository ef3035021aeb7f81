// tcp::Rail: from post() to the socket.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transports/posting.hpp"
#include "transports/tcp/portions.hpp"
#include "transports/tcp/rail.hpp"

namespace railmux::transports::tcp {

namespace {

std::size_t stream_bytes(const Work& work) noexcept {
    return (work.op == Op::send ? StreamHeader::send_size : StreamHeader::put_size) + payload_of(work);
}

/// Bytes taken, 0 when the socket is full, -1 with errno otherwise.
ssize_t send_vectors(int socket, iovec* vectors, std::size_t count, int how = 0) noexcept {
    msghdr message{};
    message.msg_iov = vectors;
    message.msg_iovlen = count;
    const int flags = MSG_DONTWAIT | MSG_NOSIGNAL | how;
    while (true) {
        // One piece is the usual case, and send() spares the kernel a list: some 5 % of a small message's time.
        const auto sent = count == 1 ? ::send(socket, vectors->iov_base, vectors->iov_len, flags)
                                     : ::sendmsg(socket, &message, flags);
        if (sent >= 0) return sent;
        if (errno == EINTR) continue;
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? 0 : -1;
    }
}

/// As send_vectors, and the vectors are used up: portion by portion.
ssize_t send_portions(int socket, std::span<iovec> vectors, Portions& portions) noexcept {
    std::size_t left = 0;
    for (const auto& piece : vectors) left += piece.iov_len;
    ssize_t sent = 0;
    while (left > 0) {
        const auto part = portions.next(left);
        std::size_t count = 0, bytes = 0;
        while (count < vectors.size() && bytes + vectors[count].iov_len <= part.bytes)
            bytes += vectors[count++].iov_len;
        iovec rest{};
        if (bytes < part.bytes) {
            auto& last = vectors[count++];
            const auto cut = part.bytes - std::exchange(bytes, part.bytes);
            rest = {static_cast<std::byte*>(last.iov_base) + cut, last.iov_len - cut};
            last.iov_len = cut;
        }
        const auto taken = send_vectors(socket, vectors.data(), count, part.ends ? MSG_EOR : 0);
        if (taken < 0) return taken;  // of what was sent before it nobody knows any more whether it arrives
        sent += taken;
        portions.sent(part, static_cast<std::size_t>(taken));
        if (static_cast<std::size_t>(taken) < bytes) return sent;
        if (rest.iov_len > 0) vectors[--count] = rest;
        vectors = vectors.subspan(count);
        left -= bytes;
    }
    return sent;
}

}  // namespace

std::size_t Rail::post(std::span<const Work> works) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    return post_runs(works, links_, events_,
                     [this](Link& link, std::span<const Work> run) { return write(link, run); });
}

/// As send_vectors. What the socket of an encrypted link has no room for waits in its TLS.
ssize_t Rail::encrypt(Link& link, std::span<const iovec> vectors) noexcept {
    const auto taken = link.tls->write(vectors);
    if (link.tls->waiting()) watch(link, true);
    return taken;
}

/// Bytes that are the caller's again, if not the vectors; -1 for trouble, of which cause_of() knows.
ssize_t Rail::send(Link& link, std::span<iovec> vectors) noexcept {
    if (link.tls != nullptr) return encrypt(link, vectors);
    const int socket = link.socket.get();
    if (!link.slow) return send_vectors(socket, vectors.data(), vectors.size());
    if (!link.portions.known()) link.portions = Portions(portion_of(socket));
    return send_portions(socket, vectors, link.portions);
}

std::size_t Rail::write(Link& link, std::span<const Work> works) noexcept {
    const LinkId id = link.id;
    std::size_t accepted = 0;
    while (accepted < works.size() && !link.wants_write && link.undone < tx_depth) {
        link.slow = works[accepted].slow;
        const auto most = std::min<std::size_t>({works.size() - accepted, burst, std::size_t{tx_depth} - link.undone});
        std::size_t vectors = 0;
        std::size_t bytes = 0;
        const auto some = works.subspan(accepted, gather(works.subspan(accepted, most), vectors, bytes));
        const auto sent = send(link, {vectors_.data(), vectors});
        if (sent < 0) {
            kill(link, cause_of(link));
            for (; accepted < works.size(); ++accepted) {
                if (!works[accepted].quiet) events_.done(id, works[accepted].cookie, WorkStatus::link_lost);
            }
            return accepted;
        }
        if (sent > 0) link.early_acks.sent();
        if (!link.same_host) sent_outside_ += static_cast<std::size_t>(sent);
        auto left = static_cast<std::size_t>(sent);
        for (const auto& work : some) {
            const auto size = left == bytes ? 0 : stream_bytes(work);  // all of it gone: no need to count
            if (left < bytes && left < size) {
                keep_partial(link, work, left);
                ++accepted;
                break;
            }
            left -= size;
            bytes -= size;
            ++accepted;
            if (work.quiet) continue;
            ++link.undone;
            events_.done(id, work.cookie, WorkStatus::ok);
        }
    }
    if (sent_outside_ >= next_check_) check_counters();
    refused_ = refused_ || accepted < works.size();
    return accepted;
}

std::size_t Rail::gather(std::span<const Work> works, std::size_t& vectors, std::size_t& bytes) noexcept {
    std::byte* at = gathered_.data();
    const auto add = [&](void* data, std::size_t size) {
        if (size == 0) return;
        if (vectors > 0) {
            auto& last = vectors_[vectors - 1];
            if (static_cast<std::byte*>(last.iov_base) + last.iov_len == data) {
                last.iov_len += size;
                return;
            }
        }
        vectors_[vectors++] = {data, size};
    };
    std::size_t count = 0;
    for (const auto& work : works) {
        if (vectors + work.segments.size() + 1 > vectors_.size()) break;
        const auto payload = payload_of(work);
        const auto header = write_header(at, work, static_cast<std::uint32_t>(payload));
        bytes += header + payload;
        ++count;
        if (header + payload <= small_work) {
            auto* to = at + header;
            for (const auto& segment : work.segments) {
                if (segment.size > 0) std::memcpy(to, segment.data, segment.size);
                to += segment.size;
            }
            add(at, header + payload);
            at = to;
            continue;
        }
        add(at, header);
        at += header;
        for (const auto& segment : work.segments) add(segment.data, segment.size);
    }
    return count;
}

void Rail::keep_partial(Link& link, const Work& work, std::size_t written) noexcept {
    auto& partial = link.partial;
    const auto payload = payload_of(work);
    const auto header = write_header(partial.header.data(), work, static_cast<std::uint32_t>(payload));
    partial.cookie = work.cookie;
    partial.left = header + payload;
    partial.at = 0;
    partial.count = 0;
    partial.pieces[partial.count++] = {partial.header.data(), header};
    for (const auto& segment : work.segments) {
        if (segment.size > 0) partial.pieces[partial.count++] = {segment.data, segment.size};
    }
    partial.advance(written);
    partial.quiet = work.quiet;
    work.quiet ? partial.keep() : static_cast<void>(++link.undone);
    watch(link, true);
}

void Rail::write_partial(Link& link) noexcept {
    auto& partial = link.partial;
    if (link.tls != nullptr && !link.tls->flush()) {
        kill(link, cause_of(link));
        return;
    }
    if (link.tls != nullptr && link.tls->waiting()) return;
    if (partial.left > 0) {
        const auto pieces = std::span(partial.pieces).first(partial.count).subspan(partial.at);
        const auto sent = send(link, {vectors_.begin(), std::ranges::copy(pieces, vectors_.begin()).out});
        if (sent < 0) {
            kill(link, cause_of(link));
            return;
        }
        if (!link.same_host) sent_outside_ += static_cast<std::size_t>(sent);
        partial.advance(static_cast<std::size_t>(sent));
        if (partial.left > 0) return;
        if (!partial.quiet) events_.done(link.id, partial.cookie, WorkStatus::ok);
    }
    if (link.tls != nullptr && link.tls->waiting()) return;
    watch(link, false);
    room_ = room_ || std::exchange(refused_, false);
}

}  // namespace railmux::transports::tcp
