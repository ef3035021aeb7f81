// RailManager: what becomes of links and rails that are lost: noting it, asking for them anew, and telling.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "rails/rail_manager.hpp"

namespace railmux::rails {

namespace {

// One try to connect anew: long enough for a handshake on a busy host; what is slower by its model gets ten round trips more.
constexpr base::Nanoseconds shortest_try = 400 * base::millisecond;
constexpr base::Nanoseconds latencies_per_try = 20;

double seconds(base::Nanoseconds time) { return static_cast<double>(time) / static_cast<double>(base::second); }

Recovery::Pair pair_of(const Link& link) { return {link.peer, link.rail, link.remote_rail}; }

}  // namespace

/// A live link died, and nobody meant it to. It still stands among those of its peer.
void RailManager::lose(const Link& link, std::string_view cause, base::Nanoseconds now) {
    auto& known = peers_[link.peer];
    const auto& name = rails_[link.rail].traits().name;
    ++known.traffic[link.rail].links_lost;
    const auto what = fmt::format("rail {}: link {} to {} lost: {}", name, link.label, peers_.name(link.peer), cause);
    // All that was sent has arrived then, or the closing says that it has not, and what comes is for nobody: the peer may just
    // have left, too, and said so over another link.
    if (leaving_.said_goodbye()) {
        log_.info("{}", what);
    } else {
        log_.warning("{}", what);
    }
    const auto latency = known.talk->costs[link.place].latency / sched::ticks_per_ns;
    recovery_.lost({.pair = pair_of(link),
                    .label = link.label,
                    .cause = std::string(cause),
                    .ours = link.initiated,
                    .stands_in = link.stands_in,
                    .corrupted = link.corrupted,
                    .limit = shortest_try + latencies_per_try * latency},
                   now);
    schedule(recovery_.next_due());
    // What is corrupted by a rail is corrupted on each of its paths.
    if (link.initiated && !link.corrupted && std::ranges::find(bereft_, link.peer) == bereft_.end()) {
        bereft_.push_back(link.peer);
        schedule(now);
    }
    tell_lost(link, now);
    upper_.on_rail_news({.up = false, .rail = link.rail, .peer = link.peer, .cause = std::string(cause)});
}

/// Tells the peer over the links that are left: the network may not have told it, and what it sends here would go nowhere.
void RailManager::tell_lost(const Link& link, base::Nanoseconds now) {
    std::array<std::byte, sizeof link.nonce> body;
    base::store(body.data(), link.nonce);
    for (const auto slot : peers_[link.peer].talk->links) {
        if (slot != link.slot) outboxes_.enqueue(links_.at(slot), probe_frame(pool_, FrameType::lost, body), now);
    }
}

/// The peer lost one of our links. False: that is malformed.
bool RailManager::lost_there(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now) {
    if (body.size() != sizeof(Link::nonce)) return false;
    const auto nonce = base::load<std::uint64_t>(body.data());
    for (const auto slot : std::vector(peers_[peer].talk->links)) {
        if (Link& link = links_.at(slot); link.nonce == nonce) break_off(link, "the other side lost it", now);
    }
    return true;
}

/// A link is live.
void RailManager::note_back(const Link& link, base::Nanoseconds now) {
    const auto lost = recovery_.back(pair_of(link), now);
    if (!lost) return;
    if (lost->missed) return;
    ledger_.restored(link.rail, now);
    const auto down = now - lost->since;
    log_.warning("rail {}: link {} to {} is back after {:.3f} s; it was lost: {}", rails_[link.rail].traits().name,
                 link.label, peers_.name(link.peer), seconds(down), lost->cause);
    upper_.on_rail_news({.up = true, .rail = link.rail, .peer = link.peer, .cause = lost->cause, .down = down});
}

/// Asks anew for links whose time has come. A peer without any link is looked for with all its rails (connect_waiting), and so
/// is one that was connected while a rail was down.
void RailManager::recover(base::Nanoseconds now) {
    const auto waiting = std::exchange(incomplete_, {});
    for (const auto peer : waiting) {
        if (peers_[peer].talk == nullptr || peers_[peer].left) continue;
        if (connected(peer) && !connector_.trying(peer)) {
            connector_.start(peer, now);
        } else {
            incomplete_.push_back(peer);  // attach and attempt_over look again
        }
    }
    replace_lost(now);
    const auto may = [&](std::uint32_t peer, std::uint32_t rail) { return rails_[rail].up && connected(peer); };
    while (const auto due = recovery_.take_due(now, may)) {
        const auto& [peer, rail, remote_rail] = due->pair;
        const bool insists = !due->missed && !due->stands_in;
        if (!insists && connector_.redundant(peer, rail, remote_rail)) {  // others have come since
            recovery_.forget(due->pair);
            continue;
        }
        if (!connector_.retry(peer, rail, remote_rail, due->limit, insists, now)) recovery_.failed(due->pair, now);
    }
    schedule(recovery_.next_due());
}

/// Where the path of a link is dead and its rails work, other paths may join them to the peer's. One side looks for them: the
/// one that asks for the link anew.
void RailManager::replace_lost(base::Nanoseconds now) {
    constexpr std::size_t at_once = 16;  // each may take some system calls, and what was lost waits to be sent again
    const auto waiting = std::exchange(bereft_, {});
    const auto now_due = std::min(waiting.size(), at_once);
    for (const auto peer : std::span(waiting).first(now_due)) {
        const auto& known = peers_[peer];
        if (known.talk == nullptr || known.left || known.ended || !connected(peer) || leaving_.said_goodbye()) continue;
        if (!connector_.replace(peer, now)) bereft_.push_back(peer);  // attempt_over looks again
    }
    const auto later = std::span(waiting).subspan(now_due);
    bereft_.insert(bereft_.end(), later.begin(), later.end());
    if (!later.empty()) schedule(now);
}

void RailManager::replacing_over(base::Nanoseconds now) {
    if (!incomplete_.empty() || !bereft_.empty()) schedule(now);
}

/// Tells those that we talk with where this process is now.
void RailManager::tell_address(const ProcessAddress& own, base::Nanoseconds now) {
    const auto bytes = own.encode();
    for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
        const auto& known = peers_[peer];
        if (known.left || known.talk == nullptr || !known.talk->linked || known.instance == own.instance) continue;
        Frame* frame = pool_.take(FrameHeader::size + bytes.size());
        frame->type = FrameType::address;
        frame->flags = frame_flag::ordered;  // the newest comes last
        frame->bytes = static_cast<std::uint32_t>(FrameHeader::size + bytes.size());
        std::ranges::copy(bytes, frame->data() + FrameHeader::size);
        send(peer, frame, now);
    }
}

