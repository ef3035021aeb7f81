// Connector, being asked: what becomes of a connect request.
#include <algorithm>

#include "base/crypto.hpp"
#include "rails/connector.hpp"

namespace railmux::rails {

void Connector::requested(std::uint32_t rail, const transports::Event& event, base::Nanoseconds now) {
    auto& local = *rails_[rail].rail;
    std::uint32_t peer = no_peer;
    auto verdict = judge(rail, event.data, peer, now);
    if (verdict == Verdict::accepted && waits(rail, *parse_hello(event.data))) verdict = Verdict::duplicate;
    const auto reply = make_reply(rail, event.data, verdict, peer);
    Link& link = links_.add(rail, event.link);
    link.since = now;
    link.limit = std::min(options_.pair_limit, longest_proof);
    link.peer = peer;
    link.label = local.describe(event.link);
    if (verdict != Verdict::accepted) {
        if (verdict != Verdict::duplicate && verdict != Verdict::leaving && verdict != Verdict::resting) {
            said_of_strangers_.warning("rail {}: refused {}: {}", rails_[rail].traits().name, link.label,
                                       explain(verdict, event.data));
        }
        link.state = LinkState::closing;
        local.refuse(event.link, reply);
        return;
    }
    const auto hello = *parse_hello(event.data);
    drop_unproven(rail, hello, now);
    link.remote_rail = hello.rail;
    link.nonce = hello.nonce;
    link.checksum = hello.checksum || options_.checksum;
    link.state = LinkState::accepting;
    link.setup = std::make_unique<Link::Setup>();
    std::copy(event.data.begin(), event.data.end(), link.setup->hello.begin());
    link.setup->reply = reply;
    next_expiry_ = std::min(next_expiry_, now + link.limit);
    local.accept(event.link, reply);
}

/// Calls `visit` for the links of this rail that others asked for and that wait for their proof.
template <typename Visit>
void Connector::for_each_unproven(std::uint32_t rail, Visit visit) {
    links_.for_each([&](Link& link) {
        if (link.rail != rail || (link.state != LinkState::accepting && link.state != LinkState::proving)) return;
        visit(link, *parse_hello(link.setup->hello));
    });
}

/// Whether a link waits for its proof that had this very hello: then one of the two is a replay.
bool Connector::waits(std::uint32_t rail, const Hello& hello) {
    bool found = false;
    for_each_unproven(rail, [&](const Link&, const Hello& other) {
        found = found || (other.from.instance == hello.from.instance && other.nonce == hello.nonce);
    });
    return found;
}

/// Of what a process asks for between two rails only a few, the newest, wait for their proof: replays take no more than that,
/// and do not drive the true one out at once. And of all together only so many: the oldest gives way.
void Connector::drop_unproven(std::uint32_t rail, const Hello& hello, base::Nanoseconds now) {
    struct Group {
        std::size_t count = 0;
        Link* oldest = nullptr;
        void add(Link& link) {
            ++count;
            if (oldest == nullptr || link.since < oldest->since) oldest = &link;
        }
    };
    Group all, same;
    for_each_unproven(rail, [&](Link& link, const Hello& other) {
        all.add(link);
        if (other.from.instance == hello.from.instance && other.rail == hello.rail) same.add(link);
    });
    if (same.count >= most_of_a_pair) return disconnect(*same.oldest, now);
    if (all.count < most_unproven) return;
    said_of_strangers_.warning("rail {}: {} closed: {} others have said hello since, and it has not proved itself",
                               rails_[rail].traits().name, all.oldest->label, all.count - 1);
    disconnect(*all.oldest, now);
}

Verdict Connector::judge(std::uint32_t rail, std::span<const std::byte> bytes, std::uint32_t& peer,
                         base::Nanoseconds now) {
    const auto verdict = judge_hello(options_.key, bytes, options_.self.instance);
    if (verdict != Verdict::accepted) return verdict;
    if (leaving_) return Verdict::leaving;
    return judge(rail, *parse_hello(bytes), peer, now);
}

/// A hello may be a replay: it costs no link that is proven, and no session. When the proof is there it is judged once more.
Verdict Connector::judge(std::uint32_t rail, const Hello& hello, std::uint32_t& peer, base::Nanoseconds now) {
    peer = peers_.find(hello.from.instance, hello.from.rank);
    if (peer == no_peer) return Verdict::accepted;
    const auto standing = peers_.standing(peer, hello.from.instance);
    if (standing == PeerTable::Standing::successor) return Verdict::accepted;
    if (standing == PeerTable::Standing::predecessor) return Verdict::wrong_process;
    const auto newer = static_cast<std::int8_t>(hello.epoch - peers_[peer].epoch);
    if (newer < 0) return Verdict::stale_session;
    // Links of a session that is over do not stand in the way of the next.
    if (newer != 0) return Verdict::accepted;
    if (host_.resting(peer, rail, hello.rail, now)) return Verdict::resting;
    return loses_tie(peer, rail, hello, now) ? Verdict::duplicate : Verdict::accepted;
}

/// Calls `visit` for the other links between these two rails: what is live, and what we asked for.
template <typename Visit>
void Connector::for_each_rival(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail, Visit visit) {
    if (peers_[peer].instance == options_.self.instance) return;  // both ends of a link to oneself
    links_.for_each([&](Link& link) {
        if (link.state != LinkState::live && link.state != LinkState::connecting) return;
        if (link.peer == peer && link.rail == rail && link.remote_rail == remote_rail) visit(link);
    });
}

bool Connector::loses_tie(std::uint32_t peer, std::uint32_t rail, const Hello& hello, base::Nanoseconds now) {
    // Both asked at the same moment: the smaller process id goes first. Its link may be up here already while the other's
    // request was on the way. In every other case the peer has lost the link that we still see.
    if (options_.self.instance > hello.from.instance) return false;
    bool crossing = false;
    for_each_rival(peer, rail, hello.rail, [&](const Link& link) {
        crossing = crossing ||
                   (link.initiated && (link.state == LinkState::connecting || now - link.since < options_.pair_limit));
    });
    return crossing;
}

void Connector::settle_tie(const Link& winner, base::Nanoseconds now) {
    for_each_rival(winner.peer, winner.rail, winner.remote_rail, [&](Link& link) { disconnect(link, now); });
}

Reply::Bytes Connector::make_reply(std::uint32_t rail, std::span<const std::byte> hello, Verdict verdict,
                                   std::uint32_t peer) {
    // Who has not proved that he knows the key, be it by a replay, learns nothing but why he is refused.
    if (verdict == Verdict::wrong_version || verdict == Verdict::wrong_job || verdict == Verdict::wrong_key) {
        return bare_refusal(verdict);
    }
    const auto asked = parse_hello(hello);
    const Reply reply{.version = wire_version,
                      .verdict = verdict,
                      .rail = static_cast<std::uint8_t>(rail),
                      .epoch = peer == no_peer ? std::uint8_t{0} : peers_[peer].epoch,
                      .checksum = options_.checksum || (asked && asked->checksum),
                      .from = options_.self,
                      .nonce = base::random_u64()};
    return encode_reply(options_.key, hello, reply);
}

}  // namespace railmux::rails
