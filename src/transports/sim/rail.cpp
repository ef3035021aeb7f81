#include "transports/sim/rail.hpp"

#include <algorithm>
#include <utility>

#include "base/bytes.hpp"

namespace railmux::transports::sim {

namespace {

constexpr std::uint32_t address_tag = 0x314d4953;  // "SIM1"

struct Address {
    std::uint64_t fabric = 0;
    std::uint32_t device = 0;
    std::uint32_t incarnation = 0;
};

std::vector<std::byte> write_address(const Address& address) {
    base::Writer writer;
    writer.write(address_tag).write(address.fabric).write(address.device).write(address.incarnation);
    return std::move(writer).take();
}

std::optional<Address> parse_address(std::span<const std::byte> bytes) {
    base::Reader reader(bytes);
    const auto tag = reader.read<std::uint32_t>();
    Address address;
    address.fabric = reader.read<std::uint64_t>();
    address.device = reader.read<std::uint32_t>();
    address.incarnation = reader.read<std::uint32_t>();
    if (!reader.done() || tag != address_tag) return std::nullopt;
    return address;
}

RailTraits traits_of(const Device& device) {
    const auto& options = device.options;
    RailTraits traits;
    traits.name = "sim:" + options.device;
    traits.identity = device.name + " on " + options.network;
    traits.max_frame = options.max_frame;
    traits.max_hello = options.max_hello;
    traits.max_reply = options.max_reply;
    traits.max_segments = options.max_segments;
    traits.tx_depth = options.tx_depth;
    traits.max_put = options.put || options.get ? options.max_put : 0;
    traits.put = options.put;
    traits.get = options.get;
    traits.notify = options.notify;
    traits.ordered = options.ordered;
    traits.done_is_delivered = options.done_is_delivered;
    traits.bad_put_ends_link = options.bad_put_ends_link;
    traits.by_processors = options.by_processors;
    traits.comes_back = true;
    traits.keepalive = options.keepalive || options.confirms;
    traits.numa_node = options.numa_node;
    traits.speed_bps = options.speed_bps;
    return traits;
}

}  // namespace

SimRail::SimRail(Core& core, std::uint32_t device) : core_(core), device_(device) {
    auto& own = core_.device(device);
    traits_ = traits_of(own);
    own.rail = this;
    ++own.incarnation;
    address_ = write_address({core_.seed(), device, own.incarnation});
}

SimRail::~SimRail() {
    for (const auto id : links_.ids()) say_goodbye(id, *links_.find(id), "the other side closed its rail");
    for (const auto& pending : pending_) {
        if (pending.flight != no_flight) core_.land(pending.flight);
    }
    core_.device(device_).rail = nullptr;
}

// --- Links -----------------------------------------------------------------------------------------------------------

Reachability SimRail::reach(std::span<const std::byte> address) const {
    const auto to = parse_address(address);
    if (!to) return {Reach::never, "not an address of a sim rail"};
    if (to->fabric != core_.seed() || to->device >= core_.devices().size()) return {Reach::never, "another fabric"};
    const auto& own = core_.device(device_).options.network;
    const auto& other = core_.device(to->device).options.network;
    if (own != other) return {Reach::never, "not on network " + own + " but on " + other};
    return {Reach::direct, "same network " + own};
}

LinkId SimRail::connect(std::span<const std::byte> address, std::span<const std::byte> hello) {
    const auto id = links_.add({});
    const auto reachability = reach(address);
    if (reachability.reach == Reach::never) return fail_connect(id, reachability.why);
    if (down_) return fail_connect(id, "rail down");
    if (hello.size() > traits_.max_hello) return fail_connect(id, "hello too long");
    const auto to = *parse_address(address);
    auto& link = *links_.find(id);
    link.peer = {to.device, to.incarnation, {}};
    if (const auto cut = core_.cut_between(device_, to.device)) {
        link.silent = true;
        return *cut == Cut::loud ? fail_connect(id, "the path is cut") : id;
    }
    const auto flight = core_.new_flight(FlightKind::connect, own_end(id), link.peer);
    core_.flight(flight).bytes.assign(hello.begin(), hello.end());
    core_.launch_control(flight);
    return id;
}

LinkId SimRail::fail_connect(LinkId link, std::string text) {
    end_link(link, std::move(text));
    return link;
}

void SimRail::accept(LinkId id, std::span<const std::byte> reply) {
    auto* link = links_.find(id);
    if (link == nullptr || link->state != State::requested) return;
    link->state = State::up;
    push({.kind = EventKind::link_up, .link = id});
    if (link->silent) return;
    const auto flight = core_.new_flight(FlightKind::accepted, own_end(id), link->peer);
    core_.flight(flight).bytes.assign(reply.begin(), reply.end());
    core_.launch_control(flight);
    link->floor = link->latest = core_.flight(flight).due;
}

void SimRail::refuse(LinkId id, std::span<const std::byte> reply) {
    const auto* link = links_.find(id);
    if (link == nullptr || link->state != State::requested) return;
    if (!link->silent) {
        const auto flight = core_.new_flight(FlightKind::refused, own_end(id), link->peer);
        core_.flight(flight).bytes.assign(reply.begin(), reply.end());
        core_.launch_control(flight);
    }
    end_link(id, "refused here");
}

void SimRail::disconnect(LinkId id) {
    const auto* link = links_.find(id);
    if (link == nullptr) return;
    say_goodbye(id, *link, "closed by the other side");
    end_link(id, "closed here");
}

std::string SimRail::describe(LinkId id) const {
    const auto* link = links_.find(id);
    const auto& own = core_.device(device_).name;
    return link == nullptr ? own + " - (no link)" : own + " - " + core_.device(link->peer.device).name;
}

/// As if confirmations came back with no delay, whatever the other side's process does; and what is lost were asked for again
/// at each look.
Pulse SimRail::pulse(LinkId id) noexcept {
    auto* link = links_.find(id);
    if (link == nullptr || !core_.device(device_).options.confirms) return {};
    ++link->looks;
    if (link->silent)
        return {.known = true, .outstanding = link->unheard, .received = link->received, .asked = link->looks};
    const bool arrived = link->latest <= core_.ticks();
    return {.known = true,
            .outstanding = link->outstanding > 0 || !arrived,
            .heard = link->looks,
            .received = link->received};
}

void SimRail::cut_from(std::uint32_t device, Cut how) {
    for (const auto id : links_.ids()) {
        auto& link = *links_.find(id);
        if (link.peer.device != device) continue;
        link.silent = true;
        if (how == Cut::loud) end_link(id, "the path is cut");
    }
}

void SimRail::go_down(std::string_view cause) {
    if (down_) return;
    down_ = true;
    for (const auto id : links_.ids()) end_link(id, "rail down: " + std::string(cause));
    push({.kind = EventKind::rail_down}, no_flight, std::string(cause));
}

void SimRail::come_up() {
    if (std::exchange(down_, false)) push({.kind = EventKind::rail_up});
}

void SimRail::tell_of_devices() { push({.kind = EventKind::devices_changed}); }

End SimRail::own_end(LinkId link) const noexcept { return {device_, core_.device(device_).incarnation, link}; }

/// Behind everything in flight. A connecting link has nobody to tell yet: its acceptor learns when its answer comes.
void SimRail::say_goodbye(LinkId id, const Link& link, std::string_view cause) {
    if (link.state == State::connecting || link.silent) return;
    const auto flight = core_.new_flight(FlightKind::goodbye, own_end(id), link.peer);
    core_.flight(flight).cause = cause;
    core_.launch_control(flight, link.latest);
}

void SimRail::end_link(LinkId id, std::string text, FlightNumber reply) {
    for (auto& sending : queue_) {
        if (sending.link != id || sending.settled) continue;
        sending.settled = true;
        if (!sending.answer) push_done(id, sending.cookie, WorkStatus::link_lost);
    }
    for (auto& wait : waits_) {
        if (!wait.used || wait.link != id) continue;
        wait.used = false;
        push_done(id, wait.cookie, WorkStatus::link_lost);
    }
    push({.kind = EventKind::link_down, .link = id}, reply, std::move(text));
    links_.release(id);
}

// --- Regions and events ----------------------------------------------------------------------------------------------

base::Result<Region> SimRail::add_region(std::span<std::byte> memory, Access access) {
    if (memory.size() > core_.device(device_).options.max_region) {
        return Error(ErrorCode::out_of_memory, "a region is too large", "raise RailOptions::max_region");
    }
    return regions_.add(memory, access);
}

void SimRail::push(const Event& event, FlightNumber flight, std::string text) {
    pending_.push_back({event, flight, std::move(text)});
}

void SimRail::push_done(LinkId link, std::uint64_t cookie, WorkStatus status) {
    push({.kind = EventKind::done, .status = status, .link = link, .cookie = cookie});
}

std::size_t SimRail::poll(std::span<Event> events) noexcept {
    core_.settle();
    for (; lent_ > 0; --lent_) {
        if (pending_.front().flight != no_flight) core_.land(pending_.front().flight);
        pending_.pop_front();
    }
    std::size_t count = 0;
    for (; count < events.size() && !lost_.empty(); lost_.pop_front()) {
        const auto& lost = lost_.front();
        events[count++] = {.status = WorkStatus::link_lost, .link = lost.link, .cookie = lost.cookie};
    }
    lent_ = std::min(events.size() - count, pending_.size());
    for (std::size_t i = 0; i < lent_; ++i) hand_out(pending_[i], events[count++]);
    return count;
}

void SimRail::hand_out(Pending& pending, Event& event) {
    event = pending.event;
    event.text = pending.text;
    if (pending.flight != no_flight) event.data = core_.flight(pending.flight).bytes;
    if (event.kind == EventKind::done) {
        if (auto* link = links_.find(event.link)) --link->outstanding;
    } else if (event.kind == EventKind::received) {
        const auto& flight = core_.flight(pending.flight);
        auto& cpu_free = core_.host(device_).cpu_free;
        const auto late = core_.ticks() - flight.due;
        if (late > 0) cpu_free = std::max(cpu_free, core_.ticks()) + std::min(late, flight.o_r);
    }
}

}  // namespace railmux::transports::sim
