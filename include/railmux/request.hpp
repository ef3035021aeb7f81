// Request: an operation under way. Message: a message taken out of matching by mprobe.
//
// Threads: one thread at a time per object; different requests of one context from different threads with
// thread level `multiple`.
// Lifetime: must not outlive the Context. Destroying an unfinished Request detaches it: the operation goes on, its
// result is lost, and its buffer must stay valid until the context is destroyed; wait or cancel instead.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include <railmux/message.hpp>

namespace railmux {

class Context;
namespace messaging {
class Engine;
}

/// Called once from within progress (never from inside the call that started the operation) when an operation ends, and
/// before a wait for it returns; one at a time for each context, in the order in which operations end. It may start further
/// operations; it must not wait for any (Error(invalid_argument)), and must not throw (the program ends: std::terminate). No
/// lock of the context is held meanwhile. With ProgressMode::thread it may be the context's own thread that calls.
using Completion = std::function<void(const Status&)>;

class Request {
public:
    Request() noexcept = default;
    Request(Request&& other) noexcept : engine_(std::exchange(other.engine_, nullptr)), slot_(other.slot_) {}
    Request& operator=(Request&& other) noexcept;
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;
    ~Request();

    /// True while it stands for an operation whose result has not been taken by wait or test.
    [[nodiscard]] bool active() const noexcept { return engine_ != nullptr; }

private:
    friend class Context;
    friend class messaging::Engine;
    Request(messaging::Engine& engine, std::uint32_t slot) noexcept : engine_(&engine), slot_(slot) {}

    messaging::Engine* engine_ = nullptr;
    std::uint32_t slot_ = 0;
};

/// A message found by Context::mprobe: nobody else can receive it. Receive it with Context::irecv(Message&&, ...). A
/// Message destroyed unreceived drops its content.
class Message {
public:
    Message(Message&& other) noexcept
        : engine_(std::exchange(other.engine_, nullptr)), handle_(other.handle_), info_(other.info_) {}
    Message& operator=(Message&& other) noexcept;
    Message(const Message&) = delete;
    Message& operator=(const Message&) = delete;
    ~Message();

    [[nodiscard]] Peer source() const noexcept { return info_.peer; }
    [[nodiscard]] Tag tag() const noexcept { return info_.tag; }
    [[nodiscard]] std::size_t bytes() const noexcept { return info_.message; }

private:
    friend class Context;
    friend class messaging::Engine;
    Message(messaging::Engine& engine, void* handle, const Status& info) noexcept
        : engine_(&engine), handle_(handle), info_(info) {}

    messaging::Engine* engine_ = nullptr;
    void* handle_ = nullptr;  // the engine's unexpected message, owned by it until received or dropped
    Status info_;
};

}  // namespace railmux
