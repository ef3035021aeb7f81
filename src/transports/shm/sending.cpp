// shm::Rail: from post() to the ring.
#include <sys/eventfd.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "transports/posting.hpp"
#include "transports/shm/rail.hpp"
#include "transports/shm/waking.hpp"

namespace railmux::transports::shm {

// --- Source ----------------------------------------------------------------------------------------------------------

void Source::copy(std::byte* to, std::size_t bytes) noexcept {
    left_ -= bytes;
    while (bytes > 0) {
        const auto& segment = segments_.front();
        const auto part = std::min(bytes, segment.size - used_);
        base::copy(to, segment.data + used_, part);
        to += part;
        bytes -= part;
        used_ += part;
        if (used_ < segment.size) return;
        segments_ = segments_.subspan(1);
        used_ = 0;
    }
}

std::span<std::byte> Source::front(std::size_t most) noexcept {
    while (!segments_.empty() && used_ == segments_.front().size) {
        segments_ = segments_.subspan(1);
        used_ = 0;
    }
    if (segments_.empty()) return {};
    const auto& segment = segments_.front();
    return {segment.data + used_, std::min(most, segment.size - used_)};
}

void Source::skip(std::size_t bytes) noexcept {
    left_ -= bytes;
    used_ += bytes;
}

Source Source::in(std::span<Segment> kept) const noexcept {
    std::copy(segments_.begin(), segments_.end(), kept.begin());
    Source same = *this;
    same.segments_ = kept.first(segments_.size());
    return same;
}

// --- Posting ---------------------------------------------------------------------------------------------------------

std::size_t Rail::post(std::span<const Work> works) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    return post_runs(works, links_, events_,
                     [this](Link& link, std::span<const Work> run) { return write(link, run); });
}

/// Nothing in here calls anything, but at its end what is rare.
bool Rail::send_short(LinkId id, std::span<std::byte> frame, bool /*slow*/) noexcept {
    if (frame.size() > body_bytes) [[unlikely]]
        return send_piece(id, frame);
    Link* const link = links_.find(id, LinkPhase::up);
    const bool free = link != nullptr && link->partial.source.left() == 0;
    auto* const to = free && link->undone < tx_depth ? link->writer.room() : nullptr;
    if (to == nullptr) [[unlikely]]
        return send_as_work(id, frame);  // which finds out why
    [[maybe_unused]] const auto scope = guard_.enter();
    base::copy_short(to, frame.data(), frame.size());
    link->writer.publish(Kind::frame, static_cast<std::uint32_t>(frame.size()), 0, 0);
    if (link->writer.written() - link->written_before >= least_burst) link->writer.prepare_burst();
    link->refused = false;
    if (must_wake(*link->theirs, Sleep::until_news)) [[unlikely]]
        return ring_bell(*link);
    return true;
}

/// A frame that is one piece.
bool Rail::send_piece(LinkId id, std::span<std::byte> frame) noexcept {
    assert(frame.size() <= most_piece);
    const auto bytes = static_cast<std::uint32_t>(frame.size());
    Link* const link = links_.find(id, LinkPhase::up);
    const bool free = link != nullptr && link->partial.source.left() == 0 && link->undone < tx_depth;
    auto* const to = free && link->writer.room() != nullptr ? link->writer.next_data(bytes) : nullptr;
    if (to == nullptr) [[unlikely]]
        return send_as_work(id, frame);
    [[maybe_unused]] const auto scope = guard_.enter();
    link->writer.prepare_slot();  // it comes over meanwhile
    base::copy(to, frame.data(), frame.size());
    link->writer.publish(Kind::piece, bytes, flag_last, bytes);
    link->refused = false;
    wake(*link, Sleep::until_news);
    link->writer.prepare(bytes);
    return true;
}

bool Rail::send_as_work(LinkId id, std::span<std::byte> frame) noexcept {
    return transports::Rail::send_short(id, frame, false);
}

