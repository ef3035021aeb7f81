// SimRail, the way out: from post to what is in flight.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "transports/sim/rail.hpp"

namespace railmux::transports::sim {

std::size_t SimRail::post(std::span<const Work> works) noexcept {
    for (std::size_t i = 0; i < works.size(); ++i) {
        auto* link = links_.find(works[i].link);
        if (link == nullptr || link->state != State::up) {
            lost_.push_back({works[i].link, works[i].cookie});
            continue;
        }
        if (link->outstanding == traits_.tx_depth) return i;
        enqueue(works[i], *link);
    }
    return works.size();
}

void SimRail::enqueue(const Work& work, Link& link) {
    assert(work.segments.size() <= traits_.max_segments);
    auto& sending = queue_.emplace_back();
    sending.op = work.op;
    sending.notify = work.notify;
    sending.immediate = work.immediate;
    sending.link = work.link;
    sending.cookie = work.cookie;
    sending.key = work.remote;
    sending.offset = work.offset;
    for (const auto& segment : work.segments) {
        sending.segments.list[sending.segments.count++] = segment;
        sending.segments.bytes += segment.size;
    }
    assert(sending.segments.bytes <= (work.op == Op::send ? traits_.max_frame : traits_.max_put));
    ++link.outstanding;
    link.unheard = link.unheard || link.silent;

    const auto wire_bytes = work.op == Op::get ? 1 : sending.segments.bytes;
    const auto& timing = core_.device(device_).timing(link.peer.device);
    auto& cpu_free = core_.host(device_).cpu_free;
    sending.ready = std::max(core_.ticks(), cpu_free);
    cpu_free = sending.ready + timing.range(wire_bytes).o_s.of(wire_bytes);
    if (!serving_) start_next(free_at_);
}

/// The rail is free from `free_at` on: the next in the queue gets it. What died in the queue takes no time.
void SimRail::start_next(Ticks free_at) {
    while (!queue_.empty() && queue_.front().settled) queue_.pop_front();
    if (queue_.empty()) return;
    const auto& sending = queue_.front();
    const auto* link = links_.find(sending.link);  // there: a link's end settles what it has in the queue
    const auto& timing = core_.device(device_).timing(link->peer.device);
    const bool request = sending.op == Op::get && !sending.answer;
    const auto bytes = request ? 1 : sending.segments.bytes;
    const auto& range = timing.range(bytes);

    const auto start = std::max(free_at, sending.ready);
    const auto transfer = bucket_.pass(start, bytes, range, timing);
    free_at_ = start + to_ticks(range.g) + transfer;
    // Nobody's CPU is at work where a get is answered.
    deliver_ = start + (sending.answer ? 0 : range.o_s.of(bytes)) + to_ticks(range.L) +
               (request ? 0 : range.o_r.of(bytes)) + transfer + core_.noise(timing);
    serving_ = true;
    left_ = false;
    core_.schedule_sender(device_, std::min(free_at_, deliver_));
}

void SimRail::sender_event() {
    if (!left_) {
        left_ = true;
        leave(queue_.front());
        if (free_at_ > core_.ticks()) return core_.schedule_sender(device_, free_at_);
    }
    finish();
}

void SimRail::finish() {
    const auto& sending = queue_.front();
    if (!sending.settled && !sending.answer) push_done(sending.link, sending.cookie, WorkStatus::ok);
    queue_.pop_front();
    serving_ = false;
    start_next(free_at_);
}

/// The bytes leave the caller's buffers: from here on they are in flight.
void SimRail::leave(Sending& sending) {
    if (sending.settled) return;
    auto& link = *links_.find(sending.link);
    if (!sending.answer && (sending.op == Op::get || traits_.done_is_delivered)) {
        sending.wait = add_wait(sending);
        sending.settled = true;
    }
    if (link.silent) return;
    const auto kind = sending.op == Op::send  ? FlightKind::frame
                      : sending.op == Op::put ? FlightKind::put
                      : sending.answer        ? FlightKind::get_reply
                                              : FlightKind::get;
    const auto number = core_.new_flight(kind, own_end(sending.link), link.peer);
    fill(core_.flight(number), sending);
    const auto due = std::max(deliver_, traits_.ordered ? link.latest : link.floor);
    link.latest = std::max(link.latest, due);
    core_.launch(number, due);
}

void SimRail::fill(Flight& flight, Sending& sending) {
    auto& counters = core_.device(device_).counters;
    const auto bytes = sending.segments.bytes;
    flight.key = sending.key;
    flight.offset = sending.offset;
    flight.size = bytes;
    flight.wait = sending.wait;
    flight.notify = sending.notify;
    flight.immediate = sending.immediate;
    flight.o_r = core_.device(device_).timing(flight.to.device).range(bytes).o_r.of(bytes);
    if (sending.answer) {
        const auto from = regions_.find(sending.key, sending.offset, bytes, Access::remote_read);
        if (!from) {  // dropped since it was asked for
            flight.status = WorkStatus::access_denied;
            ++counters.discarded;
            return;
        }
        flight.bytes.assign(from->begin(), from->end());
        ++counters.gets;
        counters.get_bytes += bytes;
    } else if (sending.op != Op::get) {
        flight.bytes.resize(bytes);
        auto* to = flight.bytes.data();
        for (std::uint32_t i = 0; i < sending.segments.count; ++i) {
            const auto& segment = sending.segments.list[i];
            // Not as what may overlap: AddressSanitizer moves that byte by byte.
            if (segment.size > 0) std::memcpy(to, segment.data, segment.size);
            to += segment.size;
        }
        ++(sending.op == Op::send ? counters.frames : counters.puts);
        (sending.op == Op::send ? counters.frame_bytes : counters.put_bytes) += bytes;
    }
}

std::uint64_t SimRail::add_wait(const Sending& sending) {
    auto free = std::ranges::find(waits_, false, &Wait::used);
    if (free == waits_.end()) free = waits_.insert(free, Wait{});
    free->used = true;
    ++free->serial;
    free->link = sending.link;
    free->cookie = sending.cookie;
    free->segments = sending.segments;
    return std::uint64_t{free->serial} << 32 | static_cast<std::uint64_t>(free - waits_.begin());
}

SimRail::Wait* SimRail::find_wait(std::uint64_t number, LinkId link) noexcept {
    auto& wait = waits_[number & 0xffffffff];
    return wait.used && wait.serial == number >> 32 && wait.link == link ? &wait : nullptr;
}

}  // namespace railmux::transports::sim
