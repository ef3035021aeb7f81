#include "transports/tcp/rail.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/host.hpp"
#include "transports/tcp/route.hpp"

namespace railmux::transports::tcp {

namespace {

void add_to_epoll(int epoll, int descriptor, std::uint32_t tag, std::uint32_t what = EPOLLIN) {
    epoll_event event{};
    event.events = what;
    event.data.u32 = tag;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

/// By the addresses that stay; those that IPv6 makes up for a day do not.
std::string identity_of(const Interface& interface) {
    auto text = interface.kind;
    for (const auto& address : interface.addresses) {
        if (address.usable() && !address.second_choice)
            text += " " + address.at.text() + "/" + std::to_string(address.at.prefix);
    }
    return text;
}

}  // namespace

Rail::Rail(std::string name, const Interface& interface, ChooseEndpoints choose, const SocketOptions& options,
           TlsContext* encryption, std::optional<Netlink> news, base::Logger& log)
    : options_(options),
      choose_(std::move(choose)),
      encryption_(encryption),
      log_(log),
      said_of_strangers_(log),
      interface_(interface.name),
      interface_index_(interface.index),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      netlink_(std::move(news)),
      staging_(staging_bytes),
      spare_("rail " + name, log) {
    if (!epoll_.valid() || !timer_.valid()) {
        throw Error(ErrorCode::system, std::string("no descriptor to wait on: ") + std::strerror(errno),
                    "raise the limit of open files (ulimit -n)");
    }
    traits_ = {.name = std::move(name),
               .identity = identity_of(interface),
               .max_frame = max_frame,
               .max_hello = 64,
               .max_reply = Greeting::max_body,
               .max_segments = max_segments,
               .tx_depth = tx_depth,
               .quiet_max = quiet_max,
               .max_put = max_put,
               .put = true,
               .notify = true,
               .events = true,
               .ordered = true,
               .chains = true,
               .stream = true,
               .keepalive = true,
               .comes_back = true,
               .by_processors = interface.by_processors,
               .shared = !interface.loopback,  // whose speed is that of memory, which has no queue
               .numa_node = interface.numa_node,
               .speed_bps = interface.speed_bps};
    address_.host = base::host_identity();
    address_.loopback = interface.loopback;
    listen(choose_(interface));
    if (netlink_) add_to_epoll(epoll_.get(), netlink_->descriptor(), netlink_tag);
    add_to_epoll(epoll_.get(), timer_.get(), timer_tag);
    counter_at_start_ = bytes_sent_by(interface_index_);
}

Rail::~Rail() = default;

/// Throws Error, and listens nowhere then.
void Rail::listen(std::span<const Endpoint> endpoints) {
    stop_listening();
    address_.endpoints.clear();
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
        auto endpoint = endpoints[i];
        // One port for both families, if it can be had: one rule in a firewall.
        if (!listeners_.empty()) endpoint.port = listeners_.front().endpoint.port;
        try {
            listeners_.push_back(listen_on(endpoint, options_));
        } catch (const Error& error) {
            if (error.code() != ErrorCode::system || (i + 1 == endpoints.size() && listeners_.empty())) throw;
            log_.warning("rail {}: {}; the rail does without", traits_.name, error.what());
            continue;
        }
        address_.endpoints.push_back(listeners_.back().endpoint);
        add_to_epoll(epoll_.get(), listeners_.back().socket.get(),
                     listener_tag + static_cast<std::uint32_t>(listeners_.size() - 1));
    }
    encoded_address_ = address_.encode();
}

void Rail::stop_listening() {
    for (const auto& listener : listeners_) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener.socket.get(), nullptr);
    listeners_.clear();
}

Reachability Rail::reach(std::span<const std::byte> bytes) const {
    const auto remote = RailAddress::parse(bytes);
    if (!remote) return {Reach::never, "its address is malformed"};
    return best_path({address_, interface_, interface_index_}, *remote).how;
}

// --- Links -----------------------------------------------------------------------------------------------------------

