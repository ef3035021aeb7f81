// within: a call into a library that may hang, with a limit.
//
// Threads: the call runs on a thread of its own, which is abandoned (with all it holds) when the limit is over.
// Lifetime: `call` must own what it uses.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <railmux/error.hpp>

namespace railmux::transports::ofi {

/// What `call` returns; throws what it throws, or Error when it takes longer than `slices` tenths of a second. They are
/// waited for one by one, so that a process that was stopped for a while does not blame the library.
template <typename Call>
auto within(int slices, const std::string& what, Call call) -> decltype(call()) {
    struct State {
        std::mutex mutex;
        std::condition_variable over;
        std::optional<decltype(call())> result;
        std::exception_ptr failure;
    };
    auto state = std::make_shared<State>();
    const auto run = [state, call = std::move(call)]() mutable {
        std::optional<decltype(call())> result;
        std::exception_ptr failure;
        try {
            result.emplace(call());
        } catch (...) {
            failure = std::current_exception();
        }
        const std::lock_guard lock(state->mutex);
        state->result = std::move(result);
        state->failure = failure;
        state->over.notify_one();
    };
    try {
        std::thread(run).detach();
    } catch (const std::system_error& error) {
        throw Error(ErrorCode::system, what + ": no thread for it: " + error.what(), "raise the limit of processes");
    }
    std::unique_lock lock(state->mutex);
    const auto is_over = [&] { return state->result.has_value() || state->failure != nullptr; };
    while (!is_over() && slices-- > 0) state->over.wait_for(lock, std::chrono::milliseconds(100), is_over);
    if (state->failure) std::rethrow_exception(state->failure);
    if (!state->result) {
        throw Error(ErrorCode::timed_out, what + " takes too long: it hangs, most likely",
                    "exclude it with RAILMUX_OFI_PROVIDERS, or from libfabric itself with FI_PROVIDER");
    }
    return std::move(*state->result);
}

}  // namespace railmux::transports::ofi
