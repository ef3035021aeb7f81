#include "rails/connector.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/crypto.hpp"

namespace railmux::rails {

using transports::Reach;

namespace {

// Pairs tried at once from one rail: enough to get past a few unreachable addresses within one time limit, few enough that
// two nodes with eight rails each do not open 64 connections.
constexpr std::uint32_t pairs_per_rail = 4;
// Silence for less says nothing: the other process may just not have run.
constexpr base::Nanoseconds telling = 100 * base::millisecond;
}  // namespace

Connector::Connector(Options options, RailSet& rails, LinkTable& links, PeerTable& peers, FramePool& pool,
                     ConnectorHost& host, base::Logger& log)
    : options_(std::move(options)),
      rails_(rails),
      links_(links),
      peers_(peers),
      pool_(pool),
      host_(host),
      log_(log),
      said_of_strangers_(log) {}

// --- Trying pairs ----------------------------------------------------------------------------------------------------

Connector::Attempt* Connector::attempt_of(std::uint32_t peer) noexcept {
    const auto place =
        std::find_if(attempts_.begin(), attempts_.end(), [&](const Attempt& a) { return a.peer == peer; });
    return place == attempts_.end() ? nullptr : &*place;
}

void Connector::forget_attempt(std::uint32_t peer) noexcept {
    std::erase_if(attempts_, [&](const Attempt& a) { return a.peer == peer; });
}

bool Connector::trying(std::uint32_t peer) const noexcept {
    return std::any_of(attempts_.begin(), attempts_.end(),
                       [&](const Attempt& a) { return a.peer == peer && !a.replaces; });
}

void Connector::start(std::uint32_t peer, base::Nanoseconds now) {
    if (!trying(peer)) begin(peer, false, now);
}

bool Connector::replace(std::uint32_t peer, base::Nanoseconds now) {
    if (trying(peer)) return false;
    begin(peer, true, now);
    return true;
}

/// By the rails and the address that there are now. What replace() began before, and is under way, goes on as a part of this.
void Connector::begin(std::uint32_t peer, bool replaces, base::Nanoseconds now) {
    Attempt* attempt = attempt_of(peer);
    if (attempt == nullptr) attempt = &attempts_.emplace_back(Attempt{.peer = peer, .pairs = {}});
    if (std::exchange(attempt->replaces, replaces) && !replaces) {
        // They stand in for nothing any more: if they fail that is told, and if they are lost they are to come back.
        links_.for_each([&](Link& link) {
            if (link.peer == peer && link.state == LinkState::connecting && !link.retried) link.stands_in = false;
        });
    }
    attempt->pairs.clear();
    if (const auto address = ProcessAddress::parse(peers_[peer].address); address) {
        std::vector<std::string> obstacles;
        attempt->pairs = pairs_towards(*attempt, *address, obstacles);
        for (const auto& obstacle : obstacles) {
            if (attempt->pairs.empty() && !replaces) static_cast<void>(note_cause(peer, obstacle));
        }
    }
    try_level(*attempt, now);
    advance(*attempt, now);
}

void Connector::tell_cure(LocalRail& rail, const transports::Reachability& reachability) {
    if (std::exchange(rail.told_cure, reachability.cure) == reachability.cure) return;
    rail.info.reason = "merged with another: " + reachability.why;
    rail.info.cure = reachability.cure;
    log_.warning("rail {} is merged with another: {}; to use both: {}", rail.traits().name, reachability.why,
                 reachability.cure);
}

/// Where several rails reach the same ones, each is tried with another first: links that come up first leave no rail without.
void Connector::take_turns(std::vector<Pair>& pairs) {
    std::map<std::pair<Reach, std::uint8_t>, std::size_t> alike;  // rails so far that reach the same one first
    for (auto begin = pairs.begin(); begin != pairs.end();) {
        const auto end = std::find_if(begin, pairs.end(), [&](const Pair& pair) { return pair.rail != begin->rail; });
        for (const auto reach : {Reach::direct, Reach::routed, Reach::fallback}) {
            std::vector<Pair*> reached;
            for (auto pair = begin; pair != end; ++pair) {
                if (pair->reachability.reach == reach) reached.push_back(&*pair);
            }
            if (reached.empty()) continue;
            const auto number = alike[{reach, reached.front()->remote.rail}]++;
            for (std::size_t i = 0; i < reached.size(); ++i) reached[(number + i) % reached.size()]->turn = i;
        }
        begin = end;
    }
    std::ranges::stable_sort(pairs, {}, &Pair::turn);
}

std::vector<Connector::Pair> Connector::pairs_towards(const Attempt& attempt, const ProcessAddress& address,
                                                      std::vector<std::string>& obstacles) {
    std::vector<Pair> pairs;
    for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
        if (!rails_[rail].up) {
            obstacles.push_back(
                fmt::format("rail {} is down: {}", rails_[rail].traits().name, rails_[rail].info.reason));
            continue;
        }
        for (const auto& remote : address.rails) {
            if (remote.transport != rails_[rail].transport) continue;
            if (attempt.replaces && !stands_in(attempt.peer, rail, remote.rail))
                continue;  // to judge it takes a system call
            auto reachability = rails_[rail].rail->reach(remote.address);
            if (reachability.reach == Reach::never) {
                if (!reachability.cure.empty()) tell_cure(rails_[rail], reachability);
                if (reachability.why.empty()) continue;
                obstacles.push_back(fmt::format("rail {} does not reach rail {} of {}: {}", rails_[rail].traits().name,
                                                remote.rail, address.host, reachability.why));
                log_.debug("{}", obstacles.back());
                continue;
            }
            pairs.push_back({rail, remote, std::move(reachability)});
        }
    }
    if (address.instance == options_.self.instance && !pairs.empty()) {  // to itself a process needs one link
        const auto inward = std::ranges::find_if(pairs, [&](const Pair& pair) { return rails_[pair.rail].inward; });
        // Else the first: transports stand in order of preference.
        if (inward != pairs.end()) std::iter_swap(pairs.begin(), inward);
        pairs.resize(1);
    }
    take_turns(pairs);
    return pairs;
}

