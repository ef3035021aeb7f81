// Engine: looking at everything, and waiting for what comes of it.
#include "messaging/engine.hpp"
#include "messaging/way_in.hpp"
#include "rails/way_up.hpp"

namespace railmux::messaging {

namespace {

constexpr base::Nanoseconds forever = Engine::never_ends;

// Rails without a descriptor are looked at this often while everything else sleeps: some percent of a core, and half of it on
// average before what came is seen.
constexpr base::Nanoseconds unwatched_period = 100 * base::microsecond;

base::Nanoseconds after(base::Nanoseconds now, std::chrono::nanoseconds timeout) {
    if (timeout.count() <= 0) return now;
    return timeout.count() > forever - now ? forever : now + timeout.count();
}

}  // namespace

/// Takes eager frames without a call, and bundles.
struct Engine::Above {
    Engine& engine;
    [[nodiscard]] RAILMUX_IN_LINE bool on_frame(std::uint32_t peer, const rails::FrameHeader& header,
                                                std::span<const std::byte> body) const {
        if (header.type == rails::FrameType::eager) [[likely]]
            return engine.receiver_.on_eager(peer, body, engine.now_);
        if (header.type == rails::FrameType::bundle) [[likely]]
            return engine.receiver_.on_bundle(peer, body, engine.now_);
        return engine.on_frame(peer, header, body);
    }
};

bool Engine::pass(base::Nanoseconds now) {
    now_ = now;
    looked_ = now;
    unlooked_bytes_ = 0;
    progress_.looked();
    if (burst_.waiting()) {  // it leaves before anything is looked for
        burst_.looked(now);
        flush_burst();
    }
    Above above{*this};
    bool any = rails_.poll(above, now);
    if (target_.answer(now_)) rails_.flush(now_);
    if ((operations_.any_finished() || any_news()) && call_back()) {
        any = true;
        now_ = now = this->now();  // callbacks may compute, and others may have been in meanwhile
        flush_burst();             // what they have sent
    }
    if (now >= next_membership_) any = poll_membership(now) || any;
    return any;
}

/// Runs the callbacks of what has ended, one at a time and in that order, and then those for what happened to rails and peers,
/// without the lock: they may take locks that the application holds while it calls in. True if there were any. What ends
/// meanwhile is for the next look: a callback that sends to this very process ends the next operation, perhaps for ever.
bool Engine::call_back() {
    if (calling_back_ != std::thread::id{}) return false;  // somebody is at it, perhaps below us
    const CallingBack calling(calling_back_);
    const auto last = operations_.last_finished();
    for (bool all = !last; !all;) {
        auto called = operations_.next_finished();
        all = called.index == *last;
        progress_.outside([&]() noexcept {
            called.done(called.status);
            called.done = nullptr;
        });
        operations_.called(called);
    }
    tell_news();
    return true;
}

base::Nanoseconds Engine::arm(progress::Sleeper& set) {
    const auto before = ended();
    rails_.rest();
    if (ended() != before || operations_.any_finished() || any_news()) return 0;
    auto longest = membership_.time_left();
    descriptors_.resize(rail_set_.size(), -1);
    for (std::size_t rail = 0; rail < rail_set_.size(); ++rail) {
        int& descriptor = descriptors_[rail];
        if (!rail_set_[rail].polled) {  // whatever it still tells, nobody takes it
            if (descriptor >= 0) set.forget(descriptor);
            continue;
        }
        if (!rail_set_[rail].traits().events) {
            longest = std::min(longest, unwatched_period);
            continue;
        }
        const int armed = rail_set_[rail].rail->arm();
        if (armed < 0) return 0;
        descriptor = armed;
        set.keep(armed);
    }
    for (const int descriptor : membership_.descriptors()) set.watch(descriptor);
    membership_unwatched_ = false;
    next_membership_ = 0;
    return std::min(now() + longest, rails_.next_deadline());
}

base::Nanoseconds Engine::unseen_time() const noexcept {
    for (std::size_t rail = 0; rail < rail_set_.size(); ++rail) {
        const auto& traits = rail_set_[rail].traits();
        if (rail_set_[rail].polled && !traits.events && !traits.inward) return unwatched_period;
    }
    return 0;
}

bool Engine::wants_look(base::Nanoseconds before) noexcept {
    return operations_.any_finished() || any_news() || membership_unwatched_ || rails_.wants_look(before);
}

/// Callbacks run one at a time: one that waited might wait for itself, or for one that comes after it.
void Engine::refuse_if_called_back(std::string_view what) const {
    if (calling_back_ != std::this_thread::get_id()) return;
    throw Error(ErrorCode::invalid_argument, fmt::format("{} in a Completion or another callback of the context", what),
                "call it elsewhere; a callback may start operations that have callbacks of their own");
}

void Engine::set_progress(ProgressMode mode) {
    {
        const Lock lock(*this);
        refuse_in_callback("set_progress");
    }
    progress_.set_mode(mode);
}

/// A thread that waits lets others in, for which the lock must have been taken once only. What is over needs no look at the
/// rails, which is why sends ask for one now and then (look_due): so a program moves on that waits for nothing else.
RAILMUX_IN_LINE Status Engine::wait_locked(Request& request) {
    Operation& operation = operation_of(request);
    end_burst();
    if (!operation.over() || look_due()) [[unlikely]]
        look_for(operation);
    return take(request, operation);
}

void Engine::refuse_wait_in_callback() {
    const Lock lock(*this);
    refuse_in_callback("a wait");
}

Status Engine::wait(Request& request) {
    const Lock lock(*this);
    return wait_locked(request);
}

void Engine::send_and_wait(Peer to, Tag tag, ConstBuffer data) {
    refuse_in_callback("a wait");
    auto request = isend(to, tag, data);
    throw_if_failed(wait_locked(request), "send to");
}

/// Until it is over, or once.
void Engine::look_for(Operation& operation) {
    if (operation.over()) {
        pass(now());
    } else {
        progress_until([&] { return operation.over(); }, forever, [&] { return operation.seen_over(); });
    }
}

std::optional<Status> Engine::test(Request& request) {
    const Lock lock(*this);
    const Operation& operation = operation_of(request);
    end_burst();
    operation.over() ? look_if_due() : static_cast<void>(pass(now()));
    if (!operation.over()) return std::nullopt;
    return take(request);
}

Context::Ended Engine::wait_any(std::span<Request> requests) {
    const Lock lock(*this);
    std::size_t ended = requests.size();
    const auto find = [&] {
        bool active = false;
        for (std::size_t i = 0; i < requests.size(); ++i) {
            if (!requests[i].active()) continue;
            active = true;
            if (!operation_of(requests[i]).over()) continue;
            ended = i;
            return true;
        }
        if (!active) {
            throw Error(ErrorCode::invalid_argument, "wait_any without an active request",
                        "stop when Request::active() is false for all of them");
        }
        return false;
    };
    look_if_due();
    progress_until(find, forever);
    return {ended, take(requests[ended])};
}

ErrorCode Engine::wait_all(std::span<Request> requests, std::span<Status> statuses) {
    const Lock lock(*this);
    if (!statuses.empty() && statuses.size() < requests.size()) {
        throw Error(ErrorCode::invalid_argument, "wait_all: fewer statuses than requests",
                    "pass a Status for each request, or none at all");
    }
    auto first = ErrorCode::ok;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        if (!requests[i].active()) continue;
        const auto status = wait_locked(requests[i]);
        if (!statuses.empty()) statuses[i] = status;
        if (first == ErrorCode::ok) first = status.code;
    }
    return first;
}

