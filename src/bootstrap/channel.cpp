#include "bootstrap/channel.hpp"

#include <algorithm>
#include <cstring>

#include "base/bytes.hpp"
#include "base/crypto.hpp"

namespace railmux::bootstrap {

namespace {
constexpr std::string_view magic = "RMXBOOT1";
constexpr std::size_t message_head = 9;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
}  // namespace

Channel::Channel(Role role, std::string_view key) : role_(role), key_(key) {
    base::fill_random(own_nonce_);
    if (role_ == Role::client) write_greeting();
}

void Channel::fail(ErrorCode code, std::string text) {
    state_ = State::failed;
    failure_ = code;
    failure_text_ = std::move(text);
}

std::string_view Channel::failure_cure() const noexcept {
    switch (failure_) {
        case ErrorCode::wrong_key: return "give both sides the same job.key (RAILMUX_JOB_KEY)";
        case ErrorCode::wrong_version: return "use one release of railmux on both sides";
        default: return "is that the port of a railmux process?";
    }
}

void Channel::write_greeting() {
    base::Writer out;
    out.append(bytes_of(magic)).write(channel_version).write(std::uint16_t{0}).append(own_nonce_);
    const auto bytes = std::move(out).take();
    output_.insert(output_.end(), bytes.begin(), bytes.end());
}

Channel::Mac Channel::mac_of(Role role) const {
    const auto& client = role_ == Role::client ? own_nonce_ : other_nonce_;
    const auto& server = role_ == Role::client ? other_nonce_ : own_nonce_;
    const auto who = role == Role::client ? "railmux door client" : "railmux door server";
    return base::hmac_sha256(bytes_of(key_), {bytes_of(who), client, server});
}

void Channel::receive(std::span<const std::byte> bytes) {
    if (state_ == State::failed) return;
    input_.insert(input_.end(), bytes.begin(), bytes.end());
    while (state_ != State::failed && step()) {
    }
    if (state_ == State::failed) input_ = {};  // nothing after a failure is worth keeping
}

bool Channel::step() {
    switch (expect_) {
        case Expect::greeting: return take_greeting();
        case Expect::mac: return take_mac();
        case Expect::verdict: return take_verdict();
        case Expect::messages: return take_message();
    }
    return false;
}

void Channel::consume(std::size_t bytes) { input_.erase(input_.begin(), input_.begin() + static_cast<long>(bytes)); }

bool Channel::take_greeting() {
    const auto seen = std::min(input_.size(), magic.size());
    if (!std::equal(input_.begin(), input_.begin() + static_cast<long>(seen), bytes_of(magic).begin())) {
        fail(ErrorCode::protocol, "it does not speak railmux");
        return false;
    }
    if (input_.size() < magic.size() + 2) return false;
    const auto version = base::load<std::uint16_t>(input_.data() + magic.size());
    if (version != channel_version) {
        if (role_ == Role::server) write_greeting();  // so that the other side can tell its people
        fail(ErrorCode::wrong_version, "it speaks version " + std::to_string(version) +
                                           " of the railmux start-up protocol, this is version " +
                                           std::to_string(channel_version));
        return false;
    }
    const auto size = greeting_size + (role_ == Role::client ? mac_size : 0);
    if (input_.size() < size) return false;
    std::memcpy(other_nonce_.data(), input_.data() + 12, nonce_size);
    if (role_ == Role::server) {
        write_greeting();
        const auto mac = mac_of(Role::server);
        output_.insert(output_.end(), mac.begin(), mac.end());
        expect_ = Expect::mac;
    } else {
        const std::span<const std::byte> theirs(input_.data() + greeting_size, mac_size);
        if (!base::equal_constant_time(mac_of(Role::server), theirs)) {
            // A proof that cannot be right, so that the server's people read of differing keys too, not of a lost line.
            output_.insert(output_.end(), mac_size, std::byte{0});
            fail(ErrorCode::wrong_key, "the job keys differ");
            return false;
        }
        const auto mac = mac_of(Role::client);
        output_.insert(output_.end(), mac.begin(), mac.end());
        expect_ = Expect::verdict;
    }
    consume(size);
    return true;
}

bool Channel::take_mac() {
    if (input_.size() < mac_size) return false;
    const bool good = base::equal_constant_time(mac_of(Role::client), std::span(input_).first(mac_size));
    output_.push_back(std::byte{static_cast<std::uint8_t>(good ? 0 : 1)});
    if (!good) {
        fail(ErrorCode::wrong_key, "the job keys differ");
        return false;
    }
    consume(mac_size);
    open();
    return true;
}

bool Channel::take_verdict() {
    if (input_.empty()) return false;
    if (input_[0] != std::byte{0}) {
        fail(ErrorCode::wrong_key, "the job keys differ");
        return false;
    }
    consume(1);
    open();
    return true;
}

void Channel::open() {
    state_ = State::open;
    expect_ = Expect::messages;
    output_.insert(output_.end(), held_.begin(), held_.end());
    held_.clear();
}

bool Channel::take_message() {
    if (input_.size() < message_head) return false;
    const auto type = static_cast<std::uint8_t>(input_[0]);
    const std::size_t length = base::load<std::uint32_t>(input_.data() + 5);
    if (type < 1 || type > static_cast<std::uint8_t>(last_message_type) || length > max_message) {
        fail(ErrorCode::protocol, "it sent a malformed message");
        return false;
    }
    if (input_.size() < message_head + length) return false;
    Message message{.type = static_cast<MessageType>(type), .id = base::load<std::uint32_t>(input_.data() + 1)};
    message.bytes.assign(input_.begin() + message_head, input_.begin() + static_cast<long>(message_head + length));
    inbox_.push_back(std::move(message));
    consume(message_head + length);
    return true;
}

void Channel::send(MessageType type, std::uint32_t id, std::span<const std::byte> bytes) {
    if (bytes.size() > max_message) {
        throw Error(ErrorCode::invalid_argument,
                    "a start-up message of " + std::to_string(bytes.size()) + " bytes; at most " +
                        std::to_string(max_message) + " are carried",
                    "use fewer rails (RAILMUX_RAILS): each is part of this process's address");
    }
    base::Writer out;
    out.write(static_cast<std::uint8_t>(type)).write(id).write(static_cast<std::uint32_t>(bytes.size())).append(bytes);
    auto& to = state_ == State::open ? output_ : held_;
    const auto view = out.view();
    to.insert(to.end(), view.begin(), view.end());
}

}  // namespace railmux::bootstrap
