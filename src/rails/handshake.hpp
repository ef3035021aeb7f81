// Handshake: how two processes prove to each other, on every link, who they are and that both know the job's key.
//
//   connector                                   acceptor
//   hello  {who, whom, rail, nonce, mac}   ->
//                                          <-   reply {verdict, who, rail, nonce, mac over hello and reply}
//   proof  {mac over hello and reply}      ->   (the first frame of the link)
//
// The mac in the hello lets the acceptor tell a wrong key from a network fault at once; it could be replayed, so only the
// proof, which covers the acceptor's nonce, opens the link. All macs are HMAC-SHA256 with the job's key.
//
// Threads: pure functions over values.
// Lifetime: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace railmux::rails {

/// Who a process says it is.
struct Identity {
    std::uint64_t instance = 0;
    std::uint32_t rank = 0;
};

/// What a process needs to prove itself. Both parties of a job have the same.
struct JobKey {
    std::uint64_t job = 0;  // hash of the job's name: told apart from a wrong key
    std::string key;        // may be empty: everyone may come
};

[[nodiscard]] JobKey make_job_key(std::string_view job, std::string_view key);

enum class Verdict : std::uint8_t {
    accepted = 0,
    wrong_version = 1,
    wrong_job = 2,
    wrong_key = 3,
    wrong_process =
        4,          // the address now belongs to somebody else, e.g. a docker0 that every host has; or the rank does
    duplicate = 5,  // this pair of rails is connected, or the other side's own attempt goes first
    leaving = 6,    // the context is being closed
    stale_session = 7,  // the acceptor gave the session up; begin a new one with the epoch in the reply
    resting = 8,        // what came over this pair of rails was corrupted: not so soon again
};

[[nodiscard]] std::string_view to_string(Verdict verdict) noexcept;

/// The verdict on `bytes`, a hello of the other side, or the one in `bytes`, its reply: what is wrong and what to do.
[[nodiscard]] std::string explain(Verdict verdict, std::span<const std::byte> bytes);

struct Hello {
    static constexpr std::size_t size = 56;  // the room rdma_cm leaves in a connect request
    using Bytes = std::array<std::byte, size>;

    std::uint16_t version = 0;
    std::uint8_t epoch = 0;  // counts the sessions between the two, modulo 256
    std::uint8_t rail = 0;   // the connector's number for its rail
    bool checksum = false;   // the connector wants checksums
    Identity from;
    std::uint64_t to = 0;  // instance expected at the other end
    std::uint64_t nonce = 0;
    std::uint64_t job = 0;
};

struct Reply {
    static constexpr std::size_t size = 64;
    using Bytes = std::array<std::byte, size>;

    std::uint16_t version = 0;
    Verdict verdict = Verdict::accepted;
    std::uint8_t rail = 0;   // the acceptor's number for its rail
    std::uint8_t epoch = 0;  // the acceptor's count of sessions
    bool checksum = false;   // frames of the link carry checksums: either side wants them
    Identity from;
    std::uint64_t nonce = 0;
};

using Proof = std::array<std::byte, 32>;

[[nodiscard]] Hello::Bytes encode_hello(const JobKey& key, const Hello& hello);
/// Nothing when it is not the size of a hello. Fields of another wire version beyond `version` mean nothing.
[[nodiscard]] std::optional<Hello> parse_hello(std::span<const std::byte> bytes) noexcept;
/// What the acceptor should say to these bytes, the process's own state aside.
[[nodiscard]] Verdict judge_hello(const JobKey& key, std::span<const std::byte> bytes, std::uint64_t own_instance);

[[nodiscard]] Reply::Bytes encode_reply(const JobKey& key, std::span<const std::byte> hello, const Reply& reply);
/// For those who have not shown that they know the key: the verdict and nothing else, not even who refuses.
[[nodiscard]] Reply::Bytes bare_refusal(Verdict verdict) noexcept;
[[nodiscard]] std::optional<Reply> parse_reply(std::span<const std::byte> bytes) noexcept;
/// True when the acceptor knows the key and answers this very hello.
[[nodiscard]] bool reply_proves_key(const JobKey& key, std::span<const std::byte> hello,
                                    std::span<const std::byte> reply);

[[nodiscard]] Proof make_proof(const JobKey& key, std::span<const std::byte> hello, std::span<const std::byte> reply);
[[nodiscard]] bool proof_holds(const JobKey& key, std::span<const std::byte> hello, std::span<const std::byte> reply,
                               std::span<const std::byte> proof);

}  // namespace railmux::rails