Link& Rail::new_link(base::FileDescriptor socket, LinkPhase phase) {
    Link& link = links_.add(phase);
    link.socket = std::move(socket);
    link.setup = std::make_unique<Link::Setup>();
    return link;
}

void Rail::watch(Link& link, bool write) {
    if (link.watched && link.wants_write == write) return;
    if (link.phase == LinkPhase::up && link.wants_write != write) writers_ += write ? 1 : ~std::uint32_t{0};
    link.wants_write = write;
    epoll_event event{};
    event.events = write ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.u32 = link.id.index;
    ::epoll_ctl(epoll_.get(), std::exchange(link.watched, true) ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, link.socket.get(),
                &event);
}

void Rail::unwatch(Link& link) {
    if (std::exchange(link.watched, false)) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, link.socket.get(), nullptr);
}

void Rail::heat(Link& link) {
    if (std::find(hot_.begin(), hot_.end(), link.id.index) == hot_.end()) {
        if (hot_.size() == most_hot) {
            const auto coldest = *std::min_element(hot_.begin(), hot_.end(), [&](auto a, auto b) {
                return links_[a].last_received < links_[b].last_received;
            });
            if (polls_ - links_[coldest].last_received < lukewarm_polls) return;
            cool(links_[coldest]);
        }
        hot_.push_back(link.id.index);
    }
    if (!link.wants_write) unwatch(link);
}

void Rail::cool(Link& link) {
    std::erase(hot_, link.id.index);
    next_hot_ = 0;
    if (link.early_acks.end()) acknowledge_early(link.socket.get(), EarlyAcks::Of::none);
    if (link.phase == LinkPhase::up) watch(link, link.wants_write);
}

void Rail::kill(Link& link, std::string_view cause, std::span<const std::byte> reply, ErrorCode code) {
    const auto phase = std::exchange(link.phase, LinkPhase::free);
    if (phase == LinkPhase::free) return;
    if (link.wants_write && phase == LinkPhase::up) --writers_;
    if (phase == LinkPhase::up && !link.same_host) {  // who knows whether these bytes leave by any interface
        sent_outside_ -= std::min(sent_outside_, unconfirmed(link).value_or(0));
    }
    if (link.partial.left > 0 && !link.partial.quiet) events_.done(link.id, link.partial.cookie, WorkStatus::link_lost);
    link.partial.left = 0;
    std::erase(hot_, link.id.index);
    next_hot_ = 0;
    if (staging_link_ == link.id.index) staging_at_ = staging_end_;
    link.read = {};
    link.early_acks = {};
    if (phase == LinkPhase::greeting) {  // a stranger: nobody above has heard of it
        --strangers_;
        said_of_strangers_.warning("rail {}: {} closed: {}", traits_.name, link.label, cause);
        links_.retire(link.id);
    } else if (phase == LinkPhase::requested && events_.withdraw_request(link.id)) {
        links_.retire(link.id);
    } else {
        events_.tell({.kind = EventKind::link_down, .code = code, .link = link.id}, cause, reply);
    }
    link.setup.reset();
    link.tls.reset();
    // A child of this process may have kept the descriptor: then closing it neither takes it out of the epoll set nor tells
    // the other side.
    unwatch(link);
    ::shutdown(link.socket.get(), SHUT_RDWR);
    link.socket.reset();
}

void Rail::disconnect(LinkId id) {
    [[maybe_unused]] const auto scope = guard_.enter();
    if (Link* link = links_.find(id); link != nullptr) kill(*link, "closed here");
}

std::string Rail::describe(LinkId id) const {
    return id.index < links_.size() ? links_[id.index].label : std::string("?");
}

base::Result<Region> Rail::add_region(std::span<std::byte> memory, Access access) {
    return regions_.add(memory, access);
}

void Rail::drop_region(const Region& region) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    regions_.drop(region);
    links_.for_each([&](Link& link) {
        if (link.read.put_left == 0 || link.read.put_region != region.key.id) return;
        link.read.put_place = nullptr;  // the rest goes nowhere
        link.read.notify = false;
    });
}

}  // namespace railmux::transports::tcp
