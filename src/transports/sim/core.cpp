#include "transports/sim/core.hpp"

#include <algorithm>
#include <cmath>

#include "transports/sim/rail.hpp"

namespace railmux::transports::sim {

const Timing& Device::timing(std::uint32_t to) const {
    const auto own = towards.find(to);
    return own == towards.end() ? options.timing : own->second;
}

void Core::advance_to(base::Nanoseconds time) {
    const auto end = to_ticks(std::max(time, now_));
    while (!due_.empty() && due_.top().at <= end) {
        const auto next = due_.top();
        due_.pop();
        ticks_ = next.at;
        now_ = std::max(now_, to_ns(next.at));
        handle(next);
    }
    now_ = std::max(now_, time);
    ticks_ = to_ticks(now_);
}

std::optional<base::Nanoseconds> Core::next_event() const noexcept {
    if (due_.empty()) return std::nullopt;
    return std::max(now_, to_ns(due_.top().at));
}

void Core::handle(const Due& due) {
    if (due.flight != no_flight) {
        arrive(due.flight);
    } else if (is_open({due.device, due.incarnation, {}})) {
        devices_[due.device].rail->sender_event();
    }
}

void Core::arrive(FlightNumber number) {
    auto& flight = flights_[number];
    if (cut_between(flight.from.device, flight.to.device)) return land(number);
    if (is_open(flight.to)) return devices_[flight.to.device].rail->arrive(number);
    if (flight.kind == FlightKind::connect || flight.kind == FlightKind::accepted) {
        const auto answer = new_flight(FlightKind::goodbye, flight.to, flight.from);
        flights_[answer].cause = "no such rail at the other side";
        launch_control(answer);
    }
    land(number);
}

const Host* Core::find_host(std::string_view name) const noexcept {
    const auto host = std::ranges::find(hosts_, name, &Host::name);
    return host == hosts_.end() ? nullptr : &*host;
}

std::uint32_t Core::find(std::string_view rail) const {
    const auto device = std::ranges::find(devices_, rail, &Device::name);
    if (device == devices_.end()) {
        throw Error(ErrorCode::invalid_argument, "the fabric has no rail " + std::string(rail), "name it host/device");
    }
    return static_cast<std::uint32_t>(device - devices_.begin());
}

std::uint32_t Core::add(std::string_view host, const RailOptions& options) {
    auto name = std::string(host) + "/" + options.device;
    if (std::ranges::find(devices_, name, &Device::name) != devices_.end()) {
        throw Error(ErrorCode::invalid_argument, "the fabric has a rail " + name + " already");
    }
    if (options.max_segments == 0 || options.max_segments > max_gather || options.tx_depth == 0 ||
        options.timing.ranges.empty()) {
        throw Error(ErrorCode::invalid_argument, "rail " + name + " needs 1 to 8 segments, a depth and a timing");
    }
    if (find_host(host) == nullptr) hosts_.push_back({std::string(host)});
    auto& device = devices_.emplace_back();
    device.host = static_cast<std::uint32_t>(std::ranges::find(hosts_, host, &Host::name) - hosts_.begin());
    device.name = std::move(name);
    device.options = options;
    return static_cast<std::uint32_t>(devices_.size() - 1);
}

bool Core::is_open(const End& end) const noexcept {
    if (end.device >= devices_.size()) return false;
    const auto& device = devices_[end.device];
    return device.rail != nullptr && device.incarnation == end.incarnation;
}

void Core::cut(std::uint32_t a, std::uint32_t b, Cut how) {
    cuts_[std::minmax(a, b)] = how;
    if (auto* rail = devices_[a].rail) rail->cut_from(b, how);
    if (auto* rail = devices_[b].rail; rail != nullptr && a != b) rail->cut_from(a, how);
}

std::optional<Cut> Core::cut_between(std::uint32_t a, std::uint32_t b) const {
    const auto found = cuts_.find(std::minmax(a, b));
    return found == cuts_.end() ? std::nullopt : std::optional(found->second);
}

void Core::rail_down(std::uint32_t number, std::string_view cause) {
    auto& device = devices_[number];
    device.down = true;
    device.cause = cause;
    for (auto& other : devices_) {
        if (other.rail != nullptr && &other != &device) other.rail->cut_from(number, Cut::loud);
    }
    if (device.rail != nullptr) device.rail->go_down(device.cause);
}

FlightNumber Core::new_flight(FlightKind kind, const End& from, const End& to) {
    if (free_flights_.empty()) {
        free_flights_.push_back(static_cast<FlightNumber>(flights_.size()));
        flights_.emplace_back();
    }
    const auto number = free_flights_.back();
    free_flights_.pop_back();
    auto& flight = flights_[number];
    auto bytes = std::move(flight.bytes);
    bytes.clear();
    flight = Flight{.kind = kind, .from = from, .to = to, .bytes = std::move(bytes)};
    return number;
}

void Core::launch(FlightNumber number, Ticks due) {
    flights_[number].due = due;
    due_.push({due, next_order_++, number, 0, 0});
}

void Core::launch_control(FlightNumber number, Ticks not_before) {
    const auto& flight = flights_[number];
    const auto& range = devices_[flight.from.device].timing(flight.to.device).range(1);
    launch(number, std::max(not_before, ticks_ + range.o_s.of(1) + to_ticks(range.L) + range.o_r.of(1)));
}

void Core::schedule_sender(std::uint32_t device, Ticks at) {
    due_.push({at, next_order_++, no_flight, device, devices_[device].incarnation});
}

Ticks Core::noise(const Timing& timing) {
    if (timing.noise_mean_ns <= 0) return 0;
    const double uniform = static_cast<double>(random_() >> 11) * 0x1p-53;  // [0, 1), the same on every platform
    return to_ticks(-timing.noise_mean_ns * std::log1p(-uniform));
}

}  // namespace railmux::transports::sim
