#include "tools/server.hpp"

#include <array>
#include <optional>

#include <railmux/error.hpp>

#include "tools/access.hpp"
#include "tools/control.hpp"
#include "tools/series.hpp"

namespace railmux::tools {
namespace {

Order next_order(Context& context, Peer driver) {
    std::array<std::byte, control_limit> buffer;
    const auto status = context.recv(driver, order_tag, buffer);
    return decode_order(std::span(buffer).first(status.bytes));
}

// Tells the driver that the buffers stand, or why they do not.
bool get_ready(const Part& part, Workspace& workspace) {
    Reply ready;
    try {
        prepare(part, workspace.outgoing, workspace.incoming);
    } catch (const Error& error) {
        ready.problem = error.what();
    }
    if (!ready.problem.empty()) part.context.send(part.peer, reply_tag, encode(ready));
    return ready.problem.empty();
}

void say_ready(const Part& part) { part.context.send(part.peer, reply_tag, encode(Reply{})); }

Reply run_pingpong(const Part& part, Workspace& workspace) {
    Reply tally;
    say_ready(part);
    pong(part, workspace.outgoing, workspace.incoming, tally);
    return tally;
}

Reply run_stream(const Part& part, Workspace& workspace) {
    Reply tally;
    ReceiveLane in(part, workspace.incoming, tally);
    std::optional<SendLane> out;
    if (part.order.direction == Direction::both) out.emplace(part, workspace.outgoing);
    in.start();  // before ready: the first messages find their receives
    say_ready(part);
    static_cast<void>(part.context.recv(part.peer, go_tag, {}));
    stream(out ? &*out : nullptr, &in);
    part.context.send(part.peer, arrived_tag, {});
    return tally;
}

Reply run_series(const Part& part, Workspace& workspace) {
    if (one_sided(part.order.action)) return expose(part, workspace.outgoing, workspace.incoming);
    auto tally = part.order.action == Action::pingpong ? run_pingpong(part, workspace) : run_stream(part, workspace);
    static_cast<void>(part.context.recv(part.peer, verify_tag, {}));
    verify_bodies(part, workspace.incoming, tally);
    return tally;
}

}  // namespace

bool serve(Context& context, Peer driver, Workspace& workspace) {
    bool all_right = true;
    for (;;) {
        const auto order = next_order(context, driver);
        if (order.action == Action::finish) {
            context.send(driver, reply_tag, encode(Reply{}));
            return all_right;
        }
        const auto part = server_part(context, driver, order);
        if (!get_ready(part, workspace)) continue;
        const auto tally = run_series(part, workspace);
        context.send(driver, reply_tag, encode(tally));
        all_right = tally.faults == 0 && all_right;
    }
}

}  // namespace railmux::tools
