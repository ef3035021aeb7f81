#include "transports/verbs/rail.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/host.hpp"
#include "transports/verbs/costs.hpp"

namespace railmux::transports::verbs {

namespace {

constexpr int backlog = 1024;
constexpr std::uint32_t first_completions = 1024;
constexpr std::uint32_t most_links = 400;  // 240 MB of buffers
// What is left of 56 and 196 bytes of private data behind a byte that holds the length; replies of refusals have 148.
constexpr std::uint32_t max_hello = 56;
constexpr std::uint32_t max_reply = 128;

std::uint16_t port_of(const CmId& listener) { return ntohs(rdma_get_src_port(listener.get())); }

ibv_device_attr limits_of(ibv_context* device, const std::string& where) {
    ibv_device_attr limits{};
    if (const int code = ibv_query_device(device, &limits); code != 0) {
        throw failure(where, "its limits cannot be read", code);
    }
    return limits;
}

/// For how many links the device lets one receive queue hold buffers.
std::uint32_t links_possible(const ibv_device_attr& limits) {
    const auto buffers = static_cast<std::uint32_t>(std::max(limits.max_srq_wr, 0));
    return std::min(most_links, (buffers - std::min(buffers, receives_in_reserve)) / receives_per_link);
}

SharedReceiveQueue make_receives(ibv_pd* domain, const std::string& where, std::uint32_t links) {
    ibv_srq_init_attr wanted{};
    wanted.attr.max_wr = links * receives_per_link + receives_in_reserve;
    wanted.attr.max_sge = 1;
    SharedReceiveQueue made(ibv_create_srq(domain, &wanted));
    if (!made) throw failure(where, "no shared receive queue", errno);
    return made;
}

}  // namespace

Rail::Rail(const Port& port, std::string_view bulk, base::Logger& log)
    : port_(port),
      log_(log),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      device_(open_device(port.device)),
      channel_(rdma_create_event_channel()),
      send_slabs_(frame_bytes, port.numa_node),
      bulk_slabs_(bulk_bytes, port.numa_node),
      receive_slabs_(frame_bytes, port.numa_node) {
    traits_ = {.name = "verbs:" + port.name(),
               .identity = fmt::format("{} {}/{}", port.kind, port.address.text(), port.address.prefix),
               .max_frame = frame_bytes,
               .max_hello = max_hello,
               .max_reply = max_reply,
               .max_segments = 16,
               .tx_depth = tx_depth,
               .quiet_max = inline_bytes,
               .max_put = largest_put,
               .put = true,
               .events = true,
               .ordered = true,
               .chains = true,
               .bad_put_ends_link = true,
               .keepalive = true,
               .comes_back = true,
               .shared = true,
               .copies_puts = true,
               .pins = true,
               .numa_node = port.numa_node,
               .speed_bps = port.speed_bps};
    short_.sg_list = &short_piece_;
    short_.num_sge = 1;
    short_.opcode = IBV_WR_SEND_WITH_IMM;
    short_.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    const auto& where = traits_.name;
    if (!epoll_.valid()) throw failure(where, "no descriptor to wait on", errno);
    if (!channel_) throw failure(where, "no event channel of the connection manager", errno);
    full_listener_ = listen(any_port);
    short_listener_ = listen(any_port);
    auto* const context = full_listener_->verbs;
    domain_.reset(ibv_alloc_pd(context));
    if (!domain_) throw failure(where, "no protection domain", errno);
    const auto costs = measure_costs(domain_.get());
    traits_.register_from = choose_register_from(bulk, costs);
    traits_.reuses_regions = bulk != "copy" && costs.can_register;
    log_.info("{}: {}", where,
              traits_.register_from == never_register
                  ? fmt::format("large messages are copied into registered memory{}",
                                traits_.reuses_regions ? ", unless theirs is registered already" : "")
                  : fmt::format("memory of large messages is registered from {} bytes on", traits_.register_from));
    wakeups_.reset(ibv_create_comp_channel(context));
    if (!wakeups_) throw failure(where, "no completion channel", errno);
    completions_.reset(ibv_create_cq(context, first_completions, nullptr, wakeups_.get(), 0));
    if (!completions_) throw failure(where, "no completion queue", errno);
    const auto limits = limits_of(context, where);
    most_completions_ = static_cast<std::uint32_t>(std::max(limits.max_cqe, 0));
    traits_.get = limits.max_qp_rd_atom > 0 && limits.max_qp_init_rd_atom > 0;  // as server, and as reader
    queues_max_ = links_possible(limits);
    receives_ = make_receives(domain_.get(), where, queues_max_);
    for (const int descriptor : {channel_->fd, wakeups_->fd, device_->async_fd}) watch(descriptor);
    set_address();
}

Rail::~Rail() {
    links_.for_each([](Link& link) {
        if (link.phase == Phase::up || link.phase == Phase::accepting) rdma_disconnect(link.connection.get());
        link.connection.reset();
    });
}

/// At `wanted`, where nobody else is there.
CmId Rail::listen(std::uint16_t wanted) {
    rdma_cm_id* made = nullptr;
    const auto where = fmt::format("{} at {}", traits_.name, port_.address.text());
    if (rdma_create_id(channel_.get(), &made, nullptr, RDMA_PS_TCP) != 0) throw failure(where, "no listener", errno);
    CmId listener(made);
    const auto bind = [&](std::uint16_t number) {
        auto address = port_.address.to_sockaddr(number);
        return rdma_bind_addr(made, reinterpret_cast<sockaddr*>(&address)) == 0;
    };
    if (!bind(wanted) && (wanted == any_port || errno != EADDRINUSE || !bind(any_port))) {
        throw failure(where, "it cannot be bound", errno);
    }
    if (made->verbs == nullptr || port_.device != ibv_get_device_name(made->verbs->device) ||
        made->port_num != port_.number) {
        throw Error(ErrorCode::no_rails, fmt::format("{}: that address belongs to another port", where),
                    "give each port an address of its own; see rdma link, ip address");
    }
    if (rdma_listen(made, backlog) != 0) throw failure(where, "it cannot listen", errno);
    return listener;
}

void Rail::set_address() {
    address_ = {base::host_identity(), port_.address, port_of(full_listener_), port_of(short_listener_)};
    encoded_address_ = address_.encode();
}

void Rail::watch(int descriptor) {
    make_nonblocking(descriptor);
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
        throw failure(traits_.name, "an event channel cannot be waited for", errno);
    }
}

