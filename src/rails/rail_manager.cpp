#include "rails/rail_manager.hpp"

#include <cassert>
#include <limits>

namespace railmux::rails {

namespace {
// Between attempts while operations wait: soon enough for a peer that is just starting, rare enough to burden nobody.
constexpr base::Nanoseconds first_back_off = 20 * base::millisecond;
constexpr base::Nanoseconds longest_back_off = base::second;

/// For these rails.
RailManager::Options fit(RailManager::Options options, const RailSet& rails) {
    for (std::uint32_t rail = 0; rail < rails.size(); ++rail) {  // a piece may go another way than it was cut for
        options.fragment = std::min(options.fragment, rails[rail].traits().max_put);
    }
    return options;
}

}  // namespace

RailManager::RailManager(Options options, RailSet& rails, sched::Policy& policy, Upper& upper, base::Logger& log)
    : options_(fit(std::move(options), rails)),
      rails_(rails),
      policy_(policy),
      upper_(upper),
      log_(log),
      links_(rails.capacity()),
      regions_(rails_, peers_, links_, log_),
      connector_(options_.connector, rails_, links_, peers_, pool_, *this, log),
      recovery_(options_.recovery, options_.connector.self.instance),
      assessor_(options_.assessor, options_.clock, rails_, links_, peers_, pool_, *this, log),
      flooder_(links_, pool_, assessor_),
      ledger_(rails.capacity(), policy, peers_, links_, rounds_.looks(), keeping_up_),
      outboxes_(options_.clock, rails_, peers_, links_, ledger_, keeping_up_, pool_, *this),
      lead_finder_(policy_, ledger_, links_),
      plan_(rails_, policy_, upper_, ledger_, peers_, links_, regions_),
      feeder_(options_.fragment, peers_, links_, plan_, ledger_, regions_, pool_, upper_, *this),
      eager_(options_.eager, rails_, links_),
      watcher_(options_.watching, largest_get(options_.fragment), rails_, peers_, links_, pool_, *this),
      groups_(rails_, peers_, links_, ledger_, eager_, log_),
      survey_(rails_, peers_, links_, {.ledger = ledger_, .eager = eager_, .groups = groups_}, assessor_, flooder_),
      owed_acks_(options_.acks),
      ack_route_(policy_, ledger_, links_, owed_acks_.delay()),
      settling_(rails_, peers_, links_, pool_, ack_route_, *this),
      leaving_(rails_, peers_, links_, pool_, *this) {
    for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
        posts_need_polls_ = posts_need_polls_ || rails_[rail].traits().posts_need_polls;
        share_with_node(rail);
    }
    if (!options_.tracer.wanted()) return;
    tracer_ = std::make_unique<Tracer>(options_.tracer, options_.clock(), rails_, policy_, links_, peers_, log_);
    ledger_.tell(tracer_.get());
}

RailManager::~RailManager() = default;

/// Shares what is on the rail with the other processes of this node. What keeps it from that is said once; all else works.
void RailManager::share_with_node(std::uint32_t rail) {
    const auto& traits = rails_[rail].traits();
    if (!options_.share_node || !traits.shared) return;
    if (!node_table_) {
        auto table = NodeTable::open();
        if (!table) {
            log_.warning("the load of other processes of this host is not seen: {}; {}", table.error().what(),
                         table.error().cure());
            options_.share_node = false;
            return;
        }
        node_table_.emplace(std::move(table.value()));
        ledger_.node().join(node_table_->table(), NodeTable::new_owner(), &NodeTable::alive);
    }
    if (ledger_.node().share(rail, sched::device_number(traits.name))) return;
    log_.warning("rail {}: its load is not shown to other processes of this host: {} is full", traits.name,
                 node_table_->path());
}

// --- Peers -----------------------------------------------------------------------------------------------------------

ProcessAddress RailManager::own_address(std::string host, std::uint32_t pid) const {
    const auto& self = options_.connector.self;
    return {
        .instance = self.instance, .rank = self.rank, .pid = pid, .host = std::move(host), .rails = rails_.addresses()};
}

