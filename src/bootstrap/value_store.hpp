// ValueStore: the values that a job's processes tell each other, by number, and who waits for which.
//
// Threads: one thread at a time per object.
// Lifetime: owns the values; connections are known by number, so a lost one does no harm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "bootstrap/channel.hpp"

namespace railmux::bootstrap {

class ValueStore {
public:
    /// Sends a value to a connection.
    using Answer = std::function<void(std::uint64_t connection, std::uint32_t id, std::span<const std::byte> value)>;

    /// Keeps at most `most_values`; further numbers are ignored.
    ValueStore(std::size_t most_values, Answer answer) : most_values_(most_values), answer_(std::move(answer)) {}

    void take(std::uint64_t connection, const Message& message);
    /// The connection has gone: it waits for nothing any more.
    void forget(std::uint64_t connection);

private:
    void put(std::uint32_t id, const std::vector<std::byte>& value);
    void get(std::uint64_t connection, std::uint32_t id);

    std::size_t most_values_;
    Answer answer_;
    std::map<std::uint32_t, std::vector<std::byte>> values_;
    std::map<std::uint32_t, std::set<std::uint64_t>> waiting_;
};

}  // namespace railmux::bootstrap
