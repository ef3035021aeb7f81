// Endpoint: a port with all that belongs to it: what is sent from and received into, and whom it knows. It is opened and
// closed as a whole.
//
// Threads: one at a time; it may be made by one and used by another.
// Lifetime: closes the port once nothing is registered with it; the buffers go after that.
#pragma once

#include <utility>

#include "transports/ofi/buffers.hpp"
#include "transports/ofi/fabric.hpp"
#include "transports/ofi/peers.hpp"

namespace railmux::transports::ofi {

struct Endpoint {
    /// Throws Error.
    explicit Endpoint(Port opened) : Endpoint(std::move(opened), Idle{}) {
        receive_buffers.begin();  // from here on the destructor runs whatever happens: some may have been posted
    }
    ~Endpoint() {
        send_buffers.unregister();
        receive_buffers.unregister();
        port.endpoint.reset();  // nothing touches the buffers from now on
    }
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    Port port;
    SendBuffers send_buffers;
    ReceiveBuffers receive_buffers;
    Peers peers;

private:
    struct Idle {};
    Endpoint(Port opened, Idle) : port(std::move(opened)), send_buffers(port), receive_buffers(port), peers(port) {}
};

}  // namespace railmux::transports::ofi
