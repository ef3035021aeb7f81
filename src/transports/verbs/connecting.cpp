// verbs::Rail: connections until they are links, and what the connection manager says of them later.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "transports/verbs/rail.hpp"

namespace railmux::transports::verbs {

namespace {

// For the address. The kernel does not always notice that a neighbour has answered (Linux 6.1, the first connection between two
// interfaces), and finds the answer only when this time is over: it is short, and there are many tries.
constexpr int resolve_ms = 50;
constexpr std::uint32_t resolve_tries = 30;
// For the path, which InfiniBand asks the subnet manager for: that has many askers when a job begins.
constexpr int path_ms = 2000;
constexpr std::size_t full_hello = 56;

/// `bytes` behind their length, because the connection manager pads what it carries.
std::vector<std::byte> with_length(std::span<const std::byte> bytes) {
    std::vector<std::byte> all(1 + bytes.size());
    all[0] = static_cast<std::byte>(bytes.size());
    std::ranges::copy(bytes, all.begin() + 1);
    return all;
}

/// What with_length() made; false when malformed.
bool without_length(std::vector<std::byte>& bytes) {
    if (bytes.empty() || static_cast<std::size_t>(bytes.front()) >= bytes.size()) return false;
    bytes.resize(1 + static_cast<std::size_t>(bytes.front()));
    bytes.erase(bytes.begin());
    return true;
}

rdma_conn_param parameters(std::span<const std::byte> data) {
    rdma_conn_param made{};
    made.private_data = data.data();
    made.private_data_len = static_cast<std::uint8_t>(data.size());
    made.responder_resources = RDMA_MAX_RESP_RES;  // reads at a time, in either direction: what both devices can
    made.initiator_depth = RDMA_MAX_INIT_DEPTH;
    made.retry_count = 7;
    made.rnr_retry_count = 7;  // without end; credits see to it that it never comes to this
    return made;
}

std::string peer_of(rdma_cm_id* id) {
    const auto address = base::IpAddress::from_sockaddr(*rdma_get_peer_addr(id));
    return fmt::format("{}:{}", address.text(), ntohs(rdma_get_dst_port(id)));
}

}  // namespace

LinkId Rail::refuse_to_connect(std::string_view cause) {
    Link& link = new_link(Phase::resolving, nullptr);
    end(link, cause);
    return link.id;
}

LinkId Rail::connect(std::span<const std::byte> address, std::span<const std::byte> hello) {
    [[maybe_unused]] const auto scope = guard_.enter();
    if (down_) return refuse_to_connect("the rail is down");
    if (hello.size() > traits_.max_hello) return refuse_to_connect("the hello is too long");
    const auto remote = RailAddress::parse(address);
    if (!remote) return refuse_to_connect("the address of the other side is malformed");
    if (remote->at.family != address_.at.family) return refuse_to_connect("its address is of another family");
    rdma_cm_id* made = nullptr;
    if (rdma_create_id(channel_.get(), &made, nullptr, RDMA_PS_TCP) != 0) {
        return refuse_to_connect(fmt::format("no connection: {}", std::strerror(errno)));
    }
    Link& link = new_link(Phase::resolving, CmId(made));
    link.full_hello = hello.size() == full_hello;
    link.hello = link.full_hello ? std::vector(hello.begin(), hello.end()) : with_length(hello);
    link.label = fmt::format("{} - {}", address_.at.text(), remote->at.text());
    resolve(link, remote->at.to_sockaddr(link.full_hello ? remote->full_port : remote->short_port));
    return link.id;
}

void Rail::resolve(Link& link, sockaddr_storage to) {
    ++link.resolves;
    auto from = address_.at.to_sockaddr(0);
    auto* const source = reinterpret_cast<sockaddr*>(&from);
    auto* const target = reinterpret_cast<sockaddr*>(&to);
    if (rdma_resolve_addr(link.connection.get(), source, target, resolve_ms) != 0) {
        end(link, explain(RDMA_CM_EVENT_ADDR_ERROR, -errno));
    }
}

void Rail::accept(LinkId id, std::span<const std::byte> reply) {
    [[maybe_unused]] const auto scope = guard_.enter();
    Link* link = links_.find(id);
    if (link == nullptr || link->phase != Phase::requested) return;
    if (!works(device_.get(), port_)) return end(*link, "the port is down");
    if (!make_queue(*link)) {
        if (link->phase == Phase::free) return;
        rdma_reject(link->connection.get(), nullptr, 0);
        return end(*link, link->cause);
    }
    const auto data = with_length(reply.first(std::min<std::size_t>(reply.size(), traits_.max_reply)));
    auto how = parameters(data);
    if (rdma_accept(link->connection.get(), &how) != 0) {
        return end(*link, fmt::format("it cannot be accepted: {}", std::strerror(errno)));
    }
    link->phase = Phase::accepting;
}

void Rail::refuse(LinkId id, std::span<const std::byte> reply) {
    [[maybe_unused]] const auto scope = guard_.enter();
    Link* link = links_.find(id);
    if (link == nullptr || link->phase != Phase::requested) return;
    if (!works(device_.get(), port_)) return end(*link, "the port is down");
    const auto data = with_length(reply.first(std::min<std::size_t>(reply.size(), traits_.max_reply)));
    rdma_reject(link->connection.get(), data.data(), static_cast<std::uint8_t>(data.size()));
    end(*link, "refused here");
}

/// A queue pair for the link, and buffers for what comes over it. False, with the cause in the link, where that fails.
bool Rail::make_queue(Link& link) {
    if (queues_ == queues_max_) {
        link.cause = fmt::format("the rail has {} links, and no room for more; use other rails, too", queues_);
        return false;
    }
    int code = make_room();
    if (code == 0) {
        ibv_qp_init_attr wanted{};
        wanted.send_cq = wanted.recv_cq = completions_.get();
        wanted.srq = receives_.get();
        wanted.qp_type = IBV_QPT_RC;
        wanted.cap = {.max_send_wr = send_queue_depth,
                      .max_recv_wr = 0,
                      .max_send_sge = 1,
                      .max_recv_sge = 0,
                      .max_inline_data = inline_bytes};
        code = rdma_create_qp(link.connection.get(), domain_.get(), &wanted) == 0 ? 0 : errno;
        if (code != 0 && code != ENOMEM) {  // some devices carry nothing in a work request
            wanted.cap.max_inline_data = 0;
            code = rdma_create_qp(link.connection.get(), domain_.get(), &wanted) == 0 ? 0 : errno;
        }
        link.inlined = std::min(wanted.cap.max_inline_data, inline_bytes);
    }
    if (code != 0) {
        link.cause = in_words(failure("a queue pair with its buffers", "it cannot be made", code));
        return false;
    }
    link.queue = link.connection->qp->qp_num;
    by_queue_[link.queue] = link.id;
    ++queues_;
    post_receives();
    return !down_;  // then every link has ended, this one, too
}

/// For the completions and frames of one more link.
int Rail::make_room() {
    const auto completions = (queues_ + 1) * (send_queue_depth + receives_per_link) + receives_in_reserve;
    if (completions > static_cast<std::uint32_t>(completions_->cqe)) {
        // For twice as many, so that this is seldom; if the device has no such queue, for what is needed.
        const auto wanted = std::max(completions, std::min(2 * completions, most_completions_));
        if (const int code = ibv_resize_cq(completions_.get(), static_cast<int>(wanted)); code != 0) return code;
    }
    const auto buffers = (queues_ + 1) * receives_per_link + receives_in_reserve;
    const auto there = receive_slabs_.total();
    return buffers > there ? receive_slabs_.grow(domain_.get(), buffers - there) : 0;
}

// --- The connection manager ------------------------------------------------------------------------------------------

bool Rail::next_news(News& news) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel_.get(), &event) != 0) return false;
    const auto& about = event->param.conn;
    const auto* data = static_cast<const std::byte*>(about.private_data);
    const bool carries = event->event == RDMA_CM_EVENT_CONNECT_REQUEST || event->event == RDMA_CM_EVENT_ESTABLISHED ||
                         event->event == RDMA_CM_EVENT_REJECTED;
    news = {event->event, event->status, event->id, event->listen_id, {}};
    if (carries && data != nullptr) news.data.assign(data, data + about.private_data_len);
    rdma_ack_cm_event(event);  // first: a connection does not end before its events are acknowledged
    return true;
}

