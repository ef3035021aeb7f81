// Made: what those who work for the rail manager refer to (rails, peers, links, the ledger), without a rail manager, and with
// rails that do nothing. Tests of one of them say what its rails tell, and play its host.
//
// Threads: one.
// Lifetime: a Made outlives the frames of its pool.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rails/assessor.hpp"
#include "rails/ledger.hpp"
#include "rails/link.hpp"
#include "rails/peer.hpp"
#include "rails/rail_set.hpp"

namespace railmux::rails::test {

/// What the rail manager wants of every rail.
[[nodiscard]] inline transports::RailTraits made_traits(std::string name) {
    return {.name = std::move(name),
            .max_frame = 64 * 1024,
            .max_segments = Frame::max_pieces,
            .max_put = 1 << 30,
            .put = true,
            .ordered = true};
}

/// Has no network; a test says what it tells of its links, by their numbers. Of those that are disconnected it tells that they
/// are down.
class MadeRail final : public transports::Rail {
public:
    explicit MadeRail(transports::RailTraits traits) : traits_(std::move(traits)) {}

    std::map<std::uint32_t, transports::Pulse> pulses;
    std::vector<transports::LinkId> disconnected;  // and not polled yet
    bool tells_ends = true;
    std::vector<transports::Work> posted;  // what it took,
    std::size_t offered = 0;               // of so many works that it was offered last,
    std::size_t room = 0;                  // ... and takes so many yet

    [[nodiscard]] const transports::RailTraits& traits() const noexcept override { return traits_; }
    [[nodiscard]] std::span<const std::byte> address() const noexcept override { return {}; }
    [[nodiscard]] transports::Reachability reach(std::span<const std::byte>) const override { return {}; }
    [[nodiscard]] transports::LinkId connect(std::span<const std::byte>, std::span<const std::byte>) override {
        return {};
    }
    void accept(transports::LinkId, std::span<const std::byte>) override {}
    void refuse(transports::LinkId, std::span<const std::byte>) override {}
    void disconnect(transports::LinkId link) override { disconnected.push_back(link); }
    [[nodiscard]] std::string describe(transports::LinkId) const override { return {}; }
    [[nodiscard]] transports::Pulse pulse(transports::LinkId link) noexcept override { return pulses[link.index]; }
    [[nodiscard]] base::Result<transports::Region> add_region(std::span<std::byte>, transports::Access) override {
        return transports::Region{};
    }
    void drop_region(const transports::Region&) noexcept override {}
    [[nodiscard]] std::size_t post(std::span<const transports::Work> works) noexcept override {
        offered = works.size();
        const auto taken = works.first(std::min(room, works.size()));
        posted.insert(posted.end(), taken.begin(), taken.end());
        room -= taken.size();
        return taken.size();
    }
    [[nodiscard]] std::size_t poll(std::span<transports::Event> events) noexcept override {
        std::size_t count = 0;
        for (; tells_ends && count < events.size() && !disconnected.empty(); disconnected.pop_back()) {
            events[count++] = {.kind = transports::EventKind::link_down, .link = disconnected.back()};
        }
        return count;
    }
    [[nodiscard]] int arm() noexcept override { return -1; }

private:
    transports::RailTraits traits_;
};

class MadeRails final : public transports::Transport {
public:
    explicit MadeRails(std::vector<transports::RailTraits> all) : all_(std::move(all)) {}
    [[nodiscard]] std::string_view name() const noexcept override { return "made"; }
    [[nodiscard]] std::vector<RailInfo> scan() override {
        std::vector<RailInfo> infos;
        for (const auto& traits : all_)
            infos.push_back({.name = traits.name, .transport = "made", .device = traits.name, .usable = true});
        return infos;
    }
    [[nodiscard]] std::unique_ptr<transports::Rail> open(const RailInfo& device) override {
        for (const auto& traits : all_) {
            if (traits.name == device.name) return std::make_unique<MadeRail>(traits);
        }
        return nullptr;
    }

private:
    std::vector<transports::RailTraits> all_;
};

struct Made {
    base::Logger log{base::LogLevel::off};
    RailSet rails;
    FramePool pool;
    PeerTable peers;
    LinkTable links;
    Looks looks;
    KeepingUp keeping_up;
    std::unique_ptr<sched::Policy> policy;
    Ledger ledger;
    base::Nanoseconds now = base::second;

    explicit Made(std::vector<transports::RailTraits> traits)
        : rails(transports_of(std::move(traits)), {}, log),
          links(rails.capacity()),
          policy(sched::make_policy("vft", rails.capacity())),
          ledger(rails.capacity(), *policy, peers, links, looks, keeping_up) {}

    std::uint32_t add_peer() {
        const auto peer = peers.of_instance(peers.size() + 1, no_rank);
        peers[peer].talk = std::make_unique<Conversation>(pool);
        peers[peer].traffic = std::make_unique<Traffic[]>(rails.capacity());
        return peer;
    }
    /// A live one, which takes 1 us and `ns` a byte.
    Link& add_link(std::uint32_t peer, std::uint32_t rail, int ns = 1) {
        auto& talk = this->talk(peer);
        Link& link = links.add(rail, {.index = ++last_link_, .generation = 1});
        link.peer = peer;
        link.state = LinkState::live;
        link.over_rail = rails[rail].rail.get();
        link.traffic = peers[peer].traffic.get() + rail;
        link.place = static_cast<std::uint32_t>(talk.links.size());
        link.remote_rail = static_cast<std::uint8_t>(rail);
        link.label = "link " + std::to_string(last_link_);
        const sched::Ticks per_byte = sched::ticks_per_ns * ns;
        const sched::Cost cost{.latency = sched::to_ticks(base::microsecond),
                               .slope = per_byte,
                               .gap = sched::to_ticks(base::Nanoseconds{100}),
                               .per_byte = per_byte};
        talk.links.push_back(link.slot);
        talk.costs.push_back(cost);
        talk.candidates.push_back({.rail = rail, .cost = cost, .by_processors = rails[rail].traits().by_processors});
        talk.claims.push_back(0);
        return link;
    }
    /// It has died; its peer's others move up.
    void lose(Link& link) {
        auto& talk = this->talk(link.peer);
        const auto place = static_cast<std::ptrdiff_t>(link.place);
        talk.links.erase(talk.links.begin() + place);
        talk.costs.erase(talk.costs.begin() + place);
        talk.candidates.erase(talk.candidates.begin() + place);
        talk.claims.erase(talk.claims.begin() + place);
        for (std::uint32_t i = 0; i < talk.links.size(); ++i) links.at(talk.links[i]).place = i;
        link.state = LinkState::closing;
    }
    [[nodiscard]] Conversation& talk(std::uint32_t peer) { return *peers[peer].talk; }
    [[nodiscard]] MadeRail& rail(std::uint32_t rail) { return static_cast<MadeRail&>(*rails[rail].rail); }
    [[nodiscard]] transports::Pulse& pulse(const Link& link) { return rail(link.rail).pulses[link.id.index]; }

private:
    static Transports transports_of(std::vector<transports::RailTraits> traits) {
        Transports all;
        all.push_back(std::make_unique<MadeRails>(std::move(traits)));
        return all;
    }
    std::uint32_t last_link_ = 0;
};

}  // namespace railmux::rails::test
