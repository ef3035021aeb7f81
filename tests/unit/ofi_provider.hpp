// Provider: a provider of libfabric with one endpoint that does what a test says, and keeps what it is told.
//
// Threads: one.
// Lifetime: outlives the ports that it is the provider of.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace ofi_provider {

using Bytes = std::vector<std::byte>;

/// A provider of one endpoint, which does what the test says.
struct Provider {
    fid_ep endpoint{};
    fid_cq queue{};
    fid_av addresses{};
    std::vector<void*> posted;  // receive buffers, by their contexts
    std::deque<fi_cq_data_entry> coming;
    std::vector<void*> failed;  // what is told of as an error
    bool broken = false;        // nothing can be read any more
    bool full = false;          // it takes no message now
    bool takes_receives = true;
    struct Sent {
        fi_addr_t to = FI_ADDR_UNSPEC;
        Bytes message;
        void* context = nullptr;
    };
    std::vector<Sent> sent, injected;
    std::vector<fi_addr_t> removed;
    fi_addr_t next_address = 0;
    bool closed = false;

    Provider() {
        ops_.close = [](fid* closed) {
            if (closed->fclass == FI_CLASS_EP) static_cast<Provider*>(closed->context)->closed = true;
            return 0;
        };
        messages_.recvmsg = [](fid_ep* over, const fi_msg* message, std::uint64_t) -> ssize_t {
            if (!of(over).takes_receives) return -FI_ENOMEM;
            of(over).posted.push_back(message->context);
            return 0;
        };
        messages_.send = [](fid_ep* over, const void* data, std::size_t size, void*, fi_addr_t to, void* context) {
            return of(over).take(of(over).sent, data, size, to, context);
        };
        messages_.inject = [](fid_ep* over, const void* data, std::size_t size, fi_addr_t to) {
            return of(over).take(of(over).injected, data, size, to, nullptr);
        };
        completions_.read = [](fid_cq* from, void* to, std::size_t most) { return of(from).read(to, most); };
        completions_.readerr = [](fid_cq* from, fi_cq_err_entry* entry, std::uint64_t) -> ssize_t {
            entry->op_context = of(from).failed.back();
            of(from).failed.pop_back();
            return 1;
        };
        book_.insert = [](fid_av* to, const void*, std::size_t, fi_addr_t* at, std::uint64_t, void*) {
            *at = of(to).next_address++;
            return 1;
        };
        book_.remove = [](fid_av* from, fi_addr_t* at, std::size_t, std::uint64_t) {
            of(from).removed.push_back(*at);
            return 0;
        };
        book_.straddr = [](fid_av*, const void*, char* text, std::size_t*) -> const char* { return text; };
        endpoint.fid = {.fclass = FI_CLASS_EP, .context = this, .ops = &ops_};
        endpoint.msg = &messages_;
        queue.fid = {.fclass = FI_CLASS_CQ, .context = this, .ops = &ops_};
        queue.ops = &completions_;
        addresses.fid = {.fclass = FI_CLASS_AV, .context = this, .ops = &ops_};
        addresses.ops = &book_;
    }
    Provider(const Provider&) = delete;
    Provider& operator=(const Provider&) = delete;

private:
    template <typename Fid>
    static Provider& of(Fid* object) {
        return *static_cast<Provider*>(object->fid.context);
    }
    ssize_t take(std::vector<Sent>& list, const void* data, std::size_t size, fi_addr_t to, void* context) const {
        if (full) return -FI_EAGAIN;
        const auto* bytes = static_cast<const std::byte*>(data);
        list.push_back({to, Bytes(bytes, bytes + size), context});
        return 0;
    }
    ssize_t read(void* to, std::size_t most) {
        if (broken) return -FI_EIO;
        if (!failed.empty()) return -FI_EAVAIL;
        if (coming.empty()) return -FI_EAGAIN;
        const auto count = std::min(most, coming.size());
        std::copy_n(coming.begin(), count, static_cast<fi_cq_data_entry*>(to));
        coming.erase(coming.begin(), coming.begin() + static_cast<std::ptrdiff_t>(count));
        return static_cast<ssize_t>(count);
    }

    fi_ops ops_{};
    fi_ops_msg messages_{};
    fi_ops_cq completions_{};
    fi_ops_av book_{};
};

}  // namespace ofi_provider
