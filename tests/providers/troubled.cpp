// A provider of libfabric as nobody wishes for, loaded by FI_PROVIDER_PATH. TROUBLED_PROVIDER says what is wrong with it:
// `asked` hangs when it is asked what it has, `opened` when it is opened, `broken` fails to open, `throwing` throws when it is
// asked, `bursting` when it is opened; `nameless`, `narrow` and `wordy` have no names, only small messages, and a fabric with
// too long a name; `failing` is `tcp;ofi_rxm` as long as there is no file of the name in TROUBLED_FILE: while there is one
// whatever it has opened fails, and it opens nothing. What failed stays broken for good. `erring` is the same, but whatever it
// has opened says that there is an error, and never which. `deafened` is the same as `failing`, but has no descriptor to sleep
// on afterwards. `losing` is `tcp;ofi_rxm`, and tells an error of the first large message instead of sending it. `damaging` is
// `tcp;ofi_rxm`, and changes the header of the first put.
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/providers/fi_prov.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace {

bool is(std::string_view trouble) {
    const char* wanted = std::getenv("TROUBLED_PROVIDER");
    return wanted != nullptr && trouble == wanted;
}

[[noreturn]] void hang() {
    for (;;) ::pause();
}

// --- failing ---------------------------------------------------------------------------------------------------------

const std::string inner = "tcp;ofi_rxm";

bool wraps() { return is("failing") || is("erring") || is("deafened") || is("losing") || is("damaging"); }

bool fails() {
    const char* file = std::getenv("TROUBLED_FILE");
    return file != nullptr && ::access(file, F_OK) == 0;
}

/// Whether nobody may sleep on its descriptor.
bool deaf() {
    static bool failed = false;
    failed = failed || fails();
    return is("deafened") && failed;
}

/// What an object could do before its functions were replaced by ours. They stay for good.
template <typename Ops>
struct Replaced {
    Ops ours{};
    Ops* theirs = nullptr;
};
std::mutex mutex;
std::map<const void*, Replaced<fi_ops_fabric>> fabrics;
std::map<const void*, Replaced<fi_ops_domain>> domains;
struct Queue : Replaced<fi_ops_cq> {
    bool broken = false;
};
std::map<const void*, Queue> queues;

std::map<const void*, Replaced<fi_ops_msg>> senders;
void* lost = nullptr;  // the context of the message that was not sent, until its error is told

template <typename All>
auto& known(All& all, const void* object) {
    const std::lock_guard lock(mutex);
    return all[object];
}

template <typename All, typename Object>
auto& replace(All& all, Object* object) {
    auto& replaced = known(all, object);
    replaced = {};
    replaced.ours = *object->ops;
    replaced.theirs = object->ops;
    object->ops = &replaced.ours;
    return replaced;
}

ssize_t read_queue(fid_cq* queue, void* buffer, std::size_t count) {
    auto& replaced = known(queues, queue);
    replaced.broken = replaced.broken || fails();
    if (replaced.broken) return is("erring") ? -FI_EAVAIL : -FI_EIO;
    return lost != nullptr ? -FI_EAVAIL : replaced.theirs->read(queue, buffer, count);
}

ssize_t read_error(fid_cq* queue, fi_cq_err_entry* entry, std::uint64_t flags) {
    auto& replaced = known(queues, queue);
    if (replaced.broken) return -FI_EAGAIN;
    if (lost == nullptr) return replaced.theirs->readerr(queue, entry, flags);
    *entry = {};
    entry->op_context = std::exchange(lost, nullptr);
    entry->flags = FI_SEND | FI_MSG;
    entry->err = FI_EIO;
    return 1;
}

int open_queue(fid_domain* domain, fi_cq_attr* attributes, fid_cq** queue, void* context) {
    const int code = known(domains, domain).theirs->cq_open(domain, attributes, queue, context);
    if (code != 0) return code;
    auto& ours = replace(queues, *queue).ours;
    ours.read = read_queue;
    ours.readerr = read_error;
    return 0;
}

/// As the inner provider knows it, for as long as it looks.
class Renamed {
public:
    explicit Renamed(fi_fabric_attr& attributes) : attributes_(attributes), before_(attributes.prov_name) {
        attributes_.prov_name = name_.data();
    }
    ~Renamed() { attributes_.prov_name = before_; }
    Renamed(const Renamed&) = delete;
    Renamed& operator=(const Renamed&) = delete;

private:
    fi_fabric_attr& attributes_;
    char* before_;
    std::string name_ = inner;
};

/// The put goes 256 bytes further than it should (transports/ofi/wire.hpp: kind, offset).
ssize_t send_damaged(fid_ep* endpoint, const void* message, std::size_t size, void* descriptor, fi_addr_t to,
                     void* context) {
    static bool damaged = false;
    auto* bytes = static_cast<unsigned char*>(const_cast<void*>(message));
    constexpr unsigned char put = 2;
    if (!damaged && size > 52 && bytes[0] == put) {
        bytes[33] ^= 1;
        damaged = true;
    }
    return known(senders, endpoint).theirs->send(endpoint, message, size, descriptor, to, context);
}

ssize_t send_nothing(fid_ep* endpoint, const void* message, std::size_t size, void* descriptor, fi_addr_t to,
                     void* context) {
    static bool once = false;
    if (size < 4096 || std::exchange(once, true))
        return known(senders, endpoint).theirs->send(endpoint, message, size, descriptor, to, context);
    lost = context;
    return 0;
}

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) {
    const Renamed renamed(*info->fabric_attr);
    const int code = known(domains, domain).theirs->endpoint(domain, info, endpoint, context);
    if (code != 0 || !(is("damaging") || is("losing"))) return code;
    auto& replaced = known(senders, *endpoint);
    replaced = {.ours = *(*endpoint)->msg, .theirs = (*endpoint)->msg};
    replaced.ours.send = is("losing") ? send_nothing : send_damaged;
    (*endpoint)->msg = &replaced.ours;
    return 0;
}

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) {
    const Renamed renamed(*info->fabric_attr);
    const int code = known(fabrics, fabric).theirs->domain(fabric, info, domain, context);
    if (code != 0) return code;
    auto& replaced = replace(domains, *domain);
    replaced.ours.cq_open = open_queue;
    replaced.ours.endpoint = open_endpoint;
    return 0;
}

