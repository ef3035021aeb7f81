#include "transports/self/transport.hpp"

#include "base/selector.hpp"
#include "transports/self/rail.hpp"

namespace railmux::transports::self {

namespace {

class SelfTransport final : public Transport {
public:
    explicit SelfTransport(const Services& services)
        : log_(services.log), rails_(base::Selector::parse(services.config.text("rails"))) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "self"; }
    [[nodiscard]] std::vector<RailInfo> scan() override {
        RailInfo info;
        info.name = info.transport = info.device = info.kind = "self";
        // Whoever names networks does not mean that a process shall reach itself over one of them: only ^self leaves it out.
        info.usable = rails_.match({&info.name, 1}, {}) != base::Selector::Match::excluded;
        if (!info.usable) info.reason = "not selected by rails";
        return {std::move(info)};
    }
    [[nodiscard]] std::unique_ptr<Rail> open(const RailInfo&) override { return std::make_unique<SelfRail>(log_); }

private:
    base::Logger& log_;
    base::Selector rails_;
};

}  // namespace

std::unique_ptr<Transport> make_transport(const Services& services) {
    return std::make_unique<SelfTransport>(services);
}

}  // namespace railmux::transports::self
