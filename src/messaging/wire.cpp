#include "messaging/wire.hpp"

#include "rails/process_address.hpp"

namespace railmux::messaging {

Handle read_handle(base::Reader& in) noexcept {
    Handle handle;
    handle.index = in.read<std::uint32_t>();
    handle.generation = in.read<std::uint32_t>();
    return handle;
}

void store_handle(std::byte* to, Handle handle) noexcept {
    base::store(to, handle.index);
    base::store(to + 4, handle.generation);
}

bool read_keys(base::Reader& in, std::vector<rails::BulkTarget::Key>& keys) {
    const auto count = in.read<std::uint64_t>();
    if (!in.ok() || count > rails::max_rails || in.left() != count * bulk_key_size) return false;
    keys.clear();
    for (std::uint64_t i = 0; i < count; ++i) {
        rails::BulkTarget::Key entry;
        const auto rail = in.read<std::uint64_t>();
        if (rail >= rails::max_rails) return false;
        entry.rail = static_cast<std::uint8_t>(rail);
        entry.key.id = in.read<std::uint64_t>();
        entry.key.secret = in.read<std::uint64_t>();
        keys.push_back(entry);
    }
    return true;
}

void store_keys(std::byte* to, std::span<const rails::BulkTarget::Key> keys) noexcept {
    base::store(to, std::uint64_t{keys.size()});
    to += 8;
    for (const auto& entry : keys) {
        base::store(to, std::uint64_t{entry.rail});
        base::store(to + 8, entry.key.id);
        base::store(to + 16, entry.key.secret);
        to += bulk_key_size;
    }
}

std::optional<EagerBody> parse_eager(std::span<const std::byte> body) noexcept {
    if (body.size() < EagerBody::size) return std::nullopt;
    return EagerBody{base::load<std::uint64_t>(body.data()), body.subspan(EagerBody::size)};
}

std::optional<RtsBody> parse_rts(std::span<const std::byte> body) noexcept {
    base::Reader in(body);
    RtsBody rts;
    rts.tag = in.read<std::uint64_t>();
    rts.bytes = in.read<std::uint64_t>();
    rts.sender = read_handle(in);
    if (!in.done()) return std::nullopt;
    return rts;
}

std::optional<CtsBody> parse_cts(std::span<const std::byte> body, std::vector<rails::BulkTarget::Key>& keys) {
    base::Reader in(body);
    CtsBody cts;
    cts.sender = read_handle(in);
    cts.receiver = read_handle(in);
    cts.bytes = in.read<std::uint64_t>();
    if (!read_keys(in, keys)) return std::nullopt;
    return cts;
}

std::optional<FinBody> parse_fin(std::span<const std::byte> body) noexcept {
    base::Reader in(body);
    FinBody fin;
    fin.receiver = read_handle(in);
    fin.offset = in.read<std::uint64_t>();
    fin.bytes = in.read<std::uint64_t>();
    if (!in.done()) return std::nullopt;
    return fin;
}

void write_rts(std::byte* to, const RtsBody& body) noexcept {
    base::store(to, body.tag);
    base::store(to + 8, body.bytes);
    store_handle(to + 16, body.sender);
}

void write_cts(std::byte* to, const CtsBody& body, std::span<const rails::BulkTarget::Key> keys) noexcept {
    store_handle(to, body.sender);
    store_handle(to + 8, body.receiver);
    base::store(to + 16, body.bytes);
    store_keys(to + 24, keys);
}

void write_fin(std::byte* to, const FinBody& body) noexcept {
    store_handle(to, body.receiver);
    base::store(to + 8, body.offset);
    base::store(to + 16, body.bytes);
}

}  // namespace railmux::messaging
