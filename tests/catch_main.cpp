// The main of every Catch program, compiled once. Each test case has a cache folder of its own, empty, which goes with it:
// what one test measured must not be found by another, nor anything by the next run.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "scratch.hpp"

namespace {

class OwnCache final : public Catch::TestEventListenerBase {
public:
    using TestEventListenerBase::TestEventListenerBase;

    void testCaseStarting(const Catch::TestCaseInfo&) override {
        auto path = (std::filesystem::temp_directory_path() / "railmux-test-XXXXXX").string();
        if (::mkdtemp(path.data()) == nullptr || ::setenv("XDG_CACHE_HOME", path.c_str(), 1) != 0) std::abort();
    }
    void testCaseEnded(const Catch::TestCaseStats&) override {
        std::error_code ignored;  // a folder that a test made unreadable; /tmp is cleaned by others
        std::filesystem::remove_all(railmux::test::scratch_folder(), ignored);
    }
};

}  // namespace

CATCH_REGISTER_LISTENER(OwnCache)
