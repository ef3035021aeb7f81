#include "transports/ofi/transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <set>

#include "base/crypto.hpp"
#include "base/selector.hpp"
#include "base/text.hpp"
#include "transports/ofi/address.hpp"
#include "transports/ofi/providers.hpp"
#include "transports/ofi/rail.hpp"
#include "transports/ofi/signals.hpp"
#include "transports/ofi/within.hpp"
#include "transports/plain_text.hpp"

namespace railmux::transports::ofi {

namespace {

constexpr std::string_view prefix = "ofi:";
using Match = base::Selector::Match;

class OfiTransport final : public Transport {
public:
    explicit OfiTransport(const Services& services)
        : log_(services.log),
          common_{.owner = base::random_u64(),
                  .hello_limit = static_cast<base::Nanoseconds>(services.config.number("connect.timeout"))},
          rails_(base::Selector::parse(services.config.text("rails"))),
          providers_(base::Selector::parse(services.config.text("ofi.providers"))),
          encrypt_(services.config.flag("tcp.encryption")),
          sleeps_(services.config.text("progress") != "poll"),
          asked_(services.survey || services.config.text("ofi.providers") != "all" ||
                 services.config.text("rails").find("ofi") != std::string::npos ||
                 services.config.text("transports").find("ofi") != std::string::npos) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "ofi"; }
    ~OfiTransport() override;
    OfiTransport(const OfiTransport&) = delete;
    OfiTransport& operator=(const OfiTransport&) = delete;

    [[nodiscard]] std::vector<RailInfo> scan() override;
    [[nodiscard]] std::optional<std::vector<RailInfo>> rescan() override;
    [[nodiscard]] std::unique_ptr<transports::Rail> open(const RailInfo& device) override;

private:
    /// What libfabric has, and why not where it says nothing.
    template <typename List>
    [[nodiscard]] std::vector<RailInfo> describe_all(List list);
    [[nodiscard]] RailInfo describe(const FabricDomain& domain) const;
    [[nodiscard]] Match chosen(const FabricDomain& domain) const {
        return providers_.match(std::array{domain.device(), domain.provider, domain.core()}, {});
    }
    struct Objection {  // no reason: there is none
        std::string reason;
        std::string cure;
    };
    /// Against the domain itself, whatever others there are.
    [[nodiscard]] Objection objection(const FabricDomain& domain) const;
    void judge(const FabricDomain& domain, RailInfo& info) const;
    [[nodiscard]] std::string rival(const FabricDomain& domain) const;
    void refuse_unknown_names() const;