void Connector::advance(Attempt& attempt, base::Nanoseconds now) {
    while (attempt.pending == 0) {
        const auto worth = [&](const Pair& pair) { return worth_trying(attempt, pair); };
        if (std::ranges::none_of(attempt.pairs, worth)) {
            if (attempt.level == Reach::fallback || attempt.replaces) break;
            attempt.level = attempt.level == Reach::direct ? Reach::routed : Reach::fallback;
        }
        try_level(attempt, now);
    }
    if (attempt.pending > 0) return;
    const auto peer = attempt.peer;
    const bool replaces = attempt.replaces;
    forget_attempt(peer);
    replaces ? host_.replacing_over(now) : host_.attempt_over(peer, now);
}

/// One of this level that was not tried yet, and would bring something beside the links that there are.
bool Connector::worth_trying(const Attempt& attempt, const Pair& pair) noexcept {
    if (pair.tried || pair.reachability.reach != attempt.level) return false;
    if (attempt.replaces) return stands_in(attempt.peer, pair.rail, pair.remote.rail);
    const auto* talk = peers_[attempt.peer].talk.get();
    if (talk == nullptr || talk->links.empty()) return true;
    switch (attempt.level) {
        case Reach::direct: return !redundant(attempt.peer, pair.rail, pair.remote.rail);
        case Reach::routed: return !covered(attempt.peer, pair.rail, pair.remote.rail);
        default: return false;
    }
}

/// Whether this pair may stand in for a link that was lost.
bool Connector::stands_in(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail) noexcept {
    return !redundant(peer, rail, remote_rail) && !host_.is_lost(peer, rail, remote_rail);
}

