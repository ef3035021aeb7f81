// tcp::Rail: connections until they are links: connecting, accepting, and the greetings of both sides.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transports/tcp/rail.hpp"
#include "transports/tcp/route.hpp"

namespace railmux::transports::tcp {

namespace {
// At 10,000 bogus connections a second a stranger still has 12 ms to say hello, which comes with the first round trip.
constexpr std::uint32_t most_strangers = 128;
constexpr base::Nanoseconds stranger_limit = 2 * base::second;
// Once its time is over it has that much more, after the process has looked.
constexpr base::Nanoseconds second_look = base::second;
// In one look: whoever connects without end keeps nobody else waiting.
constexpr int most_accepted = 16;

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
    if (encryption_ == nullptr) return send_greeting(link, GreetingKind::hello, link.setup->outgoing);
    link.tls = std::make_unique<Tls>(*encryption_, Tls::Side::connector, link.socket.get());
    if (link.tls->handshake() == Tls::Step::failed) kill(link, link.tls->trouble());  // else secured() goes on
}

void Rail::send_greeting(Link& link, GreetingKind kind, std::span<const std::byte> body) {
    const auto head = encode({.kind = kind, .length = static_cast<std::uint16_t>(body.size())});
    std::array<std::byte, Greeting::size + Greeting::max_body> bytes;
    std::copy(head.begin(), head.end(), bytes.begin());
    std::copy(body.begin(), body.end(), bytes.begin() + Greeting::size);
    const auto size = Greeting::size + body.size();
    // The send buffer of a fresh socket takes a few hundred bytes; one that does not is of no use.
    iovec piece{bytes.data(), size};
    const auto sent = send(link, {&piece, 1});
    if (sent != static_cast<ssize_t>(size) || link.wants_write) kill(link, cause_of(link));
}

void Rail::accept_some(std::size_t number) {
    if (number >= listeners_.size()) return;
    const auto& listener = listeners_[number];
    for (int i = 0; i < most_accepted; ++i) {
        Endpoint from;
        auto socket = accept_next(listener.socket.get(), options_, from);
        if (!socket.valid()) {
            if (!spare_.turn_away(listener.socket.get())) return;
            continue;
        }
        spare_.taken();
        if (down_) continue;  // closes it
        begin_stranger(std::move(socket), listener, from);
    }
    next_look_ = polls_ + 1;  // there may be more of them
}

void Rail::begin_stranger(base::FileDescriptor socket, const Listener& listener, const Endpoint& from) {
    if (strangers_ >= most_strangers) displace_oldest();
    Link& link = new_link(std::move(socket), LinkPhase::greeting);
    link.label = listener.endpoint.text() + " - " + from.text();
    link.setup->since = base::now_ns();
    ++strangers_;
    read_greeting(link);  // mostly it is here already, or the whole connection over
    if (link.phase != LinkPhase::greeting) return;
    watch(link, false);
    stranger_queue_.push_back(link.id);
    set_timer(stranger_limit);
}

/// So that those who only connect do not keep out those who have something to say.
void Rail::displace_oldest() {
    while (!stranger_queue_.empty()) {
        Link* link = links_.find(stranger_queue_.front());
        stranger_queue_.pop_front();
        if (link == nullptr || link->phase != LinkPhase::greeting) continue;
        kill(*link, "others have connected since, and it has not said hello");
        return;
    }
}

/// For when the time of the oldest is over.
void Rail::set_timer(base::Nanoseconds left) {
    if (std::exchange(ticking_, true)) return;
    left = std::max<base::Nanoseconds>(left, 0) + 10 * base::millisecond;
    const itimerspec once{{}, {left / base::second, left % base::second}};
    ::timerfd_settime(timer_.get(), 0, &once, nullptr);
}

/// Reads on towards `wanted` bytes; false: that must be for now, or the link is over.
bool Rail::read_until(Link& link, std::size_t wanted) {
    auto& setup = *link.setup;
    const iovec piece{setup.incoming.data() + setup.received, wanted - setup.received};
    const auto got = link.tls != nullptr && link.tls->ready()
                         ? link.tls->read({&piece, 1})
                         : ::recv(link.socket.get(), piece.iov_base, piece.iov_len, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got <= 0) {
        kill(link, got == 0 ? "closed by the other side before its greeting was over" : cause_of(link));
        return false;
    }
    setup.received += static_cast<std::size_t>(got);
    return true;
}

void Rail::read_greeting(Link& link) {
    if (encryption_ != nullptr && !secured(link)) return;
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
            if (encryption_ == nullptr && looks_like_tls(have)) return refuse_other_encryption(link);
            return kill(link, "it does not speak railmux");
        }
        const auto wanted = Greeting::size + (parsed == Parsed::complete ? greeting.length : 0U);
        if (parsed == Parsed::complete && setup.received == wanted) break;
        if (!read_until(link, wanted)) return;
    }
    if (link.tls != nullptr && link.tls->pending()) return kill(link, "it sent more than its greeting");
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
        watch(link, false);
        events_.tell({.kind = EventKind::connect_request, .link = link.id}, {}, body);
        return;
    }
    if (greeting.kind == GreetingKind::reply) {
        if (link.tls != nullptr) link.tls->read_ahead();
        link.phase = LinkPhase::up;
        events_.tell({.kind = EventKind::link_up, .link = link.id}, {}, body);
        link.setup.reset();
    } else if (greeting.kind == GreetingKind::other_encryption) {
        kill(link, encryption_differs(encryption_ != nullptr), {}, ErrorCode::wrong_version);
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
    if (link->tls != nullptr) link->tls->read_ahead();
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
    std::uint64_t ticks = 0;
    [[maybe_unused]] const auto got = ::read(timer_.get(), &ticks, sizeof ticks);
    ticking_ = false;
    const auto now = base::now_ns();
    while (!stranger_queue_.empty()) {
        const auto id = stranger_queue_.front();
        Link* link = links_.find(id);
        if (link != nullptr && link->phase == LinkPhase::greeting) {
            auto& setup = *link->setup;
            if (now - setup.since <= stranger_limit) return set_timer(setup.since + stranger_limit - now);
            if (std::exchange(setup.late, true)) {
                kill(*link, "it connected and did not say hello within 2 s");
            } else {  // it may wait for this process, who was away for all of that time
                setup.since = now - stranger_limit + second_look;
                stranger_queue_.push_back(id);
            }
        }
        stranger_queue_.pop_front();
    }
}

}  // namespace railmux::transports::tcp
