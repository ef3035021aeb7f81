// The helper thread: what is left where there can be none.
#include <catch2/catch.hpp>

#include <pthread.h>

#include <railmux/error.hpp>

#include "progress/progress.hpp"

using railmux::Error;
using railmux::ErrorCode;
using railmux::ProgressMode;
using railmux::base::Nanoseconds;
using railmux::progress::Progress;
using railmux::progress::Sleeper;

namespace {

/// There is never anything to be seen.
class Nothing final : public railmux::progress::Subject {
public:
    bool look(bool) override { return false; }
    [[nodiscard]] bool timing() const noexcept override { return false; }
    [[nodiscard]] Nanoseconds now() const noexcept override { return 1; }
    [[nodiscard]] Nanoseconds last_now() const noexcept override { return 1; }
    [[nodiscard]] Nanoseconds arm(Sleeper&) override { return Progress::never; }
    void slept() override {}
    [[nodiscard]] bool wants_look(Nanoseconds) noexcept override { return false; }
    [[nodiscard]] std::uint64_t ended() const noexcept override { return 0; }
    [[nodiscard]] Nanoseconds answer_time() override { return 0; }
};

/// No thread starts meanwhile, as with too many of them: its stack would be larger than any address space. Limits of the
/// system would do as well, but for root, who has none.
class NoThreads {
public:
    NoThreads() {
        ::pthread_getattr_default_np(&before_);
        pthread_attr_t attributes;
        ::pthread_getattr_default_np(&attributes);
        ::pthread_attr_setstacksize(&attributes, std::size_t{1} << 60);
        refused_ = ::pthread_setattr_default_np(&attributes) != 0;
        ::pthread_attr_destroy(&attributes);
    }
    ~NoThreads() {
        ::pthread_setattr_default_np(&before_);
        ::pthread_attr_destroy(&before_);
    }
    NoThreads(const NoThreads&) = delete;
    NoThreads& operator=(const NoThreads&) = delete;

    [[nodiscard]] bool refused() const noexcept { return refused_; }

private:
    pthread_attr_t before_{};
    bool refused_ = false;
};

void fail_to_help(Progress& progress) {
    const NoThreads none;
    REQUIRE_FALSE(none.refused());
    try {
        progress.set_mode(ProgressMode::thread);
        FAIL("there is a thread");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::system);
    }
}

}  // namespace

TEST_CASE("progress: where no helper can be started a context is as it was without", "[progress]") {
    const bool shared = GENERATE(false, true);
    Nothing nothing;
    Progress progress({.mode = ProgressMode::poll, .shared = shared}, nothing);
    REQUIRE(progress.alone() != shared);
    for (int i = 0; i < 2; ++i) {
        fail_to_help(progress);
        CHECK(progress.mode() == ProgressMode::hybrid);
        CHECK(progress.alone() != shared);  // nobody calls in who was not there before: no lock to be taken
        const Progress::Lock lock(progress);
    }
    progress.set_mode(ProgressMode::thread);
    CHECK_FALSE(progress.alone());
    progress.set_mode(ProgressMode::poll);
    CHECK(progress.alone() != shared);
}
