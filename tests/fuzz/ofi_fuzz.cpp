// The messages of an ofi rail: whatever another endpoint may send.
#include <algorithm>
#include <cstdint>
#include <span>

#include "transports/ofi/address.hpp"
#include "transports/ofi/wire.hpp"

using namespace railmux::transports::ofi;

namespace {

void check(bool holds) {
    if (!holds) __builtin_trap();
}

void look_at_address(std::span<const std::byte> bytes) {
    const auto address = RailAddress::parse(bytes);
    if (!address) return;
    const auto again = address->encode();
    check(std::ranges::equal(again, bytes));
    (void)address->reach(*address);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
    std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
    const auto header = take_header(bytes);
    if (!header) return 0;
    if (header->kind == Kind::hello) {
        const auto hello = parse_hello(bytes);
        if (hello) look_at_address(hello->address);
        if (hello && hello->version == wire_version) check(hello->bytes.size() <= max_hello);
    } else if (header->kind == Kind::put) {
        const auto before = bytes.size();
        if (take_put_header(bytes)) check(bytes.size() + PutHeader::size == before);
    } else {
        (void)take_name(bytes);
    }
    return 0;
}
