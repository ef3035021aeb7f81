// ForwardingRail: does what the rail below does. For tests that change some of that.
//
// Threads: as the rail below.
// Lifetime: owns it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "transports/transport.hpp"

namespace railmux {

class ForwardingRail : public transports::Rail {
public:
    explicit ForwardingRail(std::unique_ptr<Rail> below) : below_(std::move(below)), traits_(below_->traits()) {}

    [[nodiscard]] const transports::RailTraits& traits() const noexcept override { return traits_; }
    [[nodiscard]] std::span<const std::byte> address() const noexcept override { return below_->address(); }
    [[nodiscard]] transports::Reachability reach(std::span<const std::byte> to) const override {
        return below_->reach(to);
    }
    [[nodiscard]] transports::LinkId connect(std::span<const std::byte> to, std::span<const std::byte> hello) override {
        return below_->connect(to, hello);
    }
    void accept(transports::LinkId link, std::span<const std::byte> reply) override { below_->accept(link, reply); }
    void refuse(transports::LinkId link, std::span<const std::byte> reply) override { below_->refuse(link, reply); }
    void disconnect(transports::LinkId link) override { below_->disconnect(link); }
    [[nodiscard]] std::string describe(transports::LinkId link) const override { return below_->describe(link); }
    [[nodiscard]] transports::Pulse pulse(transports::LinkId link) noexcept override { return below_->pulse(link); }
    [[nodiscard]] std::optional<std::uint64_t> underway(transports::LinkId link) noexcept override {
        return below_->underway(link);
    }
    [[nodiscard]] base::Result<transports::Region> add_region(std::span<std::byte> memory,
                                                              transports::Access access) override {
        return below_->add_region(memory, access);
    }
    void drop_region(const transports::Region& region) noexcept override { below_->drop_region(region); }
    [[nodiscard]] std::size_t post(std::span<const transports::Work> works) noexcept override {
        return below_->post(works);
    }
    [[nodiscard]] std::size_t poll(std::span<transports::Event> events) noexcept override {
        return below_->poll(events);
    }
    void look_everywhere() noexcept override { below_->look_everywhere(); }
    [[nodiscard]] int arm() noexcept override { return below_->arm(); }

protected:
    [[nodiscard]] Rail& below() const noexcept { return *below_; }
    /// For those below to change.
    [[nodiscard]] transports::RailTraits& own_traits() noexcept { return traits_; }

private:
    std::unique_ptr<Rail> below_;
    transports::RailTraits traits_;
};

}  // namespace railmux
