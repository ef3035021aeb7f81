// Engine: peers: who they are and how we come to know them.
#include <fmt/ranges.h>

#include "base/host.hpp"
#include "messaging/engine.hpp"
#include "rails/way_down.hpp"

namespace railmux::messaging {

namespace {
// How often the job's server and the door are looked at while messages flow; sleeping wakes up for them at once.
constexpr base::Nanoseconds membership_period = base::millisecond / 4;
}  // namespace

Peer Engine::peer(std::uint32_t rank) {
    const Lock lock(*this);
    if (rank >= size()) {
        throw Error(ErrorCode::invalid_argument, fmt::format("there is no rank {} in a job of {}", rank, size()),
                    "start the job with `railmux run -n N`");
    }
    return Peer::from_index(membership_.in_job() ? rails_.peers().of_rank(rank) : 0);
}

std::optional<std::uint32_t> Engine::rank(Peer peer) {
    const Lock lock(*this);
    const auto rank = rails_.peers()[known_peer(peer)].rank;
    return rank == rails::no_rank ? std::nullopt : std::optional(rank);
}

std::uint16_t Engine::listen(std::string_view where) {
    const Lock lock(*this);
    refuse_if_left();
    const auto port = membership_.listen(where, address());
    membership_unwatched_ = true;
    return port;
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
    if (known.left) return std::string(left_text);
    return known.failed == ErrorCode::ok || known.failure == nullptr ? std::string() : *known.failure;
}

// --- What the job tells ----------------------------------------------------------------------------------------------

bool Engine::poll_membership(base::Nanoseconds now) {
    next_membership_ = now + membership_period;
    const auto news = membership_.poll();
    for (const auto& item : news) {
        using Kind = Membership::News::Kind;
        item.kind == Kind::left || item.kind == Kind::lost ? take_end(item, now) : take_address(item, now);
    }
    return !news.empty();
}

void Engine::take_address(const Membership::News& item, base::Nanoseconds now) {
    const bool knocked = item.kind == Membership::News::Kind::knocked;
    const auto address = rails::ProcessAddress::parse(item.address);
    if (!address) {
        const auto refusal = rails::ProcessAddress::refusal(item.address);
        log_.warning("{} is not a peer: {}; {}", item.from, refusal.what(), refusal.cure());
        if (!knocked) rails_.forgo(rails_.peers().of_rank(item.rank), refusal, now);
        return;
    }
    using Source = rails::RailManager::Source;
    const auto peer = rails_.learn(*address, knocked ? Source::carried : Source::job);
    if (knocked) {
        knocked_.push_back(peer);
        ++knocks_;
    } else if (item.kind == Membership::News::Kind::joined) {
        note(&Told::peer_joined, {.peer = Peer::from_index(peer), .code = ErrorCode::ok, .causes = {}});
    }
}

/// A process of the job has left or died. Whoever is connected to it is told by the links, too, and after what it has sent.
void Engine::take_end(const Membership::News& item, base::Nanoseconds now) {
    const auto address = rails::ProcessAddress::parse(item.address);
    if (!address) return;
    const bool left = item.kind == Membership::News::Kind::left;
    rails_.ended(rails_.peers().of_rank(item.rank), address->instance,
                 left ? ErrorCode::peer_left : ErrorCode::peer_lost, now);
}

// --- Leaving ---------------------------------------------------------------------------------------------------------

void Engine::refuse_as_left() { throw Error(ErrorCode::invalid_argument, "this context has left", "make another one"); }

void Engine::leave() {
    const Lock lock(*this);
    refuse_in_callback("leave");
    if (std::exchange(left_, true)) return;
    const auto late = say_farewell();
    membership_.leave();
    rails_.leaving().part();
    receiver_.peer_gone(anybody, ErrorCode::cancelled);
    for (std::uint32_t peer = 0; peer < rails_.peers().size(); ++peer) {
        receiver_.peer_gone(peer, ErrorCode::cancelled);
    }
    target_.cancel();
    progress_until([this] { return rails_.leaving().parted(); }, now() + close_limit());
    call_back_for_all();
    if (late.empty()) return;
    throw Error(ErrorCode::timed_out,
                fmt::format("left before everything sent to {} had arrived", fmt::join(late, ", ")),
                "raise close.timeout if they are only busy");
}

/// What has ended without a look at the rails, or while others were in callbacks, has its own called: nobody looks any more.
void Engine::call_back_for_all() {
    const auto called = [this] { return !operations_.any_finished() && calling_back_ == std::thread::id{}; };
    progress_until(called, now() + close_limit());
}

base::Nanoseconds Engine::close_limit() const {
    return static_cast<base::Nanoseconds>(config_.number("close.timeout"));
}

/// Delivers what was sent, and says goodbye. The names of those who may not have got everything.
std::vector<std::string> Engine::say_farewell() {
    std::vector<std::string> late;
    receiver_.close(now());
    if (!progress_until([this] { return everything_sent(); }, now() + close_limit())) {
        for (std::uint32_t peer = 0; peer < rails_.peers().size(); ++peer) {
            if (rails_.peers()[peer].left || (!busy(peer) && rails_.idle(peer))) continue;
            late.push_back(rails_.peers().name(peer));
        }
    }
    rails_.leaving().say_goodbye(now());
    rails_.flush(now());
    const auto heard = [this] {
        for (std::uint32_t peer = 0; peer < rails_.peers().size(); ++peer) {
            if (rails_.connected(peer) && !rails_.peers()[peer].left && !rails_.idle(peer)) return false;
        }
        return true;
    };
    progress_until(heard, now() + close_limit());
    return late;
}

Error Engine::error_with(Peer peer, ErrorCode code, std::string what) {
    if (const auto causes = failure(peer); !causes.empty()) what += "\n" + causes;
    if (what.ends_with('\n')) what.pop_back();
    const bool lost = code == ErrorCode::unreachable || code == ErrorCode::peer_lost;
    return {code, what, lost ? "`railmux info` on both hosts shows their rails, and why others are off" : ""};
}

}  // namespace railmux::messaging
