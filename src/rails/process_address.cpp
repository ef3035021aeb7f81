#include "rails/process_address.hpp"

#include <fmt/format.h>

#include "base/bytes.hpp"

namespace railmux::rails {

namespace {
constexpr std::size_t max_host = 255;
constexpr std::size_t max_transport = 16;
constexpr std::size_t max_rail_address = 256;
}  // namespace

Error version_error(std::span<const std::byte> bytes) {
    base::Reader in(bytes);
    return {ErrorCode::wrong_version,
            fmt::format("it speaks wire version {}, this is version {}", in.read<std::uint16_t>(), wire_version),
            "use one release of railmux on both sides"};
}

Error ProcessAddress::refusal(std::span<const std::byte> bytes) {
    if (base::Reader in(bytes); in.read<std::uint16_t>() != wire_version && in.ok()) return version_error(bytes);
    return {ErrorCode::invalid_argument, "this is not the address of a railmux process",
            "pass on what Context::address() returned, unchanged"};
}

std::vector<std::byte> ProcessAddress::encode() const {
    base::Writer out;
    out.write(wire_version).write(instance).write(rank).write(pid).text(host.substr(0, max_host));
    out.write(static_cast<std::uint8_t>(rails.size()));
    for (const auto& rail : rails) {
        out.write(rail.rail).text(rail.transport).write(rail.identity);
        out.write(static_cast<std::uint16_t>(rail.address.size())).append(rail.address);
    }
    return std::move(out).take();
}

std::optional<ProcessAddress> ProcessAddress::parse(std::span<const std::byte> bytes) {
    if (bytes.size() > max_process_address) return std::nullopt;
    base::Reader in(bytes);
    if (in.read<std::uint16_t>() != wire_version) return std::nullopt;
    ProcessAddress address;
    address.instance = in.read<std::uint64_t>();
    address.rank = in.read<std::uint32_t>();
    address.pid = in.read<std::uint32_t>();
    address.host = in.text(max_host);
    const std::size_t count = in.read<std::uint8_t>();
    if (!in.ok() || address.instance == 0 || count > max_rails) return std::nullopt;
    for (std::size_t i = 0; i < count && in.ok(); ++i) {
        RailAddress rail;
        rail.rail = in.read<std::uint8_t>();
        rail.transport = in.text(max_transport);
        rail.identity = in.read<std::uint64_t>();
        const std::size_t length = in.read<std::uint16_t>();
        if (length > max_rail_address) return std::nullopt;
        const auto part = in.take(length);
        rail.address.assign(part.begin(), part.end());
        address.rails.push_back(std::move(rail));
    }
    if (!in.done()) return std::nullopt;
    return address;
}

}  // namespace railmux::rails
