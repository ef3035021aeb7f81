// Engine: peers: who they are and how we come to know them.
#include "messaging/engine.hpp"

#include "base/host.hpp"

namespace railmux::messaging {

Peer Engine::peer(std::uint32_t rank) {
    const Lock lock(*this);
    if (rank >= size()) {
        throw Error(ErrorCode::invalid_argument, fmt::format("there is no rank {} in a job of {}", rank, size()),
                    "start the job with `railmux run -n N`");
    }
    return Peer::from_index(rank);  // ranks were entered first, in order; outside a job peer 0 is this process
}

std::uint16_t Engine::listen(std::string_view where) {
    const Lock lock(*this);
    return membership_.listen(where, address());
}

std::vector<std::byte> Engine::address() const {
    const Lock lock(*this);
    return rails_.own_address(base::host_name(), base::process_id()).encode();
}

Peer Engine::add_peer(std::span<const std::byte> address) {
    const Lock lock(*this);
    const auto parsed = rails::ProcessAddress::parse(address);
    if (!parsed) throw rails::ProcessAddress::refusal(address);
    return Peer::from_index(rails_.learn(*parsed));
}

std::string Engine::name(Peer peer) {
    const Lock lock(*this);
    return rails_.peers().name(known_peer(peer));
}

std::string Engine::failure(Peer peer) {
    const Lock lock(*this);
    const auto& known = rails_.peers()[known_peer(peer)];
    if (known.left) return "it has left\n";
    return known.failed == ErrorCode::ok || known.failure == nullptr ? std::string() : *known.failure;
}

Error Engine::error_with(Peer peer, ErrorCode code, std::string what) {
    if (const auto causes = failure(peer); !causes.empty()) what += "\n" + causes;
    if (what.ends_with('\n')) what.pop_back();
    const bool lost = code == ErrorCode::unreachable || code == ErrorCode::peer_lost;
    return {code, what, lost ? "`railmux info` on both hosts shows their rails, and why others are off" : ""};
}

}  // namespace railmux::messaging
