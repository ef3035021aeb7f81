// RailManager: what was put off until messages are gone, and is seen to before rails are given more.
#include "rails/rail_manager.hpp"

namespace railmux::rails {

void RailManager::offer_bulk(std::uint32_t peer) {
    if (peers_[peer].talk == nullptr) return;
    feeder_.offer(peer);
    heard_.await();
    due_ = 0;
}

/// Does what was put off: first what was sent is charged, then what was acknowledged is taken off. True if there was something.
bool RailManager::catch_up() {
    due_ = never;
    if (!heard_.any() && !ledger_.any_late() && !feeder_.offered()) return false;
    ledger_.charge_late();
    const bool taken = take_heard();
    if (!feeder_.offered()) return taken;
    feeder_.feed_all(now_);
    schedule(plan_.look_again());
    return true;
}

void RailManager::catch_up_and_post() {
    if (catch_up()) outboxes_.post_all(now_);
}

void RailManager::rest() {
    if (due_ == never) return;
    static_cast<void>(catch_up());
    outboxes_.post_all(now_);
}

}  // namespace railmux::rails
