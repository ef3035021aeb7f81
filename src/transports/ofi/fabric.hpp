// RAII over libfabric, and an endpoint with all that belongs to it. Nothing here knows of rails.
//
// Threads: values; an endpoint belongs to one thread at a time (FI_THREAD_DOMAIN).
// Lifetime: a handle closes its object. Objects end before those they were made of: declare them in the order of making.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <railmux/error.hpp>

namespace railmux::transports::ofi {

struct CloseFid {
    template <typename T>
    void operator()(T* object) const noexcept {
        static_cast<void>(fi_close(&object->fid));
    }
};
template <typename T>
using Handle = std::unique_ptr<T, CloseFid>;

struct FreeInfo {
    void operator()(fi_info* info) const noexcept { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

// The stable interface that this is written to; newer libraries keep it.
inline constexpr std::uint32_t api_version = FI_VERSION(1, 17);

/// What one provider offers that a rail can be made of, the best first. `domain` may be empty: all domains. Other failures
/// than "nothing there" are thrown as Error.
[[nodiscard]] std::vector<Info> query(const std::string& provider, const std::string& domain);

/// The names of all providers, without asking any of them for devices.
[[nodiscard]] std::vector<std::string> provider_names();

/// A reliable-datagram endpoint, ready for use.
struct Port {
    Info info;
    Handle<fid_fabric> fabric;
    Handle<fid_domain> domain;
    Handle<fid_cq> completions;
    Handle<fid_av> peers;
    Handle<fid_ep> endpoint;
    std::vector<std::byte> name;    // of the endpoint, for others
    int descriptor = -1;            // turns readable when completions come; -1 where the provider has none to trust
    bool multi_receive = false;     // one buffer takes many messages
    bool fetches = false;           // ... and is called filled while large ones are still on their way into it
    std::size_t message_bytes = 0;  // of the largest that is sent and received

    // shm (1.17) goes on using the memory of endpoints of its own process that are closed, when others of the process send to
    // them or are closed in their turn. Such an endpoint stays until the transport ends.
    [[nodiscard]] bool outlives_rail() const noexcept;
    /// Whether it tells that messages which it does not copy at once are through in the order in which they were sent: behind
    /// one to a process that has died none ever is. shm does, before libfabric 2.5.
    [[nodiscard]] bool completes_in_order() const noexcept;
    /// What the address vector takes. shm does not notice when there are more; itself is one of them.
    [[nodiscard]] std::size_t max_peers() const noexcept;
    /// Whether it says that it has taken a message which it has no room for, and forgets it: then no more are to be on their
    /// way than it has room for, and each must have a completion, to be counted. ofi_rxd does, before libfabric 2.4.
    [[nodiscard]] bool forgets() const noexcept;
    [[nodiscard]] bool registers() const noexcept { return (info->domain_attr->mr_mode & FI_MR_LOCAL) != 0; }
};

/// The largest message, by what the provider does with such.
struct Largest {
    std::size_t copied = 0;   // it must be able to send that
    std::size_t fetched = 0;  // where it does so (Port::fetches)
};

/// Opens an endpoint. Throws Error. Without `sleeps` it has no descriptor, to which providers otherwise write, and from which
/// they read, with each message.
[[nodiscard]] Port open_port(Info info, Largest largest, bool sleeps);

/// Names of domains and fabrics may be left out (mrail, over several, has none).
[[nodiscard]] inline std::string name_or_none(const char* name) { return name == nullptr ? std::string() : name; }

/// What a negative return value or an error completion says.
[[nodiscard]] std::string in_words(ssize_t code);
[[nodiscard]] std::string in_words(fid_cq* completions, const fi_cq_err_entry& entry);

/// "fi_sockaddr_in://10.77.0.1:40022".
[[nodiscard]] std::string address_text(fid_av* peers, const void* address);

struct Unmap {
    std::size_t bytes = 0;
    void operator()(std::byte* memory) const noexcept;
};

/// Pages of our own, registered where the provider wants that of what it sends from and receives into.
class Pages {
public:
    /// Throws Error.
    Pages(const Port& port, std::size_t bytes);

    [[nodiscard]] std::byte* data() const noexcept { return memory_.get(); }
    [[nodiscard]] void* descriptor() const noexcept {
        return registration_ ? fi_mr_desc(registration_.get()) : nullptr;
    }
    /// Must come before the endpoint is closed; the pages themselves stay until after that.
    void unregister() noexcept { registration_.reset(); }

private:
    std::unique_ptr<std::byte, Unmap> memory_;
    Handle<fid_mr> registration_;
};

/// What is given to the provider as the context of an operation, and comes back with its completion.
struct Operation {
    fi_context2 context{};  // for the provider; first, so that its address is that of the whole
    bool receive = false;
};

}  // namespace railmux::transports::ofi