std::uint32_t RailManager::learn(const ProcessAddress& address, Source source) {
    const auto peer = peers_.of_instance(address.instance, address.rank);
    const auto standing = peers_.standing(peer, address.instance);
    if (standing == PeerTable::Standing::predecessor) return peer;  // old news
    if (standing == PeerTable::Standing::successor) {
        if (const auto& known = peers_[peer]; source == Source::job && !known.left && !known.ended) {
            peers_.note_predecessor(peer, address.instance);  // the one we know was quicker than the news of this one
            return peer;
        }
        follow_session(peer, address.instance, 0);
    }
    peers_.learn(peer, address.instance, address.encode());
    if (const auto* talk = peers_[peer].talk.get(); talk != nullptr && talk->wanted) schedule(0);
    return peer;
}

Conversation& RailManager::begin_talk(Known& known) {
    known.talk = std::make_unique<Conversation>(pool_);
    known.talk->acks_wanted = tracer_ != nullptr;
    if (known.traffic == nullptr) known.traffic = std::make_unique<Traffic[]>(rails_.capacity());
    return *known.talk;
}

void RailManager::want(std::uint32_t peer, base::Nanoseconds now) {
    auto& known = peers_[peer];
    if (known.left) {
        upper_.on_peer_gone(peer, ErrorCode::peer_left);
        return;
    }
    auto& talk = talk_to(peer);
    if (talk.wanted || !talk.links.empty()) return;
    known.failed = ErrorCode::ok;
    talk.wanted = true;
    talk.give_up = known.ended ? now : now + (talk.linked ? options_.lost_patience : options_.patience);
    talk.next_attempt = now;
    talk.back_off = first_back_off;
    talk.worst = ErrorCode::unreachable;
    connecting_.push_back(peer);
    schedule(0);  // the attempt starts in the next poll, not under the feet of whoever asked
    if (known.address.empty() && !known.ended) upper_.on_address_wanted(peer);
}

void RailManager::note_got(std::uint32_t peer, std::uint32_t rail, std::uint64_t bytes) noexcept {
    peers_[peer].traffic[rail].sent_bytes += bytes;
}

bool RailManager::connected(std::uint32_t peer) const noexcept {
    const auto* talk = peers_[peer].talk.get();
    return talk != nullptr && !talk->links.empty();
}

bool RailManager::idle(std::uint32_t peer) const noexcept {
    const auto* talk = peers_[peer].talk.get();
    return talk == nullptr || (talk->session.all_acknowledged() && talk->waiting.empty());
}

void RailManager::connect_waiting(base::Nanoseconds now) {
    const auto waiting = std::exchange(connecting_, {});
    for (const auto peer : waiting) {
        auto* talk = peers_[peer].talk.get();
        if (talk == nullptr || !talk->links.empty() || !talk->wanted) continue;
        if (now >= talk->give_up) {
            connector_.abandon(peer, now);
            if (peers_[peer].ended) {
                end_of_process(peer, now);
            } else {
                fail(peer, talk->worst, now);
            }
            continue;
        }
        connecting_.push_back(peer);
        schedule(talk->give_up);
        if (connector_.trying(peer) || peers_[peer].address.empty()) continue;
        if (now >= talk->next_attempt) {
            connector_.start(peer, now);
        } else {
            schedule(talk->next_attempt);
        }
    }
}

void RailManager::attempt_over(std::uint32_t peer, base::Nanoseconds now) {
    replacing_over(now);
    auto* talk = peers_[peer].talk.get();
    if (talk == nullptr || !talk->links.empty() || !talk->wanted) return;
    if (!peers_[peer].ended) upper_.on_address_wanted(peer);  // it may be elsewhere by now
    if (talk->worst != ErrorCode::unreachable) {
        talk->give_up = now;  // a wrong key or version does not become right by waiting
    }
    talk->next_attempt = now + talk->back_off;
    talk->back_off = std::min(talk->back_off * 2, longest_back_off);
    schedule(std::min(talk->next_attempt, talk->give_up));
}

void RailManager::forgo(std::uint32_t peer, const Error& cause, base::Nanoseconds now) {
    auto* talk = peers_[peer].talk.get();
    if (talk == nullptr || !talk->wanted) return;
    talk->causes += fmt::format("{}; {}\n", cause.what(), cause.cure());
    fail(peer, cause.code(), now);
}

void RailManager::give_up(std::uint32_t peer, std::string_view cause, base::Nanoseconds now) {
    talk_to(peer).causes += fmt::format("{}\n", cause);
    fail(peer, ErrorCode::peer_lost, now);
}

