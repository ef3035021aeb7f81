// Fading: endpoints that a rail has given up and that must stay until the transport ends (Port::outlives_rail). For a moment
// they are still polled: what is on its way to them is taken, and thrown away, so that nobody waits for it to be taken, and
// whoever asks for a link is refused.
//
// Threads: one engine at a time, as the rail that owns it. Time is an argument.
// Lifetime: refers to where the ports are kept.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "base/looked_time.hpp"
#include "transports/ofi/address.hpp"
#include "transports/ofi/endpoint.hpp"

namespace railmux::transports::ofi {

/// The end of a link, to be told to its other side.
struct Bye {
    fi_addr_t to = FI_ADDR_UNSPEC;
    std::vector<std::byte> message;
};

class Fading {
public:
    explicit Fading(std::vector<Port>& kept) noexcept : kept_(kept) {}
    ~Fading();
    Fading(const Fading&) = delete;
    Fading& operator=(const Fading&) = delete;

    /// An endpoint whose links have ended, where it is reached, what was read of its completions and not looked at, and what is
    /// to be said. Nothing that it lent is looked at any more.
    void add(std::unique_ptr<Endpoint> endpoint, RailAddress address, std::span<const fi_cq_data_entry> unread,
             std::vector<Bye> byes);
    void poll(base::Nanoseconds now) noexcept;
    /// Whether one is to be polled.
    [[nodiscard]] bool any() const noexcept { return !entries_.empty(); }
    [[nodiscard]] std::size_t kept() const noexcept { return kept_.size() + entries_.size(); }

    /// Takes it out of use: without progress nothing touches its buffers.
    static void keep(Endpoint& endpoint, std::vector<Port>& kept);

private:
    struct Entry {
        std::unique_ptr<Endpoint> endpoint;
        RailAddress address;
        std::vector<Bye> byes;
        base::Nanoseconds waited = 0;  // since something came last
        base::LookedTime looked;
    };
    [[nodiscard]] static bool over(Entry& entry, base::Nanoseconds now);

    std::vector<Port>& kept_;
    std::vector<Entry> entries_;
};

}  // namespace railmux::transports::ofi
