// verbs::Rail: from post() to the device.
#include <algorithm>
#include <cassert>

#include "base/bytes.hpp"
#include "transports/verbs/rail.hpp"

namespace railmux::transports::verbs {

namespace {

constexpr std::size_t slabs_at_once = 16;

/// Reads a gather list from its beginning, piece by piece.
class Gatherer {
public:
    explicit Gatherer(std::span<const Segment> segments) noexcept : segments_(segments) {}

    void read(std::byte* to, std::size_t bytes) noexcept {
        while (bytes > 0) {
            const auto& segment = segments_.front();
            const auto some = std::min(bytes, segment.size - at_);
            base::copy(to, segment.data + at_, some);
            to += some;
            bytes -= some;
            at_ += some;
            if (at_ < segment.size) continue;
            segments_ = segments_.subspan(1);
            at_ = 0;
        }
    }

private:
    std::span<const Segment> segments_;
    std::size_t at_ = 0;
};

struct Run {
    std::size_t segments = 0;
    std::size_t bytes = 0;
};

/// The segments at the beginning that are not registered.
Run unregistered(std::span<const Segment> segments) noexcept {
    Run run;
    for (; run.segments < segments.size() && segments[run.segments].region == 0; ++run.segments)
        run.bytes += segments[run.segments].size;
    return run;
}

constexpr std::size_t slabs_for(std::size_t bytes) noexcept { return (bytes + bulk_bytes - 1) / bulk_bytes; }

struct RequestCount {
    std::size_t registered = 0;
    std::size_t copied = 0;
};

RequestCount requests_for(const Work& put) noexcept {
    RequestCount count;
    for (auto rest = put.segments; !rest.empty();) {
        const auto run = unregistered(rest);
        count.copied += slabs_for(run.bytes);
        rest = rest.subspan(run.segments);
        if (rest.empty()) break;
        if (rest.front().size > 0) ++count.registered;
        rest = rest.subspan(1);
    }
    return count;
}

}  // namespace

std::size_t Rail::post(std::span<const Work> works) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    std::size_t posted = 0;
    while (posted < works.size()) {
        const auto id = works[posted].link;
        Link* link = links_.find(id);
        if (link == nullptr || link->phase != Phase::up) {
            if (!works[posted].quiet) events_.done(id, works[posted].cookie, WorkStatus::link_lost);
            ++posted;
            continue;
        }
        while (posted < works.size() && works[posted].link == id && link->phase == Phase::up &&
               add(*link, works[posted])) {
            ++posted;
        }
        if (chained_ > 0) flush(*link);
        if (posted < works.size() && works[posted].link == id && link->phase == Phase::up) break;
    }
    refused_ = refused_ || posted < works.size();
    return posted;
}

bool Rail::send_short(LinkId id, std::span<std::byte> frame, bool slow) noexcept {
    Link* const link = links_.find(id);
    if (link == nullptr || !has_room_for_short(*link, frame.size())) [[unlikely]]
        return transports::Rail::send_short(id, frame, slow);  // which finds out why, and where it fits in
    [[maybe_unused]] const auto scope = guard_.enter();
    short_piece_ = {reinterpret_cast<std::uint64_t>(frame.data()), static_cast<std::uint32_t>(frame.size()), 0};
    short_.wr_id = request_id(*link);
    short_.imm_data = htonl(std::exchange(link->owed, 0));
    link->request(link->next++) = {};
    --link->credits;
    ibv_send_wr* refused = nullptr;
    const int code = ibv_post_send(link->connection->qp, &short_, &refused);
    if (code != 0) [[unlikely]]
        refused_by_device(*link, code);  // which ends the link: it was taken all the same
    return true;
}

bool Rail::has_room_for_short(const Link& link, std::size_t bytes) const noexcept {
    return link.phase == Phase::up && bytes <= link.inlined && link.credits > 0 && chained_ == 0 &&
           link.on_their_way() < data_requests;
}

/// False where the link has no room for it now.
bool Rail::add(Link& link, const Work& work) noexcept {
    assert(!work.quiet || work.op == Op::send);
    if (!work.quiet && link.undone == tx_depth) return false;
    const auto bytes = payload_of(work);
    const bool added = work.op == Op::send  ? add_frame(link, work, bytes)
                       : work.op == Op::put ? add_put(link, work, bytes)
                                            : add_get(link, work, bytes);
    if (!added || work.quiet) return added;
    auto& last = link.request(link.next - 1);
    last.ends_work = true;
    last.cookie = work.cookie;
    ++link.undone;
    return true;
}

