// tcp::Rail: TLS before the greetings, where encryption is on, and the refusal of those who see it otherwise.
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "transports/tcp/rail.hpp"

namespace railmux::transports::tcp {

/// Why the stream of a link ended, right after it did.
std::string Rail::cause_of(const Link& link) {
    return link.tls != nullptr && !link.tls->trouble().empty() ? link.tls->trouble() : std::strerror(errno);
}

/// Goes on with the handshake; true when it is over, and greetings can be read. The connector's hello goes out then.
bool Rail::secured(Link& link) {
    if (link.tls != nullptr && link.tls->ready()) return true;
    if (!link.setup->opened && !read_tls_opening(link)) return false;
    const auto step = link.tls->handshake();
    if (step == Tls::Step::failed) kill(link, link.tls->trouble(), {}, link.tls->code());
    if (step != Tls::Step::done) return false;
    if (link.phase == LinkPhase::awaiting_reply) send_greeting(link, GreetingKind::hello, link.setup->outgoing);
    return link.phase != LinkPhase::free;
}

/// Looks at how the other side begins before OpenSSL does: a stranger who does not even look like a peer costs no more than
/// where nothing is encrypted.
bool Rail::read_tls_opening(Link& link) {
    auto& setup = *link.setup;
    TlsOpening opening;
    while (true) {
        const std::span<const std::byte> have(setup.incoming.data(), setup.received);
        const auto parsed = tcp::parse(have, opening);
        Greeting greeting;
        if (parsed == Parsed::malformed && tcp::parse(have, greeting) != Parsed::malformed) {
            refuse_other_encryption(link);
            return false;
        }
        const bool out_of_turn = link.phase == LinkPhase::greeting && !opening.client_hello;
        if (parsed == Parsed::malformed || (parsed == Parsed::complete && out_of_turn)) {
            kill(link, "it does not speak railmux");
            return false;
        }
        const auto wanted = parsed == Parsed::complete ? opening.size : TlsOpening::wanted_after(setup.received);
        if (parsed == Parsed::complete && setup.received == wanted) break;
        if (!read_until(link, wanted)) return false;
    }
    const std::span<const std::byte> record(setup.incoming.data(), setup.received);
    if (link.tls == nullptr) {
        if (!judge_hello(link, record)) return false;
        link.tls = std::make_unique<Tls>(*encryption_, Tls::Side::acceptor, link.socket.get());
    }
    link.tls->give(record);
    setup.received = 0;
    setup.opened = true;
    return true;
}

/// Strangers get no further than this: what follows takes OpenSSL some tenths of a millisecond, and memory.
bool Rail::judge_hello(Link& link, std::span<const std::byte> record) {
    if (!encryption_->hello().proves_key(record)) {
        ::send(link.socket.get(), tls_decrypt_error.data(), tls_decrypt_error.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        kill(link, keys_differ);
        return false;
    }
    if (encryption_->hello().is_new(record)) return true;
    kill(link, "it began as another connection did before: a replay");
    return false;
}

/// There is no way to meet: what is to be encrypted is never sent plain. Both sides tell their people.
void Rail::refuse_other_encryption(Link& link) {
    if (link.phase == LinkPhase::greeting) {
        std::array<std::byte, TlsOpening::max_size> rest;  // what stays unread would turn the answer into a reset
        static_cast<void>(::recv(link.socket.get(), rest.data(), rest.size(), MSG_DONTWAIT));
        send_greeting(link, GreetingKind::other_encryption, {});
    }
    kill(link, encryption_differs(encryption_ != nullptr), {}, ErrorCode::wrong_version);
}

}  // namespace railmux::transports::tcp
