#include "transports/verbs/fabric.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace railmux::transports::verbs {

namespace {

/// Answers of the connection manager to a request (InfiniBand specification, 12.6.7.2).
enum RejectReason { invalid_service = 8, stale_connection = 10, by_consumer = 28 };

std::string cure_of(int code) {
    switch (code) {
        case ENOMEM:
            return "the memory that may be locked is used up: raise its limit (ulimit -l; memlock in "
                   "/etc/security/limits.conf, LimitMEMLOCK of a service)";
        case EACCES:
        case EPERM: return "the files in /dev/infiniband must be readable and writable for this user";
        case EMFILE:
        case ENFILE: return "raise the limit of open files (ulimit -n)";
        case ENODEV:
        case ENOENT: return "are the modules rdma_ucm and ib_uverbs loaded? see rdma link";
        default: return "see rdma link and the kernel's log (dmesg)";
    }
}

}  // namespace

void stay_whole_in_forks() noexcept {
    // Does nothing where the kernel copies registered pages for the child at once (5.12); fails where somebody else has
    // used the library before, who then has decided about it.
    static const int once = ibv_fork_init();
    static_cast<void>(once);
}

Device open_device(const std::string& name) {
    int count = 0;
    ibv_device** all = ibv_get_device_list(&count);
    Device device;
    int code = all == nullptr ? errno : ENODEV;
    for (int i = 0; all != nullptr && i < count; ++i) {
        if (name != ibv_get_device_name(all[i])) continue;
        device.reset(ibv_open_device(all[i]));
        code = errno;
    }
    if (all != nullptr) ibv_free_device_list(all);
    if (!device) throw failure("device " + name, "it cannot be opened", code);
    return device;
}

Error failure(const std::string& where, const std::string& what, int code) {
    const auto kind = code == ENOMEM                    ? ErrorCode::out_of_memory
                      : code == EACCES || code == EPERM ? ErrorCode::permission
                                                        : ErrorCode::system;
    return {kind, fmt::format("{}: {}: {}", where, what, std::strerror(code)), cure_of(code)};
}

std::string in_words(const Error& error) { return fmt::format("{}; {}", error.what(), error.cure()); }

std::string explain(ibv_wc_status status) {
    const std::string_view text = ibv_wc_status_str(status);
    switch (status) {
        case IBV_WC_RETRY_EXC_ERR:
            return fmt::format("{}: the other side does not answer any more; check its process, cable, switch and MTU",
                               text);
        case IBV_WC_RNR_RETRY_EXC_ERR: return fmt::format("{}: the other side has no receive buffers", text);
        case IBV_WC_REM_ACCESS_ERR:
            return fmt::format("{}: a put or get with a wrong key, bounds or right; the queue pair ended with it",
                               text);
        case IBV_WC_WR_FLUSH_ERR: return fmt::format("{}: the queue pair ended", text);
        default: return fmt::format("{} (status {}); see the kernel's log (dmesg)", text, static_cast<int>(status));
    }
}

std::string explain(rdma_cm_event_type event, int status) {
    switch (event) {
        case RDMA_CM_EVENT_REJECTED:
            if (status == invalid_service) return "nobody listens at that address";
            if (status == stale_connection) return "the other side still knows an older connection of this number";
            if (status == by_consumer) return "refused by the other side";
            return fmt::format("refused by the other side's connection manager (reason {})", status);
        case RDMA_CM_EVENT_ADDR_ERROR:
            return fmt::format("its address cannot be resolved ({}); check `ip route get` and `ip neigh`",
                               std::strerror(-status));
        case RDMA_CM_EVENT_ROUTE_ERROR:
            return fmt::format("no path to it ({}); check the subnet manager, or `ip route get`",
                               std::strerror(-status));
        case RDMA_CM_EVENT_UNREACHABLE:
            return "it does not answer; check firewalls (UDP port 4791), VLAN and GID types";
        default: return fmt::format("{} ({})", rdma_event_str(event), status);
    }
}

void make_nonblocking(int descriptor) {
    const int flags = ::fcntl(descriptor, F_GETFL);
    if (flags < 0 || ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0) {
        throw failure("an event channel", "it cannot be made non-blocking", errno);
    }
}

MemoryRegion register_memory(ibv_pd* domain, void* memory, std::size_t bytes, int access) noexcept {
    return MemoryRegion(ibv_reg_mr(domain, memory, bytes, access));
}

}  // namespace railmux::transports::verbs
