#include "messaging/wire.hpp"

#include "rails/process_address.hpp"

namespace railmux::messaging {

namespace {
constexpr std::uint64_t in_reserve = 1 << 8;  // beside a key's rail
constexpr std::uint64_t would_get = 1;        // flags of cts
constexpr std::uint64_t leaves = 2;
}  // namespace

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

namespace {
bool read_key_list(base::Reader& in, std::uint64_t count, std::vector<rails::BulkTarget::Key>& keys) {
    if (!in.ok() || count > rails::max_rails || in.left() != count * bulk_key_size) return false;
    keys.clear();
    for (std::uint64_t i = 0; i < count; ++i) {
        rails::BulkTarget::Key entry;
        const auto word = in.read<std::uint64_t>();
        const auto rail = word & ~in_reserve;
        if (rail >= rails::max_rails) return false;
        entry.reserve = rail != word;
        entry.rail = static_cast<std::uint8_t>(rail);
        entry.key.id = in.read<std::uint64_t>();
        entry.key.secret = in.read<std::uint64_t>();
        keys.push_back(entry);
    }
    return true;
}
}  // namespace

bool read_keys(base::Reader& in, std::vector<rails::BulkTarget::Key>& keys) {
    const auto count = in.read<std::uint64_t>();
    return read_key_list(in, count, keys);
}

void store_keys(std::byte* to, std::span<const rails::BulkTarget::Key> keys) noexcept {
    base::store(to, std::uint64_t{keys.size()});
    to += 8;
    for (const auto& entry : keys) {
        base::store(to, std::uint64_t{entry.rail} | (entry.reserve ? in_reserve : 0));
        base::store(to + 8, entry.key.id);
        base::store(to + 16, entry.key.secret);
        to += bulk_key_size;
    }
}

std::optional<RtsBody> parse_rts(std::span<const std::byte> body, std::vector<rails::BulkTarget::Key>& keys) {
    base::Reader in(body);
    RtsBody rts;
    rts.tag = in.read<std::uint64_t>();
    rts.bytes = in.read<std::uint64_t>();
    rts.sender = read_handle(in);
    const auto count = in.read<std::uint32_t>();
    rts.inlined = in.read<std::uint32_t>();
    if (rts.inlined > rails::largest_inlined || rts.inlined > rts.bytes || (rts.whole() && count > 0))
        return std::nullopt;
    if (!read_key_list(in, count, keys)) return std::nullopt;
    return rts;
}

std::optional<CtsBody> parse_cts(std::span<const std::byte> body, std::vector<rails::BulkTarget::Key>& keys) {
    base::Reader in(body);
    CtsBody cts;
    cts.sender = read_handle(in);
    cts.receiver = read_handle(in);
    cts.wanted = in.read<std::uint64_t>();
    cts.offset = in.read<std::uint64_t>();
    cts.bytes = in.read<std::uint64_t>();
    const auto flags = in.read<std::uint64_t>();
    cts.would_get = flags == would_get;
    cts.leaves = flags == leaves;
    if ((flags != 0 && !cts.would_get && !cts.leaves) || cts.offset > cts.wanted || cts.bytes > cts.wanted - cts.offset)
        return std::nullopt;
    if (cts.leaves && cts.wanted > 0) return std::nullopt;
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

std::optional<FinAckBody> parse_fin_ack(std::span<const std::byte> body) noexcept {
    base::Reader in(body);
    FinAckBody fin;
    fin.sender = read_handle(in);
    fin.wanted = in.read<std::uint64_t>();
    fin.bytes = in.read<std::uint64_t>();
    if (!in.done() || fin.bytes > fin.wanted) return std::nullopt;
    return fin;
}

void write_rts(std::byte* to, const RtsBody& body, std::span<const rails::BulkTarget::Key> keys) noexcept {
    base::store(to, body.tag);
    base::store(to + 8, body.bytes);
    store_handle(to + 16, body.sender);
    store_keys(to + 24, keys);
    base::store(to + 28, body.inlined);  // the upper half of the count
}

void write_cts(std::byte* to, const CtsBody& body, std::span<const rails::BulkTarget::Key> keys) noexcept {
    store_handle(to, body.sender);
    store_handle(to + 8, body.receiver);
    base::store(to + 16, body.wanted);
    base::store(to + 24, body.offset);
    base::store(to + 32, body.bytes);
    base::store(to + 40, (body.would_get ? would_get : 0) | (body.leaves ? leaves : 0));
    store_keys(to + 48, keys);
}

void write_fin(std::byte* to, const FinBody& body) noexcept {
    store_handle(to, body.receiver);
    base::store(to + 8, body.offset);
    base::store(to + 16, body.bytes);
}

void write_fin_ack(std::byte* to, const FinAckBody& body) noexcept {
    store_handle(to, body.sender);
    base::store(to + 8, body.wanted);
    base::store(to + 16, body.bytes);
}

}  // namespace railmux::messaging
