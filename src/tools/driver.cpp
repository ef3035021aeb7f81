#include "tools/driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <railmux/error.hpp>

#include "base/crypto.hpp"
#include "tools/access.hpp"

namespace railmux::tools {
namespace {

// Rails of one host pair connect within a few milliseconds; those that do not are given up after connect.timeout, which
// is too long to wait for each time.
constexpr base::Nanoseconds settle_time = 100 * base::millisecond;

constexpr base::Nanoseconds measured_time = base::second / 2;
constexpr base::Nanoseconds calibration_time = 10 * base::millisecond;
constexpr std::uint64_t most_iterations = 1'000'000;
constexpr std::uint64_t most_samples = 4'000'000;  // 32 MB; more would not change a percentile
constexpr std::uint64_t warm_up_bytes = 32u << 20;

[[noreturn]] void wrong(const Order& order, std::string_view whose, const Reply& tally) {
    throw Error(ErrorCode::protocol,
                fmt::format("not all data arrived: {} received {} of {} messages, {} of {} bytes, {} of them wrong{}{}",
                            whose, tally.messages, order.count, tally.bytes, order.count * order.bytes, tally.faults,
                            tally.problem.empty() ? "" : "; first: ", tally.problem),
                "report this with the output of `railmux info`: railmux must never lose or change data");
}

void check_tally(const Order& order, std::string_view whose, const Reply& tally) {
    const bool complete = tally.messages == order.count && tally.bytes == order.count * order.bytes;
    if (!complete || tally.faults != 0) wrong(order, whose, tally);
}

bool both_ways(Direction direction, Action action) {
    return action == Action::pingpong || direction == Direction::both;
}

}  // namespace

Driver::Driver(Context& context, Peer server, Workspace& workspace)
    : context_(context), server_(server), workspace_(workspace) {
    for (const auto& rail : context_.rails()) {
        if (rail.usable && rail.transport != "self" && rail.kind != "loopback") between_hosts_.insert(rail.name);
    }
}

void Driver::settle() {
    const auto until = base::now_ns() + settle_time;
    do {
        static_cast<void>(run({.action = Action::pingpong, .check = Check::all, .bytes = 8, .count = 16}));
    } while (base::now_ns() < until);
}

Outcome Driver::measure(Order order, const Extent& extent) {
    order.count = warm_up(order, extent);
    if (order.action == Action::pingpong) order.count = (order.count + order.window - 1) / order.window * order.window;
    order.check = Check::stamps;
    return run(order, static_cast<base::Nanoseconds>(extent.pause) * base::microsecond);
}

// Returns how many iterations to measure.
std::uint64_t Driver::warm_up(Order order, const Extent& extent) {
    order.check = Check::all;
    order.count = extent.warm_up_given
                      ? extent.warm_up
                      : std::clamp<std::uint64_t>(warm_up_bytes / std::max<std::uint64_t>(order.bytes, 1),
                                                  std::min<std::uint64_t>(order.window, 4),
                                                  std::max<std::uint64_t>(100, 2 * order.window));
    base::Nanoseconds elapsed = order.count > 0 ? run(order).elapsed : 0;
    if (extent.iterations != 0) return extent.iterations;
    while (elapsed < calibration_time) {
        order.count = std::clamp<std::uint64_t>(4 * order.count, 1, most_iterations);
        elapsed = run(order).elapsed;
        if (order.count == most_iterations) break;
    }
    const auto fitting = static_cast<double>(order.count) * static_cast<double>(measured_time) /
                         static_cast<double>(std::max<base::Nanoseconds>(elapsed, 1));
    return std::clamp(static_cast<std::uint64_t>(fitting), std::max<std::uint64_t>(10, order.window), most_iterations);
}

Outcome Driver::run(Order order, base::Nanoseconds pause) {
    order.seed = base::random_u64();
    context_.send(server_, order_tag, encode(order));
    auto part = driver_part(context_, server_, order);
    part.pause = pause;
    prepare(part, workspace_.outgoing, workspace_.incoming);
    const bool timed = order.action == Action::pingpong || (one_sided(order.action) && order.window == 1);
    samples_.resize(timed ? std::min(order.count / order.window, most_samples) : 0);
    const auto ready = receive_reply();
    if (!ready.problem.empty()) {
        throw Error(ErrorCode::out_of_memory, fmt::format("{}: {}", context_.name(server_), ready.problem),
                    "measure smaller messages (--sizes), or fewer at a time (--window)");
    }

    const auto before = traffic(order.direction, order.action);
    if (order.action == Action::stream) context_.send(server_, go_tag, {});
    Reply tally;
    Outcome outcome{.messages = both_ways(order.direction, order.action) ? 2 * order.count : order.count};
    outcome.elapsed = run_part(part, ready.key, tally);
    outcome.rails = traffic(order.direction, order.action);
    for (const auto& [rail, bytes] : before) outcome.rails[rail] -= bytes;

    context_.send(server_, verify_tag, {});
    check_tally(order, context_.name(server_), receive_reply());
    if (both_ways(order.direction, order.action)) {
        verify_bodies(part, workspace_.incoming, tally);
        check_tally(order, "this side", tally);
    } else if (one_sided(order.action)) {
        check_tally(order, "this side", tally);
    }
    return outcome;
}

base::Nanoseconds Driver::run_part(const Part& part, const RemoteKey& key, Reply& tally) {
    if (one_sided(part.order.action)) {
        return reach(part, key, workspace_.outgoing, workspace_.incoming, samples_, tally);
    }
    const auto begin = base::now_ns();
    if (part.order.action == Action::pingpong) {
        ping(part, workspace_.outgoing, workspace_.incoming, samples_, tally);
        return base::now_ns() - begin;
    }
    SendLane out(part, workspace_.outgoing);
    ReceiveLane in(part, workspace_.incoming, tally);
    stream(&out, part.order.direction == Direction::both ? &in : nullptr);
    static_cast<void>(context_.recv(server_, arrived_tag, {}));
    return base::now_ns() - begin;
}

Reply Driver::receive_reply() {
    std::array<std::byte, control_limit> buffer;
    const auto status = context_.recv(server_, reply_tag, buffer);
    return decode_reply(std::span(buffer).first(status.bytes));
}

RailBytes Driver::traffic(Direction direction, Action action) const {
    RailBytes bytes;
    for (const auto& rail : context_.traffic()) {
        if (rail.peer != server_) continue;
        const bool idle = rail.sent_frames + rail.received_frames == 0;
        if (idle && !between_hosts_.contains(rail.rail)) continue;
        bytes[rail.rail] += (action == Action::get ? 0 : rail.sent_bytes) +
                            (both_ways(direction, action) || action == Action::get ? rail.received_bytes : 0);
    }
    return bytes;
}

void Driver::finish() {
    context_.send(server_, order_tag, encode(Order{}));
    static_cast<void>(receive_reply());
}

}  // namespace railmux::tools
