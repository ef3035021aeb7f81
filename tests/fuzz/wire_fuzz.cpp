// Everything that parses bytes of another process as pure functions: frames, handshakes, addresses, bodies, streams and the
// start-up channel. The first byte chooses the parser, so that one corpus serves all.
#include <cstdint>
#include <span>
#include <vector>

#include "bootstrap/channel.hpp"
#include "messaging/bundle.hpp"
#include "messaging/one_sided_wire.hpp"
#include "messaging/wire.hpp"
#include "rails/handshake.hpp"
#include "rails/process_address.hpp"
#include "rails/session.hpp"
#include "transports/tcp/address.hpp"
#include "transports/tcp/wire.hpp"

using namespace railmux;

namespace {

void check(bool holds) {
    if (!holds) __builtin_trap();
}

/// Frames as they come over links, each with the length in front, into a session that has sent some of its own.
void drive_session(std::span<const std::byte> bytes) {
    rails::FramePool pool;
    rails::Session session(pool);
    for (int i = 0; i < 100; ++i) {
        auto* frame = pool.take(rails::FrameHeader::size);
        frame->bytes = rails::FrameHeader::size;
        session.enter(*frame, {});
    }
    std::uint32_t delivered = 0;
    while (bytes.size() > 1) {
        const auto length = std::min<std::size_t>(static_cast<std::size_t>(bytes[0]), bytes.size() - 1);
        const auto frame = bytes.subspan(1, length);
        bytes = bytes.subspan(1 + length);
        const auto header = rails::parse_header(frame);
        if (!header) continue;
        const auto body = frame.subspan(rails::FrameHeader::size);
        const auto release = [&](rails::Frame& f) { pool.give(&f); };
        if (!session.acknowledged(header->ack, {}, release)) return;
        if (header->type == rails::FrameType::ack) {
            if (body.size() > rails::Session::max_sack_bytes || !session.acknowledged(header->aux, body, release))
                return;
            continue;
        }
        const auto arrival = session.arrived(header->seq);
        if (arrival == rails::Session::Arrival::impossible) return;
        if (arrival == rails::Session::Arrival::duplicate) continue;
        if (!session.in_order(*header, body, [&](const auto&, auto) { ++delivered; })) return;
    }
    check(delivered <= 1'000'000);
}

void drive_channel(bootstrap::Channel::Role role, std::span<const std::byte> bytes) {
    bootstrap::Channel channel(role, "key");
    for (std::size_t at = 0; at < bytes.size(); at += 7) {  // in uneven pieces, as sockets give them
        channel.receive(bytes.subspan(at, std::min<std::size_t>(7, bytes.size() - at)));
    }
    check(channel.state() != bootstrap::Channel::State::open);  // nobody guesses the key
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
    if (size == 0) return 0;
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
    std::vector<rails::BulkTarget::Key> keys;
    const auto key = rails::make_job_key("job", "key");
    switch (data[0] % 20) {
        case 0: drive_session(bytes); break;
        case 1: check(rails::judge_hello(key, bytes, 1) != rails::Verdict::accepted); break;
        case 2: (void)rails::parse_reply(bytes); break;
        case 3:
            if (const auto address = rails::ProcessAddress::parse(bytes)) {
                const auto again = address->encode();
                check(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
            }
            break;
        case 4: (void)messaging::parse_eager(bytes); break;
        case 5:
            if (const auto rts = messaging::parse_rts(bytes, keys); rts && rts->inlined > 0)
                check(rts->inlined <= rails::largest_inlined && rts->inlined <= rts->bytes &&
                      (!rts->whole() || keys.empty()));
            break;
        case 6: (void)messaging::parse_cts(bytes, keys); break;
        case 7:
            (void)messaging::parse_fin(bytes);
            (void)messaging::parse_fin_ack(bytes);
            break;
        case 8: (void)transports::tcp::RailAddress::parse(bytes); break;
        case 9: {
            transports::tcp::StreamHeader header;
            if (transports::tcp::parse(bytes, header) == transports::tcp::Parsed::complete) {
                check(header.size() <= bytes.size() && header.length <= transports::tcp::max_put);
            }
            transports::tcp::Greeting greeting;
            if (transports::tcp::parse(bytes, greeting) == transports::tcp::Parsed::complete) {
                check(greeting.length <= transports::tcp::Greeting::max_body);
            }
            transports::tcp::TlsOpening opening;
            if (transports::tcp::parse(bytes, opening) == transports::tcp::Parsed::complete) {
                check(opening.size <= transports::tcp::TlsOpening::max_size);
            }
            break;
        }
        case 10: drive_channel(bootstrap::Channel::Role::server, bytes); break;
        case 11: drive_channel(bootstrap::Channel::Role::client, bytes); break;
        case 12: {
            const auto put = messaging::parse_put(bytes);
            if (put) check(put->payload.size() + messaging::PutBody::size == bytes.size());
            break;
        }
        case 13: (void)messaging::parse_get(bytes); break;
        case 14:
            if (const auto atomic = messaging::parse_atomic(bytes)) check(atomic->width == 4 || atomic->width == 8);
            break;
        case 15: (void)messaging::parse_put_request(bytes); break;
        case 16: (void)messaging::parse_get_request(bytes, keys); break;
        case 17: {
            const auto got = messaging::parse_got(bytes);
            if (got) check(got->payload.size() + messaging::GotBody::size == bytes.size());
            break;
        }
        case 18: {
            auto rest = bytes;
            while (messaging::take_result(rest))
                check(rest.size() % messaging::Result::size == bytes.size() % messaging::Result::size);
            break;
        }
        case 19: {
            std::size_t payload = 0;
            const auto each = [&](Tag, std::span<const std::byte> part) { payload += part.size(); };
            if (messaging::read_bundle(bytes, each)) check(payload < bytes.size());
            break;
        }
        default: break;
    }
    return 0;
}
