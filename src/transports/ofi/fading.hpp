// Fading: endpoints that a rail has given up and that must stay until the transport ends (Port::outlives_rail). For a moment
// they are still polled: what is on its way to them is taken, and thrown away, so that nobody waits for it to be taken, and
// whoever asks for a link is refused.
//
// Threads: one engine at a time, as the rail that owns it.
// Lifetime: refers to where the ports are kept.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "transports/ofi/endpoint.hpp"

namespace railmux::transports::ofi {

class Fading {
public:
    explicit Fading(std::vector<Port>& kept) noexcept : kept_(kept) {}
    ~Fading();
    Fading(const Fading&) = delete;
    Fading& operator=(const Fading&) = delete;

    /// An endpoint without links. Nothing that it lent is looked at any more.
    void add(std::unique_ptr<Endpoint> endpoint);
    void poll() noexcept;
    /// Whether one is to be polled.
    [[nodiscard]] bool any() const noexcept { return !entries_.empty(); }

    /// Takes it out of use: without progress nothing touches its buffers.
    static void keep(Endpoint& endpoint, std::vector<Port>& kept);

private:
    struct Entry {
        std::unique_ptr<Endpoint> endpoint;
        base::Nanoseconds until = 0;
    };

    std::vector<Port>& kept_;
    std::vector<Entry> entries_;
};

}  // namespace railmux::transports::ofi
