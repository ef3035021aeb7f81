// Connector, being asked: what becomes of a connect request.
#include <algorithm>

#include "base/crypto.hpp"
#include "rails/connector.hpp"

namespace railmux::rails {

void Connector::requested(std::uint32_t rail, const transports::Event& event, base::Nanoseconds now) {
    auto& local = *rails_[rail].rail;
    std::uint32_t peer = no_peer;
    const auto verdict = judge(rail, event.data, peer, now);
    const auto reply = make_reply(rail, event.data, verdict, peer);
    Link& link = links_.add(rail, event.link);
    link.since = now;
    link.peer = peer;
    link.label = local.describe(event.link);
    if (verdict != Verdict::accepted) {
        if (verdict != Verdict::duplicate && verdict != Verdict::leaving) {
            log_.warning("rail {}: refused {}: {}", rails_[rail].traits().name, link.label,
                         explain(verdict, event.data));
        }
        link.state = LinkState::closing;
        local.refuse(event.link, reply);
        return;
    }
    link.remote_rail = parse_hello(event.data)->rail;
    link.state = LinkState::accepting;
    link.setup = std::make_unique<Link::Setup>();
    std::copy(event.data.begin(), event.data.end(), link.setup->hello.begin());
    link.setup->reply = reply;
    next_expiry_ = std::min(next_expiry_, now + options_.pair_limit);
    local.accept(event.link, reply);
}

Verdict Connector::judge(std::uint32_t rail, std::span<const std::byte> bytes, std::uint32_t& peer,
                         base::Nanoseconds now) {
    const auto verdict = judge_hello(options_.key, bytes, options_.self.instance);
    if (verdict != Verdict::accepted) return verdict;
    if (leaving_) return Verdict::leaving;
    const auto hello = *parse_hello(bytes);
    peer = peers_.of_instance(hello.from.instance, hello.from.rank);
    const auto newer = static_cast<std::int8_t>(hello.epoch - peers_[peer].epoch);
    if (newer < 0) return Verdict::stale_session;
    if (newer > 0) host_.session_ended(peer, hello.epoch);
    return settle_tie(peer, rail, hello.rail, now);
}

Verdict Connector::settle_tie(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail, base::Nanoseconds now) {
    const auto theirs = peers_[peer].instance;
    if (theirs == options_.self.instance) return Verdict::accepted;  // both ends of a link to oneself
    auto verdict = Verdict::accepted;
    links_.for_each([&](Link& link) {
        if (link.peer != peer || link.rail != rail || link.remote_rail != remote_rail ||
            link.state == LinkState::closing) {
            return;
        }
        // Both asked at the same moment: the smaller process id goes first. Its link may be up here already while the
        // other's request was on the way. In every other case the peer has lost the link that we still see.
        const bool crossing =
            link.initiated && (link.state == LinkState::connecting || now - link.since < options_.pair_limit);
        if (crossing && options_.self.instance < theirs) {
            verdict = Verdict::duplicate;
        } else {
            disconnect(link, now);
        }
    });
    return verdict;
}

Reply::Bytes Connector::make_reply(std::uint32_t rail, std::span<const std::byte> hello, Verdict verdict,
                                   std::uint32_t peer) {
    const Reply reply{.version = wire_version,
                      .verdict = verdict,
                      .rail = static_cast<std::uint8_t>(rail),
                      .epoch = peer == no_peer ? std::uint8_t{0} : peers_[peer].epoch,
                      .from = options_.self,
                      .nonce = base::random_u64()};
    return encode_reply(options_.key, hello, reply);
}

}  // namespace railmux::rails
