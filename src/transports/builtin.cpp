#if RAILMUX_HAVE_TCP
#include "transports/tcp/transport.hpp"
#endif
#if RAILMUX_HAVE_VERBS
#include "transports/verbs/transport.hpp"
#endif
#if RAILMUX_HAVE_OFI
#include "transports/ofi/transport.hpp"
#endif
#include "transports/self/transport.hpp"
#include "transports/shm/transport.hpp"
#include "transports/transport.hpp"

namespace railmux::transports {

// The simulated transport is not among them: it needs a Fabric.
std::vector<std::unique_ptr<Transport>> builtin_transports(const Services& services) {
    std::vector<std::unique_ptr<Transport>> all;
    all.push_back(shm::make_transport(services));
#if RAILMUX_HAVE_VERBS
    all.push_back(verbs::make_transport(services));
#endif
#if RAILMUX_HAVE_TCP
    all.push_back(tcp::make_transport(services));
#endif
#if RAILMUX_HAVE_OFI
    all.push_back(ofi::make_transport(services));
#endif
    all.push_back(self::make_transport(services));
    return all;
}

}  // namespace railmux::transports
