#include "messaging/sender.hpp"

#include <algorithm>
#include <array>

#include "messaging/eager.hpp"

namespace railmux::messaging {

using rails::Frame;
using rails::FrameHeader;
using rails::FrameType;

Sender::Sender(Options options, Operations& operations, rails::RailManager& rails, BulkOut& bulk,
               const LastingRegions& lasting)
    : options_(options), operations_(operations), rails_(rails), bulk_(bulk), lasting_(lasting) {}

Sender::Flow& Sender::new_flow(std::uint32_t peer) {
    if (peer >= flows_.size()) flows_.resize(peer + 1);
    flows_[peer] = std::make_unique<Flow>();
    return *flows_[peer];
}

bool Sender::busy(std::uint32_t peer) const noexcept {
    if (peer >= flows_.size() || flows_[peer] == nullptr) return false;
    return !flows_[peer]->waiting.empty() || flows_[peer]->bundle.open();
}

void Sender::start(Operation& operation, base::Nanoseconds now, bool unaccompanied) {
    auto& flow = flow_to(operation.peer);
    auto* const talk = rails_.sendable(operation.peer);
    if (talk != nullptr && flow.waiting.empty() && try_send(operation, flow, *talk, now, unaccompanied)) return;
    flow.waiting.push(operation);
    rails_.want(operation.peer, now);  // does nothing while there are links
    rails_.await(operation.peer);
}

void Sender::resume(std::uint32_t peer, base::Nanoseconds now) {
    if (peer >= flows_.size() || flows_[peer] == nullptr) return;
    auto& flow = *flows_[peer];
    while (!flow.waiting.empty()) {
        auto* const talk = rails_.sendable(peer);
        if (talk == nullptr) break;
        Operation& operation = flow.waiting.pop();  // once sent it may be gone
        if (!try_send(operation, flow, *talk, now, false)) {
            flow.waiting.push_front(operation);
            break;
        }
    }
    if (!flow.waiting.empty()) rails_.await(peer);
}

bool Sender::try_send(Operation& operation, Flow& flow, rails::Conversation& talk, base::Nanoseconds now,
                      bool unaccompanied) {
    if (flow.bundle.open()) close_bundle(operation.peer, flow, now);
    const Eager message{operation.peer, operation.tag, operation.bytes, unaccompanied};
    std::uint64_t sent = 0;
    if (goes_eagerly(operation, talk) &&
        try_eager(message, flow, talk, now, sent, [&](std::byte* to) { gather(to, operation.buffer()); })) {
        operations_.finish(operation, sent_status(operation.peer, operation.tag, operation.bytes, sent));
        return true;
    }
    const auto used = flow.charged - talk.consumed_there;
    if (used + rts_credit > options_.eager_window + options_.header_window) return false;
    const auto credit = options_.eager_window - std::min(used, options_.eager_window);
    auto inlined = unasked(operation.peer, operation.bytes, now);
    if (inlined > 0 && credit_of(inlined) > credit) inlined = 0;
    const auto links =
        inlined == operation.bytes ? talk.choices() : 1;  // a beginning is one frame, and others wait for it
    send_rts(operation, flow, {inlined, links, talk.over_one_link() && inlined <= rails::passed_at_once}, now);
    return true;
}

/// Memory that would be registered for the message, or copied, gains nothing by being asked for first.
bool Sender::goes_eagerly(const Operation& operation, const rails::Conversation& talk) const {
    if (operation.bytes <= talk.eager_max) return true;
    const auto covered = [&](const auto& piece) { return lasting_.covers(piece); };
    return operation.bytes <= options_.eager_max && talk.eager_if_unregistered &&
           !std::ranges::all_of(operation.buffer(), covered);
}

// --- Bundles ---------------------------------------------------------------------------------------------------------

void Sender::begin_bundle(std::uint32_t peer, Flow& flow, base::Nanoseconds now) {
    if (flow.bundle.open()) close_bundle(peer, flow, now);
    if (!std::exchange(flow.bundled, true)) bundled_.push_back(peer);
    flow.bundle.begin(rails_.pool().take(Bundle::most_bytes));
}

/// The link may have gone since: then it waits for another one.
void Sender::close_bundle(std::uint32_t peer, Flow& flow, base::Nanoseconds now) {
    Frame* const frame = flow.bundle.close();
    if (auto* const talk = rails_.sendable(peer); talk != nullptr) {
        rails_.send(peer, *talk, frame, now);
    } else {
        rails_.send(peer, frame, now);
    }
}

void Sender::close_all(base::Nanoseconds now) {
    for (const auto peer : bundled_) {
        auto* const flow = flows_[peer].get();
        if (flow == nullptr) continue;  // it has gone
        flow->bundled = false;
        if (flow->bundle.open()) close_bundle(peer, *flow, now);
    }
    bundled_.clear();
}

// --- Rendezvous ------------------------------------------------------------------------------------------------------

std::uint32_t Sender::unasked(std::uint32_t peer, std::uint64_t bytes, base::Nanoseconds now) {
    if (options_.inlining == Inlining::never || bytes <= options_.eager_max) return 0;
    const bool whole = options_.eager_by_model && bytes <= rails::largest_inlined;
    if (options_.inlining == Inlining::always) return static_cast<std::uint32_t>(whole ? bytes : options_.eager_max);
    if (bulk_.any_busy()) return 0;
    return static_cast<std::uint32_t>(rails_.plan().unasked(peer, bytes, options_.eager_max, now));
}

/// Frames for the first `bytes` of a message: what they need of memory is there before anything is said of them.
class Sender::Parts {
public:
    Parts(rails::FramePool& pool, Ahead ahead) : pool_(pool), at_once_(ahead.at_once) {
        auto bytes = ahead.bytes;
        for (auto left = inlined_frames(bytes, ahead.links); left > 0; --left, ++count_) {
            const auto size = bytes / left;
            Frame* frame = frames_[count_] = pool.take(FrameHeader::size + size);
            frame->type = FrameType::inlined;
            frame->flags = rails::frame_flag::ordered;
            frame->bytes = FrameHeader::size + size;
            frame->payload = frame->aux = size;
            bytes -= size;
        }
    }
    ~Parts() {
        while (next_ < count_) pool_.give(frames_[next_++]);
    }
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;

