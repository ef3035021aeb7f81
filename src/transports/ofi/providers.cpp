#include "transports/ofi/providers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <system_error>

#include "transports/ofi/address.hpp"
#include "transports/ofi/fabric.hpp"
#include "transports/ofi/wire.hpp"
#include "transports/ofi/within.hpp"

namespace railmux::transports::ofi {

namespace {

namespace fs = std::filesystem;

struct Known {
    std::string_view core;
    std::string_view doubt;  // empty: on by default
};

// A build that leaves the transport out does not take its devices this way unasked: each would be there several times.
constexpr std::string_view of_tcp = RAILMUX_HAVE_TCP
                                        ? "the tcp transport has these interfaces"
                                        : "the tcp transport, which is not in this build, is for these interfaces";
constexpr std::string_view of_verbs = RAILMUX_HAVE_VERBS
                                          ? "the verbs transport has these devices"
                                          : "the verbs transport, which is not in this build, is for these devices";
constexpr std::string_view of_both = RAILMUX_HAVE_VERBS && RAILMUX_HAVE_TCP
                                         ? "the verbs and tcp transports have these devices"
                                     : RAILMUX_HAVE_TCP ? "the tcp transport has the interfaces of these devices"
                                                        : of_verbs;

// Whatever is not here is off, too: it may be a layer over others.
constexpr std::array known{
    Known{"cxi", ""},
    Known{"efa", ""},
    Known{"opx", ""},
    Known{"psm2", ""},
    Known{"psm", ""},
    Known{"tcp", of_tcp},
    Known{"net", of_tcp},
    Known{"sockets", of_tcp},
    Known{"udp", of_tcp},
    Known{"shm", "processes of one host have the shm transport"},
    Known{"sm2", "processes of one host have the shm transport"},
    Known{"verbs", of_verbs},
    Known{"psm3", of_both},
};

bool any_entry(const char* folder, auto wanted) {
    std::error_code none;
    return std::ranges::any_of(fs::directory_iterator(folder, none), wanted);
}

/// As far as it can be told before it is opened.
std::string obstacle_of(const fi_info& info, const FabricDomain& domain) {
    constexpr auto needed = put_overhead + piece_bytes;
    if (info.ep_attr->max_msg_size < needed)
        return fmt::format("it sends no messages of {} bytes, only of {}", needed, info.ep_attr->max_msg_size);
    // What others are told of it has so much room.
    if (domain.provider.size() > longest_name) return fmt::format("its name has more than {} bytes", longest_name);
    if (domain.fabric.size() > longest_name)
        return fmt::format("the name of its fabric has more than {} bytes", longest_name);
    if (info.src_addrlen > longest_endpoint)
        return fmt::format("its addresses have {} bytes, {} at most fit", info.src_addrlen, longest_endpoint);
    return {};
}

std::vector<FabricDomain> domains_of(const std::string& provider) {
    std::vector<FabricDomain> all;
    try {
        const auto found = within(patience_slices, "provider " + provider, [provider] { return query(provider, {}); });
        for (const auto& info : found) {
            FabricDomain domain{.provider = info->fabric_attr->prov_name,
                                .domain = name_or_none(info->domain_attr->name),
                                .fabric = name_or_none(info->fabric_attr->name)};
            const auto same = [&](const FabricDomain& other) { return other.device() == domain.device(); };
            if (std::ranges::any_of(all, same)) continue;  // by another address
            if (info->nic != nullptr && info->nic->link_attr != nullptr) domain.speed_bps = info->nic->link_attr->speed;
            domain.obstacle = obstacle_of(*info, domain);
            all.push_back(std::move(domain));
        }
        if (all.empty()) all.push_back({.provider = provider, .obstacle = "it finds nothing here that it could use"});
    } catch (const Error& error) {
        all.push_back({.provider = provider,
                       .obstacle = error.what(),
                       .cure = error.cure(),
                       .hangs = error.code() == ErrorCode::timed_out});
    } catch (const std::exception& error) {  // by whatever of C++ is in it
        all.push_back({.provider = provider, .obstacle = std::string("it fails: ") + error.what()});
    }
    return all;
}

}  // namespace

std::string FabricDomain::device() const {
    return domain.empty() || domain == provider ? provider : provider + ":" + domain;
}

bool FabricDomain::stays_on_host() const {
    return core() == "shm" || core() == "sm2" || fabric.starts_with("127.") || fabric.starts_with("::1");
}

bool has_fabric_hardware() {
    const auto is_device = [](const fs::directory_entry& entry) {
        const auto name = entry.path().filename().string();
        return name.starts_with("hfi1") || name.starts_with("cxi") || name.starts_with("ipath");
    };
    const auto is_efa = [](const fs::directory_entry& entry) {
        std::error_code none;
        return fs::read_symlink(entry.path() / "device" / "driver", none).filename() == "efa";
    };
    return any_entry("/dev", is_device) || any_entry("/sys/class/infiniband", is_efa);
}

/// What libfabric takes from the environment only, where the user has not said it: so many packets of 4 KiB may be on their way
/// from each peer over ofi_rxd. 128, as it is without, are three times what a UDP socket holds by default. To repeat what was
/// lost takes milliseconds, and has (1.17) the provider end a receive twice, now and then, and turn in circles for good.
void choose_defaults() { ::setenv("FI_OFI_RXD_MAX_UNACKED", "16", 0); }

std::vector<FabricDomain> list_domains(const std::set<std::string>& hanging) {
    auto names = within(patience_slices, "libfabric", [] { return provider_names(); });
    std::vector<FabricDomain> all;
    std::vector<std::string> asked;
    for (const auto& name : names) {
        // Layers and hooks are asked for by the providers beneath them.
        if (name.starts_with("ofi_") || std::ranges::find(asked, name) != asked.end()) continue;
        asked.push_back(name);
        if (hanging.contains(name)) {
            all.push_back({.provider = name, .obstacle = "it hung when it was asked before", .hangs = true});
            continue;
        }
        for (auto& domain : domains_of(name)) all.push_back(std::move(domain));
    }
    return all;
}

std::string doubt(std::string_view core) {
    const auto found = std::ranges::find(known, core, &Known::core);
    return std::string(found == known.end() ? "it may be a layer over what other rails use" : found->doubt);
}

std::string preferred_to(std::string_view core) { return core == "psm2" ? "opx" : ""; }

}  // namespace railmux::transports::ofi
