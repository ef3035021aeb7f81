#include "transports/ofi/fabric.hpp"

#include <fmt/format.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace railmux::transports::ofi {

namespace {

// Completions of sends and receives that may wait to be read; providers round it up or give less.
constexpr std::size_t completion_queue_entries = 4096;

Error failure(const std::string& provider, const char* what, ssize_t code) {
    const bool memory = code == -FI_ENOMEM;
    return {memory ? ErrorCode::out_of_memory : ErrorCode::system,
            fmt::format("provider {}: {} failed: {}", provider, what, in_words(code)),
            "see FI_LOG_LEVEL=warn for what libfabric says, or exclude it with RAILMUX_OFI_PROVIDERS"};
}

/// fi_* functions that make objects return 0 or a negative code.
template <typename T, typename Make>
Handle<T> made(const std::string& provider, const char* what, Make make) {
    T* object = nullptr;
    if (const int code = make(&object); code != 0) throw failure(provider, what, code);
    return Handle<T>(object);
}

Info hints_for(const std::string& provider, const std::string& domain, std::uint64_t caps) {
    Info hints(fi_allocinfo());
    if (!hints)
        throw Error(ErrorCode::out_of_memory, "no memory for libfabric", "raise the limit of memory (ulimit -v)");
    hints->caps = caps;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->fabric_attr->prov_name = ::strdup(provider.c_str());
    if (!domain.empty()) hints->domain_attr->name = ::strdup(domain.c_str());
    return hints;
}

int wait_descriptor(fid_cq* completions) {
    int descriptor = -1;
    return fi_control(&completions->fid, FI_GETWAIT, &descriptor) == 0 ? descriptor : -1;
}

/// Whether it may be slept on the descriptor. By fi_domain(3) a provider of manual progress need not go on while the process
/// is in epoll: one that repeats lost messages (ofi_rxd) would sleep for good. rxm over tcp says manual, too, but its
/// descriptor is readable when one of its sockets is, and it was slept on in all tests. Over verbs (1.17), whatever it says
/// there, whoever waited for room to send slept for good, for reasons that are not known.
bool wakes(const fi_info& info) {
    const std::string_view provider = info.fabric_attr->prov_name;
    if (provider == "tcp;ofi_rxm") return true;
    return info.domain_attr->data_progress == FI_PROGRESS_AUTO && provider != "verbs;ofi_rxm";
}

/// A provider that matches the announcement of a large message with the room for it, and fetches it later: with the last of its
/// room given away it calls a buffer filled. rxm was seen to do so (1.17); tcp, which was named net, by ofiwg/libfabric#9434.
bool fetches(const std::string& provider) {
    return provider.find("ofi_rxm") != provider.npos || provider == "tcp" || provider == "net";
}

std::vector<std::byte> name_of(const std::string& provider, fid_ep* endpoint) {
    std::vector<std::byte> name(256);
    std::size_t size = name.size();
    if (const int code = fi_getname(&endpoint->fid, name.data(), &size); code != 0) {
        throw failure(provider, "fi_getname", code);
    }
    name.resize(size);
    return name;
}

/// A buffer with less room than for the largest message is filled.
void limit_multi_receives(const Port& port) {
    if (!port.multi_receive) return;
    const int code = fi_setopt(&port.endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &port.message_bytes,
                               sizeof port.message_bytes);
    if (code != 0) throw failure(port.info->fabric_attr->prov_name, "fi_setopt", code);
}

}  // namespace

std::vector<Info> query(const std::string& provider, const std::string& domain) {
    std::vector<Info> all;
    // Some providers have no multi-receive; then each message has a buffer of its own.
    for (const std::uint64_t caps : {std::uint64_t{FI_MSG | FI_MULTI_RECV}, std::uint64_t{FI_MSG}}) {
        const auto hints = hints_for(provider, domain, caps);
        fi_info* found = nullptr;
        const int code = fi_getinfo(api_version, nullptr, nullptr, 0, hints.get(), &found);
        const Info list(code == 0 ? found : nullptr);
        // Layered providers pass over the domain that is asked for.
        for (const fi_info* info = list.get(); info != nullptr; info = info->next) {
            if (domain.empty() || domain == name_or_none(info->domain_attr->name))
                all.push_back(Info(fi_dupinfo(info)));
        }
        if (!all.empty()) return all;
        if (code == 0) continue;
        if (code != -FI_ENODATA) throw failure(provider, "fi_getinfo", code);
    }
    return all;
}

std::vector<std::string> provider_names() {
    fi_info* found = nullptr;
    const int code = fi_getinfo(api_version, nullptr, nullptr, FI_PROV_ATTR_ONLY, nullptr, &found);
    if (code != 0) throw failure("(all)", "fi_getinfo", code);
    const Info list(found);
    std::vector<std::string> names;
    for (const fi_info* info = list.get(); info != nullptr; info = info->next) {
        if (info->fabric_attr->prov_name != nullptr) names.emplace_back(info->fabric_attr->prov_name);
    }
    return names;
}

