#include "transports/ofi/rail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/crypto.hpp"

namespace railmux::transports::ofi {

namespace {

// How long a rail that goes tries to say so. Enough for any fabric; whoever does not hear it learns by the silence.
constexpr base::Nanoseconds parting = 50 * base::millisecond;

std::uint64_t speed_of(const fi_info& info) {
    return info.nic != nullptr && info.nic->link_attr != nullptr ? info.nic->link_attr->speed : 0;
}

}  // namespace

Rail::Rail(std::string name, Port port, Common& common, base::Logger& log)
    : log_(log),
      common_(common),
      port_(std::move(port)),
      address_(RailAddress::of(port_, common.owner)),
      encoded_address_(address_.encode()),
      inject_bytes_(std::min(inject_most, port_.info->tx_attr->inject_size)),
      send_buffers_(port_),
      receive_buffers_(port_),
      peers_(port_) {
    traits_ = {.name = std::move(name),
               .identity = address_.provider + " " + address_.fabric,
               .max_frame = piece_bytes,
               .max_hello = max_hello,
               .max_reply = max_reply,
               .max_segments = max_segments,
               .tx_depth = tx_depth,
               .max_put = largest_put,
               .put = true,
               .notify = true,
               .events = port_.descriptor >= 0,
               .ordered = true,
               .keepalive = true,
               .posts_need_polls = true,
               .shared = !address_.stays_on_host(),  // whose speed is that of memory, which has no queue
               .copies_puts = true,
               .speed_bps = speed_of(*port_.info)};
}

Rail::~Rail() {
    part();
    send_buffers_.unregister();
    receive_buffers_.unregister();
    if (port_.outlives_rail()) {
        common_.outliving.push_back(std::move(port_));  // without progress nothing touches the buffers
    } else {
        port_.endpoint.reset();  // nor now
    }
}

/// Tells the other sides, and waits a moment for the provider to carry it.
void Rail::part() {
    links_.for_each([&](Link& link) {
        if (link.phase != Phase::free) say_bye(link);
    });
    const auto until = base::now_ns() + parting;
    while ((!greetings_.empty() || send_buffers_.on_their_way() > 0) && base::now_ns() < until) {
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
        link.label = address_text(port_.peers.get(), port_.name.data()) + " - " + peer->label;
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
    for (const auto& early : link.early) receive_buffers_.drop_view(*early.buffer);
    link.early.clear();
    if (link.peer != nullptr) peers_.release(*link.peer);
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
