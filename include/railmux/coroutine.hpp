// Coroutines: operations that are awaited. Optional: nothing else of railmux includes this.
//
//   railmux::Status status = co_await railmux::async_recv(context, peer, tag, buffer);
//
// The coroutine goes on from within progress (wait, test, progress, arm, or the context's own thread), as a Completion
// does, and what is said there holds: it may start operations and await them, but must not wait, and an exception must not
// leave it there. Whoever runs coroutines keeps progressing; there is no scheduler and no task type here.
//
// Threads: as the call that starts the operation.
// Lifetime: an awaitable is awaited in the expression that makes it. A coroutine must not be destroyed while it awaits; the
// operation can not be cancelled: use Context::irecv and Context::cancel where that is needed.
#pragma once

#include <coroutine>
#include <utility>

#include <railmux/context.hpp>

namespace railmux {

/// Awaits an operation that `start` begins when it is given a Completion; the result is the operation's Status.
template <typename Start>
class [[nodiscard]] Awaitable {
public:
    explicit Awaitable(Start start) : start_(std::move(start)) {}

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting) {
        // With several threads the coroutine may go on, and end, before the call that starts the operation has returned:
        // from then on nothing of this object is touched. The request is let go of; the result comes by the callback.
        const auto start = std::move(start_);
        const Request started = start(Completion([this, waiting](const Status& status) {
            status_ = status;
            waiting.resume();
        }));
    }
    [[nodiscard]] Status await_resume() const noexcept { return status_; }

private:
    Start start_;
    Status status_;
};

/// For every operation that takes a Completion:
///   co_await railmux::async([&](railmux::Completion done) { return context.iflush(peer, std::move(done)); });
template <typename Start>
[[nodiscard]] Awaitable<Start> async(Start start) {
    return Awaitable<Start>(std::move(start));
}

/// Context::isend, irecv, iput, iget and iflush, awaited. Errors of the operation are in the Status; misuse throws where it
/// is awaited.
[[nodiscard]] inline auto async_send(Context& context, Peer to, Tag tag, ConstBuffer data) {
    return async([&context, to, tag, data](Completion done) { return context.isend(to, tag, data, std::move(done)); });
}
[[nodiscard]] inline auto async_recv(Context& context, Peer from, TagMatch match, MutableBuffer buffer) {
    return async([&context, from, match, buffer](Completion done) {
        return context.irecv(from, match, buffer, std::move(done));
    });
}
[[nodiscard]] inline auto async_put(Context& context, Peer to, const RemotePlace& place, ConstBuffer data,
                                    const PutOptions& options = {}) {
    return async([&context, to, place, data, options](Completion done) {
        return context.iput(to, place, data, options, std::move(done));
    });
}
[[nodiscard]] inline auto async_get(Context& context, Peer from, const RemotePlace& place, MutableBuffer buffer) {
    return async([&context, from, place, buffer](Completion done) {
        return context.iget(from, place, buffer, std::move(done));
    });
}
[[nodiscard]] inline auto async_flush(Context& context, Peer to) {
    return async([&context, to](Completion done) { return context.iflush(to, std::move(done)); });
}

}  // namespace railmux