void RailManager::fail(std::uint32_t peer, ErrorCode code, base::Nanoseconds now) {
    auto& known = peers_[peer];
    known.failed = code;
    auto causes = losses(peer, now) + known.talk->causes;
    if (causes.empty()) {
        causes = known.address.empty() ? "it has not joined the job\n" : "no pair of rails reaches it\n";
    }
    known.failure = std::make_unique<std::string>(std::move(causes));
    if (!known.loss_told) log_.warning("{} given up: {}", peers_.name(peer), to_string(code));
    end_session(peer, static_cast<std::uint8_t>(known.epoch + 1), code);
    known.loss_told = known.ended;
}

void RailManager::end_session(std::uint32_t peer, std::uint8_t next_epoch, ErrorCode code) {
    auto& known = peers_[peer];
    known.epoch = next_epoch;
    connector_.session_over(peer, now_);
    recovery_.forget(peer);
    ledger_.charge_late();  // what is charged can be released
    if (known.talk != nullptr) {
        for (const auto slot : known.talk->links) survey_.keep(links_.at(slot), now_);
    }
    const auto talk = std::move(known.talk);
    if (talk == nullptr) return;  // it had not begun
    for (const auto slot : talk->links) {
        Link& link = links_.at(slot);
        rails_[link.rail].rail->disconnect(link.id);
        link.state = LinkState::closing;
        link.leaving = false;  // its end is none of the next session's
        link.lane = nullptr;
        assessor_.link_down(link);
        flooder_.link_down(link);
    }
    plan_.drop(*talk);
    feeder_.forget(peer);
    const auto let_go = [&](Frame& frame) {
        ledger_.uncharge(frame, now_);
        frame.acked = frame.abandoned = true;
        outboxes_.release_if_free(peer, frame);
    };
    upper_.on_peer_gone(peer, code);  // before it is told of frames that were not delivered
    talk->session.for_each_unacknowledged(let_go);
    while (!talk->waiting.empty()) let_go(*talk->waiting.pop());
    assert(balanced());
}

void RailManager::follow_session(std::uint32_t peer, std::uint64_t instance, std::uint8_t epoch) {
    auto& known = peers_[peer];
    const bool succeeded = peers_.standing(peer, instance) == PeerTable::Standing::successor;
    if (succeeded) log_.info("{} was started anew: the session with its predecessor is over", peers_.name(peer));
    peers_.learn(peer, instance, {});
    if (!succeeded && epoch == known.epoch) return;
    const auto code = known.left ? ErrorCode::peer_left : ErrorCode::peer_lost;
    if (succeeded) {  // how the other one ended, and where it was, says nothing of this one
        known.left = known.ended = known.loss_told = false;
        known.failed = ErrorCode::ok;
        known.failure.reset();
        known.address.clear();
    }
    end_session(peer, epoch, code);
}

// --- Links -----------------------------------------------------------------------------------------------------------

void RailManager::link_proven(Link& link, base::Nanoseconds now) {
    link.state = LinkState::live;
    link.was_live = true;
    link.since = now;
    log_.debug("rail {}: link {} to {} up", rails_[link.rail].traits().name, link.label, peers_.name(link.peer));
    attach(link, now);
    note_back(link, now);
    leaving_.link_up(link);
}

void RailManager::attach(Link& link, base::Nanoseconds now) {
    const auto peer = link.peer;
    auto& talk = talk_to(peer);
    const auto& traits = rails_[link.rail].traits();
    const auto speed = rails_[link.rail].speed_bps();
    link.quiet_max = traits.quiet_max;
    link.at_once_max = link.checksum ? 0 : traits.quiet_max;
    link.chains = traits.chains;
    link.over_rail = rails_[link.rail].rail.get();
    link.traffic = &peers_[peer].traffic[link.rail];
    if (!link.checksum && !leaving_.said_goodbye() && !peers_[peer].left) link.lane = &talk;
    std::erase_if(link.traffic->ended, [&](const auto& ended) { return ended.remote_rail == link.remote_rail; });
    if (talk.links.empty()) recovery_.connected(peer, now);
    std::size_t place = 0;
    while (place < talk.links.size() && talk.candidates[place].speed_bps >= speed) ++place;
    const auto at = static_cast<std::ptrdiff_t>(place);
    talk.links.insert(talk.links.begin() + at, link.slot);
    talk.candidates.insert(talk.candidates.begin() + at, sched::Candidate{.rail = link.rail,
                                                                          .speed_bps = speed,
                                                                          .nominal = sched::nominal_per_byte(speed),
                                                                          .stream = traits.stream,
                                                                          .by_processors = traits.by_processors});
    talk.costs.insert(talk.costs.begin() + at, sched::Cost{});
    talk.claims.insert(talk.claims.begin() + at, 0);
    number_links(talk);
    assessor_.link_up(link, now);
    talk.follows = options_.connector.self.instance > peers_[peer].instance;
    talk.linked = true;
    peers_[peer].loss_told = false;
    schedule(watcher_.link_up(now));
    talk.wanted = false;
    talk.causes.clear();
    outboxes_.mark(link);  // the proof, if it was ours to give
    reroute(peer, no_link, now);
    // Perhaps nobody has anything to say, and what was taken while there was no link is still to be told.
    if (talk.owed.any()) hurry_ack(peer, talk);
    feeder_.link_up(link, now);
    if (!incomplete_.empty()) schedule(now);
    schedule(recovery_.next_due());
    upper_.on_sendable(peer);
}