/// A peer is elsewhere, or has further rails there. False: that is malformed, or somebody else's address.
bool RailManager::moved(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now) {
    const auto address = ProcessAddress::parse(body);
    if (!address || address->instance != peers_[peer].instance) return false;
    peers_.learn(peer, address->instance, body);
    // There may be pairs that were not there before.
    if (std::ranges::find(incomplete_, peer) == incomplete_.end()) incomplete_.push_back(peer);
    schedule(now);
    return true;
}

bool RailManager::is_lost(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail) const {
    return recovery_.is_lost({peer, rail, remote_rail});
}

bool RailManager::resting(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail,
                          base::Nanoseconds now) const {
    return recovery_.resting({peer, rail, remote_rail}, now);
}

void RailManager::pair_failed(const Link& link, std::string_view cause, bool hopeless, base::Nanoseconds now) {
    const auto pair = pair_of(link);
    if (!link.retried && !hopeless) {
        recovery_.missed({.pair = pair,
                          .label = link.label,
                          .cause = std::string(cause),
                          .ours = true,
                          .limit = Recovery::longest_try},  // nothing is known of it yet
                         now);
    }
    recovery_.failed(pair, now);
    schedule(recovery_.next_due());
}

/// What is known of the loss of each link to the peer, for people, one line each.
std::string RailManager::losses(std::uint32_t peer, base::Nanoseconds now) const {
    std::string lines;
    for (const auto& lost : recovery_.of(peer)) {
        lines += fmt::format("rail {} ({}): {}; lost {:.1f} s ago\n", rails_[lost.pair.rail].traits().name, lost.label,
                             lost.cause, seconds(now - lost.since));
    }
    return lines;
}

void RailManager::on_rail_down(std::uint32_t rail, std::string_view cause, base::Nanoseconds now) {
    auto& local = rails_[rail];
    local.up = false;
    local.polled = local.traits().comes_back;
    watched_of_ = 0;
    local.down_since = now;
    local.info.reason = std::string(cause);
    log_.warning("rail {} down: {}", local.traits().name, cause);
    upper_.on_rail_news({.up = false, .rail = rail, .cause = std::string(cause)});
}

void RailManager::on_rail_up(std::uint32_t rail, base::Nanoseconds now) {
    auto& local = rails_[rail];
    if (std::exchange(local.up, true)) return;
    const auto cause = std::exchange(local.info.reason, {});
    const auto down = now - local.down_since;
    log_.warning("rail {} is up again after {:.3f} s; it was down: {}", local.traits().name, seconds(down), cause);
    recovery_.rail_up(rail, now);
    const auto address = local.rail->address();
    if (!std::ranges::equal(address, local.told_address)) {
        local.told_address.assign(address.begin(), address.end());
        upper_.on_address_changed();
    }
    connect_all_anew(now);
    upper_.on_rail_news({.up = true, .rail = rail, .cause = cause, .down = down});
}

/// There are pairs of rails that there were not before.
void RailManager::connect_all_anew(base::Nanoseconds now) {
    incomplete_.clear();
    for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
        auto* talk = peers_[peer].talk.get();
        if (talk == nullptr) continue;
        talk->next_attempt = now;
        incomplete_.push_back(peer);
    }
    schedule(now);
}

/// Takes up interfaces that there were not when the context began.
void RailManager::take_new_rails(base::Nanoseconds now) {
    if (now < next_scan_) return schedule(next_scan_);
    const auto before = static_cast<std::uint32_t>(rails_.size());
    next_scan_ = rails_.open_new(options_.fragment) ? never : now + scan_delay;
    schedule(next_scan_);
    if (rails_.size() == before) return;
    watched_of_ = 0;
    eager_.measure_new_rails();
    for (auto rail = before; rail < rails_.size(); ++rail) {
        log_.warning("rail {} is new, and used from now on", rails_[rail].traits().name);
        posts_need_polls_ = posts_need_polls_ || rails_[rail].traits().posts_need_polls;
        share_with_node(rail);
        upper_.on_rail_news({.up = true, .rail = rail, .cause = "it is new"});
    }
    upper_.on_address_changed();
    connect_all_anew(now);
}

}  // namespace railmux::rails