void Rail::take_news(News& news) {
    if (news.kind == RDMA_CM_EVENT_CONNECT_REQUEST) return take_request(news);
    if (news.kind == RDMA_CM_EVENT_DEVICE_REMOVAL) return rail_gone("device " + port_.device + " is gone");
    auto* link = static_cast<Link*>(news.id->context);  // none at a listener
    if (link == nullptr || link->phase == Phase::draining) return;
    switch (news.kind) {
        case RDMA_CM_EVENT_ADDR_RESOLVED:
            if (rdma_resolve_route(news.id, path_ms) != 0) end(*link, explain(RDMA_CM_EVENT_ROUTE_ERROR, -errno));
            break;
        case RDMA_CM_EVENT_ADDR_ERROR:
            if (news.status != -ETIMEDOUT || link->resolves == resolve_tries) {
                return end(*link, explain(news.kind, news.status));
            }
            resolve(*link, link->connection->route.addr.dst_storage);
            break;
        case RDMA_CM_EVENT_ROUTE_RESOLVED: send_request(*link); break;
        case RDMA_CM_EVENT_ESTABLISHED:
            if (link->phase == Phase::awaiting_reply && !without_length(news.data)) {
                link->phase = Phase::up;  // so that the other side is told
                return end(*link, "its reply is malformed: is that a railmux process?");
            }
            established(*link, link->phase == Phase::awaiting_reply ? news.data : std::vector<std::byte>{});
            break;
        case RDMA_CM_EVENT_REJECTED: {
            const bool refused = link->phase == Phase::awaiting_reply && without_length(news.data);
            end(*link, explain(news.kind, news.status), refused ? news.data : std::vector<std::byte>{});
            break;
        }
        case RDMA_CM_EVENT_DISCONNECTED: end(*link, "closed by the other side"); break;
        case RDMA_CM_EVENT_TIMEWAIT_EXIT: break;
        default: end(*link, explain(news.kind, news.status)); break;
    }
}