bool Rail::add_frame(Link& link, const Work& work, std::size_t bytes) noexcept {
    if (link.credits == 0 || link.on_their_way() >= data_requests) return false;
    if (chained_ == chain_length && !flush(link)) return false;
    const bool small = bytes <= link.inlined;
    if (!small && send_slabs_.free() == 0 && !grow(send_slabs_, slabs_at_once, 1)) return false;
    const auto slab = small ? no_slab : send_slabs_.take();
    auto* const place = small ? small_[chained_].data() : send_slabs_[slab].data;
    Gatherer(work.segments).read(place, bytes);
    auto& request = append(link, RequestKind::frame, place, bytes, small ? 0 : send_slabs_[slab].key);
    request.opcode = IBV_WR_SEND_WITH_IMM;
    request.imm_data = htonl(std::exchange(link.owed, 0));
    if (small && bytes > 0) request.send_flags |= IBV_SEND_INLINE;
    link.request(link.next - 1).slab = slab;
    --link.credits;
    return true;
}

/// Registered memory goes as it is, one work request a segment; what lies between is copied.
bool Rail::add_put(Link& link, const Work& work, std::size_t bytes) noexcept {
    const auto needed = requests_for(work);
    if (!has_room(link, needed.registered + needed.copied, needed.copied)) return false;
    const auto to = Regions::base_address(work.remote) + work.offset;
    if (bytes == 0) write(link, work.remote, to, nullptr, 0, 0);
    std::size_t at = 0;
    for (auto rest = work.segments; at < bytes;) {
        const auto run = unregistered(rest);
        Gatherer source(rest.first(run.segments));
        for (std::size_t left = run.bytes; left > 0;) {
            const auto some = std::min<std::size_t>(left, bulk_bytes);
            const auto slab = bulk_slabs_.take();
            source.read(bulk_slabs_[slab].data, some);
            write(link, work.remote, to + at, bulk_slabs_[slab].data, some, bulk_slabs_[slab].key);
            link.request(link.next - 1).slab = slab;
            at += some;
            left -= some;
        }
        rest = rest.subspan(run.segments);
        if (rest.empty()) break;
        const auto& segment = rest.front();
        if (segment.size > 0)
            write(link, work.remote, to + at, segment.data, segment.size, Regions::local_key(segment.region));
        at += segment.size;
        rest = rest.subspan(1);
    }
    return true;
}

/// Registered memory is read into as it is; for other memory each segment comes in pieces that are copied when they are here.
bool Rail::add_get(Link& link, const Work& work, std::size_t bytes) noexcept {
    std::size_t registered = 0, copied = 0;
    for (const auto& segment : work.segments) {
        if (segment.size == 0) continue;
        (segment.region != 0 ? registered : copied) += segment.region != 0 ? 1 : slabs_for(segment.size);
    }
    if (!has_room(link, registered + copied, copied)) return false;
    auto from = Regions::base_address(work.remote) + work.offset;
    if (bytes == 0) read(link, work.remote, from, nullptr, 0, 0);
    for (const auto& segment : work.segments) {
        if (segment.size > 0 && segment.region != 0) {
            read(link, work.remote, from, segment.data, segment.size, Regions::local_key(segment.region));
        }
        for (std::size_t at = 0; segment.region == 0 && at < segment.size; at += bulk_bytes) {
            const auto some = std::min<std::size_t>(segment.size - at, bulk_bytes);
            const auto slab = bulk_slabs_.take();
            read(link, work.remote, from + at, bulk_slabs_[slab].data, some, bulk_slabs_[slab].key);
            auto& request = link.request(link.next - 1);
            request.slab = slab;
            request.into = {segment.data + at, some};
        }
        from += segment.size;
    }
    return true;
}

/// Whether so many more requests fit in, with so many slabs for what is to be copied.
bool Rail::has_room(Link& link, std::size_t requests, std::size_t slabs) noexcept {
    const auto total = std::max<std::size_t>(1, requests);
    if (link.on_their_way() + total > data_requests) return false;
    if (bulk_slabs_.free() < slabs && !grow(bulk_slabs_, slabs, slabs)) return false;
    return chained_ + total <= chain_length || flush(link);
}