void Connector::try_level(Attempt& attempt, base::Nanoseconds now) {
    std::vector<std::uint32_t> tried(rails_.size(), 0);
    for (auto& pair : attempt.pairs) {
        if (tried[pair.rail] == pairs_per_rail || !worth_trying(attempt, pair)) continue;
        pair.tried = true;
        Link* const link = open_pair(attempt.peer, pair, now);
        if (link == nullptr) continue;
        link->stands_in = attempt.replaces;
        ++tried[pair.rail];
        ++attempt.pending;
    }
}

bool Connector::retry(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail, base::Nanoseconds limit,
                      bool comes_back, base::Nanoseconds now) {
    if (leaving_ || !rails_[rail].up) return false;
    const auto address = ProcessAddress::parse(peers_[peer].address);
    if (!address) return false;
    for (const auto& remote : address->rails) {
        if (remote.rail != remote_rail || remote.transport != rails_[rail].transport) continue;
        Pair pair{rail, remote, rails_[rail].rail->reach(remote.address)};
        const auto reach = pair.reachability.reach;
        if (reach == Reach::never || reach == Reach::fallback) return false;  // nothing better is left: start does that
        if (reach == Reach::routed && covered(peer, rail, remote_rail)) return false;
        Link* link = open_pair(peer, pair, now);
        if (link == nullptr) return false;
        link->retried = true;
        link->stands_in = !comes_back;
        link->limit = std::min(limit, options_.pair_limit);
        next_expiry_ = std::min(next_expiry_, now + link->limit);
        return true;
    }
    return false;
}

/// Starts connecting two rails; nullptr if they are connected, or being connected, already, or rest.
Link* Connector::open_pair(std::uint32_t peer, const Pair& pair, base::Nanoseconds now) {
    const auto& known = peers_[peer];
    bool exists = false;
    links_.for_each([&](const Link& link) {
        if (link.rail != pair.rail || link.remote_rail != pair.remote.rail || link.state == LinkState::closing) return;
        // The peer may have asked before we knew of it.
        const bool its = link.peer == peer || (link.peer == no_peer && link.setup != nullptr &&
                                               parse_hello(link.setup->hello)->from.instance == known.instance);
        exists = exists || its;
    });
    if (exists || host_.resting(peer, pair.rail, pair.remote.rail, now)) return nullptr;

    const Hello hello{.version = wire_version,
                      .epoch = known.epoch,
                      .rail = static_cast<std::uint8_t>(pair.rail),
                      .checksum = options_.checksum,
                      .from = options_.self,
                      .to = known.instance,
                      .nonce = base::random_u64(),
                      .job = options_.key.job};
    auto setup = std::make_unique<Link::Setup>();
    setup->hello = encode_hello(options_.key, hello);
    auto& rail = *rails_[pair.rail].rail;
    Link& link = links_.add(pair.rail, rail.connect(pair.remote.address, setup->hello));
    link.setup = std::move(setup);
    link.remote_rail = pair.remote.rail;
    link.state = LinkState::connecting;
    link.initiated = true;
    link.peer = peer;
    link.since = now;
    link.limit = options_.pair_limit;
    link.label = rail.describe(link.id);
    next_expiry_ = std::min(next_expiry_, now + options_.pair_limit);
    log_.debug("link {} to {}: connecting ({})", link.label, peers_.name(peer), pair.reachability.why);
    return &link;
}

bool Connector::note_cause(std::uint32_t peer, const std::string& line) {
    auto* talk = peers_[peer].talk.get();
    if (talk == nullptr) return true;
    if (talk->causes.find(line) != std::string::npos) return false;
    talk->causes += line + "\n";
    return true;
}

