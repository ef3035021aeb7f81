// The public API: each call passes to the engine.
#include <railmux/context.hpp>

#include <algorithm>

#include "base/numa.hpp"
#include "messaging/engine.hpp"

namespace railmux {

Context::Context(const Config& config) : engine_(std::make_unique<messaging::Engine>(config)) {}
Context::~Context() = default;
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;

std::uint32_t Context::rank() const noexcept { return engine_->rank(); }
std::uint32_t Context::size() const noexcept { return engine_->size(); }
Peer Context::peer(std::uint32_t rank) { return engine_->peer(rank); }
std::optional<std::uint32_t> Context::rank(Peer peer) const { return engine_->rank(peer); }
void Context::leave() { engine_->leave(); }
std::uint16_t Context::listen(std::string_view where) { return engine_->listen(where); }
std::optional<Peer> Context::accept(std::chrono::nanoseconds timeout) { return engine_->accept(timeout); }
Peer Context::connect(std::string_view where, std::chrono::nanoseconds timeout) {
    return engine_->connect(where, timeout);
}
std::size_t Context::warm_up(std::span<const Peer> peers, std::chrono::nanoseconds timeout) {
    return engine_->warm_up(peers, timeout);
}
std::vector<std::byte> Context::address() const { return engine_->address(); }
Peer Context::add_peer(std::span<const std::byte> address) { return engine_->add_peer(address); }
std::string Context::name(Peer peer) const { return engine_->name(peer); }
std::string Context::failure(Peer peer) const { return engine_->failure(peer); }

Request Context::isend(Peer to, Tag tag, ConstBuffer data) { return engine_->isend(to, tag, data); }
Request Context::isend(Peer to, Tag tag, ConstBuffer data, Completion done) {
    return engine_->isend(to, tag, {&data, 1}, std::move(done));
}
Request Context::isend(Peer to, Tag tag, std::span<const ConstBuffer> gather, Completion done) {
    return engine_->isend(to, tag, gather, std::move(done));
}
Request Context::irecv(Peer from, TagMatch match, MutableBuffer buffer) { return engine_->irecv(from, match, buffer); }
Request Context::irecv(Peer from, TagMatch match, MutableBuffer buffer, Completion done) {
    return engine_->irecv(from, match, {&buffer, 1}, std::move(done));
}
Request Context::irecv(Peer from, TagMatch match, std::span<const MutableBuffer> scatter, Completion done) {
    return engine_->irecv(from, match, scatter, std::move(done));
}
Request Context::irecv(Message&& message, MutableBuffer buffer, Completion done) {
    return engine_->irecv(message, buffer, std::move(done));
}

void Context::send(Peer to, Tag tag, ConstBuffer data) { engine_->send(to, tag, data); }
Status Context::recv(Peer from, TagMatch match, MutableBuffer buffer) {
    refuse_in_callback();
    auto request = irecv(from, match, buffer);
    const auto status = wait(request);
    engine_->throw_if_failed(status, "receive from");
    return status;
}
Status Context::recv(Message&& message, MutableBuffer buffer) {
    refuse_in_callback();
    auto request = irecv(std::move(message), buffer);
    const auto status = wait(request);
    engine_->throw_if_failed(status, "receive from");
    return status;
}

std::optional<Status> Context::probe(Peer from, TagMatch match) { return engine_->probe(from, match); }
std::optional<Message> Context::mprobe(Peer from, TagMatch match) { return engine_->mprobe(from, match); }
bool Context::cancel(Request& request) { return engine_->cancel(request); }

MemoryRegion Context::register_memory(std::span<std::byte> memory, Rights rights) {
    return engine_->register_memory(memory, rights);
}
Request Context::iput(Peer to, const RemotePlace& place, ConstBuffer data, const PutOptions& options, Completion done) {
    return engine_->iput(to, place, {&data, 1}, options, std::move(done));
}
Request Context::iput(Peer to, const RemotePlace& place, std::span<const ConstBuffer> gather, const PutOptions& options,
                      Completion done) {
    return engine_->iput(to, place, gather, options, std::move(done));
}
Request Context::iget(Peer from, const RemotePlace& place, MutableBuffer buffer, Completion done) {
    return engine_->iget(from, place, {&buffer, 1}, std::move(done));
}
Request Context::iget(Peer from, const RemotePlace& place, std::span<const MutableBuffer> scatter, Completion done) {
    return engine_->iget(from, place, scatter, std::move(done));
}
Request Context::atomic(Peer at, const RemotePlace& place, const messaging::AtomicCall& what, Completion done) {
    return engine_->atomic(at, place, what, std::move(done));
}
Request Context::iflush(Peer to, Completion done) { return engine_->iflush(to, std::move(done)); }
Request Context::iflush(Completion done) { return engine_->iflush(std::move(done)); }
Request Context::inotified(const MemoryRegion& region, std::uint64_t count, Completion done) {
    return engine_->inotified(region, count, std::move(done));
}

void Context::refuse_in_callback() const { engine_->refuse_wait_in_callback(); }
void Context::finish(Request request, std::string_view what) { engine_->throw_if_failed(wait(request), what); }
void Context::put(Peer to, const RemotePlace& place, ConstBuffer data) {
    refuse_in_callback();
    finish(iput(to, place, data, {.end = PutEnd::remote}), "put to");
}
void Context::get(Peer from, const RemotePlace& place, MutableBuffer buffer) {
    refuse_in_callback();
    finish(iget(from, place, buffer), "get from");
}
void Context::flush(Peer to) {
    refuse_in_callback();
    finish(iflush(to), "flush of");
}
void Context::flush() {
    refuse_in_callback();
    finish(iflush(), "flush of");
}

Status Context::wait(Request& request) { return engine_->wait(request); }
std::optional<Status> Context::test(Request& request) { return engine_->test(request); }
Context::Ended Context::wait_any(std::span<Request> requests) { return engine_->wait_any(requests); }
ErrorCode Context::wait_all(std::span<Request> requests, std::span<Status> statuses) {
    return engine_->wait_all(requests, statuses);
}
bool Context::progress() { return engine_->progress(); }
int Context::event_fd() { return engine_->event_fd(); }
bool Context::arm() { return engine_->arm(); }
ProgressMode Context::progress_mode() const noexcept { return engine_->progress_mode(); }
void Context::set_progress(ProgressMode mode) { engine_->set_progress(mode); }
bool Context::flush(std::chrono::nanoseconds timeout) { return engine_->flush(timeout); }
std::vector<LinkModel> Context::models(Peer peer) const { return engine_->models(peer); }
std::vector<LinkAssessment> Context::assess(Peer peer, std::string_view rails, const AssessOptions& options) {
    return engine_->assess(peer, rails, options);
}
Explanation Context::explain(Peer peer, std::uint64_t bytes) { return engine_->explain(peer, bytes); }
SharingAssessment Context::assess_sharing(Peer peer, std::string_view rails, const SharingOptions& options) {
    return engine_->assess_sharing(peer, rails, options);
}
void Context::on_rail_down(RailCallback callback) { engine_->on_rail_down(std::move(callback)); }
void Context::on_rail_up(RailCallback callback) { engine_->on_rail_up(std::move(callback)); }
void Context::on_peer_lost(PeerCallback callback) { engine_->on_peer_lost(std::move(callback)); }
void Context::on_peer_left(PeerCallback callback) { engine_->on_peer_left(std::move(callback)); }
void Context::on_peer_joined(PeerCallback callback) { engine_->on_peer_joined(std::move(callback)); }
std::vector<RailInfo> Context::rails() const { return engine_->rails(); }
std::vector<RailTraffic> Context::traffic() const { return engine_->traffic(); }
std::string Context::report() const { return engine_->report(); }

Request& Request::operator=(Request&& other) noexcept {
    if (this != &other) {
        if (engine_ != nullptr) engine_->detach(slot_);
        engine_ = std::exchange(other.engine_, nullptr);
        slot_ = other.slot_;
    }
    return *this;
}

Request::~Request() {
    if (engine_ != nullptr) engine_->detach(slot_);
}

MemoryRegion& MemoryRegion::operator=(MemoryRegion&& other) noexcept {
    if (this != &other) {
        if (engine_ != nullptr) engine_->withdraw(slot_);
        engine_ = std::exchange(other.engine_, nullptr);
        slot_ = other.slot_;
    }
    return *this;
}

MemoryRegion::~MemoryRegion() {
    if (engine_ != nullptr) engine_->withdraw(slot_);
}

RemoteKey MemoryRegion::key() const { return engine_->region_key(slot_); }
std::span<std::byte> MemoryRegion::memory() const { return engine_->region_memory(slot_); }
int MemoryRegion::numa_node() const { return base::node_of(memory()); }
std::uint64_t MemoryRegion::notified() const { return engine_->region_notified(slot_); }

RemoteKey RemoteKey::from(std::span<const std::byte> bytes) {
    if (bytes.size() != size) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("a remote key has {} bytes, not {}", RemoteKey::size, bytes.size()),
                    "carry over all that RemoteKey::bytes() gives, and nothing else");
    }
    RemoteKey key;
    std::ranges::copy(bytes, key.bytes_.begin());
    return key;
}

Message& Message::operator=(Message&& other) noexcept {
    if (this != &other) {
        if (engine_ != nullptr) engine_->drop(handle_);
        engine_ = std::exchange(other.engine_, nullptr);
        handle_ = other.handle_;
        info_ = other.info_;
    }
    return *this;
}

Message::~Message() {
    if (engine_ != nullptr) engine_->drop(handle_);
}

std::vector<RailInfo> scan_rails(const Config& config) {
    base::Logger log(base::parse_log_level(config.text("log")));
    std::vector<RailInfo> all;
    for (const auto& transport : transports::builtin_transports({config, log, true})) {
        for (auto& device : transport->scan()) all.push_back(std::move(device));
    }
    rails::refuse_unknown(base::Selector::parse(config.text("rails")), all);
    const auto speeds = base::Speeds::parse(config.text("rail.speeds"));
    rails::refuse_unknown(speeds, all);
    rails::say_speeds(speeds, all);
    rails::select_transports(base::Selector::parse(config.text("transports")), all);
    return all;
}

}  // namespace railmux
