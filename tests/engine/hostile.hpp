// A process that knows the job's key and keeps to the session, and says what it likes in the frames above that.
//
// Threads: one; whoever has it progresses it.
// Lifetime: within its hosts and the engine that it talks to.
#pragma once

#include <algorithm>
#include <memory>
#include <span>

#include "engine/sim_pair.hpp"
#include "rails/rail_manager.hpp"
#include "rails/way_down.hpp"

namespace railmux::test {

class Hostile final : private rails::Upper {
public:
    Hostile(SimHosts& hosts, messaging::Engine& victim)
        : log_(base::LogLevel::off),
          rail_set_(transports_of(hosts), {}, log_),
          policy_(sched::make_policy("round_robin", rail_set_.capacity())),
          rails_(options(), rail_set_, *policy_, *this, log_),
          victim_(rails_.learn(*rails::ProcessAddress::parse(victim.address()))) {
        static_cast<void>(victim.add_peer(rails_.own_address("hostile", 1).encode()));
    }
    ~Hostile() { rails_.leaving().close(SimHosts::now()); }
    Hostile(const Hostile&) = delete;
    Hostile& operator=(const Hostile&) = delete;

    void say(rails::FrameType type, std::uint8_t flags, std::span<const std::byte> body, base::Nanoseconds now) {
        auto* frame = rails_.pool().take(rails::FrameHeader::size + body.size());
        frame->type = type;
        frame->flags = flags;
        frame->bytes = static_cast<std::uint32_t>(rails::FrameHeader::size + body.size());
        std::ranges::copy(body, frame->data() + rails::FrameHeader::size);
        rails_.send(victim_, frame, now);
        rails_.flush(now);
    }
    void poll(base::Nanoseconds now) { static_cast<void>(rails_.poll(now)); }
    [[nodiscard]] bool heard() const { return rails_.idle(victim_); }
    /// True once there is a link; until then one is asked for.
    [[nodiscard]] bool connected(base::Nanoseconds now) {
        rails_.want(victim_, now);
        return rails_.connected(victim_);
    }

    std::uint64_t answers = 0;
    int links_lost = 0;

private:
    static messaging::Transports transports_of(SimHosts& hosts) {
        messaging::Transports all;
        all.push_back(test::sim::make_transport(hosts.fabric, "hostile"));
        return all;
    }
    static rails::RailManager::Options options() {
        rails::RailManager::Options options;
        options.clock = &SimHosts::now;
        options.connector.self = {.instance = 666, .rank = rails::no_rank};
        options.connector.key = rails::make_job_key("", "");
        options.assessor.probe = false;
        options.share_node = false;
        return options;
    }

    bool on_frame(std::uint32_t, const rails::FrameHeader&, std::span<const std::byte>) override {
        ++answers;
        return true;
    }
    void on_released(std::uint32_t, const rails::Frame&) override {}
    std::span<const std::byte> closed_by(std::uint32_t, std::span<const std::byte>) noexcept override { return {}; }
    void on_sendable(std::uint32_t) override {}
    rails::Frame* next_bulk(std::uint32_t, std::uint32_t, std::uint8_t, std::uint64_t) override { return nullptr; }
    rails::Frame* next_get(std::uint32_t, std::uint32_t, std::uint8_t, std::uint64_t) override { return nullptr; }
    void on_got(std::uint32_t, const rails::Frame&, transports::WorkStatus) override {}
    std::uint64_t bulk_left(std::uint32_t, std::uint8_t) override { return 0; }
    void on_put_denied(std::uint64_t) override {}
    void on_link_lost(std::uint32_t, std::uint32_t) override { ++links_lost; }
    void on_peer_gone(std::uint32_t, ErrorCode) override {}
    void on_peer_left(std::uint32_t) override {}
    void on_rail_news(const rails::RailNews&) override {}
    void on_address_wanted(std::uint32_t) override {}
    void on_address_changed() override {}

    base::Logger log_;
    rails::RailSet rail_set_;
    std::unique_ptr<sched::Policy> policy_;
    rails::RailManager rails_;
    std::uint32_t victim_;
};

}  // namespace railmux::test
