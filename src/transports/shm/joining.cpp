// shm::Rail: connections until they are links: connecting, accepting, and the greetings of both sides.
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/host.hpp"
#include "transports/shm/rail.hpp"
#include "transports/shm/socket.hpp"
#include "transports/shm/tags.hpp"

namespace railmux::transports::shm {

namespace {

constexpr std::uint32_t most_strangers = 64;
constexpr int accepted_at_once = 32;
constexpr base::Nanoseconds stranger_limit = 2 * base::second;

std::string last_error() { return std::system_category().message(errno); }

}  // namespace

// --- The side that connects ------------------------------------------------------------------------------------------

LinkId Rail::refuse_to_connect(std::string_view cause) {
    Link& link = new_link(LinkPhase::connecting, {});
    kill(link, cause);
    return link.id;
}

LinkId Rail::connect(std::span<const std::byte> address, std::span<const std::byte> hello) {
    [[maybe_unused]] const auto scope = guard_.enter();
    if (hello.size() > traits_.max_hello) return refuse_to_connect("the hello is too long");
    const auto remote = NodeAddress::parse(address);
    if (!remote) return refuse_to_connect("the address of the other side is malformed");
    if (const auto how = address_.reach(*remote); how.reach == Reach::never) {
        return refuse_to_connect(how.why.empty() ? "it is not on this node, or this rail itself" : how.why);
    }
    auto made = SharedBlock::make();
    if (!made) return refuse_to_connect(made.error().what());
    auto socket = connect_to(remote->socket_name());
    if (!socket) return refuse_to_connect(socket.error().what());
    Link& link = new_link(LinkPhase::connecting, std::move(socket.value()));
    link.block = std::move(made.value().block);
    if (!know(link)) return link.id;
    const std::array descriptors{made.value().file.get(), bell_.get(), board_.file.get()};
    if (!send_greeting(link, GreetingKind::hello, hello, descriptors)) kill(link, last_error());
    return link.id;
}

void Rail::take_reply(Link& link, const Greeting& greeting, std::span<base::FileDescriptor> descriptors) {
    if (greeting.kind == GreetingKind::refusal) {
        const std::vector<std::byte> reply(greeting.body.begin(), greeting.body.end());
        kill(link, "refused by the other side", reply);
        return;
    }
    if (greeting.kind != GreetingKind::reply || !is_bell(descriptors[0])) {
        kill(link, "it answered with something else than a reply");
        return;
    }
    link.bell = std::move(descriptors[0]);
    link.strict = greeting.strict;
    try_memory(link, greeting, descriptors[1]);
    join_rings(link, 0);
    events_.tell({.kind = EventKind::link_up, .link = link.id}, {}, greeting.body);
}

// --- The side that accepts -------------------------------------------------------------------------------------------

/// The listener stays readable while more wait; others than this user may fill it as fast as it is emptied.
void Rail::accept_some() {
    for (int accepted = 0; accepted < accepted_at_once; ++accepted) {
        base::FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket.valid()) {
            if (!spare_.turn_away(listener_.get())) return;
            continue;
        }
        spare_.taken();
        if (strangers_ >= most_strangers) expire_strangers();
        if (strangers_ >= most_strangers) {
            said_of_strangers_.warning(
                "rail {}: a connection was closed: {} others have connected and said nothing yet", traits_.name,
                strangers_);
            continue;
        }
        Link& link = new_link(LinkPhase::greeting, std::move(socket));
        link.since = base::now_ns();
        ++strangers_;
        if (know(link)) read_greeting(link);
    }
}

void Rail::take_hello(Link& link, const Greeting& greeting, std::span<base::FileDescriptor> descriptors) {
    if (greeting.kind != GreetingKind::hello || !is_bell(descriptors[1])) {
        kill(link, "it began with something else than a hello");
        return;
    }
    auto block = SharedBlock::adopt(descriptors[0]);
    if (!block) {
        kill(link, block.error().what());
        return;
    }
    link.block = std::move(block.value());
    link.bell = std::move(descriptors[1]);
    link.strict = greeting.strict;
    try_memory(link, greeting, descriptors[2]);
    --strangers_;
    link.phase = LinkPhase::requested;
    events_.tell({.kind = EventKind::connect_request, .link = link.id}, {}, greeting.body);
}

void Rail::accept(LinkId id, std::span<const std::byte> reply) {
    [[maybe_unused]] const auto scope = guard_.enter();
    Link* link = links_.find(id);
    if (link == nullptr || link->phase != LinkPhase::requested) return;
    join_rings(*link, 1);  // before the other side may use them
    const std::array descriptors{bell_.get(), board_.file.get()};
    if (!send_greeting(*link, GreetingKind::reply, reply, descriptors)) {
        kill(*link, last_error());
        return;
    }
    events_.tell({.kind = EventKind::link_up, .link = id});
}

