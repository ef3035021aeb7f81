// Membership: how a context learns where other processes are: from its job's server, or from whoever knocks.
//
// Threads: one engine at a time.
// Lifetime: owned by the engine; leaves the job when destroyed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <railmux/config.hpp>

#include "base/log.hpp"

namespace railmux::messaging {

class Membership {
public:
    /// Joins the job that the config names, if any. Throws Error(bootstrap, wrong_key, invalid_config).
    Membership(const Config& config, base::Logger& log);
    ~Membership();
    Membership(const Membership&) = delete;
    Membership& operator=(const Membership&) = delete;

    [[nodiscard]] bool in_job() const noexcept;
    [[nodiscard]] std::uint32_t rank() const noexcept;
    [[nodiscard]] std::uint32_t size() const noexcept;
    [[nodiscard]] std::string_view job() const noexcept;
    [[nodiscard]] std::string_view key() const noexcept;

    /// Tells the job where this process is. Throws Error(bootstrap, wrong_key).
    void publish(std::vector<std::byte> address);
    /// Asks for the address of a rank; it comes by poll.
    void ask(std::uint32_t rank);

    /// Lets others knock. Returns the port. Throws Error(address_in_use, invalid_argument).
    std::uint16_t listen(std::string_view where, std::vector<std::byte> own);
    /// Knocks and waits for the answer. Throws Error(unreachable, wrong_key, wrong_version).
    [[nodiscard]] std::vector<std::byte> knock(std::string_view where, std::span<const std::byte> own,
                                               std::chrono::nanoseconds timeout);

    struct News {
        bool knocked = false;  // by listen; otherwise asked for
        std::vector<std::byte> address;
    };
    /// What has come since; cheap when there is nothing.
    [[nodiscard]] std::vector<News> poll();
    /// Descriptors that turn readable when poll may have something.
    [[nodiscard]] std::vector<int> descriptors() const;

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace railmux::messaging
