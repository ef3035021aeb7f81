// apart, within: calls into a library that may take long, or hang.
//
// Threads: the call runs on a thread of its own, which is abandoned (with all it holds) when nobody waits for it any more.
// Lifetime: `call` must own what it uses.
#pragma once

#include <chrono>
#include <future>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <railmux/error.hpp>

namespace railmux::transports::ofi {

/// What `call` will return, or throw. Throws Error where there is no thread for it.
template <typename Call>
auto apart(const std::string& what, Call call) -> std::future<decltype(call())> {
    std::packaged_task<decltype(call())()> task(std::move(call));
    auto result = task.get_future();
    try {
        std::thread(std::move(task)).detach();
    } catch (const std::system_error& error) {
        throw Error(ErrorCode::system, what + ": no thread for it: " + error.what(), "raise the limit of processes");
    }
    return result;
}

/// Whether it is over; waits for at most so long.
template <typename Result>
bool is_over(const std::future<Result>& result, std::chrono::milliseconds most = {}) {
    return result.wait_for(most) == std::future_status::ready;
}

/// What `call` returns; throws what it throws, or Error when it takes longer than `slices` tenths of a second. They are
/// waited for one by one, so that a process that was stopped for a while does not blame the library.
template <typename Call>
auto within(int slices, const std::string& what, Call call) -> decltype(call()) {
    auto result = apart(what, std::move(call));
    while (!is_over(result, std::chrono::milliseconds(100))) {
        if (--slices > 0) continue;
        throw Error(ErrorCode::timed_out, what + " takes too long: it hangs, most likely",
                    "exclude it with RAILMUX_OFI_PROVIDERS, or from libfabric itself with FI_PROVIDER");
    }
    return result.get();
}

}  // namespace railmux::transports::ofi
