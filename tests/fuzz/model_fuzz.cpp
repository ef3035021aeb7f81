// What the model reads from elsewhere: probe messages of other processes, and models written in files.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "model/mirror.hpp"
#include "model/probe_wire.hpp"

#include <railmux/loggp.hpp>

using namespace railmux;

namespace {

void check(bool holds) {
    if (!holds) __builtin_trap();
}

/// Requests one after the other, each with its own time, into one mirror.
void drive_mirror(std::span<const std::byte> bytes) {
    model::Mirror mirror;
    base::Nanoseconds now = 0;
    while (bytes.size() >= model::ProbeRequest::size) {
        const auto request = model::parse_request(bytes.first(model::ProbeRequest::size));
        bytes = bytes.subspan(model::ProbeRequest::size);
        if (request && mirror.arrived(*request, {.at = now})) check(mirror.reply(now).train == request->train);
        ++now;
    }
}

template <typename Parsed>
void check_same(const Parsed& parsed, std::span<const std::byte> bytes) {
    if (!parsed) return;
    const auto again = model::encode(*parsed);
    check(std::equal(again.begin(), again.end(), bytes.begin()));
}

template <typename Read, typename Write>
void read_model(std::string_view text, Read read, Write write) {
    LogGP found;
    try {
        found = read(text);
    } catch (const Error&) {
        return;
    }
    check(valid(found));
    check(read(write(found)) == found);
    static_cast<void>(found.predict(text.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
    if (size == 0) return 0;
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    switch (data[0] % 6) {
        case 0: check_same(model::parse_request(bytes), bytes); break;
        case 1: check_same(model::parse_reply(bytes), bytes); break;
        case 2: drive_mirror(bytes); break;
        case 3: read_model(text, loggp_from_text, to_text); break;
        case 4: read_model(text, loggp_from_json, to_json); break;
        case 5: check_same(model::parse_memory(bytes), bytes); break;
        default: break;
    }
    return 0;
}