int open_inner(fi_fabric_attr& attributes, fid_fabric** fabric, void* context) {
    if (fails()) return -FI_EIO;
    const Renamed renamed(attributes);
    const int code = fi_fabric(&attributes, fabric, context);
    if (code == 0) replace(fabrics, *fabric).ours.domain = open_domain;
    return code;
}

int ask_inner(std::uint32_t version, const fi_info* hints, fi_info** info) {
    fi_info* wanted = hints != nullptr ? fi_dupinfo(hints) : fi_allocinfo();
    if (wanted == nullptr) return -FI_ENOMEM;
    std::free(wanted->fabric_attr->prov_name);
    wanted->fabric_attr->prov_name = ::strdup(inner.c_str());
    const int code = fi_getinfo(version, nullptr, nullptr, 0, wanted, info);
    fi_freeinfo(wanted);
    for (fi_info* each = code == 0 ? *info : nullptr; each != nullptr; each = each->next) {
        std::free(each->fabric_attr->prov_name);
        each->fabric_attr->prov_name = nullptr;  // libfabric writes ours
        each->domain_attr->data_progress =
            deaf() ? FI_PROGRESS_MANUAL : FI_PROGRESS_AUTO;  // as its descriptor is (fabric.cpp)
    }
    return code;
}

// ---------------------------------------------------------------------------------------------------------------------

int get_info(std::uint32_t version, const char*, const char*, std::uint64_t, const fi_info* hints, fi_info** info) {
    if (is("asked")) hang();
    // rxm and rxd, which would ask it for what is beneath them, do not stand a domain without a name.
    if (is("nameless") && (hints == nullptr || hints->ep_attr == nullptr || hints->ep_attr->type != FI_EP_RDM))
        return -FI_ENODATA;
    if (is("throwing")) throw std::runtime_error("no good reason");
    if (wraps()) return ask_inner(version, hints, info);
    *info = fi_allocinfo();
    if (*info == nullptr) return -FI_ENOMEM;
    (*info)->caps = FI_MSG | FI_MULTI_RECV;
    (*info)->ep_attr->type = FI_EP_RDM;
    (*info)->ep_attr->max_msg_size = is("narrow") ? 4096 : 1 << 30;
    if (is("nameless")) return 0;
    (*info)->domain_attr->name = ::strdup("nowhere");
    (*info)->fabric_attr->name = ::strdup(is("wordy") ? std::string(65, 'n').c_str() : "nothing");
    return 0;
}

int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
    if (is("opened")) hang();
    if (is("bursting")) throw std::runtime_error("no good reason");
    if (wraps()) return open_inner(*attributes, fabric, context);
    return -FI_EIO;
}

fi_provider provider{};

}  // namespace

extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini() {
    provider.version = FI_VERSION(1, 0);
    provider.fi_version = FI_VERSION(1, 17);
    provider.name = "troubled";
    provider.getinfo = get_info;
    provider.fabric = open_fabric;
    provider.cleanup = [] {};
    return &provider;
}