std::size_t Rail::write(Link& link, std::span<const Work> works) noexcept {
    std::size_t accepted = 0;
    link.refused = false;
    const auto before = link.writer.written();
    while (accepted < works.size() && write_one(link, works[accepted])) ++accepted;
    if (link.writer.broken()) {
        kill(link, "it wrote nonsense into the shared memory");
        for (; accepted < works.size(); ++accepted) {
            if (!works[accepted].quiet) events_.done(link.id, works[accepted].cookie, WorkStatus::link_lost);
        }
        return accepted;
    }
    if (link.writer.written() != before) wake(link, Sleep::until_news);
    if (accepted < works.size()) {
        link.refused = true;
        link.refused_at = link.writer.taken();
    }
    // What needs further polls came after arm() had said what we wait for: whoever sleeps on us is to poll, and to arm again.
    if (armed_ && link.waits_for_room()) [[unlikely]]
        static_cast<void>(::eventfd_write(bell_.get(), 1));
    return accepted;
}

bool Rail::write_one(Link& link, const Work& work) noexcept {
    assert(!work.quiet || (work.op == Op::send && payload_of(work) <= most_piece));
    if (link.undone == tx_depth || link.partial.source.left() > 0) return false;
    if (work.op == Op::send && work.segments.size() == 1 && work.segments[0].size <= body_bytes) [[likely]]
        return write_small(link, work, work.segments[0].size);
    if (work.op == Op::get) return write_get(link, work);
    const Source source(work.segments);
    if (work.op == Op::send && source.left() <= body_bytes) return write_small(link, work, source.left());
    const bool fetch = work.op == Op::put && is_fetched(link, source.left());
    return fetch ? write_fetches(link, work, source.left()) : write_pieces(link, work, source);
}

bool Rail::may_fetch(const Link& link) const noexcept {
    return traits_.get && link.theirs->can_fetch.load(std::memory_order_relaxed) == 1;
}

/// By what the other side has found, or else by what is usual.
bool Rail::fetch_pays(Link& link, std::uint64_t bytes) const noexcept {
    const auto told = bulk_.judge ? link.theirs->fetch_from.load(std::memory_order_relaxed) : 0;
    constexpr auto never = ~std::uint32_t{0};
    return told == 0 ? bytes >= bulk_.fetch_from : told != never && bytes >= told;
}

bool Rail::try_other_way(Link& link, std::uint64_t bytes) const noexcept {
    return bulk_.judge && bytes >= least_timed &&
           link.trying.other_way(link.theirs->fetch_from.load(std::memory_order_relaxed) != 0,
                                 link.theirs->try_apart.load(std::memory_order_relaxed), bytes, &base::now_ns);
}

/// Whether a put of so many bytes is fetched by the other side.
bool Rail::is_fetched(Link& link, std::uint64_t bytes) const noexcept {
    if (bytes < least_fetch || !may_fetch(link)) return false;
    if (bytes >= least_timed && std::exchange(link.by_ring, false)) return false;
    return fetch_pays(link, bytes) != try_other_way(link, bytes);
}

/// A message has one way: what is not offered is put by way of the ring, without being judged, and counted, a second time.
bool Rail::prefers_get(LinkId id, std::uint64_t bytes) noexcept {
    Link* link = links_.find(id, LinkPhase::up);
    if (link == nullptr || bytes < least_fetch || !may_fetch(*link)) return false;
    const bool get = fetch_pays(*link, bytes) != try_other_way(*link, bytes);
    link->by_ring = bytes >= least_timed && !get;
    return get;
}

bool Rail::write_small(Link& link, const Work& work, std::size_t bytes) noexcept {
    auto* to = link.writer.next_body();
    if (to == nullptr) return false;
    for (const auto& segment : work.segments) {
        base::copy_short(to, segment.data, segment.size);
        to += segment.size;
    }
    link.writer.publish(Kind::frame, static_cast<std::uint32_t>(bytes), 0, 0);
    if (!work.quiet) done(link, work.cookie);
    return true;
}

void Rail::done(Link& link, std::uint64_t cookie) noexcept {
    ++link.undone;
    events_.done(link.id, cookie, WorkStatus::ok);
}

