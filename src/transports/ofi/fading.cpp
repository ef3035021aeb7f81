#include "transports/ofi/fading.hpp"

#include <rdma/fi_errno.h>

#include <array>
#include <span>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "transports/ofi/wire.hpp"

namespace railmux::transports::ofi {

namespace {

// Whoever sends learns by a bye that nobody listens; one that does not look for so long may be left waiting.
constexpr base::Nanoseconds patience = base::second;

enum class Found { something, nothing, failure };

/// Whoever asks for a link is told at once that it is not here any more, and looks for it where it is now.
void refuse(Endpoint& endpoint, const RailAddress& own, std::span<const std::byte> body) {
    const auto hello = parse_hello(body);
    const auto remote = hello ? RailAddress::parse(hello->address) : std::nullopt;
    if (!remote || own.reach(*remote).reach == Reach::never) return;
    std::string trouble;
    auto* peer = endpoint.peers.find(*remote, trouble);
    const auto refusal = encode(Header{.kind = Kind::refusal, .to = hello->from}, std::span<const std::byte>{});
    auto* buffer = peer == nullptr ? nullptr : endpoint.send_buffers.take(refusal.size());
    if (buffer == nullptr) return;
    base::copy(buffer->data, refusal.data(), refusal.size());
    buffer->peer = peer;
    buffer->number = 0;
    if (fi_send(endpoint.port.endpoint.get(), buffer->data, refusal.size(), buffer->descriptor, peer->at,
                &buffer->context) != 0)
        return endpoint.send_buffers.give(*buffer);
    ++peer->sending;
}

void discard(Endpoint& endpoint, const RailAddress& own, const fi_cq_data_entry& completion) {
    auto* operation = static_cast<Operation*>(completion.op_context);
    if (operation == nullptr) return;
    if (!operation->receive) {
        auto& sent = *static_cast<SendBuffer*>(operation);
        --sent.peer->sending;
        return endpoint.send_buffers.give(sent);
    }
    auto& buffer = *static_cast<ReceiveBuffer*>(operation);
    if (completion.len > 0) {
        auto message = buffer.message(completion, endpoint.port);
        if (const auto header = take_header(message); header && header->kind == Kind::hello)
            refuse(endpoint, own, message);
    }
    if (!endpoint.port.multi_receive || (completion.flags & FI_MULTI_RECV) != 0)
        endpoint.receive_buffers.filled(buffer);
}

Found discard_some(Endpoint& endpoint, const RailAddress& own) {
    std::array<fi_cq_data_entry, 32> found;
    auto* queue = endpoint.port.completions.get();
    auto count = fi_cq_read(queue, found.data(), found.size());
    if (count == -FI_EAVAIL) {
        fi_cq_err_entry entry{};
        if (fi_cq_readerr(queue, &entry, 0) != 1) return Found::nothing;  // another time
        found[0] = {.op_context = entry.op_context, .flags = entry.flags, .len = 0, .buf = nullptr, .data = 0};
        count = 1;
    }
    if (count == 0 || count == -FI_EAGAIN) return Found::nothing;
    if (count < 0) return Found::failure;
    for (const auto& completion : std::span(found).first(static_cast<std::size_t>(count)))
        discard(endpoint, own, completion);
    if (endpoint.receive_buffers.idle() && !endpoint.receive_buffers.post().empty()) return Found::failure;
    return Found::something;
}

void say(Endpoint& endpoint, std::vector<Bye>& byes) {
    std::erase_if(byes, [&](const Bye& bye) {
        return fi_inject(endpoint.port.endpoint.get(), bye.message.data(), bye.message.size(), bye.to) != -FI_EAGAIN;
    });
}

}  // namespace

Fading::~Fading() {
    for (auto& entry : entries_) keep(*entry.endpoint, kept_);
}

void Fading::add(std::unique_ptr<Endpoint> endpoint, RailAddress address, std::span<const fi_cq_data_entry> unread,
                 std::vector<Bye> byes) {
    for (const auto& completion : unread) discard(*endpoint, address, completion);
    entries_.push_back({.endpoint = std::move(endpoint), .address = std::move(address), .byes = std::move(byes)});
}

bool Fading::over(Entry& entry, base::Nanoseconds now) {
    if (!entry.byes.empty()) say(*entry.endpoint, entry.byes);
    const auto found = discard_some(*entry.endpoint, entry.address);
    const auto waited = entry.looked.look(now);
    entry.waited = found == Found::something ? 0 : entry.waited + waited;
    return found == Found::failure || entry.waited > patience;
}

void Fading::poll(base::Nanoseconds now) noexcept {
    std::erase_if(entries_, [&](Entry& entry) {
        if (!over(entry, now)) return false;
        keep(*entry.endpoint, kept_);
        return true;
    });
}

void Fading::keep(Endpoint& endpoint, std::vector<Port>& kept) {
    endpoint.send_buffers.unregister();
    endpoint.receive_buffers.unregister();
    kept.push_back(std::move(endpoint.port));
}

}  // namespace railmux::transports::ofi
