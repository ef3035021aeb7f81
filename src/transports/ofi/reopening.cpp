#include "transports/ofi/reopening.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace railmux::transports::ofi {

namespace {

constexpr auto farewell = std::chrono::seconds(1);

base::FileDescriptor event_descriptor() {
    const int descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (descriptor >= 0) return base::FileDescriptor(descriptor);
    throw Error(ErrorCode::system, fmt::format("eventfd failed: {}", std::strerror(errno)),
                "raise the limit of open files (ulimit -n)");
}

}  // namespace

struct Reopening::Shared {
    base::FileDescriptor event = event_descriptor();
    std::mutex mutex;
    std::condition_variable changed;
    bool running = false;
    bool unwanted = false;
    std::unique_ptr<Endpoint> opened;
    std::string trouble;  // of the last try
    bool told = true;

    /// False: nobody wants it any more.
    bool wait(base::Nanoseconds time) {
        std::unique_lock lock(mutex);
        changed.wait_for(lock, std::chrono::nanoseconds(time), [&] { return unwanted; });
        return !unwanted;
    }
    void say(std::string why) {
        const std::lock_guard lock(mutex);
        told = told && why == trouble;
        trouble = std::move(why);
    }
    void end(std::unique_ptr<Endpoint> endpoint) {
        const std::uint64_t one = 1;
        const std::lock_guard lock(mutex);
        running = false;
        opened = std::move(endpoint);
        if (opened != nullptr) trouble.clear();
        [[maybe_unused]] const auto written = ::write(event.get(), &one, sizeof one);
        changed.notify_all();
    }
    /// Until it has opened one.
    std::unique_ptr<Endpoint> open(const Open& open_port, base::Nanoseconds first) {
        for (auto next = first; wait(std::max<base::Nanoseconds>(next - base::now_ns(), 0));) {
            next = base::now_ns() + period;
            try {
                return std::make_unique<Endpoint>(open_port());
            } catch (const std::exception& error) {
                say(error.what());
            }
        }
        return nullptr;
    }
};

Reopening::Reopening(Open open)
    : open_(std::move(open)), shared_(std::make_shared<Shared>()), opened_at_(base::now_ns()) {}

Reopening::~Reopening() {
    std::unique_ptr<Endpoint> late;  // closed without the lock
    std::unique_lock lock(shared_->mutex);
    shared_->unwanted = true;
    shared_->changed.notify_all();
    shared_->changed.wait_for(lock, farewell, [&] { return !shared_->running; });
    late = std::move(shared_->opened);
    lock.unlock();
}

void Reopening::begin(std::unique_ptr<Endpoint> failed, bool soon) noexcept {
    shared_->running = true;  // there is no thread that would look at it
    const auto first = opened_at_ + (soon ? moment : period);
    auto run = [shared = shared_, open = open_, first, failed = std::move(failed)]() mutable {
        failed.reset();
        auto opened = shared->open(open, first);
        shared->end(std::move(opened));
    };
    try {
        std::thread(std::move(run)).detach();
    } catch (const std::system_error& error) {
        shared_->running = false;
        given_up_ = true;
        shared_->say(fmt::format("no thread to open it anew: {}", error.what()));
    }
}

std::unique_ptr<Endpoint> Reopening::take() noexcept {
    std::uint64_t count = 0;
    if (::read(shared_->event.get(), &count, sizeof count) <= 0) return nullptr;
    const std::lock_guard lock(shared_->mutex);
    opened_at_ = base::now_ns();
    return std::move(shared_->opened);
}

std::string Reopening::take_trouble() noexcept {
    const std::lock_guard lock(shared_->mutex);
    return std::exchange(shared_->told, true) ? std::string() : shared_->trouble;
}

int Reopening::descriptor() const noexcept { return shared_->event.get(); }

}  // namespace railmux::transports::ofi
