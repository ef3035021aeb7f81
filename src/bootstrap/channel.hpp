// Channel: what two processes say to each other before railmux proper: a mutual proof of the job's key, then small
// messages. No sockets here: bytes go in, bytes come out, so that it can be tested and fuzzed as it is.
//
//   client -> server   "RMXBOOT1", u16 version, u16 0, 16 bytes nonce
//   server -> client   "RMXBOOT1", u16 version, u16 0, 16 bytes nonce, 32 bytes mac
//   client -> server   32 bytes mac; zeros when the server's was wrong
//   server -> client   u8 verdict: 0 welcome, 1 the keys differ
//   then both ways     u8 type, u32 id, u32 length, bytes (little endian)
//
// A mac is HMAC-SHA256 under the job's key over a label for the role and both nonces, so that neither side can be made
// to answer for the other. An empty key lets everyone in, as long as both sides have none. What follows the proof is
// neither hidden nor signed: the proof keeps strangers out, not those who sit on the wire.
//
// Threads: one thread at a time per object.
// Lifetime: owns its buffers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <railmux/error.hpp>

namespace railmux::bootstrap {

inline constexpr std::uint16_t channel_version = 2;
inline constexpr std::size_t max_message = 64 * 1024;

enum class MessageType : std::uint8_t {
    contact = 1,  // an address; id unused
    // Of a job's server, id is a rank where nothing else is said.
    put = 2,    // the sender is rank id, and this its value
    get = 3,    // asks for the value of rank id
    value = 4,  // the answer, as soon as that rank has put it
    leave = 5,  // the sender ends in good order; id: 1 if the others are to be told, else 0
    // What the server tells of others, in the order in which it happens; with their values.
    joined = 6,  // the rank is new, or another process is
    left = 7,    // ... has left
    lost = 8,    // ... has ended without leaving
    size = 9,    // the job has id ranks
    // Between the server and a launcher that starts further processes.
    enroll = 10,    // asks for id new ranks in a row; or, with the bytes u32, for that rank
    enrolled = 11,  // the first of them; u32: the job's size
    refused = 12,   // why not, for people
    over = 13,      // the job was ended
    ended = 14,     // the launcher's process of rank id has ended, and it starts no other
};
inline constexpr auto last_message_type = MessageType::ended;

struct Message {
    MessageType type{};
    std::uint32_t id = 0;
    std::vector<std::byte> bytes;
};

class Channel {
public:
    enum class Role : std::uint8_t { client, server };
    enum class State : std::uint8_t { greeting, open, failed };

    Channel(Role role, std::string_view key);

    /// Takes what came from the other side.
    void receive(std::span<const std::byte> bytes);
    /// Queues a message; it goes out once the channel is open. Throws Error(invalid_argument) above max_message bytes.
    void send(MessageType type, std::uint32_t id, std::span<const std::byte> bytes);

    [[nodiscard]] State state() const noexcept { return state_; }
    [[nodiscard]] ErrorCode failure() const noexcept { return failure_; }
    [[nodiscard]] const std::string& failure_text() const noexcept { return failure_text_; }
    [[nodiscard]] std::string_view failure_cure() const noexcept;

    /// What is to be sent to the other side; the caller erases what it has sent.
    [[nodiscard]] std::vector<std::byte>& output() noexcept { return output_; }
    /// Messages that have come.
    [[nodiscard]] std::deque<Message>& inbox() noexcept { return inbox_; }

private:
    static constexpr std::size_t nonce_size = 16;
    static constexpr std::size_t mac_size = 32;
    static constexpr std::size_t greeting_size = 12 + nonce_size;
    using Nonce = std::array<std::byte, nonce_size>;
    using Mac = std::array<std::byte, mac_size>;

    void fail(ErrorCode code, std::string text);
    void write_greeting();
    [[nodiscard]] bool step();
    [[nodiscard]] bool take_greeting();
    [[nodiscard]] bool take_mac();
    [[nodiscard]] bool take_verdict();
    [[nodiscard]] bool take_message();
    void consume(std::size_t bytes);
    void open();
    [[nodiscard]] Mac mac_of(Role role) const;

    enum class Expect : std::uint8_t { greeting, mac, verdict, messages };

    Role role_;
    std::string key_;
    State state_ = State::greeting;
    Expect expect_ = Expect::greeting;
    ErrorCode failure_ = ErrorCode::ok;
    std::string failure_text_;
    Nonce own_nonce_{};
    Nonce other_nonce_{};
    std::vector<std::byte> input_;
    std::vector<std::byte> output_;
    std::vector<std::byte> held_;  // messages until the channel is open
    std::deque<Message> inbox_;
};

}  // namespace railmux::bootstrap