void Connector::pair_failed(Link& link, ErrorCode code, std::string_view cause, base::Nanoseconds now) {
    const auto line = fmt::format("rail {} to {} ({}): {}", rails_[link.rail].traits().name, peers_.name(link.peer),
                                  link.label, cause);
    const auto* talk = peers_[link.peer].talk.get();
    // This very process has proved that it knows the key and speaks our version: so what was said now was corrupted.
    const bool proved = talk != nullptr && talk->linked;
    if (proved && code != ErrorCode::peer_left) code = ErrorCode::unreachable;
    const bool hopeless =
        code == ErrorCode::wrong_version || code == ErrorCode::wrong_key || code == ErrorCode::peer_left;
    host_.pair_failed(link, cause, hopeless, now);
    if (link.retried || link.stands_in) {  // that it is gone was told when it was lost, or it was never there
        log_.debug("{}", line);
        if (!link.retried) pair_done(link.peer, now);
        return;
    }
    // A peer that is leaving may well do so before its last rails are connected.
    if (note_cause(link.peer, line) && code != ErrorCode::peer_left) log_.warning("{}", line);
    if (auto* waiting = peers_[link.peer].talk.get();
        waiting != nullptr && (code == ErrorCode::wrong_version || code == ErrorCode::wrong_key))
        waiting->worst = code;
    pair_done(link.peer, now);
}

void Connector::pair_done(const Link& link, base::Nanoseconds now) {
    if (!link.retried) return pair_done(link.peer, now);
    host_.pair_failed(link, {}, false, now);
}

void Connector::pair_done(std::uint32_t peer, base::Nanoseconds now) {
    Attempt* attempt = attempt_of(peer);
    if (attempt == nullptr || attempt->pending == 0) return;
    --attempt->pending;
    advance(*attempt, now);
}

bool Connector::covered(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail) noexcept {
    const auto& links = peers_[peer].talk->links;
    return std::any_of(links.begin(), links.end(), [&](std::uint32_t slot) {
        const Link& link = links_.at(slot);
        return link.rail == rail || link.remote_rail == remote_rail;
    });
}

bool Connector::redundant(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail) noexcept {
    const auto* talk = peers_[peer].talk.get();
    if (talk == nullptr) return false;
    bool local = false;
    bool remote = false;
    for (const auto slot : talk->links) {
        local = local || links_.at(slot).rail == rail;
        remote = remote || links_.at(slot).remote_rail == remote_rail;
    }
    return local && remote;
}

// --- Ending ----------------------------------------------------------------------------------------------------------

void Connector::disconnect(Link& link, base::Nanoseconds now) {
    const auto state = link.state;
    rails_[link.rail].rail->disconnect(link.id);
    if (state == LinkState::live) host_.link_dropped(link, now);
    link.state = LinkState::closing;
    if (state == LinkState::connecting) pair_done(link, now);
}

void Connector::give_up_pair(Link& link, base::Nanoseconds now) {
    const auto waited = std::min(now - link.since, link.limit);
    // Given up with the peer, soon after it was tried again.
    const bool early = waited < std::min(telling, link.limit);
    link.state = LinkState::closing;
    rails_[link.rail].rail->disconnect(link.id);
    const auto cause =
        early ? "no answer yet when connect.patience was over"
              : fmt::format("no answer within {} ms; does a firewall drop its packets?", waited / base::millisecond);
    pair_failed(link, ErrorCode::unreachable, cause, now);
}

void Connector::abandon(std::uint32_t peer, base::Nanoseconds now) {
    forget_attempt(peer);
    links_.for_each([&](Link& link) {
        if (link.peer == peer && link.state == LinkState::connecting) give_up_pair(link, now);
    });
}

void Connector::session_over(std::uint32_t peer, base::Nanoseconds now) {
    forget_attempt(peer);
    links_.for_each([&](Link& link) {
        if (link.peer == peer && link.state == LinkState::connecting) disconnect(link, now);
    });
}

base::Nanoseconds Connector::expire(base::Nanoseconds now) {
    if (now < next_expiry_) return next_expiry_;
    next_expiry_ = never;
    links_.for_each([&](Link& link) {
        if (!link.pending()) return;
        if (now - link.since < link.limit) {
            next_expiry_ = std::min(next_expiry_, link.since + link.limit);
            return;
        }
        if (link.state == LinkState::connecting) {
            give_up_pair(link, now);
        } else {
            said_of_strangers_.warning("rail {}: {} began a handshake and did not finish it; closed",
                                       rails_[link.rail].traits().name, link.label);
            disconnect(link, now);
        }
    });
    return next_expiry_;
}

}  // namespace railmux::rails