void Rail::refuse(LinkId id, std::span<const std::byte> reply) {
    [[maybe_unused]] const auto scope = guard_.enter();
    Link* link = links_.find(id);
    if (link == nullptr || link->phase != LinkPhase::requested) return;
    static_cast<void>(send_greeting(*link, GreetingKind::refusal, reply, {}));  // or it hears that we hang up
    kill(*link, "refused");
}

void Rail::expire_strangers() {
    const auto now = base::now_ns();
    links_.for_each([&](Link& link) {
        if (link.phase == LinkPhase::greeting && now - link.since > stranger_limit) {
            kill(link, "it connected and did not say hello within 2 s");
        }
    });
}

// --- Both ------------------------------------------------------------------------------------------------------------

/// Who it is. False: nobody to share memory with; the link is over.
bool Rail::know(Link& link) {
    const auto other = other_end(link.socket);
    if (!other) {
        kill(link, other.error().what());
        return false;
    }
    const auto& [process, user] = other.value();
    link.label = fmt::format("{} {} - {}", traits_.name, base::process_id(), process);
    if (user != address_.user) {
        kill(link, fmt::format("it belongs to user {}, this is user {}", user, address_.user));
        return false;
    }
    link.process = OtherProcess(process);
    if (link.process.descriptor() >= 0) watch(link.process.descriptor(), tag_of(link.id));
    return true;
}

bool Rail::send_greeting(Link& link, GreetingKind kind, std::span<const std::byte> body,
                         std::span<const int> descriptors) {
    const Greeting greeting{.kind = kind,
                            .strict = strict_,
                            .mark_address = reinterpret_cast<std::uintptr_t>(&mark_),
                            .mark = mark_,
                            .body = body.first(std::min(body.size(), Greeting::max_body))};
    return send_message(link.socket, greeting.encode(), descriptors);
}

void Rail::read_greeting(Link& link) {
    std::array<std::byte, Greeting::size + Greeting::max_body> room;
    auto message = receive_message(link.socket, room);
    if (message.state == Message::State::nothing) return;
    if (message.state == Message::State::hung_up) {
        kill(link, "closed by the other side before its greeting was over");
        return;
    }
    Greeting greeting;
    switch (parse(message.bytes, greeting)) {
        case Parsed::complete: greeted(link, greeting, message.descriptors); return;
        case Parsed::malformed: kill(link, "it does not speak railmux"); return;
        case Parsed::other_version: break;
    }
    // Say so in our own words, so that the other side can tell its people; then it is over.
    if (link.phase == LinkPhase::greeting) static_cast<void>(send_greeting(link, GreetingKind::refusal, {}, {}));
    kill(link,
         fmt::format(
             "it speaks version {} of railmux's shared memory, this is version {}; use one release of railmux on "
             "both sides",
             greeting.version, wire_version),
         {}, ErrorCode::wrong_version);
}

void Rail::greeted(Link& link, const Greeting& greeting, std::span<base::FileDescriptor> descriptors) {
    if (link.phase == LinkPhase::greeting) {
        take_hello(link, greeting, descriptors);
    } else {
        take_reply(link, greeting, descriptors);
    }
}

/// Whether we can fetch large puts from its memory, and get what its board shows.
void Rail::try_memory(Link& link, const Greeting& greeting, const base::FileDescriptor& board) {
    if (bulk_.fetch_from == never_fetch && !bulk_.judge) return;
    errno = 0;
    link.readable = link.process.readable(greeting.mark_address, greeting.mark);
    if (link.readable && board.valid()) {
        auto shown = Mapping::adopt_to_read(board, sizeof(Board));
        if (shown) link.shown = std::move(shown.value());
    }
    if (link.readable || std::exchange(told_no_fetch_, true)) return;
    log_.info("rail {}: {}: large messages are copied twice, as the memory of the other process cannot be read: {}",
              traits_.name, link.label, errno != 0 ? last_error() : "its process number is another's here");
}

void Rail::join_rings(Link& link, std::size_t side) {
    auto& block = *link.block.get();
    const bool strict = strict_ || link.strict;
    link.ours = &block.side[side];
    link.theirs = &block.side[1 - side];
    link.writer = RingWriter(block.way[side], *link.theirs, strict);
    link.reader = RingReader(block.way[1 - side], *link.ours, strict);
    link.ours->can_fetch.store(link.readable ? 1 : 0, std::memory_order_relaxed);
    link.phase = LinkPhase::up;
    --setting_up_;
    active_.push_back(&link);
}

}  // namespace railmux::transports::shm