void Rail::take_request(News& news) {
    CmId connection(news.id);
    if (down_) return let_go(std::move(connection));
    const bool full = news.listener == full_listener_.get();
    const bool whole = full ? news.data.size() >= full_hello : without_length(news.data);
    if (!whole) {
        log_.warning("rail {}: a request from {} is malformed; refused", traits_.name, peer_of(news.id));
        rdma_reject(news.id, nullptr, 0);
        return;
    }
    if (full) news.data.resize(full_hello);
    Link& link = new_link(Phase::requested, std::move(connection));
    link.label = fmt::format("{} - {}", address_.at.text(), peer_of(news.id));
    events_.tell({.kind = EventKind::connect_request, .link = link.id}, {}, news.data);
}

void Rail::send_request(Link& link) {
    if (!works(device_.get(), port_)) return end(link, "the port is down");
    if (!make_queue(link)) return end(link, link.cause);
    auto how = parameters(link.hello);
    if (rdma_connect(link.connection.get(), &how) != 0) {
        return end(link, fmt::format("no request can be sent: {}", std::strerror(errno)));
    }
    link.phase = Phase::awaiting_reply;
}

void Rail::established(Link& link, std::span<const std::byte> reply) {
    if (link.phase != Phase::awaiting_reply && link.phase != Phase::accepting) return;  // its first frame was faster
    link.phase = Phase::up;
    link.label += fmt::format(" (queue pair {})", link.queue);
    events_.tell({.kind = EventKind::link_up, .link = link.id}, {}, reply);
}

}  // namespace railmux::transports::verbs
