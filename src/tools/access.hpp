// The measured loops of one-sided operations: the driver reaches into the memory that the server exposes.
//
// A put of slot i writes what the server checks afterwards; a get reads what the server wrote before; an atomic adds one to
// a counter and must find what the one before left.
//
// Threads: one thread, the one that uses the context.
// Lifetime: only refers to context, order and buffers.
#pragma once

#include <cstdint>
#include <span>

#include <railmux/one_sided.hpp>

#include "base/clock.hpp"
#include "tools/series.hpp"

namespace railmux::tools {

/// The server: exposes its buffers until the driver wants to verify, and says what was done to them.
[[nodiscard]] Reply expose(const Part& part, Buffers& outgoing, Buffers& incoming);

/// The driver: `count` operations, at most the window under way. With a window of one the time of each goes into `samples`,
/// as long as there is room. Returns the time of all.
[[nodiscard]] base::Nanoseconds reach(const Part& part, const RemoteKey& key, Buffers& outgoing, Buffers& incoming,
                                      std::span<std::int64_t> samples, Reply& tally);

}  // namespace railmux::tools
