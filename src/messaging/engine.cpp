#include "messaging/engine.hpp"

#include <array>

#include "base/crypto.hpp"
#include "base/host.hpp"
#include "messaging/eager.hpp"
#include "messaging/own_messages.hpp"

namespace railmux::messaging {

namespace {

Transports builtin(const Config& config, base::Logger& log) { return transports::builtin_transports({config, log}); }

std::string log_prefix(const Config& config) {
    return config.text("job.server").empty() ? std::string("railmux: ")
                                             : fmt::format("railmux[{}]: ", config.number("job.rank"));
}

rails::RailManager::Options manager_options(const Config& config, const Membership& membership, base::Clock clock) {
    rails::RailManager::Options options;
    options.clock = clock;
    options.connector.self = {.instance = base::random_u64() | 1,
                              .rank = membership.in_job() ? membership.rank() : rails::no_rank};
    options.connector.key = rails::make_job_key(membership.job(), membership.key());
    options.connector.pair_limit = static_cast<base::Nanoseconds>(config.number("connect.timeout"));
    options.connector.checksum = config.flag("link.checksum");
    // Who sets it wants it. Under another clock than the system's all is to be the same each time.
    options.eager = {
        .most = config.number("eager.max"), .by_model = !config.is_set("eager.max"), .measure = clock == &base::now_ns};
    options.assessor.probe = config.text("probe") != "off";
    options.assessor.share = config.text("probe") != "full";
    if (config.text("probe") == "cached") options.assessor.store = model::StoreOptions::read(config);
    options.assessor.eager_max = static_cast<std::uint64_t>(config.number("eager.max"));
    options.share_node = config.flag("node.share");
    options.tracer = {
        .file = config.text("trace"), .explain = config.number("explain"), .rank = options.connector.self.rank};
    options.fragment = config.number("fragment.size");
    options.patience = static_cast<base::Nanoseconds>(config.number("connect.patience"));
    options.lost_patience = static_cast<base::Nanoseconds>(config.number("recover.patience"));
    options.watching.keepalive = static_cast<base::Nanoseconds>(config.number("link.keepalive"));
    options.watching.silence = static_cast<base::Nanoseconds>(config.number("link.silence"));
    options.watching.unheard = static_cast<base::Nanoseconds>(config.number("link.unheard"));
    options.recovery = {.first = static_cast<base::Nanoseconds>(config.number("recover.first")),
                        .longest = static_cast<base::Nanoseconds>(config.number("recover.longest"))};
    options.acks.delay = static_cast<base::Nanoseconds>(config.number("ack.delay"));
    options.acks.credit_report = static_cast<std::uint32_t>(config.number("eager.window") / credit_unit / 4);
    return options;
}

Origin::Options origin_options(const Config& config) {
    Origin::Options options;
    options.small_max = config.number("eager.max");
    options.window = static_cast<std::uint32_t>(config.number("eager.window") / credit_unit);
    return options;
}

Scheme scheme_of(const Config& config) {
    const auto name = config.text("bulk.scheme");
    return name == "write" ? Scheme::write : name == "read" ? Scheme::read : Scheme::automatic;
}

Inlining inlining_of(const Config& config) {
    const auto name = config.text("bulk.inlined");
    return name == "always" ? Inlining::always : name == "never" ? Inlining::never : Inlining::automatic;
}

Sender::Options sender_options(const Config& config) {
    Sender::Options options;
    options.eager_max = config.number("eager.max");
    options.eager_by_model = !config.is_set("eager.max");
    options.eager_window = static_cast<std::uint32_t>(config.number("eager.window") / credit_unit);
    options.scheme = scheme_of(config);
    options.inlining = inlining_of(config);
    return options;
}

ProgressMode mode_of(const Config& config) {
    const auto name = config.text("progress");
    for (const auto mode : {ProgressMode::poll, ProgressMode::block, ProgressMode::thread}) {
        if (name == to_string(mode)) return mode;
    }
    return ProgressMode::hybrid;
}

progress::Progress::Options progress_options(const Config& config) {
    return {.mode = mode_of(config),
            .shared = config.text("thread_level") == "multiple",
            .spin = static_cast<base::Nanoseconds>(config.number("progress.spin"))};
}

}  // namespace

Engine::Engine(const Config& config, Parts parts)
    : config_(config),
      log_(base::parse_log_level(config.text("log")), log_prefix(config)),
      clock_(parts.clock),
      membership_(config_, log_),
      rail_set_(parts.transports.empty() ? builtin(config_, log_) : std::move(parts.transports),
                {base::Selector::parse(config.text("transports")), base::Selector::parse(config.text("rails")),
                 base::Speeds::parse(config.text("rail.speeds"))},
                log_),
      policy_(sched::make_policy(config.text("policy"), rail_set_.capacity(), clock_())),
      rails_(manager_options(config, membership_, clock_), rail_set_, *policy_, *this, log_),
      lasting_(rails_),
      bulk_out_(rails_, lasting_),
      bulk_in_(rails_, lasting_, scheme_of(config), bounces_),
      sender_(sender_options(config), operations_, rails_, bulk_out_, lasting_),
      receiver_(operations_, rails_, bulk_in_),
      origin_(origin_options(config), operations_, rails_, bulk_out_, bulk_in_),
      target_(operations_, rails_, bulk_out_, bulk_in_),
      progress_(progress_options(config), *this) {
    now_ = now();
    for (const auto& warning : config_.warnings()) log_.warning("{}", warning);
    // In a job a peer's number is its rank; outside, peer 0 is this process itself.
    for (std::uint32_t rank = 0; membership_.in_job() && rank < size(); ++rank) rails_.peers().of_rank(rank);
    own_peer_ = rails_.learn(rails_.own_address(base::host_name(), base::process_id()));
    receiver_.know_own({.peer = own_peer_,
                        .largest_kept = config.number("eager.max"),
                        .window = static_cast<std::uint32_t>(config.number("eager.window") / credit_unit)});
    if (membership_.in_job()) membership_.publish(address());
    progress_.set_mode(mode_of(config));
}

Engine::Engine(const Config& config) : Engine(config, Parts{}) {}

Engine::~Engine() {
    progress_.stop();
    try {
        const Lock lock(*this);
        if (!std::exchange(left_, true)) {
            for (const auto& name : say_farewell()) {
                log_.warning("closed before everything sent to {} had arrived; raise close.timeout if it is only busy",
                             name);
            }
        }
        call_back_for_all();
    } catch (const std::exception& error) {
        log_.error("closing: {}", error.what());
    }
    if (config_.flag("report")) fmt::print(stderr, "{}", report());
    rails_.leaving().close(now());
}

// --- Messages --------------------------------------------------------------------------------------------------------

void Engine::refuse_peer() {
    throw Error(ErrorCode::invalid_argument, "no such peer", "use a Peer of this very context");
}

void Engine::add_source(Operation& operation, std::span<const ConstBuffer> gather) {
    for (const auto part : gather) operation.add(source_of(part));
}

Request Engine::isend(Peer to, Tag tag, ConstBuffer data) {
    const Lock lock(*this);
    const auto peer = partner(to);
    if (peer == own_peer_) [[unlikely]]
        return isend_own(tag, data);
    now_ = now();
    const bool last = ends_burst(peer, data.size());
    const auto reckonings = rails_.reckonings();
    std::uint64_t rails = 0;
    if (!sender_.send_now(peer, tag, data, now_, leaving(last), rails)) [[unlikely]]
        return begin_send(peer, tag, {&data, 1}, last, nullptr);
    Operation& operation = operations_.begin_over();
    operation.status = sent_status(peer, tag, data.size(), rails);
    unlooked_bytes_ += data.size() + message_per_look;
    handed_over(last, reckonings);
    return {*this, operation.index};
}

Request Engine::isend(Peer to, Tag tag, std::span<const ConstBuffer> gather, Completion&& done) {
    const Lock lock(*this);
    const auto peer = partner(to);
    if (peer == own_peer_) return begin_own(tag, gather, std::move(done));
    now_ = now();
    std::size_t bytes = 0;
    for (const auto part : gather) bytes += part.size();
    return begin_send(peer, tag, gather, ends_burst(peer, bytes), std::move(done));
}

/// An operation for a message, which may have to wait.
Operation& Engine::new_send(std::uint32_t peer, Tag tag, std::span<const ConstBuffer> gather, Completion&& done) {
    Operation& operation = operations_.begin(false, std::move(done));
    add_source(operation, gather);
    operation.peer = peer;
    operation.tag = tag;
    unlooked_bytes_ += operation.bytes + message_per_look;
    return operation;
}

Request Engine::begin_send(std::uint32_t peer, Tag tag, std::span<const ConstBuffer> gather, bool last,
                           Completion&& done) {
    Operation& operation = new_send(peer, tag, gather, std::move(done));
    const auto slot = operation.index;
    const auto reckonings = rails_.reckonings();
    sender_.start(operation, now_, last);
    handed_over(last, reckonings);
    return {*this, slot};
}

/// What goes at once needs no operation.
void Engine::send(Peer to, Tag tag, ConstBuffer data) {
    const Lock lock(*this);
    const auto peer = partner(to);
    if (peer == own_peer_) [[unlikely]]
        return send_own(to, tag, data);
    now_ = now();
    std::uint64_t rails = 0;
    if (!sender_.send_now(peer, tag, data, now_, leaving(true), rails)) [[unlikely]]
        return send_and_wait(to, tag, data);
    unlooked_bytes_ += data.size() + message_per_look;
    flush_burst();
    look_if_due();
}

/// Nothing of it is left for the rails to do; but who sends to himself only is to look at them now and then (look_if_due).
RAILMUX_IN_LINE Request Engine::isend_own(Tag tag, ConstBuffer data) {
    if (!receiver_.deliver_own(tag, data)) [[unlikely]]
        return begin_own(tag, {&data, 1}, nullptr);
    unlooked_bytes_ += data.size() + message_per_look;
    Operation& operation = operations_.begin_over();
    operation.status = sent_status(own_peer_, tag, data.size(), 0);
    return {*this, operation.index};
}

Request Engine::begin_own(Tag tag, std::span<const ConstBuffer> gather, Completion&& done) {
    Operation& operation = new_send(own_peer_, tag, gather, std::move(done));
    const auto slot = operation.index;
    receiver_.deliver_own(operation);
    return {*this, slot};
}

void Engine::send_own(Peer self, Tag tag, ConstBuffer data) {
    end_burst();
    if (!receiver_.deliver_own(tag, data)) [[unlikely]]
        return send_and_wait(self, tag, data);
    unlooked_bytes_ += data.size() + message_per_look;
    look_if_due();
}

void Engine::throw_if_failed(const Status& status, std::string_view what) {
    if (status.ok() || status.truncated()) return;
    const auto whom = status.peer.valid() ? name(status.peer) : std::string("any source");
    const auto text = fmt::format("{} {} failed: {}", what, whom, to_string(status.code));
    if (status.code == ErrorCode::access_denied) {
        throw Error(
            status.code, text,
            "the key must be one of this very peer, of a region that it still has, with the right to do so, and "
            "the place inside that region");
    }
    if (status.peer.valid()) throw error_with(status.peer, status.code, text);
    throw Error(status.code, text);
}

/// Why no message can come of the peer any more, until another process has its rank; ok if some can.
ErrorCode Engine::gone_for_good(std::uint32_t peer) {
    if (peer == anybody) return ErrorCode::ok;
    const auto& known = rails_.peers()[peer];
    if (known.left) return ErrorCode::peer_left;
    return known.ended && !rails_.connected(peer) ? ErrorCode::peer_lost : ErrorCode::ok;
}

void Engine::flush_burst() {
    sender_.close_bundles(now_);
    burst_left(rails_.flush(now_));
}

void Engine::close_burst() {
    now_ = now();
    burst_.looked(now_);
    sender_.close_bundles(now_);
    burst_left(rails_.post_lined_up(now_));
}

Request Engine::irecv(Peer from, TagMatch match, MutableBuffer buffer) {
    const Lock lock(*this);
    const auto peer = origin(from);
    return begin_receive(operations_.begin_receive(buffer), peer, match);
}

Request Engine::irecv(Peer from, TagMatch match, std::span<const MutableBuffer> scatter, Completion&& done) {
    const Lock lock(*this);
    const auto peer = origin(from);
    Operation& operation = operations_.begin(true, std::move(done));
    for (const auto part : scatter) operation.add({part.data(), part.size(), 0});
    return begin_receive(operation, peer, match);
}

RAILMUX_IN_LINE Request Engine::begin_receive(Operation& operation, std::uint32_t peer, TagMatch match) {
    operation.posted.peer = peer;
    operation.posted.tag = match.tag & match.mask;
    operation.posted.mask = match.mask;
    const auto slot = operation.index;
    if (const auto gone = gone_for_good(peer); gone != ErrorCode::ok && receiver_.probe(peer, match) == nullptr) {
        operations_.finish(operation, {.code = gone, .peer = Peer::from_index(peer), .tag = match.tag});
    } else {
        const bool late = receiver_.any_unexpected();  // what it answers it answers now, and who waits for that has it
        if (late) [[unlikely]]
            now_ = now();
        receiver_.start(operation, now_);
        if (late && !burst_.waiting()) [[unlikely]]
            rails_.flush(now_);
    }
    return {*this, slot};
}

Request Engine::irecv(Message& message, MutableBuffer buffer, Completion&& done) {
    const Lock lock(*this);
    if (message.engine_ != this) {
        throw Error(ErrorCode::invalid_argument, "this message is received already, or belongs to another context",
                    "receive what mprobe returns once, with the context that returned it");
    }
    Operation& operation = operations_.begin(true, std::move(done));
    operation.add({buffer.data(), buffer.size(), 0});
    const auto slot = operation.index;
    now_ = now();
    receiver_.receive(*static_cast<Arrived*>(message.handle_), operation, now_);
    message.engine_ = nullptr;
    rails_.flush(now_);
    return {*this, slot};
}

std::optional<Status> Engine::probe(Peer from, TagMatch match) {
    const Lock lock(*this);
    const auto peer = from.valid() ? known_peer(from) : anybody;
    end_burst();
    look_if_due();
    const auto* found = receiver_.probe(peer, match);
    if (found == nullptr && pass(now())) found = receiver_.probe(peer, match);
    return found == nullptr ? std::nullopt : std::optional(found->status());
}

std::optional<Message> Engine::mprobe(Peer from, TagMatch match) {
    const Lock lock(*this);
    const auto peer = from.valid() ? known_peer(from) : anybody;
    end_burst();
    look_if_due();
    auto* found = receiver_.claim(peer, match);
    if (found == nullptr && pass(now())) found = receiver_.claim(peer, match);
    if (found == nullptr) return std::nullopt;
    return Message(*this, found, found->status());
}

bool Engine::cancel(Request& request) {
    const Lock lock(*this);
    return receiver_.cancel(operation_of(request));
}

void Engine::detach(std::uint32_t slot) noexcept {
    const Lock lock(*this);
    operations_.detach(operations_.at(slot));
}

void Engine::drop(void* message) noexcept {
    const Lock lock(*this);
    now_ = now();
    receiver_.drop(*static_cast<Arrived*>(message), now_);
    if (!burst_.waiting()) rails_.flush(now_);  // its sender may wait to hear of it
}

void Engine::refuse_request() {
    throw Error(ErrorCode::invalid_argument, "this request is not active, or belongs to another context",
                "take each result once; Request::active() says whether there is one to take");
}

}  // namespace railmux::messaging
