// Engine: models of links, and measuring them on demand.
#include "base/selector.hpp"
#include "messaging/engine.hpp"

namespace railmux {

std::string_view to_string(ModelSource source) noexcept {
    switch (source) {
        case ModelSource::guess: return "guess";
        case ModelSource::probed: return "probed";
        case ModelSource::measured: return "measured";
        case ModelSource::verified: return "verified";
        case ModelSource::told: return "told";
        case ModelSource::stored: return "stored";
        case ModelSource::shared: return "shared";
    }
    return "?";
}

namespace messaging {

namespace {
// After the first link of a pair the others follow within milliseconds; those that do not have given up for now.
constexpr base::Nanoseconds settle_time = 300 * base::millisecond;
}  // namespace

std::vector<LinkModel> Engine::models(Peer peer) {
    const Lock lock(*this);
    return rails_.survey().models(known_peer(peer), now_);
}

/// Waits until the links to the peer should be there; throws why there is none, so that it cannot be `what`.
void Engine::connect_links(std::uint32_t peer, std::string_view what) {
    rails_.want(peer, now());
    progress_until([&] { return linked_or_hopeless(peer); }, never_ends);
    const auto& known = rails_.peers()[peer];
    if (!rails_.connected(peer)) {
        throw error_with(Peer::from_index(peer), known.left ? ErrorCode::peer_left : known.failed,
                         fmt::format("{} cannot be {}", rails_.peers().name(peer), what));
    }
    progress_until([] { return false; }, now() + settle_time);
}

bool Engine::balanced() {
    const Lock lock(*this);
    return rails_.balanced();
}

Explanation Engine::explain(Peer to, std::uint64_t bytes) {
    const Lock lock(*this);
    const auto peer = partner(to);
    if (!rails_.connected(peer)) connect_links(peer, "reached");
    const auto* const talk = rails_.peers()[peer].talk.get();
    if (talk == nullptr || talk->links.empty())
        throw error_with(to, ErrorCode::unreachable,
                         fmt::format("{} cannot be reached any more", rails_.peers().name(peer)));
    const bool large = bytes > (talk->eager_if_unregistered ? config_.number("eager.max") : talk->eager_max);
    const bool rendezvous = large && sender_.unasked(peer, bytes, now()) < bytes;
    const auto wire_bytes = rendezvous ? bytes : bytes + rails::FrameHeader::size + EagerBody::size;
    const auto frames = rendezvous ? 0 : large ? inlined_frames(bytes, talk->choices()) : 1;
    // Several frames spread as the parts of a large message do, or nearly so.
    auto told = rails_.explain(peer, wire_bytes, rendezvous || frames > 1, now());
    told.bytes = bytes;
    told.rendezvous = rendezvous;
    told.frames = frames;
    return told;
}

/// The links to the peer over the selected rails, connecting if need be. Throws Error.
std::vector<std::uint32_t> Engine::links_to_assess(Peer to, std::string_view rails) {
    const auto selector = base::Selector::parse(rails);
    const auto peer = partner(to);
    connect_links(peer, "measured");
    auto links = rails_.survey().links(peer);
    std::erase_if(links, [&](std::uint32_t link) {
        const auto& rail = rail_set_[rails_.survey().rail_of(link)];
        const std::vector<std::string> names{rail.info.name, rail.info.device};
        const auto match = selector.match(names, rail.info.addresses);
        return match == base::Selector::Match::excluded || match == base::Selector::Match::unlisted;
    });
    return links;
}

std::vector<LinkAssessment> Engine::assess(Peer to, std::string_view rails, const AssessOptions& options) {
    const Lock lock(*this);
    const auto patience = static_cast<base::Nanoseconds>(config_.number("connect.patience"));
    std::vector<LinkAssessment> all;
    for (const auto link : links_to_assess(to, rails)) {
        const auto& rail = rail_set_[rails_.survey().rail_of(link)];
        rails_.survey().measure(link, options);
        auto next_report = now();
        double last = 0;
        auto moved = now();
        const auto over = [&] {
            const auto done = rails_.survey().measured(link);
            if (std::exchange(last, done) != done) moved = now_;
            if (now_ - moved > patience) rails_.survey().stop_measuring(link);  // the peer is silent, and its link full
            if (options.progress && (done >= 1 || now_ >= next_report)) {
                if (!call_outside([&] { options.progress(rail.info.name, done); })) return false;
                next_report = now_ + between_reports;
            }
            return done >= 1;
        };
        progress_until(over, never_ends);
        if (auto result = rails_.survey().take_assessment(link, now_)) all.push_back(std::move(*result));
    }
    return all;
}

}  // namespace messaging
}  // namespace railmux
