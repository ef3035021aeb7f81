#include "transports/ofi/fading.hpp"

#include <rdma/fi_errno.h>

#include <array>
#include <span>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "transports/ofi/address.hpp"
#include "transports/ofi/wire.hpp"

namespace railmux::transports::ofi {

namespace {

// Whoever sends learns by a bye that nobody listens; one that does not look for so long may be left waiting.
constexpr base::Nanoseconds patience = base::second;

/// Whoever asks for a link is told at once that it is not here any more, and looks for it where it is now.
void refuse(Endpoint& endpoint, std::span<const std::byte> body) {
    const auto hello = parse_hello(body);
    const auto remote = hello ? RailAddress::parse(hello->address) : std::nullopt;
    if (!remote) return;
    std::string trouble;
    auto* peer = endpoint.peers.find(*remote, trouble);
    const auto refusal = encode(Header{.kind = Kind::refusal, .to = hello->from}, std::span<const std::byte>{});
    auto* buffer = peer == nullptr || peer->died() ? nullptr : endpoint.send_buffers.take(refusal.size());
    if (buffer == nullptr) return;
    base::copy(buffer->data, refusal.data(), refusal.size());
    buffer->peer = peer;
    if (fi_send(endpoint.port.endpoint.get(), buffer->data, refusal.size(), buffer->descriptor, peer->at,
                &buffer->context) != 0)
        endpoint.send_buffers.give(*buffer);
}

void discard(Endpoint& endpoint, const fi_cq_data_entry& completion) {
    auto* operation = static_cast<Operation*>(completion.op_context);
    if (operation == nullptr) return;
    if (!operation->receive) return endpoint.send_buffers.give(*static_cast<SendBuffer*>(operation));
    auto& buffer = *static_cast<ReceiveBuffer*>(operation);
    if (completion.len > 0) {
        auto message = buffer.message(completion, endpoint.port);
        if (const auto header = take_header(message); header && header->kind == Kind::hello) refuse(endpoint, message);
    }
    if (!endpoint.port.multi_receive || (completion.flags & FI_MULTI_RECV) != 0)
        endpoint.receive_buffers.filled(buffer);
}

/// False: it has failed.
bool discard_all(Endpoint& endpoint) noexcept {
    std::array<fi_cq_data_entry, 32> found;
    auto* queue = endpoint.port.completions.get();
    auto count = fi_cq_read(queue, found.data(), found.size());
    if (count == -FI_EAVAIL) {
        fi_cq_err_entry entry{};
        if (fi_cq_readerr(queue, &entry, 0) != 1) return false;
        found[0] = {.op_context = entry.op_context, .flags = entry.flags, .len = 0, .buf = nullptr, .data = 0};
        count = 1;
    }
    if (count < 0) return count == -FI_EAGAIN;
    for (const auto& completion : std::span(found).first(static_cast<std::size_t>(count)))
        discard(endpoint, completion);
    return !endpoint.receive_buffers.idle() || endpoint.receive_buffers.post().empty();
}

}  // namespace

Fading::~Fading() {
    for (auto& entry : entries_) keep(*entry.endpoint, kept_);
}

void Fading::add(std::unique_ptr<Endpoint> endpoint) {
    entries_.push_back({std::move(endpoint), base::now_ns() + patience});
}

void Fading::poll() noexcept {
    std::erase_if(entries_, [&](Entry& entry) {
        if (base::now_ns() < entry.until && discard_all(*entry.endpoint)) return false;
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