    base::Logger& log_;
    Rail::Common common_;
    base::Selector rails_;
    base::Selector providers_;
    bool encrypt_;  // what can be
    bool sleeps_;   // somebody, until something comes
    bool asked_;    // somebody wants to know what libfabric has
    std::vector<FabricDomain> domains_;
    std::set<std::string> hanging_;                 // providers
    std::future<std::vector<FabricDomain>> found_;  // by rescan(), while it is under way
};

RailInfo nothing(const std::string& reason, const std::string& cure) {
    RailInfo none;
    none.name = none.transport = none.device = "ofi";
    none.reason = reason;
    none.cure = cure;
    return none;
}

RailInfo no_hardware() {
    return nothing("no adapter here that only libfabric reaches",
                   "name providers to use them: RAILMUX_OFI_PROVIDERS (`railmux info --all` lists them)");
}

OfiTransport::~OfiTransport() {
    // A library should not be at work while the process ends; one that hangs must not keep that up.
    if (found_.valid()) static_cast<void>(is_over(found_, std::chrono::seconds(1)));
}

std::vector<RailInfo> OfiTransport::scan() {
    if (!asked_ && !has_fabric_hardware()) return {no_hardware()};
    choose_defaults();
    return describe_all([this] { return list_domains(hanging_); });
}

/// It takes a third of a second, and 10 s for each provider that hangs.
std::optional<std::vector<RailInfo>> OfiTransport::rescan() {
    if (!found_.valid()) {
        if (!asked_ && !has_fabric_hardware()) return std::vector{no_hardware()};
        choose_defaults();
        try {
            found_ = apart("asking libfabric what there is", [hanging = hanging_] { return list_domains(hanging); });
        } catch (const Error& error) {
            return std::vector{nothing(error.what(), error.cure())};
        }
    }
    if (!is_over(found_)) return std::nullopt;
    return describe_all([this] { return found_.get(); });
}

template <typename List>
std::vector<RailInfo> OfiTransport::describe_all(List list) {
    try {
        domains_ = list();
    } catch (const Error& error) {
        return {nothing(error.what(), error.cure())};
    } catch (const std::exception& error) {
        return {nothing(error.what(), {})};
    }
    refuse_unknown_names();
    std::vector<RailInfo> infos;
    infos.reserve(domains_.size());
    for (const auto& domain : domains_) {
        infos.push_back(describe(domain));
        if (domain.hangs) hanging_.insert(domain.provider);
    }
    return infos;
}

RailInfo OfiTransport::describe(const FabricDomain& domain) const {
    RailInfo info;
    info.device = domain.device();
    info.name = std::string(prefix) + info.device;
    info.transport = "ofi";
    info.kind = "libfabric " + domain.core();
    info.by_processors = domain.stays_on_host();
    info.speed_bps = domain.speed_bps;
    judge(domain, info);
    return info;
}

OfiTransport::Objection OfiTransport::objection(const FabricDomain& domain) const {
    const std::array rail_names{std::string(prefix) + domain.device(), domain.device()};
    const auto by_rails = rails_.match(rail_names, {});
    const auto by_providers = chosen(domain);
    // Not by rails: "ofi:*" does not mean each network twice.
    const bool named = by_providers == Match::included_explicitly;
    if (by_rails == Match::excluded || by_rails == Match::unlisted) return {"not selected by rails", {}};
    if (by_providers == Match::excluded || by_providers == Match::unlisted)
        return {"not selected by ofi.providers", {}};
    if (!domain.obstacle.empty()) return {domain.obstacle, domain.cure};
    auto why = doubt(domain.core());
    if (!why.empty()) why = "off by default: " + why;
    if (why.empty() && encrypt_) why = plain_text_doubt;
    if (why.empty() || named) return {};
    return {std::move(why), fmt::format("name it to use it: RAILMUX_OFI_PROVIDERS='all,{}'", domain.device())};
}

void OfiTransport::judge(const FabricDomain& domain, RailInfo& info) const {
    if (auto against = objection(domain); !against.reason.empty()) {
        info.reason = std::move(against.reason);
        info.cure = std::move(against.cure);
    } else if (const auto other = rival(domain); !other.empty()) {
        info.reason = "over the same adapter as ofi:" + other;
        info.cure = fmt::format("to use it instead: RAILMUX_OFI_PROVIDERS='all,{},^{}'", domain.device(), other);
    } else {
        info.usable = true;
    }
}

/// Another domain that comes before this one over the same adapter, unless this one was chosen by its full name.
std::string OfiTransport::rival(const FabricDomain& domain) const {
    const std::array exactly{domain.device(), domain.provider};
    const bool by_core = domain.provider == domain.core();
    if (!by_core && providers_.match(exactly, {}) == Match::included_explicitly) return {};
    for (const auto& other : domains_) {
        if (&other == &domain) break;
        if (!objection(other).reason.empty()) continue;
        if (other.core() == domain.core() && other.domain == domain.domain) return other.device();
    }
    const auto preferred = preferred_to(domain.core());
    const auto better = std::ranges::find_if(
        domains_, [&](const auto& other) { return other.core() == preferred && objection(other).reason.empty(); });
    return better == domains_.end() ? std::string() : better->device();
}

void OfiTransport::refuse_unknown_names() const {
    std::vector<std::string> known;
    for (const auto& domain : domains_) {
        for (const auto& name : {domain.core(), domain.provider, domain.device()}) {
            if (std::ranges::find(known, name) == known.end()) known.push_back(name);
        }
    }
    const auto unknown = providers_.unmatched(known);
    if (unknown.empty()) return;
    throw Error(ErrorCode::invalid_config,
                fmt::format("ofi.providers names {}, which libfabric does not have here{}", base::join(unknown),
                            base::did_you_mean(unknown.front(), known)),
                "it has " + base::join(known));
}

std::unique_ptr<transports::Rail> OfiTransport::open(const RailInfo& device) {
    const auto known = std::ranges::find(domains_, device.device, &FabricDomain::device);
    if (known == domains_.end())
        throw Error(ErrorCode::no_rails, device.name + " is not there any more",
                    "it went away after it was listed: see `railmux info`");
    static constexpr Largest largest{.copied = put_overhead + piece_bytes,
                                     .fetched = put_overhead + fetched_piece_bytes};
    const auto open = [provider = known->provider, domain = known->domain, sleeps = sleeps_] {
        auto found = query(provider, domain);
        if (found.empty())
            throw Error(ErrorCode::no_rails, provider + " has no domain " + domain + " any more",
                        "it went away after it was listed: see `railmux info`");
        auto port = open_port(std::move(found.front()), largest, sleeps);
        if (port.name.size() > longest_endpoint)
            throw Error(ErrorCode::no_rails,
                        fmt::format("provider {}: its addresses have {} bytes, {} at most fit", provider,
                                    port.name.size(), longest_endpoint),
                        "exclude it with RAILMUX_OFI_PROVIDERS");
        return port;
    };
    try {
        auto port = within(patience_slices, "opening " + device.name, open);
        return std::make_unique<Rail>(device.name, std::move(port), open, common_, log_);
    } catch (const Error&) {
        throw;
    } catch (const std::exception& error) {  // by whatever of C++ is in the provider
        throw Error(ErrorCode::no_rails, fmt::format("opening {} fails: {}", device.name, error.what()),
                    "exclude it with RAILMUX_OFI_PROVIDERS");
    }
}

}  // namespace

std::unique_ptr<Transport> make_transport(const Services& services) {
    give_signals_back();  // before libfabric's providers set handlers that call those which they found
    return std::make_unique<OfiTransport>(services);
}

}  // namespace railmux::transports::ofi