void Rail::read(Link& link, const RegionKey& remote, std::uint64_t from, std::byte* data, std::size_t bytes,
                std::uint32_t key) noexcept {
    auto& request = append(link, RequestKind::get, data, bytes, key);
    request.opcode = IBV_WR_RDMA_READ;
    request.wr.rdma.remote_addr = from;
    request.wr.rdma.rkey = Regions::device_key(remote);
}

void Rail::write(Link& link, const RegionKey& remote, std::uint64_t to, const std::byte* data, std::size_t bytes,
                 std::uint32_t key) noexcept {
    auto& request = append(link, RequestKind::put, data, bytes, key);
    request.opcode = IBV_WR_RDMA_WRITE;
    request.wr.rdma.remote_addr = to;
    request.wr.rdma.rkey = Regions::device_key(remote);
}

/// One more work request on the chain.
ibv_send_wr& Rail::append(Link& link, RequestKind kind, const std::byte* data, std::size_t bytes,
                          std::uint32_t key) noexcept {
    auto& request = chain_[chained_];
    pieces_[chained_] = {reinterpret_cast<std::uint64_t>(data), static_cast<std::uint32_t>(bytes), key};
    // Field by field: to clear all of it would write three times as many bytes, of which no work here uses any.
    request.wr_id = request_id(link);
    request.next = nullptr;
    request.sg_list = &pieces_[chained_];
    request.num_sge = bytes > 0 ? 1 : 0;
    request.opcode = IBV_WR_SEND_WITH_IMM;
    request.send_flags = 0;
    request.imm_data = 0;
    if (chained_ > 0) chain_[chained_ - 1].next = &request;
    link.request(link.next++) = {.kind = kind};
    ++chained_;
    return request;
}

/// Hands the chain to the device; its last request tells when all are over. A device that refuses ends the link: what was
/// counted as taken would never come back.
bool Rail::flush(Link& link) noexcept {
    if (chained_ == 0) return true;
    chain_[chained_ - 1].send_flags |= IBV_SEND_SIGNALED;
    chained_ = 0;
    ibv_send_wr* refused = nullptr;
    const int code = ibv_post_send(link.connection->qp, chain_.data(), &refused);
    if (code != 0) refused_by_device(link, code);
    return code == 0;
}

void Rail::refused_by_device(Link& link, int code) noexcept {
    if (link.phase == Phase::draining) return;  // end() sees to the rest
    link.cause = in_words(failure(traits_.name, "the device takes no work request", code));
    link.phase = Phase::draining;
    hang_up(link);
    finish(link);
}

bool Rail::grow(Slabs& slabs, std::size_t count, std::size_t needed) noexcept {
    if (&slabs == &bulk_slabs_ && slabs.total() + count > bulk_slabs_max) return false;
    const int code = slabs.grow(domain_.get(), count);
    if (code == 0) return true;
    // With none at all nothing would ever leave; with some it is only slower.
    if (slabs.total() < needed) {
        rail_gone(in_words(failure(traits_.name, "no memory to send from can be registered", code)));
    }
    return false;
}

void Rail::give_back(const Request& request) noexcept {
    if (request.slab == no_slab) return;
    (request.kind == RequestKind::frame ? send_slabs_ : bulk_slabs_).give(request.slab);
}

// --- Credits ---------------------------------------------------------------------------------------------------------

/// A frame of this link is over, and its buffer posted again.
void Rail::grant(Link& link) noexcept {
    --link.held;
    if (++link.owed >= credits_returned_at && !std::exchange(link.granting, true)) granting_.push_back(link.id);
}

/// Returns what no frame has taken along.
void Rail::grant_all() noexcept {
    std::erase_if(granting_, [&](LinkId id) {
        Link* link = links_.find(id);
        if (link == nullptr || link->phase != Phase::up || link->owed < credits_returned_at) {
            if (link != nullptr) link->granting = false;
            return true;
        }
        // The places behind data_requests are for these.
        if (link->on_their_way() >= data_requests + credit_messages) return false;
        auto& request = append(*link, RequestKind::credit, nullptr, 0, 0);
        request.imm_data = htonl(credit_only | std::exchange(link->owed, 0));
        link->granting = false;
        flush(*link);
        return true;
    });
}

}  // namespace railmux::transports::verbs