/// One slot for each segment; the receiver fetches the bytes.
bool Rail::write_fetches(Link& link, const Work& work, std::size_t bytes) noexcept {
    const auto some = [](const Segment& segment) { return segment.size > 0; };
    const auto count = static_cast<std::uint32_t>(std::count_if(work.segments.begin(), work.segments.end(), some));
    if (link.fetched.full() || !link.writer.has_room(count)) return false;
    FetchHead head{.put = {work.remote.id, work.remote.secret, work.offset, bytes, work.immediate}};
    for (const auto& segment : work.segments) {
        if (segment.size == 0) continue;
        head.address = reinterpret_cast<std::uintptr_t>(segment.data);
        head.bytes = segment.size;
        std::memcpy(link.writer.next_body(), &head, sizeof head);
        const bool last = segment.size == head.put.left;
        const auto flags = last ? (work.notify ? flag_last | flag_notify : flag_last) : 0;
        link.writer.publish(Kind::fetch, 0, static_cast<std::uint8_t>(flags), 0);
        head.put.offset += segment.size;
        head.put.left -= segment.size;
    }
    link.fetched.push({work.cookie, link.writer.written()});
    link.restless = true;
    ++link.undone;
    return true;
}

/// Takes the work if the ring takes the first of it; the rest follows in poll.
bool Rail::write_pieces(Link& link, const Work& work, const Source& source) noexcept {
    PutHead put{work.remote.id, work.remote.secret, work.offset, source.left(), work.immediate};
    Source rest = source;
    const auto before = link.writer.written();
    push_pieces(link, work.op, work.notify, put, rest);
    if (link.writer.written() == before) return false;
    if (rest.left() == 0) {  // as of all that are quiet: they are one piece
        if (!work.quiet) done(link, work.cookie);
        return true;
    }
    auto& partial = link.partial;
    partial.op = work.op;
    partial.notify = work.notify;
    partial.cookie = work.cookie;
    partial.put = put;
    partial.source = rest.in(partial.segments);
    link.restless = true;
    ++link.undone;
    return true;
}

/// As many as the ring takes: at least one, of a put that may be empty.
void Rail::push_pieces(Link& link, Op op, bool notify, PutHead& put, Source& source) noexcept {
    do {
        const auto most = op == Op::put ? most_put_piece : most_piece;
        const auto bytes = static_cast<std::uint32_t>(std::min<std::size_t>(source.left(), most));
        auto* const body = link.writer.next_body();
        if (body == nullptr) return;
        auto* const to = bytes > 0 ? link.writer.next_data(bytes) : body;
        if (to == nullptr) return;
        if (op == Op::put) std::memcpy(body, &put, sizeof put);
        source.copy(to, bytes);
        put.offset += bytes;
        put.left -= bytes;
        const bool last = source.left() == 0;
        const auto flags = last ? (notify ? flag_last | flag_notify : flag_last) : 0;
        link.writer.publish(op == Op::put ? Kind::put : Kind::piece, bytes, static_cast<std::uint8_t>(flags), bytes);
    } while (source.left() > 0);
}

void Rail::push_partial(Link& link) noexcept {
    auto& partial = link.partial;
    const auto before = link.writer.written();
    push_pieces(link, partial.op, partial.notify, partial.put, partial.source);
    if (link.writer.written() == before) return;
    moved_ = true;
    if (partial.source.left() == 0) events_.done(link.id, partial.cookie, WorkStatus::ok);
    wake(link, Sleep::until_news);
}

/// Those whose slots have been taken.
void Rail::end_fetched(Link& link) noexcept {
    if (!link.writer.look()) return;
    while (!link.fetched.empty() &&
           static_cast<std::int32_t>(link.writer.taken() - link.fetched.front().last_slot) >= 0) {
        events_.done(link.id, link.fetched.front().cookie, WorkStatus::ok);
        link.fetched.pop();
    }
}

void Rail::wake(Link& link, Sleep what) noexcept {
    if (must_wake(*link.theirs, what)) [[unlikely]]
        ring_bell(link);
}

bool Rail::ring_bell(Link& link) noexcept {
    static_cast<void>(::eventfd_write(link.bell.get(), 1));  // full: it is readable already
    return true;
}

}  // namespace railmux::transports::shm
