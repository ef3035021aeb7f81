// RAII over libibverbs and librdmacm, and what their errors mean. Nothing here knows of rails.
//
// Threads: values; what the libraries themselves guard is left to them.
// Lifetime: a handle frees its object. Objects end before those they were made of: declare them in the order of making.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <memory>
#include <string>

#include <railmux/error.hpp>

namespace railmux::transports::verbs {

template <auto destroy>
struct Destroy {
    template <typename T>
    void operator()(T* object) const noexcept {
        static_cast<void>(destroy(object));
    }
};

using Device = std::unique_ptr<ibv_context, Destroy<ibv_close_device>>;
using ProtectionDomain = std::unique_ptr<ibv_pd, Destroy<ibv_dealloc_pd>>;
using MemoryRegion = std::unique_ptr<ibv_mr, Destroy<ibv_dereg_mr>>;
using CompletionChannel = std::unique_ptr<ibv_comp_channel, Destroy<ibv_destroy_comp_channel>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Destroy<ibv_destroy_cq>>;
using SharedReceiveQueue = std::unique_ptr<ibv_srq, Destroy<ibv_destroy_srq>>;
using CmChannel = std::unique_ptr<rdma_event_channel, Destroy<rdma_destroy_event_channel>>;

/// A connection, or a listener, with its queue pair if there is one.
struct DestroyConnection {
    void operator()(rdma_cm_id* id) const noexcept {
        if (id->qp != nullptr) rdma_destroy_qp(id);
        rdma_destroy_id(id);
    }
};
using CmId = std::unique_ptr<rdma_cm_id, DestroyConnection>;

/// Keeps registered memory this process's when it forks. Before anything else of libibverbs.
void stay_whole_in_forks() noexcept;

/// The device of that name, opened. Throws Error.
[[nodiscard]] Device open_device(const std::string& name);

/// What failed with `code` (an errno), on which device and port, and what to check.
[[nodiscard]] Error failure(const std::string& where, const std::string& what, int code);

/// An error with its cure, for the cause of a link's end.
[[nodiscard]] std::string in_words(const Error& error);

/// What a failed completion says of its link, and what to check.
[[nodiscard]] std::string explain(ibv_wc_status status);

/// What an event of the connection manager says of an attempt to connect that failed.
[[nodiscard]] std::string explain(rdma_cm_event_type event, int status);

/// Reads without waiting from now on. Throws Error.
void make_nonblocking(int descriptor);

/// Memory that others may reach with these IBV_ACCESS_ flags; nullptr with errno where the device refuses.
[[nodiscard]] MemoryRegion register_memory(ibv_pd* domain, void* memory, std::size_t bytes, int access) noexcept;

}  // namespace railmux::transports::verbs
