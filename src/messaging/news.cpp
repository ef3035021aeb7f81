// Engine: what it tells the application of rails and peers.
#include <utility>

#include "messaging/engine.hpp"

namespace railmux::messaging {

void Engine::on_rail_down(RailCallback&& callback) {
    const Lock lock(*this);
    told_.rail_down = std::move(callback);
}

void Engine::on_rail_up(RailCallback&& callback) {
    const Lock lock(*this);
    told_.rail_up = std::move(callback);
}

void Engine::on_peer_lost(PeerCallback&& callback) {
    const Lock lock(*this);
    told_.peer_lost = std::move(callback);
}

void Engine::on_peer_left(PeerCallback&& callback) {
    const Lock lock(*this);
    told_.peer_left = std::move(callback);
}

void Engine::on_peer_joined(PeerCallback&& callback) {
    const Lock lock(*this);
    told_.peer_joined = std::move(callback);
}

void Engine::on_rail_news(const rails::RailNews& news) {
    if (news.up ? told_.rail_up != nullptr : told_.rail_down != nullptr) rail_news_.push_back(news);
}

void Engine::note(PeerCallback Told::*callback, PeerEvent&& event) {
    if (told_.*callback && !left_) peer_news_.push_back({callback, std::move(event)});
}

void Engine::note_loss(std::uint32_t peer, ErrorCode code) {
    if (code == ErrorCode::peer_left || code == ErrorCode::cancelled) return;
    const auto& known = rails_.peers()[peer];
    if (known.loss_told) return;
    note(&Told::peer_lost,
         {.peer = Peer::from_index(peer),
          .code = code,
          .causes = known.failed == ErrorCode::ok || known.failure == nullptr ? "the other side began anew\n"
                                                                              : *known.failure});
}

void Engine::on_peer_left(std::uint32_t peer) {
    note(&Told::peer_left,
         {.peer = Peer::from_index(peer), .code = ErrorCode::peer_left, .causes = std::string(left_text)});
}

/// Calls back for what has happened. A callback may set another one, or bring more news.
void Engine::tell_news() {
    for (const auto& news : std::exchange(rail_news_, {})) {
        const auto callback = news.up ? told_.rail_up : told_.rail_down;
        if (!callback) continue;
        const RailEvent event{.rail = rail_set_[news.rail].traits().name,
                              .peer = news.peer == rails::no_peer ? Peer() : Peer::from_index(news.peer),
                              .cause = news.cause,
                              .down = std::chrono::nanoseconds(news.down)};
        progress_.outside([&]() noexcept { callback(event); });
    }
    for (const auto& news : std::exchange(peer_news_, {})) {
        const auto callback = told_.*news.callback;
        if (callback) progress_.outside([&]() noexcept { callback(news.event); });
    }
}

}  // namespace railmux::messaging
