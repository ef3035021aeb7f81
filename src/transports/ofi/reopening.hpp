// Reopening: closes an endpoint that has failed and opens another one in its place, again and again until that works. Both
// are done by a thread of its own, because providers may hang in either: then it is over, and no second thread tries.
//
// Threads: one engine at a time, as the rail that owns it; the thread shares nothing with it but what a lock guards.
// Lifetime: waits a second for the thread; one that hangs is abandoned, with all it holds.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/file_descriptor.hpp"
#include "transports/ofi/endpoint.hpp"

namespace railmux::transports::ofi {

class Reopening {
public:
    /// Throws Error. Must own what it uses.
    using Open = std::function<Port()>;
    /// From one try to the next, and from one that worked: one that fails at once again costs no more than that.
    static constexpr base::Nanoseconds period = 5 * base::second;
    static constexpr base::Nanoseconds moment = 500 * base::millisecond;

    /// The first endpoint has just been opened. Throws Error(system) when the kernel gives no descriptor.
    explicit Reopening(Open open);
    ~Reopening();
    Reopening(const Reopening&) = delete;
    Reopening& operator=(const Reopening&) = delete;

    /// Not while it is at it. `failed` may be nullptr: there is none to close. Soon: the last one has not failed, and another
    /// is opened at once, or when a moment has passed since the last.
    void begin(std::unique_ptr<Endpoint> failed, bool soon) noexcept;
    /// What it has opened; nullptr: nothing yet. Then it is no longer at it.
    [[nodiscard]] std::unique_ptr<Endpoint> take() noexcept;
    /// Why the last try failed, if that is another reason than was told before.
    [[nodiscard]] std::string take_trouble() noexcept;
    /// There is no thread to try it again.
    [[nodiscard]] bool given_up() const noexcept { return given_up_; }
    /// Readable when there is something to take.
    [[nodiscard]] int descriptor() const noexcept;

private:
    struct Shared;

    Open open_;
    std::shared_ptr<Shared> shared_;
    base::Nanoseconds opened_at_ = 0;
    bool given_up_ = false;
};

}  // namespace railmux::transports::ofi
