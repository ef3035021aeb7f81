#include "transports/shm/rail.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>

#include "base/crypto.hpp"
#include "transports/shm/socket.hpp"
#include "transports/shm/tags.hpp"
#include "transports/shm/waking.hpp"

namespace railmux::transports::shm {

Rail::Rail(std::string name, const Bulk& bulk, base::Logger& log)
    : bulk_(bulk),
      log_(log),
      said_of_strangers_(log),
      address_(NodeAddress::make()),
      encoded_address_(address_.encode()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      bell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      strict_(!register_for_fences()),
      mark_(base::random_u64()),
      board_(Mapping::make("board of railmux", sizeof(Board), Mapping::Others::read).take()),
      staging_(std::make_unique_for_overwrite<std::byte[]>(staging_bytes)),
      spare_("rail " + name, log) {
    if (!epoll_.valid() || !bell_.valid()) {
        throw Error(ErrorCode::system, "no descriptor to wait on: " + std::system_category().message(errno),
                    "raise the limit of open files (ulimit -n)");
    }
    listener_ = listen_at(address_.socket_name()).take();
    traits_ = {.name = std::move(name),
               .max_frame = max_frame,
               .max_hello = Greeting::max_body,
               .max_reply = Greeting::max_body,
               .max_segments = max_segments,
               .tx_depth = tx_depth,
               .quiet_max = most_piece,
               .max_put = max_put,
               .put = true,
               .get = bulk.fetch_from != never_fetch || bulk.judge.has_value(),
               .notify = true,
               .events = true,
               .ordered = true,
               .by_processors = true,
               .speed_bps = bulk.speed_bps};
    watch(listener_.get(), listener_tag);
    watch(bell_.get(), bell_tag);
}

/// Others may be reading our memory, which is about to go: what they have read they will not use (take_fetch, read_shown). Who
/// writes to it is awaited; who has closed the link does no longer.
Rail::~Rail() {
    const auto over = [](const Link& link) {
        pollfd socket{.fd = link.socket.get(), .events = POLLRDHUP, .revents = 0};
        return ::poll(&socket, 1, 0) == 1;
    };
    for (auto* link : active_) {
        link->ours->closed.store(1, std::memory_order_seq_cst);
        if (link->getting()) static_cast<void>(take_back(*link));
        while (still_written(*link) && !over(*link)) std::this_thread::yield();
    }
    std::ranges::for_each(board().regions, [](Shown& region) { region.secret.store(0, std::memory_order_relaxed); });
    std::atomic_thread_fence(std::memory_order_seq_cst);  // as in Board::hide
}

void Rail::watch(int descriptor, std::uint64_t tag) noexcept {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = tag;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event);
}

Reachability Rail::reach(std::span<const std::byte> bytes) const {
    const auto remote = NodeAddress::parse(bytes);
    if (!remote) return {Reach::never, "its address is malformed"};
    return address_.reach(*remote);
}

// --- Links -----------------------------------------------------------------------------------------------------------

Link& Rail::new_link(LinkPhase phase, base::FileDescriptor socket) {
    Link& link = links_.add(phase);
    link.label = traits_.name;
    link.socket = std::move(socket);
    if (link.socket.valid()) watch(link.socket.get(), tag_of(link.id));
    ++setting_up_;
    return link;
}

/// Whether the other side may be reading the buffers of our works: they are not the caller's again before it has stopped.
bool Rail::still_read(const Link& link) const noexcept {
    return !link.fetched.empty() && !link.hung_up && link.theirs->fetching.load(std::memory_order_seq_cst) != 0 &&
           link.process.alive();
}

/// Whether the other side may be writing to the buffers of our works.
bool Rail::still_written(const Link& link) const noexcept {
    return link.getting() && !link.gets->theirs.empty() && !link.hung_up && link.ours->share.state() == Share::taken &&
           link.process.alive();
}

void Rail::kill(Link& link, std::string_view cause, std::span<const std::byte> reply, ErrorCode code) {
    if (link.phase == LinkPhase::free || link.phase == LinkPhase::ending) return;
    if (link.phase == LinkPhase::up) {
        link.ours->closed.store(1, std::memory_order_seq_cst);
        if (link.getting()) static_cast<void>(take_back(link));
        if (still_used(link)) {
            ::shutdown(link.socket.get(), SHUT_WR);  // that is the end to the other side; we hear of its own end
            link.cause = cause;
            link.phase = LinkPhase::ending;
            link.settle_restless();
            return;
        }
    }
    finish(link, cause, reply, code);
}

void Rail::finish(Link& link, std::string_view cause, std::span<const std::byte> reply, ErrorCode code) {
    lent_ = true;
    const auto phase = std::exchange(link.phase, LinkPhase::free);
    if (phase == LinkPhase::up || phase == LinkPhase::ending) {
        flush_works(link);
        std::erase(active_, &link);
        next_active_ = 0;
    } else {
        --setting_up_;
    }
    if (phase == LinkPhase::greeting) {  // a stranger: nobody above has heard of it
        --strangers_;
        said_of_strangers_.warning("rail {}: {} closed: {}", traits_.name, link.label, cause);
        links_.retire(link.id);
    } else if (phase == LinkPhase::requested && events_.withdraw_request(link.id)) {
        links_.retire(link.id);
    } else {
        events_.tell({.kind = EventKind::link_down, .code = code, .link = link.id}, cause, reply);
    }
    part(link);
    link.bell.reset();
    link.block = {};
    link.shown = {};
    if (link.assembly.bytes) keep_spare(std::move(link.assembly.bytes));
}

/// Hears no more of the other side, which is told. A child of this process may have kept the descriptors, so closing does
/// neither: it does not take them out of the epoll set.
void Rail::part(Link& link) noexcept {
    for (const int descriptor : {link.socket.get(), link.process.descriptor()}) {
        if (descriptor >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
    }
    if (link.socket.valid()) ::shutdown(link.socket.get(), SHUT_RDWR);
    link.socket.reset();
    link.process = {};
}

void Rail::flush_works(Link& link) {
    for (; !link.fetched.empty(); link.fetched.pop()) {
        events_.done(link.id, link.fetched.front().cookie, WorkStatus::link_lost);
    }
    for (; link.getting(); --link.gets->count) {
        events_.done(link.id, link.gets->oldest().cookie, WorkStatus::link_lost);
        link.gets->first = (link.gets->first + 1) % Gets::most;
    }
    if (link.partial.source.left() > 0) events_.done(link.id, link.partial.cookie, WorkStatus::link_lost);
    link.partial.source = {};
}

void Rail::disconnect(LinkId id) {
    [[maybe_unused]] const auto scope = guard_.enter();
    if (Link* link = links_.find(id); link != nullptr) kill(*link, "closed here");
}

std::string Rail::describe(LinkId id) const {
    return id.index < links_.size() ? links_[id.index].label : std::string("?");
}

base::Result<Region> Rail::add_region(std::span<std::byte> memory, Access access) {
    auto region = regions_.add(memory, access);
    if ((static_cast<unsigned>(access) & static_cast<unsigned>(Access::remote_read)) != 0) {
        board().show(region.key, memory);
        if (board().shows(region.key)) ++shown_;
    }
    return region;
}

/// Regions are written to, and shares read from them, inside poll only.
void Rail::drop_region(const Region& region) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    if (shown_ > 0 && board().shows(region.key)) {
        board().hide(region.key);
        --shown_;
    }
    regions_.drop(region);
}

}  // namespace railmux::transports::shm