void RailManager::model_changed(Link& link) {
    auto& talk = *peers_[link.peer].talk;
    talk.costs[link.place] = Survey::cost_by(link.assessed->model);
    eager_.choose(talk);
}

void RailManager::link_dropped(Link& link, base::Nanoseconds now) {
    ledger_.charge_late();  // its frames are about to go elsewhere
    survey_.keep(link, now_);
    detach(link);
    assessor_.link_down(link);
    flooder_.link_down(link);
    auto& known = peers_[link.peer];
    // Without a link and without a goodbye the peer must be found again, or given up: whoever waits to receive from it would
    // otherwise wait for ever.
    if (!known.talk->links.empty() || known.left || link.leaving) return;
    want(link.peer, now);
    // One that ends as soon as it begins would do so again.
    if (now - link.since < first_back_off) known.talk->next_attempt = now + first_back_off;
}

void RailManager::detach(Link& link) {
    auto& talk = *peers_[link.peer].talk;
    const auto place = std::find(talk.links.begin(), talk.links.end(), link.slot);
    if (place == talk.links.end()) return;
    const auto at = place - talk.links.begin();
    link.lane = nullptr;
    plan_.drop(talk);
    talk.claims.erase(talk.claims.begin() + at);
    talk.costs.erase(talk.costs.begin() + at);
    talk.candidates.erase(talk.candidates.begin() + at);
    talk.links.erase(place);
    number_links(talk);
    Groups::forget(talk, link);
    eager_.choose(talk);
}

void RailManager::number_links(Conversation& talk) noexcept {
    watched_of_ = 0;
    talk.followed = {};
    talk.leads = {};
    talk.light_contest = {sched::Contest::Kind::light, talk.links.size()};
    talk.heavy_contest = {sched::Contest::Kind::heavy, talk.links.size()};
    talk.spreading = {};
    for (auto& candidate : talk.candidates) candidate.turn = candidate.first_turn = 0;
    talk.division = {};
    talk.refreshed = Conversation::not_yet;
    talk.only = Conversation::none;
    // The only link needs no choice, ever.
    if (talk.links.size() == 1) talk.leads.light = Lead::only(links_.at(talk.links.front()), never);
    for (std::uint32_t i = 0; i < talk.links.size(); ++i) links_.at(talk.links[i]).place = i;
}

// --- Waiting ---------------------------------------------------------------------------------------------------------

bool RailManager::wants_look(base::Nanoseconds before) noexcept {
    if (next_deadline_ < before || outboxes_.any()) return true;
    if (!posts_need_polls_) return false;
    bool wanted = false;
    links_.for_each([&](const Link& link) {
        const bool needed = rails_[link.rail].traits().posts_need_polls && link.queued_bytes > 0;
        wanted = wanted || (needed && link.state == LinkState::live);
    });
    return wanted;
}

base::Nanoseconds RailManager::answer_time() noexcept {
    constexpr auto none = std::numeric_limits<sched::Ticks>::max();
    auto least = none;
    links_.for_each([&](const Link& link) {
        if (link.state != LinkState::live || rails_[link.rail].traits().inward) return;
        const auto& talk = *peers_[link.peer].talk;
        // Before the first message that chooses among links, the candidate has no cost yet.
        const auto corrected = talk.candidates[link.place].cost.latency;
        least = std::min(least, corrected > 0 ? corrected : talk.costs[link.place].latency);
    });
    return least == none ? 0 : std::max<base::Nanoseconds>(2 * least / sched::ticks_per_ns, 1);
}

}  // namespace railmux::rails
