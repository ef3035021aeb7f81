// RailManager: ends: those of peers, as we are told, and what our own (Leaving) asks.
#include "rails/way_up.hpp"

namespace railmux::rails {

// --- Of peers --------------------------------------------------------------------------------------------------------

void RailManager::ended(std::uint32_t peer, std::uint64_t instance, ErrorCode how, base::Nanoseconds now) {
    const auto standing = peers_.standing(peer, instance);
    if (standing == PeerTable::Standing::successor) peers_.note_predecessor(peer, instance);  // it came and went unseen
    if (standing != PeerTable::Standing::current) return;
    peers_.learn(peer, instance, {});
    auto& known = peers_[peer];
    const bool waited_for = known.talk != nullptr && known.talk->wanted;
    if (known.left || (known.ended && !waited_for)) return;
    known.ended = true;
    known.orderly = how == ErrorCode::peer_left;
    if (!connected(peer)) end_of_process(peer, now);  // else when its links are down
}

void RailManager::peer_leaves(std::uint32_t peer, base::Nanoseconds now) {
    ended(peer, peers_[peer].instance, ErrorCode::peer_left, now);
}

/// The peer has no link, and there is no process behind it that could have one.
void RailManager::end_of_process(std::uint32_t peer, base::Nanoseconds now) {
    auto& known = peers_[peer];
    if (!known.orderly) {
        talk_to(peer).causes += "its process ended without leaving the job\n";
        fail(peer, ErrorCode::peer_lost, now);
        return;
    }
    known.left = true;
    upper_.on_peer_left(peer);
    if (known.talk == nullptr) {
        upper_.on_peer_gone(peer, ErrorCode::peer_left);
    } else {
        end_session(peer, known.epoch, ErrorCode::peer_left);
    }
}

/// The last link was closed in good order, and no goodbye had come: who closes links leaves. Or it was us.
void RailManager::end_in_order(std::uint32_t peer, base::Nanoseconds now) {
    auto& known = peers_[peer];
    if (known.talk->late) return end_session(peer, known.epoch, ErrorCode::cancelled);
    known.ended = known.orderly = true;
    end_of_process(peer, now);
}

// --- Our own ---------------------------------------------------------------------------------------------------------

void RailManager::let_nobody_in() {
    assessor_.stop();
    flooder_.end();
    connector_.close();
}

bool RailManager::look_at(std::uint32_t rail) { return poll_rail(upper_, rail, false, now_) != Found::nothing; }

}  // namespace railmux::rails
