#include "transports/self/transport.hpp"

#include "transports/self/rail.hpp"

namespace railmux::transports::self {

namespace {

class SelfTransport final : public Transport {
public:
    explicit SelfTransport(base::Logger& log) noexcept : log_(log) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "self"; }
    [[nodiscard]] std::vector<RailInfo> scan() override {
        RailInfo info;
        info.name = info.transport = info.device = info.kind = "self";
        info.usable = true;
        return {std::move(info)};
    }
    [[nodiscard]] std::unique_ptr<Rail> open(const RailInfo&) override { return std::make_unique<SelfRail>(log_); }

private:
    base::Logger& log_;
};

}  // namespace

std::unique_ptr<Transport> make_transport(const Services& services) {
    return std::make_unique<SelfTransport>(services.log);
}

}  // namespace railmux::transports::self
