// Providers: what libfabric has on this host, domain by domain, and which of it is a rail by default.
//
// Threads: pure functions; each call asks anew.
// Lifetime: values.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace railmux::transports::ofi {

/// One domain (a network interface, an adapter) of one provider; or a provider without any.
struct FabricDomain {
    std::string provider;  // "tcp;ofi_rxm": the core provider, and what makes reliable datagrams of it
    std::string domain;    // "eth0"
    std::string fabric;    // "10.77.0.0/24"
    std::string obstacle;  // why it cannot be used; empty if it can
    std::string cure;
    bool hangs = false;  // ... because it did not answer
    std::uint64_t speed_bps = 0;

    [[nodiscard]] std::string core() const { return provider.substr(0, provider.find(';')); }
    [[nodiscard]] bool stays_on_host() const;  // as far as it can be told before it is opened
    [[nodiscard]] std::string device() const;  // "tcp;ofi_rxm:eth0", or only "shm" where the domain says no more
};

/// Whether there is hardware here that only libfabric reaches: a look at /dev and /sys. Asking libfabric itself takes a third
/// of a second, too much for each process that has no use for it.
[[nodiscard]] bool has_fabric_hardware();

/// Sets what libfabric is to do unless the user says otherwise: before it is first asked, and not on a thread beside others.
void choose_defaults();

/// All domains of all providers, in libfabric's order. A provider that fails or hangs is one of them, with its obstacle. Those
/// that hung when they were asked before are not asked again: each time would leave a thread behind.
[[nodiscard]] std::vector<FabricDomain> list_domains(const std::set<std::string>& hanging);

/// Why the provider is off unless it is named; empty for those that are on.
[[nodiscard]] std::string doubt(std::string_view core);

/// Providers that drive the same adapters; the first that is there is used. Empty: `core` has no other in front of it.
[[nodiscard]] std::string preferred_to(std::string_view core);

/// Tenths of a second that a provider may take for an answer, or to open a domain.
inline constexpr int patience_slices = 100;

}  // namespace railmux::transports::ofi
