#include "transports/ofi/rail.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/crypto.hpp"

namespace railmux::transports::ofi {

namespace {

// How long a rail that goes tries to say so. Enough for any fabric; whoever does not hear it learns by the silence.
constexpr base::Nanoseconds parting = 50 * base::millisecond;

std::uint64_t speed_of(const fi_info& info) {
    return info.nic != nullptr && info.nic->link_attr != nullptr ? info.nic->link_attr->speed : 0;
}

base::FileDescriptor epoll_descriptor() {
    const int descriptor = ::epoll_create1(EPOLL_CLOEXEC);
    if (descriptor >= 0) return base::FileDescriptor(descriptor);
    throw Error(ErrorCode::system, fmt::format("epoll_create1 failed: {}", std::strerror(errno)),
                "raise the limit of open files (ulimit -n)");
}

/// Until it is closed, by whoever it belongs to.
void watch(const base::FileDescriptor& set, int descriptor) noexcept {
    epoll_event event{.events = EPOLLIN, .data = {}};
    ::epoll_ctl(set.get(), EPOLL_CTL_ADD, descriptor, &event);
}

}  // namespace

Rail::Rail(std::string name, Port port, Reopening::Open open, Common& common, base::Logger& log)
    : log_(log),
      common_(common),
      endpoint_(std::make_unique<Endpoint>(std::move(port))),
      reopening_(std::move(open)),
      fading_(common.outliving),
      awake_(epoll_descriptor()) {
    const auto& info = *endpoint_->port.info;
    use_endpoint();
    watch(awake_, reopening_.descriptor());
    traits_ = {.name = std::move(name),
               .identity = address_.provider + " " + address_.fabric,
               .max_frame = frame_bytes,
               .max_hello = max_hello,
               .max_reply = max_reply,
               .max_segments = max_segments,
               .tx_depth = tx_depth,
               .quiet_max = quiet_most,
               .max_put = largest_put,
               .put = true,
               .notify = true,
               .events = endpoint_->port.descriptor >= 0,
               .ordered = true,
               .keepalive = true,
               .comes_back = true,
               .posts_need_polls = true,
               .by_processors = address_.stays_on_host(),
               .shared = !address_.stays_on_host(),  // whose speed is that of memory, which has no queue
               .copies_puts = true,
               .speed_bps = speed_of(info)};
}

Rail::~Rail() {
    part();
    if (endpoint_ == nullptr || !endpoint_->port.outlives_rail()) return;
    Fading::keep(*endpoint_, common_.outliving);
}

/// Tells the other sides, and waits a moment for the provider to carry it.
void Rail::part() {
    if (down_) return;
    links_.for_each([&](Link& link) {
        if (link.phase != Phase::free) say_bye(link);
    });
    const auto until = base::now_ns() + parting;
    while ((!greetings_.empty() || endpoint_->send_buffers.on_their_way() > 0) && base::now_ns() < until) {
        send_greetings();
        found_at_ = found_end_ = 0;
        while (more_completions()) {
            auto* operation = static_cast<Operation*>(found_[found_at_++].op_context);
            if (operation != nullptr && !operation->receive) sent(*static_cast<SendBuffer*>(operation));
        }
    }
}

Reachability Rail::reach(std::span<const std::byte> bytes) const {
    const auto remote = RailAddress::parse(bytes);
    if (!remote) return {Reach::never, "its address is malformed"};
    return address_.reach(*remote);
}

// --- Links -----------------------------------------------------------------------------------------------------------

Link& Rail::new_link(Phase phase, Peer* peer) {
    Link& link = links_.add(phase);
    link.token = base::random_u64();
    link.peer = peer;
    if (peer != nullptr) {
        ++peer->links;
        link.label = address_text(endpoint_->port.peers.get(), endpoint_->port.name.data()) + " - " + peer->label;
    }
    return link;
}

Link* Rail::find(const LinkName& name) noexcept {
    if (name.place >= links_.size()) return nullptr;
    Link& link = links_[name.place];
    return link.token == name.token && link.phase != Phase::free ? &link : nullptr;
}

void Rail::end(Link& link, std::string_view cause, std::span<const std::byte> reply, ErrorCode code) {
    const auto phase = std::exchange(link.phase, Phase::free);
    if (phase == Phase::free) return;
    if (link.put.open) events_.done(link.id, link.put.cookie, WorkStatus::link_lost);
    link.put = {};
    for (const auto& early : link.early) endpoint_->receive_buffers.drop_view(*early.buffer);
    link.early.clear();
    if (link.peer != nullptr) {
        link.peer->turns.forget(link.id);
        endpoint_->peers.release(*link.peer);
        if (link.sending > 0 && endpoint_->port.completes_in_order()) obstruction_.suspect();
    }
    if (phase == Phase::requested) --requests_;
    if (phase == Phase::requested && events_.withdraw_request(link.id)) {  // nobody above has heard of it
        links_.retire(link.id);
        return;
    }
    events_.tell({.kind = EventKind::link_down, .code = code, .link = link.id}, cause, reply);
}

void Rail::end_all(const Peer& peer, std::string_view cause) {
    links_.for_each([&](Link& link) {
        if (link.peer == &peer && link.phase != Phase::free) end(link, cause);
    });
}

void Rail::disconnect(LinkId id) {
    [[maybe_unused]] const auto scope = guard_.enter();
    Link* link = links_.find(id);
    if (link == nullptr) return;
    say_bye(*link);
    end(*link, "closed here");
}

void Rail::rail_down(std::string_view cause) {
    if (std::exchange(down_, true)) return;
    links_.for_each([&](Link& link) {
        if (link.phase != Phase::free) end(link, cause);
    });
    events_.tell({.kind = EventKind::rail_down}, cause);
}

// --- After a failure -------------------------------------------------------------------------------------------------

void Rail::use_endpoint() {
    const auto& port = endpoint_->port;
    address_ = RailAddress::of(port, common_.owner);
    encoded_address_ = address_.encode();
    const auto& limits = *port.info->tx_attr;
    inject_bytes_ = port.forgets() ? 0 : std::min(inject_most, limits.inject_size);
    most_on_their_way_ = port.forgets() ? limits.size - std::min(limits.size / 2, greetings_room) : all_there_are;
    if (port.descriptor >= 0) watch(awake_, port.descriptor);
}

/// At each poll while the rail is down: nothing that it lent is looked at any more.
void Rail::come_back() noexcept {
    if (endpoint_ != nullptr) return let_go();
    if (fading_.kept() >= most_kept) return;  // it stays down
    if (const auto trouble = reopening_.take_trouble(); !trouble.empty()) {
        if (reopening_.given_up()) {
            log_.warning("rail {}: it stays down: {}; raise the limit of threads (ulimit -u) and start anew",
                         traits_.name, trouble);
        } else {
            log_.info("rail {}: it cannot be opened anew: {}; tried again every {} s", traits_.name, trouble,
                      Reopening::period / base::second);
        }
    }
    endpoint_ = reopening_.take();
    if (endpoint_ == nullptr) return;
    // What is not as it was told would be no rail that anybody knows.
    if (const bool wakes = endpoint_->port.descriptor >= 0; wakes != traits_.events) {
        if (!std::exchange(unlike_before_, true)) {
            log_.warning(
                "rail {}: opened anew, it {} a descriptor to sleep on, unlike before; it stays down while that is so "
                "(tried again every {} s); a process that is started anew can use it",
                traits_.name, wakes ? "has" : "does not have", Reopening::period / base::second);
        }
        return let_go();
    }
    unlike_before_ = false;
    use_endpoint();
    down_ = false;
    events_.tell({.kind = EventKind::rail_up});
}

/// Of an endpoint that has no links any more.
void Rail::let_go() noexcept {
    const std::span unread(found_.data() + found_at_, found_.data() + found_end_);
    if (endpoint_->port.outlives_rail()) fading_.add(std::move(endpoint_), address_, unread, std::exchange(byes_, {}));
    found_at_ = found_end_ = 0;
    untold_since_ = 0;
    starved_bytes_ = 0;
    stranded_since_ = 0;
    greetings_.clear();
    impatient_.clear();
    patience_spent_.end();
    obstruction_.clear();
    putting_.clear();
    ready_.clear();
    refused_.clear();
    room_ = false;
    if (fading_.kept() >= most_kept) {
        log_.warning(
            "rail {}: it stays down: {} of its endpoints are kept, with 16 MiB each; start this process anew to use it",
            traits_.name, fading_.kept());
        return;
    }
    reopening_.begin(std::move(endpoint_), std::exchange(obstructed_, false));
}

std::string Rail::describe(LinkId id) const {
    return id.index < links_.size() ? links_[id.index].label : std::string("?");
}

// --- Regions ---------------------------------------------------------------------------------------------------------

base::Result<Region> Rail::add_region(std::span<std::byte> memory, Access access) {
    return regions_.add(memory, access);
}

void Rail::drop_region(const Region& region) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    regions_.drop(region);  // pieces of puts that come from now on find nothing
}

}  // namespace railmux::transports::ofi