Reachability Rail::reach(std::span<const std::byte> bytes) const {
    const auto remote = RailAddress::parse(bytes);
    if (!remote) return {Reach::never, "its address is malformed"};
    const auto& ours = address_.at;
    const auto& theirs = remote->at;
    if (ours.family != theirs.family) {
        return {Reach::never, ours.family == AF_INET ? "IPv4 here, IPv6 there" : "IPv6 here, IPv4 there"};
    }
    if (ours.same_network(theirs)) return {Reach::direct, "same subnet " + ours.network()};
    if (remote->host == address_.host) return {Reach::never, "another network of this host"};
    return {Reach::routed, fmt::format("{} and {}, perhaps by a gateway", ours.network(), theirs.network())};
}

// --- Links -----------------------------------------------------------------------------------------------------------

Link& Rail::new_link(Phase phase, CmId connection) {
    Link& link = links_.add(phase);
    link.label = traits_.name;
    link.connection = std::move(connection);
    if (link.connection) link.connection->context = &link;  // which stays where it is
    return link;
}

/// The link has no future. What the device still has of it comes back first, if there is anything.
void Rail::end(Link& link, std::string_view cause, std::span<const std::byte> reply) {
    if (link.phase == Phase::free || link.phase == Phase::draining) return;
    link.cause = std::string(cause);  // a copy first: it may be of the link's own
    link.reply.assign(reply.begin(), reply.end());
    const auto phase = std::exchange(link.phase, Phase::draining);
    if (phase != Phase::up && phase != Phase::accepting) return finish(link);
    // Puts the queue pair into the error state, too, where everything posted comes back in order: this is the last.
    hang_up(link);
    ibv_qp_attr dead{};
    dead.qp_state = IBV_QPS_ERR;
    chained_ = 0;
    append(link, RequestKind::last, nullptr, 0, 0).send_flags |= IBV_SEND_SIGNALED;
    if (ibv_modify_qp(link.connection->qp, &dead, IBV_QP_STATE) == 0 && flush(link)) return;
    chained_ = 0;  // or it would go with the next one's
    finish(link);
}

/// Nothing comes from the device any more.
void Rail::finish(Link& link) {
    const bool had_queue = link.connection && link.connection->qp != nullptr;
    let_go(std::move(link.connection));
    while (link.first != link.next) complete(link, link.request(link.first++), WorkStatus::link_lost);
    if (had_queue) {
        by_queue_.erase(link.queue);
        recent_ = {};
        --queues_;
    }
    link.phase = Phase::free;
    if (events_.withdraw_request(link.id)) {
        links_.retire(link.id);
    } else {
        events_.tell({.kind = EventKind::link_down, .link = link.id}, link.cause, link.reply);
    }
}

void Rail::disconnect(LinkId id) {
    [[maybe_unused]] const auto scope = guard_.enter();
    Link* link = links_.find(id);
    if (link == nullptr) return;
    link->closed = true;
    if (link->phase == Phase::requested && works(device_.get(), port_)) {
        rdma_reject(link->connection.get(), nullptr, 0);
    }
    end(*link, "closed here");
}

// Connections are made and ended by messages of the device's connection manager, and soft-RoCE (Linux 6.1) never again takes
// one in, for anybody, once it was to send one while its interface was down. So none is sent then: the end waits.

void Rail::hang_up(Link& link) {
    if (works(device_.get(), port_)) rdma_disconnect(link.connection.get());
}

void Rail::let_go(CmId connection) {
    if (connection == nullptr || gone_) return;
    if (works(device_.get(), port_)) return let_go_.clear();
    if (connection->qp != nullptr) rdma_destroy_qp(connection.get());
    connection->context = nullptr;  // nothing that comes for it concerns a link
    let_go_.push_back(std::move(connection));
}

std::string Rail::describe(LinkId id) const {
    return id.index < links_.size() ? links_[id.index].label : std::string("?");
}

/// The other side's adapter acknowledges, whatever the process there does. How often it was asked again the device keeps to
/// itself.
Pulse Rail::pulse(LinkId id) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    const Link* link = links_.find(id);
    if (link == nullptr || link->phase != Phase::up) return {};
    return {.known = true,
            .outstanding = link->on_their_way() > 0,
            .heard = link->received + link->acknowledged,
            .received = link->received};
}

// --- Regions ---------------------------------------------------------------------------------------------------------

base::Result<Region> Rail::add_region(std::span<std::byte> memory, Access access) {
    Region region;
    const int code = regions_.add(domain_.get(), memory, access, region);
    if (code == 0) return region;
    return failure(traits_.name, fmt::format("{} bytes cannot be registered", memory.size()), code);
}

void Rail::drop_region(const Region& region) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    regions_.drop(region);
}

}  // namespace railmux::transports::verbs
