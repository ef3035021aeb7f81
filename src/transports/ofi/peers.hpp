// Peers: the endpoints that links go to, in the provider's address vector. One is put in when the first link needs it, and
// stays for a while when its links are over: taking it out would close what the provider has open to it, with the hello of
// a next link perhaps already on its way.
//
// Threads: one engine at a time, as the rail that owns it.
// Lifetime: a Peer is good until release() and forget_idle().
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "transports/ofi/address.hpp"
#include "transports/ofi/fabric.hpp"
#include "transports/ofi/processes.hpp"
#include "transports/ofi/turns.hpp"

namespace railmux::transports::ofi {

struct Peer {
    fi_addr_t at = FI_ADDR_UNSPEC;
    ProcessName process;  // where the two share memory
    std::uint32_t links = 0;
    std::uint32_t sending = 0;  // buffers on their way to it
    std::uint32_t waiting = 0;  // greetings that the provider has not taken yet
    std::uint64_t last_used = 0;
    Turns turns;  // of its links
    std::string label;

    [[nodiscard]] bool idle() const noexcept { return links == 0 && sending == 0 && waiting == 0; }
};

class Peers {
public:
    explicit Peers(const Port& port) noexcept : port_(port) {}

    /// The process at an address, where memory is shared with it.
    [[nodiscard]] ProcessName process_at(const RailAddress& address) const noexcept;
    /// nullptr where the provider does not take the address; `trouble` says why.
    [[nodiscard]] Peer* find(const RailAddress& address, std::string& trouble);
    /// The one of a link that ends.
    void release(Peer& peer) noexcept { --peer.links; }

private:
    static constexpr std::size_t most_idle = 64;
    void forget_idle();

    const Port& port_;
    std::map<std::string, Peer, std::less<>> peers_;  // by address
    std::uint64_t uses_ = 0;
};

}  // namespace railmux::transports::ofi
