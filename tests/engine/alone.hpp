// A process that sends to itself, and knows no other.
//
// Threads: one, unless its context is shared.
// Lifetime: its context lives as long.
#pragma once

#include "engine/pair.hpp"

namespace railmux::test {

inline constexpr std::size_t kept = 4096;         // eager.max: of up to so much copies are kept
inline constexpr std::size_t window = 64 * 1024;  // eager.window: of so much in all

/// A process that knows no other.
struct Alone {
    explicit Alone(const char* level = "single") : context(config(level)), self(context.peer(0)) {}
    static Config config(const char* level) {
        Config config;
        config.set("rails", "tcp:lo").set("thread_level", level).set("close.timeout", "500ms");
        config.set("eager.max", std::to_string(kept)).set("eager.window", std::to_string(window));
        return config;
    }
    [[nodiscard]] bool over(Request& request) {
        auto status = context.test(request);
        last = status.value_or(Status{});
        return status.has_value();
    }

    Context context;
    Peer self;
    Status last;
};

}  // namespace railmux::test
