#include "transports/ofi/wire.hpp"

#include "base/bytes.hpp"
#include "base/crc32c.hpp"

namespace railmux::transports::ofi {

namespace {

constexpr std::uint32_t magic = 0x46554d52;                                   // "RMUF"
constexpr std::size_t summed_size = PutHeader::size - sizeof(std::uint32_t);  // of the header of a put

void write_name(base::Writer& writer, const LinkName& name) { writer.write(name.place).write(name.token); }

base::Writer begin(const Header& header) {
    std::array<std::byte, Header::size> bytes;
    write(bytes.data(), header);
    base::Writer writer;
    writer.append(bytes);
    return writer;
}

}  // namespace

void write(std::byte* to, const Header& header) noexcept {
    to[0] = static_cast<std::byte>(header.kind);
    to[1] = static_cast<std::byte>(header.flags);
    base::store(to + 2, header.number);
    base::store(to + 4, header.to.place);
    base::store(to + 8, header.to.token);
}

void write(std::byte* to, const PutHeader& header) noexcept {
    base::store(to, header.key.id);
    base::store(to + 8, header.key.secret);
    base::store(to + 16, header.offset);
    base::store(to + 24, header.immediate);
    base::store(to + 28, header.rest);
    base::store(to + summed_size, base::crc32c({to, summed_size}));
}

std::vector<std::byte> encode(const Header& header, const Hello& hello) {
    auto writer = begin(header);
    writer.write(magic).write(hello.version);
    write_name(writer, hello.from);
    writer.write(static_cast<std::uint16_t>(hello.address.size())).append(hello.address).append(hello.bytes);
    return std::move(writer).take();
}

std::vector<std::byte> encode(const Header& header, const LinkName& from, std::span<const std::byte> bytes) {
    auto writer = begin(header);
    write_name(writer, from);
    writer.append(bytes);
    return std::move(writer).take();
}

std::vector<std::byte> encode(const Header& header, std::span<const std::byte> bytes) {
    auto writer = begin(header);
    writer.append(bytes);
    return std::move(writer).take();
}

std::optional<Header> take_header(std::span<const std::byte>& bytes) noexcept {
    if (bytes.size() < Header::size) return std::nullopt;
    Header header;
    const auto kind = static_cast<std::uint8_t>(bytes[0]);
    if (kind < static_cast<std::uint8_t>(Kind::frame) || kind > static_cast<std::uint8_t>(Kind::bye))
        return std::nullopt;
    header.kind = static_cast<Kind>(kind);
    header.flags = static_cast<std::uint8_t>(bytes[1]);
    if (header.flags > 1) return std::nullopt;
    header.number = base::load<std::uint16_t>(bytes.data() + 2);
    header.to = {base::load<std::uint32_t>(bytes.data() + 4), base::load<std::uint64_t>(bytes.data() + 8)};
    bytes = bytes.subspan(Header::size);
    return header;
}

std::optional<PutHeader> take_put_header(std::span<const std::byte>& bytes) noexcept {
    if (bytes.size() < PutHeader::size) return std::nullopt;
    if (base::load<std::uint32_t>(bytes.data() + summed_size) != base::crc32c(bytes.first(summed_size)))
        return std::nullopt;
    PutHeader header;
    header.key = {base::load<std::uint64_t>(bytes.data()), base::load<std::uint64_t>(bytes.data() + 8)};
    header.offset = base::load<std::uint64_t>(bytes.data() + 16);
    header.immediate = base::load<std::uint32_t>(bytes.data() + 24);
    header.rest = base::load<std::uint32_t>(bytes.data() + 28);
    bytes = bytes.subspan(PutHeader::size);
    return header;
}

std::optional<LinkName> take_name(std::span<const std::byte>& bytes) noexcept {
    constexpr std::size_t size = 12;
    if (bytes.size() < size) return std::nullopt;
    const LinkName name{base::load<std::uint32_t>(bytes.data()), base::load<std::uint64_t>(bytes.data() + 4)};
    bytes = bytes.subspan(size);
    return name;
}

std::optional<Hello> parse_hello(std::span<const std::byte> bytes) noexcept {
    base::Reader reader(bytes);
    Hello hello;
    if (reader.read<std::uint32_t>() != magic) return std::nullopt;
    hello.version = reader.read<std::uint16_t>();
    hello.from.place = reader.read<std::uint32_t>();
    hello.from.token = reader.read<std::uint64_t>();
    hello.address = reader.take(reader.read<std::uint16_t>());
    hello.bytes = reader.take(reader.left());
    if (!reader.ok() || hello.address.size() > max_address) return std::nullopt;
    if (hello.version == wire_version && hello.bytes.size() > max_hello) return std::nullopt;
    return hello;
}

}  // namespace railmux::transports::ofi
