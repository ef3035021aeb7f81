#include "transports/ofi/address.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "base/bytes.hpp"
#include "base/host.hpp"
#include "transports/ofi/fabric.hpp"

namespace railmux::transports::ofi {

namespace {

constexpr std::string_view shared_memory = "shm";

/// What the provider is told was once received: it must be of the form that the provider expects.
bool well_formed(std::uint32_t format, std::span<const std::byte> endpoint) {
    const auto is_sockaddr = [&](std::size_t size, sa_family_t family) {
        return endpoint.size() == size && std::memcmp(endpoint.data(), &family, sizeof family) == 0;
    };
    if (endpoint.empty() || endpoint.size() > longest_endpoint) return false;
    if (format == FI_SOCKADDR_IN) return is_sockaddr(sizeof(sockaddr_in), AF_INET);
    if (format == FI_SOCKADDR_IN6) return is_sockaddr(sizeof(sockaddr_in6), AF_INET6);
    if (format == FI_ADDR_STR) return endpoint.back() == std::byte{0};
    return true;
}

}  // namespace

RailAddress RailAddress::of(const Port& port, std::uint64_t owner) {
    return {.host = base::host_identity(),
            .process = base::process_id(),
            .owner = owner,
            .format = port.info->addr_format,
            .provider = port.info->fabric_attr->prov_name,
            .fabric = name_or_none(port.info->fabric_attr->name),
            .message_bytes = static_cast<std::uint32_t>(port.message_bytes),
            .endpoint = port.name};
}

std::vector<std::byte> RailAddress::encode() const {
    base::Writer writer;
    writer.write(host).write(process).write(owner).write(format).text(provider).text(fabric).write(message_bytes);
    writer.write(static_cast<std::uint16_t>(endpoint.size())).append(endpoint);
    return std::move(writer).take();
}

std::optional<RailAddress> RailAddress::parse(std::span<const std::byte> bytes) {
    base::Reader reader(bytes);
    RailAddress address;
    address.host = reader.read<std::uint64_t>();
    address.process = reader.read<std::uint32_t>();
    address.owner = reader.read<std::uint64_t>();
    address.format = reader.read<std::uint32_t>();
    address.provider = reader.text(longest_name);
    address.fabric = reader.text(longest_name);
    address.message_bytes = reader.read<std::uint32_t>();
    const auto endpoint = reader.take(reader.read<std::uint16_t>());
    if (!reader.done() || address.provider.empty() || address.message_bytes < least_message ||
        !well_formed(address.format, endpoint))
        return std::nullopt;
    address.endpoint.assign(endpoint.begin(), endpoint.end());
    return address;
}

bool RailAddress::stays_on_host() const noexcept {
    if (provider == shared_memory) return true;
    if (format == FI_SOCKADDR_IN) {
        sockaddr_in in{};
        std::memcpy(&in, endpoint.data(), sizeof in);
        return (ntohl(in.sin_addr.s_addr) >> 24) == 127;
    }
    if (format != FI_SOCKADDR_IN6) return false;
    sockaddr_in6 in{};
    std::memcpy(&in, endpoint.data(), sizeof in);
    return IN6_IS_ADDR_LOOPBACK(&in.sin6_addr);
}

Reachability RailAddress::reach(const RailAddress& other) const {
    if (provider != other.provider)
        return {Reach::never, "it speaks by " + other.provider + ", this one by " + provider};
    if (format != other.format) return {Reach::never, "its addresses are of another kind"};
    // The provider reads as many bytes as its own have.
    if (format != FI_ADDR_STR && endpoint.size() != other.endpoint.size())
        return {Reach::never, "its address is malformed"};
    const bool same_host = host == other.host;
    if (stays_on_host() || other.stays_on_host()) {
        if (!same_host) return {Reach::never, "it does not leave its host"};
        if (stays_on_host() != other.stays_on_host()) return {Reach::never, "loopback reaches loopback only"};
        if (provider == shared_memory && process == other.process && owner != other.owner) {
            return {Reach::never, "shm is not safe between two contexts of one process (Port::outlives_rail)"};
        }
        return {Reach::direct, provider == shared_memory ? "shared memory of this host" : "loopback of this host"};
    }
    if (same_host) return {Reach::fallback, "the same host"};
    if (fabric == other.fabric) return {Reach::direct, "same fabric " + fabric};
    return {Reach::routed, "from fabric " + fabric + " to " + other.fabric};
}

}  // namespace railmux::transports::ofi
