// tcp::Rail: connections until they are links: connecting, accepting, and the greetings of both sides.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transports/tcp/rail.hpp"
#include "transports/tcp/route.hpp"

namespace railmux::transports::tcp {

namespace {
constexpr std::uint32_t most_strangers = 64;
constexpr base::Nanoseconds stranger_limit = 2 * base::second;

}  // namespace

LinkId Rail::refuse_to_connect(std::string_view cause) {
    Link& link = new_link({}, LinkPhase::connecting);
    link.label = traits_.name;
    kill(link, cause);
    return link.id;
}

LinkId Rail::connect(std::span<const std::byte> address, std::span<const std::byte> hello) {
    [[maybe_unused]] const auto scope = guard_.enter();
    if (down_) return refuse_to_connect("the rail is down");
    if (hello.size() > traits_.max_hello) return refuse_to_connect("the hello is too long");
    const auto remote = RailAddress::parse(address);
    if (!remote) return refuse_to_connect("the address of the other side is malformed");
    const auto path = best_path({address_, interface_, interface_index_}, *remote);
    if (!path.found) return refuse_to_connect(path.how.why);
    auto socket = start_connect(path.from, path.to, options_);
    if (!socket) return refuse_to_connect(socket.error().what());
    Link& link = new_link(std::move(socket.value()), LinkPhase::connecting);
    link.same_host = remote->host == address_.host;
    link.label = path.from.at.text() + " - " + path.to.text();
    link.setup->to = path.to;
    link.setup->outgoing.assign(hello.begin(), hello.end());
    watch(link, true);
    return link.id;
}

void Rail::finish_connect(Link& link) {
    if (const int code = pending_error(link.socket.get()); code != 0) {
        kill(link, connect_failure(code, link.setup->to));
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
        if (!socket.valid()) {
            const bool full = errno == EMFILE || errno == ENFILE;
            if (full && !out_of_files_) {
                log_.error("rail {}: connections wait: too many open files; raise the limit (ulimit -n)", traits_.name);
            }
            out_of_files_ = full;
            return;
        }
        if (down_) continue;  // closes it
        if (strangers_ >= most_strangers) expire_strangers();
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
            if (link.phase == LinkPhase::greeting) {
                std::array<std::byte, 256> rest;  // what stays unread would turn the answer into a reset
                static_cast<void>(::recv(link.socket.get(), rest.data(), rest.size(), MSG_DONTWAIT));
                send_greeting(link, GreetingKind::refusal, {});
            }
            kill(link,
                 "it speaks version " + std::to_string(greeting.version) + " of the railmux stream, this is version " +
                     std::to_string(stream_version) + "; use one release of railmux on both sides",
                 {}, ErrorCode::wrong_version);
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
        events_.tell({.kind = EventKind::connect_request, .link = link.id}, {}, body);
        return;
    }
    if (greeting.kind == GreetingKind::reply) {
        link.phase = LinkPhase::up;
        events_.tell({.kind = EventKind::link_up, .link = link.id}, {}, body);
        link.setup.reset();
    } else {
        const std::vector<std::byte> reply(body.begin(), body.end());
        kill(link, "refused by the other side", reply);
    }
}

void Rail::accept(LinkId id, std::span<const std::byte> reply) {
    [[maybe_unused]] const auto scope = guard_.enter();
    Link* link = links_.find(id);
    if (link == nullptr || link->phase != LinkPhase::requested) return;
    send_greeting(*link, GreetingKind::reply, reply.first(std::min<std::size_t>(reply.size(), Greeting::max_body)));
    if (link->phase != LinkPhase::requested) return;
    link->same_host = stays_on_host(local_end(link->socket.get()).at, remote_end(link->socket.get()).at);
    link->phase = LinkPhase::up;
    link->setup.reset();
    events_.tell({.kind = EventKind::link_up, .link = id});
}

void Rail::refuse(LinkId id, std::span<const std::byte> reply) {
    [[maybe_unused]] const auto scope = guard_.enter();
    Link* link = links_.find(id);
    if (link == nullptr || link->phase != LinkPhase::requested) return;
    send_greeting(*link, GreetingKind::refusal, reply.first(std::min<std::size_t>(reply.size(), Greeting::max_body)));
    if (link->phase == LinkPhase::requested) kill(*link, "refused");
}

void Rail::expire_strangers() {
    const auto now = base::now_ns();
    links_.for_each([&](Link& link) {
        if (link.phase == LinkPhase::greeting && now - link.setup->since > stranger_limit) {
            kill(link, "it connected and did not say hello within 2 s");
        }
    });
}

}  // namespace railmux::transports::tcp
