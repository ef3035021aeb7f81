// A provider of libfabric as nobody wishes for, loaded by FI_PROVIDER_PATH. TROUBLED_PROVIDER says what is wrong with it:
// `asked` hangs when it is asked what it has, `opened` when it is opened, `broken` fails to open.
#include <rdma/providers/fi_prov.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

bool is(std::string_view trouble) {
    const char* wanted = std::getenv("TROUBLED_PROVIDER");
    return wanted != nullptr && trouble == wanted;
}

[[noreturn]] void hang() {
    for (;;) ::pause();
}

int get_info(std::uint32_t, const char*, const char*, std::uint64_t, const fi_info*, fi_info** info) {
    if (is("asked")) hang();
    *info = fi_allocinfo();
    if (*info == nullptr) return -FI_ENOMEM;
    (*info)->caps = FI_MSG | FI_MULTI_RECV;
    (*info)->ep_attr->type = FI_EP_RDM;
    (*info)->ep_attr->max_msg_size = 1 << 30;
    (*info)->domain_attr->name = ::strdup("nowhere");
    (*info)->fabric_attr->name = ::strdup("nothing");
    return 0;
}

int open_fabric(fi_fabric_attr*, fid_fabric**, void*) {
    if (is("opened")) hang();
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