bool Engine::progress() {
    const Lock lock(*this);
    return pass(now());
}

bool Engine::everything_sent() {
    for (std::uint32_t peer = 0; peer < rails_.peers().size(); ++peer) {
        if (!rails_.peers()[peer].left && (busy(peer) || !rails_.idle(peer))) return false;
    }
    return true;
}

bool Engine::flush(std::chrono::nanoseconds timeout) {
    const Lock lock(*this);
    return progress_until([this] { return everything_sent(); }, after(now(), timeout));
}

Peer Engine::connect(std::string_view where, std::chrono::nanoseconds timeout) {
    const Lock lock(*this);
    refuse_if_left();
    refuse_in_callback("connect");
    const auto knock = membership_.knock(where, address(), timeout);
    membership_unwatched_ = true;
    std::optional<std::vector<std::byte>> answer;
    const auto answered = [&] {
        refuse_if_left();  // by another thread meanwhile
        return (answer = membership_.answer(knock)).has_value();
    };
    progress_until(answered, forever);
    const auto parsed = rails::ProcessAddress::parse(*answer);
    if (parsed) return Peer::from_index(rails_.learn(*parsed));
    const auto refusal = rails::ProcessAddress::refusal(*answer);
    throw Error(refusal.code(), fmt::format("{}: {}", where, refusal.what()), refusal.cure());
}

/// Whether a peer that is wanted has a link, or will have none; if neither, it is wanted once more.
bool Engine::linked_or_hopeless(std::uint32_t peer) {
    const auto& known = rails_.peers()[peer];
    if (rails_.connected(peer) || known.left || known.failed != ErrorCode::ok) return true;
    refuse_if_left();         // by another thread meanwhile
    rails_.want(peer, now_);  // once more, if the session ended meanwhile
    return false;
}

std::size_t Engine::warm_up(std::span<const Peer> peers, std::chrono::nanoseconds timeout) {
    const Lock lock(*this);
    refuse_in_callback("warm_up");
    std::vector<std::uint32_t> wanted;
    for (const auto peer : peers) {
        if (partner(peer) != own_peer_) wanted.push_back(peer.index());
    }
    for (const auto peer : wanted) rails_.want(peer, now());
    auto first = wanted.begin();  // that is not known to be over
    const auto over = [&] {
        first = std::find_if_not(first, wanted.end(), [&](auto peer) { return linked_or_hopeless(peer); });
        return first == wanted.end();
    };
    progress_until(over, after(now(), timeout));
    const auto linked = std::ranges::count_if(wanted, [&](auto peer) { return rails_.connected(peer); });
    return peers.size() - wanted.size() + static_cast<std::size_t>(linked);
}

std::optional<Peer> Engine::accept(std::chrono::nanoseconds timeout) {
    const Lock lock(*this);
    refuse_if_left();
    progress_until([this] { return left_ || !knocked_.empty(); }, after(now(), timeout));
    if (knocked_.empty()) return std::nullopt;
    const auto peer = knocked_.front();
    knocked_.erase(knocked_.begin());
    return Peer::from_index(peer);
}

}  // namespace railmux::messaging
