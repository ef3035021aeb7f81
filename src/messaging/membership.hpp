// Membership: how a context learns where other processes are, and what becomes of them: from its job's server, or from whoever
// knocks.
//
// Threads: one engine at a time.
// Lifetime: owned by the engine; leaves the job when destroyed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <railmux/config.hpp>

#include "base/clock.hpp"
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
    /// Ranks that the job has, as far as is known by now. Any thread may ask.
    [[nodiscard]] std::uint32_t size() const noexcept;
    [[nodiscard]] std::string_view job() const noexcept;
    [[nodiscard]] std::string_view key() const noexcept;

    /// Tells the job where this process is. Throws Error(bootstrap, wrong_key).
    void publish(std::vector<std::byte> address);
    /// This process has another address: whoever asks from now on is told that one.
    void moved(const std::vector<std::byte>& address);
    /// Asks for the address of a rank; it, or what became of that rank, comes by poll.
    void ask(std::uint32_t rank);
    /// Leaves the job, and has the others told; nothing comes any more.
    void leave();

    /// Lets others knock. Returns the port. Throws Error(address_in_use, invalid_argument).
    std::uint16_t listen(std::string_view where, std::vector<std::byte> own);
    /// Begins to knock at a process that listens; `answer` has what comes of it. Throws Error(unreachable,
    /// invalid_argument). Several may be under way.
    [[nodiscard]] std::uint32_t knock(std::string_view where, std::span<const std::byte> own,
                                      std::chrono::nanoseconds timeout);
    /// The address of the process there, which ends this knock, as an error does. Throws Error(unreachable, wrong_key,
    /// wrong_version).
    [[nodiscard]] std::optional<std::vector<std::byte>> answer(std::uint32_t knock);

    struct News {
        enum class Kind : std::uint8_t {
            knocked,  // by listen
            known,    // an address that was asked for
            joined,   // a new rank, or a new process of one
            left,     // a process of the job
            lost,     // ... which did not leave
        };
        Kind kind{};
        std::uint32_t rank = 0;  // unless it knocked
        std::string from;        // for people
        std::vector<std::byte> address;
    };
    /// What has come since; cheap when there is nothing.
    [[nodiscard]] std::vector<News> poll();
    /// Descriptors that turn readable when poll may have something.
    [[nodiscard]] std::vector<int> descriptors() const;
    /// How long they may be waited for.
    [[nodiscard]] base::Nanoseconds time_left() const;

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace railmux::messaging
