// Engine: what the rails carried, in numbers and as the table that RAILMUX_REPORT prints.
#include <algorithm>
#include <iterator>

#include "messaging/engine.hpp"

namespace railmux::messaging {

std::vector<RailInfo> Engine::rails() {
    const Lock lock(*this);
    return rail_set_.list();
}

std::vector<RailTraffic> Engine::traffic() {
    const Lock lock(*this);
    std::vector<RailTraffic> all;
    for (std::uint32_t peer = 0; peer < rails_.peers().size(); ++peer) {
        const auto& known = rails_.peers()[peer];
        for (std::size_t rail = 0; known.traffic != nullptr && rail < rail_set_.size(); ++rail) {
            const auto& t = known.traffic[rail];
            if (t.sent_frames + t.received_frames + t.links_lost == 0) continue;
            all.push_back({.rail = rail_set_[rail].traits().name,
                           .peer = Peer::from_index(peer),
                           .sent_bytes = t.sent_bytes,
                           .received_bytes = t.received_bytes,
                           .sent_frames = t.sent_frames,
                           .received_frames = t.received_frames,
                           .resent_frames = t.resent_frames,
                           .duplicate_frames = t.duplicate_frames,
                           .corrupted_frames = t.corrupted_frames,
                           .links_lost = t.links_lost,
                           .copied_bytes = t.copied_bytes,
                           .registrations = t.registrations,
                           .registered_bytes = t.registered_bytes,
                           .registrations_reused = t.registrations_reused,
                           .timed_frames = t.timed_frames,
                           .predicted = std::chrono::nanoseconds(t.predicted_ns),
                           .real = std::chrono::nanoseconds(t.real_ns),
                           .error = std::chrono::nanoseconds(t.error_ns)});
        }
    }
    return all;
}

std::string Engine::report() {
    const Lock lock(*this);
    constexpr auto row = "{:<20} {:<24} {:>14} {:>14} {:>11} {:>11} {:>8} {:>9} {:>6}\n";
    std::string text = fmt::format("# railmux report of {}\n",
                                   membership_.in_job() ? fmt::format("rank {}", rank()) : std::string("this process"));
    text += fmt::format(fmt::runtime(row), "# rail", "peer", "sent B", "received B", "sent fr", "recv fr", "resent",
                        "duplicate", "lost");
    rails::Traffic total;
    for (const auto& t : traffic()) {
        text +=
            fmt::format(fmt::runtime(row), t.rail, rails_.peers().name(t.peer.index()), t.sent_bytes, t.received_bytes,
                        t.sent_frames, t.received_frames, t.resent_frames, t.duplicate_frames, t.links_lost);
        total.sent_bytes += t.sent_bytes;
        total.received_bytes += t.received_bytes;
        total.sent_frames += t.sent_frames;
        total.received_frames += t.received_frames;
        total.resent_frames += t.resent_frames;
        total.duplicate_frames += t.duplicate_frames;
        total.links_lost += t.links_lost;
    }
    text += fmt::format(fmt::runtime(row), "total", "", total.sent_bytes, total.received_bytes, total.sent_frames,
                        total.received_frames, total.resent_frames, total.duplicate_frames, total.links_lost);
    for (const auto& t : traffic()) {
        const auto name = rails_.peers().name(t.peer.index());
        if (t.corrupted_frames > 0) {
            text += fmt::format("# {} from {}: {} frames were corrupted, and sent again\n", t.rail, name,
                                t.corrupted_frames);
        }
        if (t.copied_bytes > 0) {
            text += fmt::format("# {} to {}: {} B of large messages were copied into registered memory\n", t.rail, name,
                                t.copied_bytes);
        }
        if (t.registrations + t.registrations_reused > 0) {
            text += fmt::format("# {} and {}: {} registrations of memory, {} B; {} times one was there already\n",
                                t.rail, name, t.registrations, t.registered_bytes, t.registrations_reused);
        }
    }
    return text + report_predictions() + report_models() + report_probing();
}

/// What the scheduler expected, against what happened, by rail and peer.
std::string Engine::report_predictions() {
    constexpr auto row = "{:<10} {:<20} {:<24} {:>12} {:>13} {:>12} {:>12}\n";
    std::string text =
        fmt::format(fmt::runtime(row), "# delivery", "rail", "peer", "timed fr", "predicted us", "real us", "error us");
    for (const auto& t : traffic()) {
        if (t.timed_frames == 0) continue;
        const auto mean = [&](std::chrono::nanoseconds sum) {
            return fmt::format("{:.2f}", static_cast<double>(sum.count()) / 1000 / static_cast<double>(t.timed_frames));
        };
        text += fmt::format(fmt::runtime(row), "delivery", t.rail, rails_.peers().name(t.peer.index()), t.timed_frames,
                            mean(t.predicted), mean(t.real), mean(t.error));
    }
    for (std::uint32_t peer = 0; peer < rails_.peers().size(); ++peer) text += report_bursts(peer);
    return text;
}

/// How they go to that peer at last, if they do not go as predicted.
std::string Engine::report_bursts(std::uint32_t peer) {
    const auto& known = rails_.peers()[peer];
    const auto now = known.talk == nullptr ? sched::Spread::predicted : known.talk->spreading.now();
    if (now == sched::Spread::predicted) return {};
    if (now == sched::Spread::by_rate && !sched::turns_known(known.talk->candidates)) return {};
    auto text = fmt::format("# bursts to {} go {}", rails_.peers().name(peer), to_string(now));
    for (const auto& candidate : known.talk->candidates) {
        if (now != sched::Spread::by_rate) break;
        if (candidate.spare) continue;
        text += fmt::format("; {} {:.2f} ns/B", rail_set_[candidate.rail].info.name, sched::to_ns(candidate.turn));
    }
    return text + '\n';
}

std::string Engine::report_models() {
    constexpr auto row = "{:<7} {:<20} {:<24} {:<9} {:>9} {:>9} {:>9} {:>9} {:>11} {:>8} {:>7}\n";
    std::string text = fmt::format(fmt::runtime(row), "# model", "rail", "peer", "source", "L us", "o_s us", "o_r us",
                                   "g us", "Mbit/s", "eager B", "drift");
    const auto us = [](Nanos time) { return fmt::format("{:.2f}", time.count() / 1000); };
    for (std::uint32_t peer = 0; peer < rails_.peers().size(); ++peer) {
        auto links = rails_.survey().models(peer, now_);
        std::ranges::move(rails_.survey().ended_models(peer), std::back_inserter(links));
        for (const auto& link : links) {
            for (const auto& range : link.model.ranges) {
                text += fmt::format(fmt::runtime(row), "model", link.rail, rails_.peers().name(peer),
                                    to_string(link.source), us(range.L.of(1)), us(range.o_s.of(1)), us(range.o_r.of(1)),
                                    us(range.g), fmt::format("{:.1f}", range.G.bits_per_second() / 1e6), link.eager_max,
                                    fmt::format("{:.2f}", link.drift));
            }
            if (!link.spare.empty())
                text += fmt::format("# {} to {} is spare: {}\n", link.rail, rails_.peers().name(peer), link.spare);
        }
    }
    return text;
}

/// By rail: what has been spent on knowing its links, to whomever.
std::string Engine::report_probing() {
    constexpr auto row = "{:<9} {:<20} {:>12} {:>12} {:>12}\n";
    std::string text = fmt::format(fmt::runtime(row), "# probing", "rail", "frames", "B", "cpu us");
    for (std::uint32_t rail = 0; rail < rail_set_.size(); ++rail) {
        const auto& spent = rails_.survey().probe_spent(rail);
        if (spent.messages == 0) continue;
        text += fmt::format(fmt::runtime(row), "probing", rail_set_[rail].info.name, spent.messages, spent.bytes,
                            fmt::format("{:.2f}", Nanos(spent.cpu).count() / 1000));
    }
    return text;
}

}  // namespace railmux::messaging
