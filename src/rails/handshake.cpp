#include "rails/handshake.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.hpp"
#include "base/crypto.hpp"
#include "rails/process_address.hpp"

namespace railmux::rails {

namespace {

constexpr std::size_t hello_mac_at = 40;
constexpr std::size_t reply_mac_at = 32;

// Besides the number of the rail, which is less than max_rails, in its byte of the hello.
constexpr std::uint8_t hello_checksum = 0x80;
constexpr std::uint8_t reply_checksum = 1;
static_assert(max_rails <= hello_checksum);

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

Proof hello_mac(const JobKey& key, std::span<const std::byte> body) {
    return base::hmac_sha256(bytes_of(key.key), {bytes_of("railmux hello"), body});
}

Proof reply_mac(const JobKey& key, std::span<const std::byte> hello, std::span<const std::byte> body) {
    return base::hmac_sha256(bytes_of(key.key), {bytes_of("railmux reply"), hello, body});
}

}  // namespace

JobKey make_job_key(std::string_view job, std::string_view key) {
    const auto digest = base::hmac_sha256(bytes_of("railmux job"), {bytes_of(job)});
    return {base::load<std::uint64_t>(digest.data()), std::string(key)};
}

std::string_view to_string(Verdict verdict) noexcept {
    switch (verdict) {
        case Verdict::accepted: return "accepted";
        case Verdict::wrong_version: return "it speaks another wire version";
        case Verdict::wrong_job: return "it belongs to another job";
        case Verdict::wrong_key: return "the job keys differ";
        case Verdict::wrong_process: return "another process has that address";
        case Verdict::duplicate: return "this pair of rails is connected already";
        case Verdict::leaving: return "it is leaving";
        case Verdict::stale_session: return "it has given the session up";
        case Verdict::resting: return "it does not use this pair of rails for a while, because data was corrupted";
    }
    return "unknown verdict";
}

std::string explain(Verdict verdict, std::span<const std::byte> bytes) {
    if (verdict == Verdict::wrong_version) {
        const auto error = version_error(bytes);
        return fmt::format("{}; {}", error.what(), error.cure());
    }
    const auto cure = verdict == Verdict::wrong_key ? "; give both sides the same job.key (RAILMUX_JOB_KEY)" : "";
    return fmt::format("{}{}", to_string(verdict), cure);
}

Hello::Bytes encode_hello(const JobKey& key, const Hello& hello) {
    Hello::Bytes bytes{};
    auto* at = bytes.data();
    base::store(at, hello.version);
    at[2] = static_cast<std::byte>(hello.epoch);
    at[3] = static_cast<std::byte>(hello.rail | (hello.checksum ? hello_checksum : 0));
    base::store(at + 4, hello.from.rank);
    base::store(at + 8, hello.from.instance);
    base::store(at + 16, hello.to);
    base::store(at + 24, hello.nonce);
    base::store(at + 32, hello.job);
    const auto mac = hello_mac(key, std::span(bytes).first(hello_mac_at));
    std::copy_n(mac.begin(), Hello::size - hello_mac_at, at + hello_mac_at);
    return bytes;
}

std::optional<Hello> parse_hello(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() != Hello::size) return std::nullopt;
    const auto* at = bytes.data();
    Hello hello;
    hello.version = base::load<std::uint16_t>(at);
    hello.epoch = static_cast<std::uint8_t>(at[2]);
    const auto rail = static_cast<std::uint8_t>(at[3]);
    hello.rail = rail & static_cast<std::uint8_t>(~hello_checksum);
    hello.checksum = (rail & hello_checksum) != 0;
    hello.from.rank = base::load<std::uint32_t>(at + 4);
    hello.from.instance = base::load<std::uint64_t>(at + 8);
    hello.to = base::load<std::uint64_t>(at + 16);
    hello.nonce = base::load<std::uint64_t>(at + 24);
    hello.job = base::load<std::uint64_t>(at + 32);
    return hello;
}

Verdict judge_hello(const JobKey& key, std::span<const std::byte> bytes, std::uint64_t own_instance) {
    const auto hello = parse_hello(bytes);
    if (!hello || hello->version != wire_version) return Verdict::wrong_version;
    if (hello->job != key.job) return Verdict::wrong_job;
    const auto mac = hello_mac(key, bytes.first(hello_mac_at));
    if (!base::equal_constant_time(std::span(mac).first(Hello::size - hello_mac_at), bytes.subspan(hello_mac_at))) {
        return Verdict::wrong_key;
    }
    if (hello->to != own_instance || hello->from.instance == 0) return Verdict::wrong_process;
    return Verdict::accepted;
}

Reply::Bytes encode_reply(const JobKey& key, std::span<const std::byte> hello, const Reply& reply) {
    Reply::Bytes bytes{};
    auto* at = bytes.data();
    base::store(at, reply.version);
    at[2] = static_cast<std::byte>(reply.verdict);
    at[3] = static_cast<std::byte>(reply.rail);
    base::store(at + 4, reply.from.rank);
    base::store(at + 8, reply.from.instance);
    base::store(at + 16, reply.nonce);
    at[24] = static_cast<std::byte>(reply.epoch);
    at[25] = static_cast<std::byte>(reply.checksum ? reply_checksum : 0);
    const auto mac = reply_mac(key, hello, std::span(bytes).first(reply_mac_at));
    std::copy(mac.begin(), mac.end(), at + reply_mac_at);
    return bytes;
}

Reply::Bytes bare_refusal(Verdict verdict) noexcept {
    Reply::Bytes bytes{};
    base::store(bytes.data(), wire_version);
    bytes[2] = static_cast<std::byte>(verdict);
    return bytes;
}

std::optional<Reply> parse_reply(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() != Reply::size) return std::nullopt;
    const auto* at = bytes.data();
    const auto verdict = static_cast<std::uint8_t>(at[2]);
    if (verdict > static_cast<std::uint8_t>(Verdict::resting)) return std::nullopt;
    Reply reply;
    reply.version = base::load<std::uint16_t>(at);
    reply.verdict = static_cast<Verdict>(verdict);
    reply.rail = static_cast<std::uint8_t>(at[3]);
    reply.from.rank = base::load<std::uint32_t>(at + 4);
    reply.from.instance = base::load<std::uint64_t>(at + 8);
    reply.nonce = base::load<std::uint64_t>(at + 16);
    reply.epoch = static_cast<std::uint8_t>(at[24]);
    reply.checksum = (static_cast<std::uint8_t>(at[25]) & reply_checksum) != 0;
    return reply;
}

bool reply_proves_key(const JobKey& key, std::span<const std::byte> hello, std::span<const std::byte> reply) {
    if (reply.size() != Reply::size) return false;
    const auto mac = reply_mac(key, hello, reply.first(reply_mac_at));
    return base::equal_constant_time(mac, reply.subspan(reply_mac_at));
}

Proof make_proof(const JobKey& key, std::span<const std::byte> hello, std::span<const std::byte> reply) {
    return base::hmac_sha256(bytes_of(key.key), {bytes_of("railmux proof"), hello, reply});
}

bool proof_holds(const JobKey& key, std::span<const std::byte> hello, std::span<const std::byte> reply,
                 std::span<const std::byte> proof) {
    return base::equal_constant_time(make_proof(key, hello, reply), proof);
}

}  // namespace railmux::rails
