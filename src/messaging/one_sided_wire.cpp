#include "messaging/one_sided_wire.hpp"

#include <algorithm>

namespace railmux::messaging {

namespace {

constexpr std::uint64_t notify_flag = 1;

AskHead read_head(base::Reader& in) {
    AskHead head;
    if (const auto key = in.take(RemoteKey::size); !key.empty()) head.place.key = RemoteKey::from(key);
    head.place.offset = in.read<std::uint64_t>();
    head.origin = read_handle(in);
    return head;
}

/// Returns the place behind it.
std::byte* store_head(std::byte* to, const AskHead& head) noexcept {
    std::ranges::copy(head.place.key.bytes(), to);
    base::store(to + RemoteKey::size, head.place.offset);
    store_handle(to + RemoteKey::size + 8, head.origin);
    return to + AskHead::size;
}

/// What a target may answer.
bool possible(std::uint64_t code) noexcept {
    const auto is = [&](ErrorCode one) { return code == static_cast<std::uint64_t>(one); };
    return is(ErrorCode::ok) || is(ErrorCode::access_denied) || is(ErrorCode::invalid_argument) ||
           is(ErrorCode::out_of_memory);
}

}  // namespace

// --- Requests --------------------------------------------------------------------------------------------------------

std::optional<PutBody> parse_put(std::span<const std::byte> body) noexcept {
    base::Reader in(body);
    PutBody put;
    put.head = read_head(in);
    const auto flags = in.read<std::uint64_t>();
    if (!in.ok() || flags > notify_flag) return std::nullopt;
    put.notify = flags == notify_flag;
    put.payload = body.subspan(PutBody::size);
    return put;
}

std::optional<GetBody> parse_get(std::span<const std::byte> body) noexcept {
    base::Reader in(body);
    GetBody get;
    get.head = read_head(in);
    get.bytes = in.read<std::uint64_t>();
    if (!in.done()) return std::nullopt;
    return get;
}

std::optional<AtomicBody> parse_atomic(std::span<const std::byte> body) noexcept {
    base::Reader in(body);
    AtomicBody atomic;
    atomic.head = read_head(in);
    const auto op = in.read<std::uint8_t>();
    atomic.width = in.read<std::uint8_t>();
    const bool padded = in.read<std::uint16_t>() == 0 && in.read<std::uint32_t>() == 0;
    atomic.operand = in.read<std::uint64_t>();
    atomic.expected = in.read<std::uint64_t>();
    if (!in.done() || !padded || op > static_cast<std::uint8_t>(AtomicOp::compare_swap)) return std::nullopt;
    if (atomic.width != 4 && atomic.width != 8) return std::nullopt;
    atomic.op = static_cast<AtomicOp>(op);
    return atomic;
}

std::optional<PutRequestBody> parse_put_request(std::span<const std::byte> body) noexcept {
    base::Reader in(body);
    PutRequestBody put;
    put.head = read_head(in);
    const auto flags = in.read<std::uint64_t>();
    put.notify = flags == notify_flag;
    put.bytes = in.read<std::uint64_t>();
    put.sender = read_handle(in);
    if (!in.done() || flags > notify_flag || put.bytes == 0) return std::nullopt;
    return put;
}

std::optional<GetRequestBody> parse_get_request(std::span<const std::byte> body,
                                                std::vector<rails::BulkTarget::Key>& keys) {
    base::Reader in(body);
    GetRequestBody get;
    get.head = read_head(in);
    get.bytes = in.read<std::uint64_t>();
    get.receiver = read_handle(in);
    if (!read_keys(in, keys) || keys.empty() || get.bytes == 0) return std::nullopt;
    return get;
}

void write_put(std::byte* to, const PutBody& body) noexcept {
    to = store_head(to, body.head);
    base::store(to, body.notify ? notify_flag : 0);
}

void write_get(std::byte* to, const GetBody& body) noexcept {
    to = store_head(to, body.head);
    base::store(to, body.bytes);
}

void write_atomic(std::byte* to, const AtomicBody& body) noexcept {
    to = store_head(to, body.head);
    base::store(to, std::uint64_t{body.width} << 8 | static_cast<std::uint8_t>(body.op));
    base::store(to + 8, body.operand);
    base::store(to + 16, body.expected);
}

void write_put_request(std::byte* to, const PutRequestBody& body) noexcept {
    to = store_head(to, body.head);
    base::store(to, body.notify ? notify_flag : 0);
    base::store(to + 8, body.bytes);
    store_handle(to + 16, body.sender);
}

void write_get_request(std::byte* to, const GetRequestBody& body,
                       std::span<const rails::BulkTarget::Key> keys) noexcept {
    to = store_head(to, body.head);
    base::store(to, body.bytes);
    store_handle(to + 8, body.receiver);
    store_keys(to + 16, keys);
}

// --- Answers ---------------------------------------------------------------------------------------------------------

std::optional<GotBody> parse_got(std::span<const std::byte> body) noexcept {
    base::Reader in(body);
    GotBody got;
    got.origin = read_handle(in);
    if (!in.ok()) return std::nullopt;
    got.payload = body.subspan(GotBody::size);
    return got;
}

std::optional<Result> take_result(std::span<const std::byte>& body) noexcept {
    base::Reader in(body);
    Result result;
    result.origin = read_handle(in);
    const auto code = in.read<std::uint64_t>();
    result.value = in.read<std::uint64_t>();
    if (!in.ok() || !possible(code)) return std::nullopt;
    result.code = static_cast<ErrorCode>(code);
    body = body.subspan(Result::size);
    return result;
}

void write_got(std::byte* to, const GotBody& body) noexcept { store_handle(to, body.origin); }

void write_result(std::byte* to, const Result& result) noexcept {
    store_handle(to, result.origin);
    base::store(to + 8, static_cast<std::uint64_t>(result.code));
    base::store(to + 16, result.value);
}

}  // namespace railmux::messaging
