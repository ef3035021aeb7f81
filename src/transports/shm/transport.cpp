#include "transports/shm/transport.hpp"

#include <array>

#include "base/selector.hpp"
#include "transports/shm/costs.hpp"
#include "transports/shm/memory.hpp"
#include "transports/shm/rail.hpp"

namespace railmux::transports::shm {

namespace {

constexpr const char* rail_name = "shm:node";

class ShmTransport final : public Transport {
public:
    explicit ShmTransport(const Services& services)
        : log_(services.log),
          rails_(base::Selector::parse(services.config.text("rails"))),
          bulk_(services.config.text("shm.bulk")) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "shm"; }
    [[nodiscard]] std::vector<RailInfo> scan() override;
    [[nodiscard]] std::unique_ptr<transports::Rail> open(const RailInfo&) override {
        return std::make_unique<Rail>(rail_name, choose_bulk(bulk_, measure_costs()), log_);
    }

private:
    base::Logger& log_;
    base::Selector rails_;
    std::string bulk_;
};

std::vector<RailInfo> ShmTransport::scan() {
    RailInfo info;
    info.name = rail_name;
    info.transport = "shm";
    info.device = "node";
    info.kind = "memory";
    info.by_processors = true;
    const std::array<std::string, 2> names{info.name, info.device};
    const auto match = rails_.match(names, {});
    if (match == base::Selector::Match::excluded || match == base::Selector::Match::unlisted) {
        info.reason = "not selected by rails";
    } else if (const auto tried = SharedBlock::make(); !tried) {
        info.reason = tried.error().what();
        info.cure = "allow memfd_create where a container's filter forbids it, or raise its limit of memory";
    } else {
        info.usable = true;
    }
    return {std::move(info)};
}

}  // namespace

std::unique_ptr<Transport> make_transport(const Services& services) { return std::make_unique<ShmTransport>(services); }

}  // namespace railmux::transports::shm
