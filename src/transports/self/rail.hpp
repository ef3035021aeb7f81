// SelfRail: the loop-back rail. Each connection has both its ends here. A frame of one segment is lent to the receiver
// straight from the sender's buffer, and is `done` with the poll that ends the lending; a gather list is copied into
// one piece. Puts and gets are a memcpy, made by poll when their turn comes: everything takes place in the order
// posted.
//
// Threads: one engine at a time.
// Lifetime: as every Rail.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/thread_guard.hpp"
#include "transports/link_slots.hpp"
#include "transports/regions.hpp"
#include "transports/self/ring.hpp"
#include "transports/transport.hpp"

namespace railmux::transports::self {

class SelfRail final : public Rail {
public:
    explicit SelfRail(base::Logger& log);

    [[nodiscard]] const RailTraits& traits() const noexcept override { return traits_; }
    [[nodiscard]] std::span<const std::byte> address() const noexcept override { return address_; }
    [[nodiscard]] Reachability reach(std::span<const std::byte> address) const override;
    [[nodiscard]] LinkId connect(std::span<const std::byte> address, std::span<const std::byte> hello) override;
    void accept(LinkId link, std::span<const std::byte> reply) override;
    void refuse(LinkId link, std::span<const std::byte> reply) override;
    void disconnect(LinkId link) override;
    [[nodiscard]] std::string describe(LinkId link) const override;
    [[nodiscard]] base::Result<Region> add_region(std::span<std::byte> memory, Access access) override;
    void drop_region(const Region& region) noexcept override { regions_.drop(region); }
    [[nodiscard]] std::size_t post(std::span<const Work> works) noexcept override;
    [[nodiscard]] std::size_t poll(std::span<Event> events) noexcept override;
    [[nodiscard]] int arm() noexcept override;

private:
    static constexpr std::uint32_t max_segments = 8;

    enum class State : std::uint8_t { connecting, requested, up };
    struct Link {
        State state = State::connecting;
        LinkId peer;
        std::uint32_t outstanding = 0;  // works accepted whose done has not been polled
    };

    /// What poll hands out or carries out next.
    struct Item {
        enum class Kind : std::uint8_t { nothing, event, frame, put, get } kind = Kind::nothing;
        bool notify = false;
        std::uint32_t count = 0;  // of segments
        std::array<Segment, max_segments> segments{};
        Event event;  // its data: of `bytes`, or the sender's
        LinkId from;  // frame, put, get: whose work it is
        std::uint64_t cookie = 0;
        RegionKey key;
        std::uint64_t offset = 0;
        std::vector<std::byte> bytes;  // a hello, a reply, a gathered frame
    };
    struct Done {
        LinkId link;
        std::uint64_t cookie = 0;
        WorkStatus status = WorkStatus::ok;
    };

    [[nodiscard]] Item& push(Item::Kind kind);
    void push_event(const Event& event, std::span<const std::byte> bytes = {});
    void enqueue(const Work& work, LinkId to);
    void end_link(LinkId id, std::string_view text, std::span<const std::byte> reply = {});

    void take_back();
    [[nodiscard]] bool next_event(Event& event);
    [[nodiscard]] Event done(const Done& done) noexcept;
    [[nodiscard]] WorkStatus copy_put(const Item& item) noexcept;
    [[nodiscard]] WorkStatus copy_get(const Item& item) noexcept;
    void discarded() noexcept;
    void wake() noexcept;

    base::Logger& log_;
    RailTraits traits_;
    std::vector<std::byte> address_;
    RegionTable regions_;
    LinkSlots<Link> links_;
    Ring<Item> queue_;
    std::size_t lent_ = 0;  // items at the front of the queue that the last poll handed out
    Ring<Done> dones_;      // of frames whose lending is over, and of works posted to links that are not up
    base::FileDescriptor wake_;
    bool armed_ = false;
    std::uint64_t discarded_ = 0;
    [[no_unique_address]] base::ThreadGuard guard_;
};

}  // namespace railmux::transports::self
