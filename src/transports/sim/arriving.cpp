// SimRail, the way in: what arrives becomes events, bytes in regions, and answers.
#include <algorithm>
#include <cstring>

#include "transports/sim/rail.hpp"

namespace railmux::transports::sim {

void SimRail::arrive(FlightNumber number) {
    const auto& flight = core_.flight(number);
    if (flight.kind == FlightKind::connect) return arrive_connect(number);
    if (flight.kind == FlightKind::accepted) return arrive_accepted(number);
    const auto id = flight.to.link;
    auto* link = links_.find(id);
    if (link == nullptr || link->silent) return core_.land(number);
    if (flight.kind == FlightKind::frame || flight.kind == FlightKind::put) ++link->received;
    switch (flight.kind) {
        case FlightKind::refused: return end_link(id, "refused by the other side", number);
        case FlightKind::frame:
            acknowledge(flight, WorkStatus::ok);
            return push({.kind = EventKind::received, .link = id}, number);
        case FlightKind::put: arrive_put(number); break;
        case FlightKind::get: arrive_get(number); break;
        case FlightKind::get_reply:
        case FlightKind::ack: arrive_answer(number); break;
        case FlightKind::goodbye: end_link(id, std::string(flight.cause)); break;
        default: break;
    }
    core_.land(number);
}

void SimRail::arrive_connect(FlightNumber number) {
    const auto& flight = core_.flight(number);
    if (down_) {
        const auto answer = core_.new_flight(FlightKind::goodbye, own_end({}), flight.from);
        core_.flight(answer).cause = "the other side's rail is down";
        core_.launch_control(answer);
        return core_.land(number);
    }
    const auto id = links_.add({.state = State::requested, .peer = flight.from});
    push({.kind = EventKind::connect_request, .link = id}, number);
}

void SimRail::arrive_accepted(FlightNumber number) {
    const auto& flight = core_.flight(number);
    auto* link = links_.find(flight.to.link);
    if (link == nullptr) {  // given up here before the answer came
        const auto answer = core_.new_flight(FlightKind::goodbye, flight.to, flight.from);
        core_.flight(answer).cause = "closed by the other side";
        core_.launch_control(answer);
    } else if (!link->silent) {
        link->state = State::up;
        link->peer = flight.from;
        return push({.kind = EventKind::link_up, .link = flight.to.link}, number);
    }
    core_.land(number);
}

void SimRail::arrive_put(FlightNumber number) {
    const auto& flight = core_.flight(number);
    const auto to = regions_.find(flight.key, flight.offset, flight.bytes.size(), Access::remote_write);
    if (to) {
        if (!to->empty()) std::memcpy(to->data(), flight.bytes.data(), to->size());
        if (flight.notify) push({.kind = EventKind::notified, .immediate = flight.immediate, .link = flight.to.link});
    } else {
        ++core_.device(device_).counters.discarded;
        if (traits_.bad_put_ends_link) return refuse_put(flight);
    }
    acknowledge(flight, WorkStatus::ok);
}

/// As an RDMA device does.
void SimRail::refuse_put(const Flight& flight) {
    const auto id = flight.to.link;
    acknowledge(flight, WorkStatus::access_denied);
    say_goodbye(id, *links_.find(id), "a put to where none is allowed");
    end_link(id, "the other side put where it must not");
}

/// Tells a sender that waits for it that its bytes are here.
void SimRail::acknowledge(const Flight& flight, WorkStatus status) {
    if (!core_.device(flight.from.device).options.done_is_delivered) return;
    auto& link = *links_.find(flight.to.link);
    const auto& timing = core_.device(device_).timing(flight.from.device);
    const auto wait = flight.wait;
    const auto number = core_.new_flight(FlightKind::ack, flight.to, flight.from);
    core_.flight(number).wait = wait;
    core_.flight(number).status = status;
    const auto due = std::max(core_.ticks() + to_ticks(timing.range(1).L), link.floor);
    link.latest = std::max(link.latest, due);
    core_.launch(number, due);
}

void SimRail::arrive_get(FlightNumber number) {
    const auto& flight = core_.flight(number);
    auto& answer = queue_.emplace_back();
    answer.op = Op::get;
    answer.answer = true;
    answer.link = flight.to.link;
    answer.key = flight.key;
    answer.offset = flight.offset;
    answer.segments.bytes = flight.size;
    answer.wait = flight.wait;
    answer.ready = core_.ticks();
    if (!serving_) start_next(free_at_);
}

void SimRail::arrive_answer(FlightNumber number) {
    const auto& flight = core_.flight(number);
    auto* wait = find_wait(flight.wait, flight.to.link);
    if (wait == nullptr) return;
    wait->used = false;
    if (flight.kind == FlightKind::get_reply && flight.status == WorkStatus::ok) {
        const auto* from = flight.bytes.data();
        for (std::uint32_t i = 0; i < wait->segments.count; ++i) {
            const auto& segment = wait->segments.list[i];
            if (segment.size != 0) std::memcpy(segment.data, from, segment.size);
            from += segment.size;
        }
    }
    push_done(flight.to.link, wait->cookie, flight.status);
}

}  // namespace railmux::transports::sim
