// tcp::Rail: connections until they are links: connecting, accepting, and the greetings of both sides.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transports/tcp/rail.hpp"

namespace railmux::transports::tcp {

namespace {
constexpr std::uint32_t most_strangers = 64;
constexpr base::Nanoseconds stranger_limit = 2 * base::second;
/// A pair of one family, in one subnet if there is such a pair.
void choose_endpoints(const RailAddress& ours, const RailAddress& theirs, const Endpoint*& from, const Endpoint*& to) {
    bool near = false;
    for (const auto& source : ours.endpoints) {
        for (const auto& target : theirs.endpoints) {
            if (source.family != target.family || near) continue;
            near = same_subnet(source, target, source.prefix);
            if (to != nullptr && !near) continue;
            from = &source;
            to = &target;
        }
    }
}

}  // namespace

LinkId Rail::connect(std::span<const std::byte> address, std::span<const std::byte> hello) {
    [[maybe_unused]] const auto scope = guard_.enter();
    const auto remote = RailAddress::parse(address);
    const Endpoint* from = nullptr;
    const Endpoint* to = nullptr;
    if (remote) choose_endpoints(address_, *remote, from, to);
    if (to == nullptr || hello.size() > traits_.max_hello || down_) {
        Link& link = new_link({}, LinkPhase::connecting);
        const auto id = link.id;
        link.label = traits_.name;
        kill(link, down_ ? "the rail is down" : "no address of the other side is of a family of this rail");
        return id;
    }
    auto socket = start_connect(*from, *to, options_);
    Link& link = new_link(socket ? std::move(socket.value()) : base::FileDescriptor{}, LinkPhase::connecting);
    const auto id = link.id;
    link.same_host = remote->host == address_.host;
    link.label = from->text().substr(0, from->text().rfind(':')) + " - " + to->text();
    link.setup->outgoing.assign(hello.begin(), hello.end());
    if (!socket) {
        kill(link, socket.error().what());
    } else {
        watch(link, true);
    }
    return id;
}

void Rail::finish_connect(Link& link) {
    if (const auto error = pending_error(link.socket.get()); !error.empty()) {
        kill(link, error);
        return;
    }
    link.label = describe_socket(link.socket.get());
    link.phase = LinkPhase::awaiting_reply;
    watch(link, false);
    send_greeting(link, GreetingKind::hello, link.setup->outgoing);
}

void Rail::send_greeting(Link& link, GreetingKind kind, std::span<const std::byte> body) {
    const auto head = encode({.kind = kind, .length = static_cast<std::uint16_t>(body.size())});
    std::array<std::byte, Greeting::size + Greeting::max_body> bytes;
    std::copy(head.begin(), head.end(), bytes.begin());
    std::copy(body.begin(), body.end(), bytes.begin() + Greeting::size);
    const auto size = Greeting::size + body.size();
    // The send buffer of a fresh socket takes a few hundred bytes; one that does not is of no use.
    if (::send(link.socket.get(), bytes.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT) != static_cast<ssize_t>(size)) {
        kill(link, std::strerror(errno));
    }
}

void Rail::accept_all(std::size_t listener) {
    if (listener >= listeners_.size()) return;
    while (true) {
        Endpoint from;
        auto socket = accept_next(listeners_[listener].socket.get(), options_, from);
        if (!socket.valid()) return;
        if (strangers_ >= most_strangers) {
            log_.warning("rail {}: {} closed: {} others have connected and said nothing yet", traits_.name, from.text(),
                         strangers_);
            continue;
        }
        Link& link = new_link(std::move(socket), LinkPhase::greeting);
        link.label = describe_socket(link.socket.get());
        link.setup->since = base::now_ns();
        ++strangers_;
        watch(link, false);
        read_greeting(link);
    }
}

void Rail::read_greeting(Link& link) {
    auto& setup = *link.setup;
    Greeting greeting;
    while (true) {
        const std::span<const std::byte> have(setup.incoming.data(), setup.received);
        const auto parsed = tcp::parse(have, greeting);
        if (parsed == Parsed::other_version) {
            // Say so in our own words, so that the other side can tell its people; then it is over.
            if (link.phase == LinkPhase::greeting) send_greeting(link, GreetingKind::refusal, {});
            kill(link, "it speaks version " + std::to_string(greeting.version) +
                           " of the railmux stream, this is version " + std::to_string(stream_version));
            return;
        }
        if (parsed == Parsed::malformed) {
            kill(link, "it does not speak railmux");
            return;
        }
        const auto wanted = Greeting::size + (parsed == Parsed::complete ? greeting.length : 0U);
        if (parsed == Parsed::complete && setup.received == wanted) break;
        const auto got =
            ::recv(link.socket.get(), setup.incoming.data() + setup.received, wanted - setup.received, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) {
            kill(link, got == 0 ? "closed by the other side before its greeting was over" : std::strerror(errno));
            return;
        }
        setup.received += static_cast<std::size_t>(got);
    }
    greeted(link, greeting);
}

void Rail::greeted(Link& link, const Greeting& greeting) {
    const std::span<const std::byte> body(link.setup->incoming.data() + Greeting::size, greeting.length);
    if (link.phase == LinkPhase::greeting) {
        if (greeting.kind != GreetingKind::hello || body.size() > traits_.max_hello) {
            kill(link, "it began with something else than a hello");
            return;
        }
        --strangers_;
        link.phase = LinkPhase::requested;
        slow_.push_back(
            {.event = {.kind = EventKind::connect_request, .link = link.id}, .data = {body.begin(), body.end()}});
        return;
    }
    if (greeting.kind == GreetingKind::reply) {
        link.phase = LinkPhase::up;
        slow_.push_back({.event = {.kind = EventKind::link_up, .link = link.id}, .data = {body.begin(), body.end()}});
        link.setup.reset();
    } else {
        const std::vector<std::byte> reply(body.begin(), body.end());
        kill(link, "refused by the other side", reply);
    }
}

void Rail::accept(LinkId id, std::span<const std::byte> reply) {
    [[maybe_unused]] const auto scope = guard_.enter();
    Link* link = find(id);
    if (link == nullptr || link->phase != LinkPhase::requested) return;
    send_greeting(*link, GreetingKind::reply, reply.first(std::min<std::size_t>(reply.size(), Greeting::max_body)));
    if (link->phase != LinkPhase::requested) return;
    link->phase = LinkPhase::up;
    link->setup.reset();
    slow_.push_back({.event = {.kind = EventKind::link_up, .link = id}});
}

void Rail::refuse(LinkId id, std::span<const std::byte> reply) {
    [[maybe_unused]] const auto scope = guard_.enter();
    Link* link = find(id);
    if (link == nullptr || link->phase != LinkPhase::requested) return;
    send_greeting(*link, GreetingKind::refusal, reply.first(std::min<std::size_t>(reply.size(), Greeting::max_body)));
    if (link->phase == LinkPhase::requested) kill(*link, "refused");
}

void Rail::expire_strangers() {
    const auto now = base::now_ns();
    for (auto& link : links_) {
        if (link.phase == LinkPhase::greeting && now - link.setup->since > stranger_limit) {
            kill(link, "it connected and did not say hello within 2 s");
        }
    }
}

}  // namespace railmux::transports::tcp