    [[nodiscard]] bool at_once() const noexcept { return at_once_; }
    [[nodiscard]] std::size_t left() const noexcept { return count_ - next_; }
    /// Whose it is from now on.
    [[nodiscard]] Frame* next() noexcept { return frames_[next_++]; }

private:
    rails::FramePool& pool_;
    bool at_once_;
    std::array<Frame*, most_inlined_frames> frames_{};
    std::size_t count_ = 0;
    std::size_t next_ = 0;
};

void Sender::send_rts(Operation& operation, Flow& flow, Ahead ahead, base::Nanoseconds now) {
    const auto inlined = ahead.bytes;
    const bool whole = inlined > 0 && inlined == operation.bytes;
    Parts parts(rails_.pool(), ahead);
    const BulkOut::Source source{.peer = operation.peer,
                                 .pieces = operation.buffer(),
                                 .bytes = operation.bytes,
                                 .inlined = inlined,
                                 .message = true,
                                 .owner = this,
                                 .cookie = operation.index};
    const bool offers = !whole && offers_gets(operation);
    const auto sender = whole ? Handle{} : offers ? bulk_.offer(source) : bulk_.announce(source);
    const auto keys = offers ? bulk_.keys() : std::span<const rails::BulkTarget::Key>{};
    const auto size = FrameHeader::size + RtsBody::size + keys.size() * bulk_key_size;
    Frame* frame = rails_.pool().take(size);
    frame->type = FrameType::rts;
    frame->flags = rails::frame_flag::ordered;
    frame->bytes = static_cast<std::uint32_t>(size);
    write_rts(frame->data() + FrameHeader::size,
              {.tag = operation.tag, .bytes = operation.bytes, .sender = sender, .inlined = inlined}, keys);
    operation.status.rails = 0;
    flow.charged += credit_of(inlined);
    rails_.send(operation.peer, frame, now);
    if (inlined > 0 && !whole) rails_.post_lined_up(now);  // or the network would bring both at once
    send_parts(operation, parts, now);
    if (whole)
        operations_.finish(operation,
                           sent_status(operation.peer, operation.tag, operation.bytes, operation.status.rails));
}

/// In frames of their own, right behind the rts: within it, the answer would have to wait for them, and nothing be saved. What
/// one link passes on at once goes by one call. Of more, one call sends all but the last, which the other side reads while the
/// last one is copied; and where there are several links, what waits for one would draw the last one there.
void Sender::send_parts(Operation& operation, Parts& parts, base::Nanoseconds now) {
    for (std::uint64_t offset = 0; parts.left() > 0;) {
        Frame* const frame = parts.next();
        gather_part(frame->data() + FrameHeader::size, operation.buffer(), offset, frame->payload);
        offset += frame->payload;
        rails_.send(operation.peer, frame, now);
        if (frame->link != rails::no_link) operation.status.rails |= std::uint64_t{1} << frame->rail;
        if (parts.left() == 1 && !parts.at_once()) rails_.post_lined_up(now);
    }
}

/// Whether the receiver may get it. Either way three times the latency goes by until the bytes are there, and memory is
/// registered for the peer: the receiver's to be put to, or the sender's to be got from. The other side's own memory costs
/// nothing more where the application has registered it; so getting is cheaper where that is true of the receiver's, and not of
/// ours. What is got is registered at one blow, before anything moves: not more than otherwise would be. Where nothing is
/// registered, and the receiver needs nobody to get it, the way to the sender and back is saved.
bool Sender::offers_gets(const Operation& operation) const {
    if (options_.scheme == Scheme::write || operation.buffer().size() > 1) return false;  // a region is one piece
    if (options_.scheme == Scheme::read) return true;
    if (rails_.plan().prefers_get(operation.peer, operation.bytes)) return true;
    return bulk_.would_get(operation.peer) && operation.bytes <= LastingRegions::chunk &&
           !lasting_.covers(operation.buffer().front());
}

void Sender::bulk_sent(std::uint64_t index, ErrorCode code, std::uint64_t rails) {
    Operation& operation = operations_.at(static_cast<std::uint32_t>(index));
    operations_.finish(operation, {.code = code,
                                   .peer = Peer::from_index(operation.peer),
                                   .tag = operation.tag,
                                   .bytes = code == ErrorCode::ok ? operation.bytes : 0,
                                   .message = operation.bytes,
                                   .rails = rails | operation.status.rails});
}

void Sender::peer_gone(std::uint32_t peer, ErrorCode code) {
    if (peer >= flows_.size() || flows_[peer] == nullptr) return;
    const auto flow = std::move(flows_[peer]);
    if (flow->bundle.open()) rails_.pool().give(flow->bundle.close());
    while (!flow->waiting.empty()) {
        Operation& operation = flow->waiting.pop();
        operations_.finish(operation, {.code = code, .peer = Peer::from_index(peer), .tag = operation.tag});
    }
}

}  // namespace railmux::messaging
