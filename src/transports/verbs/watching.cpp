// verbs::Rail: what becomes of its port and of its device.
#include <fmt/format.h>

#include <utility>

#include "transports/verbs/rail.hpp"

namespace railmux::transports::verbs {

void Rail::take_device_news() {
    ibv_async_event event{};
    while (ibv_get_async_event(device_.get(), &event) == 0) {
        const auto kind = event.event_type;
        const bool ours = event.element.port_num == port_.number;
        ibv_ack_async_event(&event);
        if (kind == IBV_EVENT_DEVICE_FATAL) {
            return rail_gone("device " + port_.device + " failed; see the kernel's log (dmesg)");
        }
        if (!ours) continue;
        look_owed_ = true;
        // Even if it is up again by now: what was on its way is lost, and the other sides may have heard of it.
        if (kind == IBV_EVENT_PORT_ERR) {
            rail_down("port " + port_.name() + " went down; check its cable, and ip link");
        }
    }
    settle_port();
}

/// Its links end, and with the last of them the rail is down, until the port works again.
void Rail::rail_down(std::string_view cause) {
    if (std::exchange(down_, true)) return;
    down_cause_ = cause;
    links_.for_each([&](Link& link) { end(link, cause); });
}

/// For the rest of this process: whatever was made of the device is of no use any more.
void Rail::rail_gone(std::string_view cause) {
    if (std::exchange(gone_, true)) return;
    rail_down(cause);
    links_.for_each([&](Link& link) {
        if (link.phase != Phase::free) finish(link);  // a device that is gone gives nothing back
    });
}

/// What waits for the last link_down.
void Rail::settle_port() {
    if (!down_cause_.empty()) {
        bool draining = false;
        links_.for_each([&](const Link& link) { draining = draining || link.phase != Phase::free; });
        if (draining) return;
        events_.tell({.kind = EventKind::rail_down}, std::exchange(down_cause_, {}));
    }
    if (std::exchange(look_owed_, false) && !gone_) judge_port();
}

/// Whether it works, by the address that others know, or by another one.
void Rail::judge_port() {
    const auto now = look_again(device_.get(), port_);
    moved_ = moved_ || !same_gid(now, port_);
    if (moved_) {
        rail_down(fmt::format("port {} lost its address {}", port_.name(), port_.address.text()));
    } else if (!now.obstacle.empty()) {
        rail_down(fmt::format("{}; {}", now.obstacle, now.cure));
    }
    if (!down_ || !now.obstacle.empty()) return;
    look_owed_ = !down_cause_.empty();  // one after the other
    if (look_owed_ || (moved_ && !listen_anew(now))) return;
    down_ = false;
    let_go_.clear();  // the other sides are told
    events_.tell({.kind = EventKind::rail_up});
}

/// At the address that the port has now, and at the same port numbers if they are free: peers who cannot be told know those.
/// One listener goes after the other, because with its last id the connection manager may close the device that all else was
/// made of.
bool Rail::listen_anew(const Port& now) {
    port_ = now;
    try {
        full_listener_.reset();
        full_listener_ = listen(address_.full_port);
        short_listener_.reset();
        short_listener_ = listen(address_.short_port);
    } catch (const Error& error) {
        log_.warning("rail {}: {}; {}", traits_.name, error.what(), error.cure());
        return false;  // moved_ stays: again with the next news
    }
    moved_ = false;
    set_address();
    log_.info("rail {}: listens at {} now", traits_.name, port_.address.text());
    return true;
}

}  // namespace railmux::transports::verbs
