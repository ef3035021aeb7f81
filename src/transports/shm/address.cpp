#include "transports/shm/address.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.hpp"
#include "base/crypto.hpp"
#include "base/host.hpp"

namespace railmux::transports::shm {

namespace {
constexpr std::uint8_t version = 1;
}  // namespace

NodeAddress NodeAddress::make() {
    struct stat users {};
    const bool known = ::stat("/proc/self/ns/user", &users) == 0;
    return {.host = base::host_identity(),
            .users = known ? static_cast<std::uint32_t>(users.st_ino) : 0,
            .user = ::geteuid(),
            .name = static_cast<std::uint32_t>(base::random_u64())};
}

std::vector<std::byte> NodeAddress::encode() const {
    base::Writer out;
    out.write(version).write(host).write(users).write(user).write(name);
    return std::move(out).take();
}

std::optional<NodeAddress> NodeAddress::parse(std::span<const std::byte> bytes) {
    base::Reader in(bytes);
    if (in.read<std::uint8_t>() != version) return std::nullopt;
    NodeAddress address;
    address.host = in.read<std::uint64_t>();
    address.users = in.read<std::uint32_t>();
    address.user = in.read<std::uint32_t>();
    address.name = in.read<std::uint32_t>();
    if (!in.done()) return std::nullopt;
    return address;
}

Reachability NodeAddress::reach(const NodeAddress& other) const {
    if (other.host != host) return {Reach::never, {}};
    if (other.users != users) return {Reach::never, "it is in another user namespace of this host"};
    if (other.user != user)
        return {Reach::never, fmt::format("it belongs to user {}, this is user {}", other.user, user)};
    if (other.name == name) return {Reach::never, {}};  // itself, for which there is the self rail
    return {Reach::direct, "same node"};
}

std::string NodeAddress::socket_name() const { return fmt::format("railmux-shm-{:08x}", name); }

}  // namespace railmux::transports::shm
