// ofi::Rail: the messages about links: hello, reply, refusal and bye.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "transports/ofi/rail.hpp"

namespace railmux::transports::ofi {

LinkId Rail::refuse_to_connect(std::string_view cause) {
    Link& link = new_link(Phase::greeting, nullptr);
    link.label = traits_.name;
    end(link, cause);
    return link.id;
}

LinkId Rail::connect(std::span<const std::byte> address, std::span<const std::byte> hello) {
    [[maybe_unused]] const auto scope = guard_.enter();
    if (down_) return refuse_to_connect("the rail is down");
    if (hello.size() > max_hello) return refuse_to_connect("the hello is too long");
    const auto remote = RailAddress::parse(address);
    if (!remote) return refuse_to_connect("the address of the other side is malformed");
    if (const auto way = address_.reach(*remote); way.reach == Reach::never) return refuse_to_connect(way.why);
    if (processes_.died(endpoint_->peers.process_at(*remote))) return refuse_to_connect("its process is no more");
    std::string trouble;
    auto* peer = endpoint_->peers.find(*remote, trouble);
    if (peer == nullptr) return refuse_to_connect(trouble);
    Link& link = new_link(Phase::greeting, peer);
    link.message_bytes = std::min<std::size_t>(endpoint_->port.message_bytes, remote->message_bytes);
    link.patience = common_.hello_limit;
    impatient_.push_back(link.id);
    const Header header{.kind = Kind::hello};
    greet(*peer, link.id, encode(header, Hello{.from = link.name(), .address = encoded_address_, .bytes = hello}),
          true);
    return link.id;
}

void Rail::accept(LinkId id, std::span<const std::byte> reply) {
    [[maybe_unused]] const auto scope = guard_.enter();
    Link* link = links_.find(id);
    if (link == nullptr || link->phase != Phase::requested) return;
    --requests_;
    link->phase = Phase::up;
    const Header header{.kind = Kind::reply, .to = link->theirs};
    events_.tell({.kind = EventKind::link_up, .link = id});  // first: the reply may fail, and end the link
    greet(*link->peer, id, encode(header, link->name(), reply.first(std::min(reply.size(), max_reply))));
}

void Rail::refuse(LinkId id, std::span<const std::byte> reply) {
    [[maybe_unused]] const auto scope = guard_.enter();
    Link* link = links_.find(id);
    if (link == nullptr || link->phase != Phase::requested) return;
    const Header header{.kind = Kind::refusal, .to = link->theirs};
    greet(*link->peer, id, encode(header, reply.first(std::min(reply.size(), max_reply))));
    end(*link, "refused");
}

std::vector<std::byte> Rail::bye_of(const Link& link) {
    return encode(Header{.kind = Kind::bye, .to = link.theirs}, link.name(), {});
}

void Rail::say_bye(const Link& link) {
    if (link.peer == nullptr || processes_.died(link.peer->process)) return;
    greet(*link.peer, link.id, bye_of(link));
}

// --- Sending them ----------------------------------------------------------------------------------------------------

void Rail::greet(Peer& peer, LinkId link, std::vector<std::byte> bytes, bool hello) {
    if (down_) return;
    ++peer.waiting;
    greetings_.push_back({&peer, link, hello, common_.hello_limit, std::move(bytes)});
    send_greetings();
}

Rail::Sent Rail::send_greeting(const Greeting& greeting) noexcept {
    auto* buffer = endpoint_->send_buffers.take(greeting.bytes.size());
    if (buffer == nullptr) {
        starved_bytes_ = greeting.bytes.size();
        return Sent::not_now;
    }
    // Never injected: with a completion the rail knows when the peer can be forgotten.
    std::memcpy(buffer->data, greeting.bytes.data(), greeting.bytes.size());
    const auto code = fi_send(endpoint_->port.endpoint.get(), buffer->data, greeting.bytes.size(), buffer->descriptor,
                              greeting.peer->at, &buffer->context);
    if (code != 0) {
        endpoint_->send_buffers.give(*buffer);
        if (code == -FI_EAGAIN) return Sent::not_now;
        if (Link* link = links_.find(greeting.link); link != nullptr) fail(*link, code);
        return Sent::failed;
    }
    buffer->peer = greeting.peer;
    buffer->bytes = 0;  // of no link's
    buffer->number = 0;
    buffer->link = greeting.link;
    ++greeting.peer->sending;
    if (Link* link = links_.find(greeting.link); link != nullptr) ++link->sending;
    return Sent::yes;
}

/// Those of one peer leave in their order; one that cannot be reached does not hold up the others.
void Rail::send_greetings() noexcept {
    std::vector<const Peer*> stuck;
    for (auto at = greetings_.begin(); at != greetings_.end();) {
        const bool behind = std::ranges::find(stuck, at->peer) != stuck.end();
        if (behind || send_greeting(*at) == Sent::not_now) {
            if (!behind) stuck.push_back(at->peer);
            ++at;
            continue;
        }
        --at->peer->waiting;
        at = greetings_.erase(at);
    }
}

/// Providers differ in what they do about an endpoint that is no more: some never tell, some try again for minutes. What is
/// counted is time in which this process looked.
void Rail::lose_patience() noexcept {
    const auto waited = patience_spent_.look(base::now_ns());
    std::erase_if(impatient_, [&](LinkId id) {
        Link* link = links_.find(id);
        if (link == nullptr || link->phase != Phase::greeting || link->patience == 0) return true;
        link->patience = std::max<base::Nanoseconds>(link->patience - waited, 0);
        if (link->patience > 0) return false;
        say_bye(*link);  // should the hello arrive after all
        end(*link, "the other side did not hear the hello in time (connect.timeout)");
        return true;
    });
    std::erase_if(greetings_, [&](Greeting& greeting) {
        greeting.patience -= waited;
        const bool over = greeting.patience <= 0 || (greeting.hello && links_.find(greeting.link) == nullptr);
        if (over) --greeting.peer->waiting;
        return over;
    });
    if (greetings_.empty() && impatient_.empty()) patience_spent_.end();
}

// --- Receiving them --------------------------------------------------------------------------------------------------

void Rail::take_hello(std::span<const std::byte> body) {
    const auto hello = parse_hello(body);
    const auto remote = hello ? RailAddress::parse(hello->address) : std::nullopt;
    if (!remote || address_.reach(*remote).reach == Reach::never) {
        log_.debug("rail {}: something that is no hello came; ignored", traits_.name);
        return;
    }
    if (requests_ >= most_requests || greetings_.size() >= most_requests) {
        log_.warning("rail {}: a hello ignored: {} others wait for an answer", traits_.name,
                     std::max<std::size_t>(requests_, greetings_.size()));
        return;
    }
    std::string trouble;
    auto* peer = endpoint_->peers.find(*remote, trouble);
    if (peer == nullptr) {
        log_.warning("rail {}: a hello ignored: {}", traits_.name, trouble);
        return;
    }
    if (hello->version != wire_version) {
        const Header header{.kind = Kind::refusal, .flags = Header::other_version, .to = hello->from};
        greet(*peer, {}, encode(header, std::span<const std::byte>{}));
        return;
    }
    if (processes_.died(peer->process)) return;  // seen from now on
    Link& link = new_link(Phase::requested, peer);
    link.theirs = hello->from;
    link.message_bytes = std::min<std::size_t>(endpoint_->port.message_bytes, remote->message_bytes);
    ++requests_;
    greet(*peer, link.id, encode(Header{.kind = Kind::heard, .to = link.theirs}, std::span<const std::byte>{}));
    events_.tell({.kind = EventKind::connect_request, .link = link.id}, {}, hello->bytes);
}

void Rail::take_answer(const Header& header, std::span<const std::byte> body) {
    Link* link = find(header.to);
    if (link == nullptr || link->phase != Phase::greeting) return;
    link->patience = 0;
    if (header.kind == Kind::heard) return;
    if (header.kind == Kind::refusal) {
        if (header.flags == Header::other_version) {
            end(*link, "it speaks another version of the railmux messages; use one release of railmux on both sides",
                {}, ErrorCode::wrong_version);
        } else {
            end(*link, "refused by the other side", body.first(std::min(body.size(), max_reply)));
        }
        return;
    }
    const auto theirs = take_name(body);
    if (!theirs || body.size() > max_reply) return;
    link->theirs = *theirs;
    link->phase = Phase::up;
    events_.tell({.kind = EventKind::link_up, .link = link->id}, {}, body);
}

void Rail::take_bye(const Header& header, std::span<const std::byte> body) {
    const auto from = take_name(body);
    if (!from) return;
    Link* link = find(header.to);
    // Whoever gave up before our reply knew only its own name of the link.
    links_.for_each([&](Link& other) {
        const bool named = other.phase == Phase::requested || other.phase == Phase::up;
        if (link == nullptr && named && other.theirs == *from) link = &other;
    });
    if (link != nullptr) end(*link, "closed by the other side");
}

}  // namespace railmux::transports::ofi