Port open_port(Info info, Largest largest, bool sleeps) {
    Port port;
    port.info = std::move(info);
    const std::string provider = port.info->fabric_attr->prov_name;
    if (port.info->ep_attr->max_msg_size < largest.copied) {
        throw Error(ErrorCode::no_rails,
                    fmt::format("provider {} sends no messages of {} bytes, only of {}", provider, largest.copied,
                                port.info->ep_attr->max_msg_size),
                    "exclude it with RAILMUX_OFI_PROVIDERS");
    }
    port.multi_receive = (port.info->caps & FI_MULTI_RECV) != 0;
    port.fetches = port.multi_receive && fetches(provider);
    port.message_bytes =
        port.fetches && port.info->ep_attr->max_msg_size >= largest.fetched ? largest.fetched : largest.copied;
    port.fabric = made<fid_fabric>(provider, "fi_fabric",
                                   [&](auto** made) { return fi_fabric(port.info->fabric_attr, made, nullptr); });
    port.domain = made<fid_domain>(provider, "fi_domain", [&](auto** made) {
        return fi_domain(port.fabric.get(), port.info.get(), made, nullptr);
    });
    fi_cq_attr queue{};
    queue.size = completion_queue_entries;
    queue.format = FI_CQ_FORMAT_DATA;
    queue.wait_obj = sleeps && wakes(*port.info) ? FI_WAIT_FD : FI_WAIT_NONE;
    const auto make_queue = [&](auto** made) { return fi_cq_open(port.domain.get(), &queue, made, nullptr); };
    fid_cq* completions = nullptr;
    if (queue.wait_obj == FI_WAIT_FD && make_queue(&completions) == 0) {
        port.completions.reset(completions);
        port.descriptor = wait_descriptor(completions);
    } else {
        queue.wait_obj = FI_WAIT_NONE;
        port.completions = made<fid_cq>(provider, "fi_cq_open", make_queue);
    }
    fi_av_attr addresses{};
    addresses.type = FI_AV_UNSPEC;
    port.peers = made<fid_av>(provider, "fi_av_open",
                              [&](auto** made) { return fi_av_open(port.domain.get(), &addresses, made, nullptr); });
    port.endpoint = made<fid_ep>(provider, "fi_endpoint", [&](auto** made) {
        return fi_endpoint(port.domain.get(), port.info.get(), made, nullptr);
    });
    auto* endpoint = port.endpoint.get();
    if (const int code = fi_ep_bind(endpoint, &port.peers->fid, 0); code != 0)
        throw failure(provider, "fi_ep_bind", code);
    if (const int code = fi_ep_bind(endpoint, &port.completions->fid, FI_TRANSMIT | FI_RECV); code != 0) {
        throw failure(provider, "fi_ep_bind", code);
    }
    // Since 2.0 rxm and shm take the limit over when the endpoint is enabled. Before that shm, and opx and sm2 to this day,
    // have no receives until then, and crash.
    const bool takes_over = provider == "shm" || provider.find("ofi_rxm") != provider.npos;
    const bool limit_first = takes_over && FI_MAJOR(fi_version()) >= 2;
    if (limit_first) limit_multi_receives(port);
    if (const int code = fi_enable(endpoint); code != 0) throw failure(provider, "fi_enable", code);
    if (!limit_first) limit_multi_receives(port);
    port.name = name_of(provider, endpoint);
    return port;
}

bool Port::outlives_rail() const noexcept { return std::string_view(info->fabric_attr->prov_name) == "shm"; }

bool Port::completes_in_order() const noexcept { return outlives_rail() && fi_version() < FI_VERSION(2, 5); }

bool Port::forgets() const noexcept {
    const std::string_view provider = info->fabric_attr->prov_name;
    return provider.find("ofi_rxd") != provider.npos && fi_version() < FI_VERSION(2, 4);
}

std::size_t Port::max_peers() const noexcept { return outlives_rail() ? 255 : ~std::size_t{0}; }

std::string in_words(ssize_t code) { return fi_strerror(static_cast<int>(code < 0 ? -code : code)); }

std::string in_words(fid_cq* completions, const fi_cq_err_entry& entry) {
    std::array<char, 256> detail{};
    const char* text = fi_cq_strerror(completions, entry.prov_errno, entry.err_data, detail.data(), detail.size());
    auto words = in_words(entry.err);
    if (text != nullptr && text[0] != '\0' && words != text) words += fmt::format(" ({})", text);
    return words;
}

std::string address_text(fid_av* peers, const void* address) {
    std::array<char, 128> text{};
    std::size_t size = text.size();
    fi_av_straddr(peers, address, text.data(), &size);
    text.back() = '\0';
    return text.data();
}

// --- Pages -----------------------------------------------------------------------------------------------------------

void Unmap::operator()(std::byte* memory) const noexcept { ::munmap(memory, bytes); }

Pages::Pages(const Port& port, std::size_t bytes) {
    const std::string provider = port.info->fabric_attr->prov_name;
    // Mapped, not allocated: whole pages that hold nothing else, as registration and fork() want them.
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw failure(provider, "mmap", errno);
    memory_ = {static_cast<std::byte*>(memory), Unmap{bytes}};
    if (!port.registers()) return;
    static std::atomic<std::uint64_t> next_key{1};  // nobody is told: no access for others is asked for
    registration_ = made<fid_mr>(provider, "fi_mr_reg", [&](auto** made) {
        return fi_mr_reg(port.domain.get(), memory, bytes, FI_SEND | FI_RECV, 0, next_key++, 0, made, nullptr);
    });
    if ((port.info->domain_attr->mr_mode & FI_MR_ENDPOINT) == 0) return;
    if (const int code = fi_mr_bind(registration_.get(), &port.endpoint->fid, 0); code != 0) {
        throw failure(provider, "fi_mr_bind", code);
    }
    if (const int code = fi_mr_enable(registration_.get()); code != 0) throw failure(provider, "fi_mr_enable", code);
}

}  // namespace railmux::transports::ofi
