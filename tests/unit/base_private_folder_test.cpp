// Folders of files that only this user writes.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/environment.hpp"
#include "base/private_folder.hpp"
#include "scratch.hpp"

using namespace railmux;
using base::PrivateFolder;
using Missing = PrivateFolder::Missing;

namespace {

unsigned mode_of(const std::string& path) {
    struct stat status {};
    REQUIRE(::lstat(path.c_str(), &status) == 0);
    return status.st_mode & 07777U;
}

PrivateFolder opened(const std::string& path) { return PrivateFolder::open(path, Missing::make).take(); }

}  // namespace

TEST_CASE("private folder: made for this user only, with what is missing above it", "[base]") {
    const auto top = test::scratch_folder() + "/a";
    const auto path = top + "/b/c";
    const auto mask = ::umask(0);
    const auto folder = opened(path);
    CHECK(folder.replace("file", "content").ok());
    ::umask(mask);
    CHECK(mode_of(top) == 0700);
    CHECK(mode_of(path) == 0700);
    CHECK(mode_of(path + "/file") == 0600);
    CHECK(folder.read("file", 7).value() == "content");
    CHECK(folder.read("file", 6).error().code() == ErrorCode::invalid_argument);
    CHECK_FALSE(folder.read("other", 6).value());
}

TEST_CASE("private folder: what is missing is empty, if wanted so", "[base]") {
    const auto folder = PrivateFolder::open(test::scratch_folder() + "/none", Missing::empty).take();
    CHECK_FALSE(folder.read("file", 10).value());
    CHECK(folder.list().empty());
    CHECK_FALSE(folder.remove("file"));
    CHECK_FALSE(folder.replace("file", "content").ok());
    folder.renew("file");
    folder.sweep(0);
}

TEST_CASE("private folder: one that others write to is refused", "[base]") {
    const auto path = test::scratch_folder() + "/open";
    static_cast<void>(opened(path));
    for (const mode_t mode : {0720U, 0702U, 0777U}) {
        REQUIRE(::chmod(path.c_str(), mode) == 0);
        const auto folder = PrivateFolder::open(path, Missing::make);
        REQUIRE_FALSE(folder.ok());
        CHECK(folder.error().code() == ErrorCode::permission);
        CHECK_THAT(folder.error().what(), Catch::Contains(path) && Catch::Contains("others may write"));
    }
    std::ofstream(test::scratch_folder() + "/file") << "x";
    const auto no_folder = PrivateFolder::open(test::scratch_folder() + "/file", Missing::make);
    CHECK(no_folder.error().code() == ErrorCode::system);
}

TEST_CASE("private folder: files of others, links and pipes are refused, without waiting", "[base]") {
    const auto path = test::scratch_folder() + "/f";
    const auto folder = opened(path);
    REQUIRE(folder.replace("real", "x").ok());
    REQUIRE(::symlink("real", (path + "/link").c_str()) == 0);
    REQUIRE(::mkfifo((path + "/pipe").c_str(), 0600) == 0);
    REQUIRE(::mkdir((path + "/folder").c_str(), 0700) == 0);
    REQUIRE(folder.replace("writable", "x").ok());
    REQUIRE(::chmod((path + "/writable").c_str(), 0620) == 0);
    for (const auto* name : {"link", "pipe", "folder", "writable"}) {
        INFO(name);
        const auto read = folder.read(name, 10);
        REQUIRE_FALSE(read.ok());
        CHECK(read.error().code() == ErrorCode::permission);
    }
    if (::geteuid() == 0) {  // only root can give files away
        REQUIRE(::chown((path + "/real").c_str(), 12345, 12345) == 0);
        CHECK_THAT(folder.read("real", 10).error().what(), Catch::Contains("another user"));
        REQUIRE(::chown(path.c_str(), 12345, 12345) == 0);
        CHECK_THAT(PrivateFolder::open(path, Missing::make).error().what(), Catch::Contains("another user"));
        REQUIRE(::chown(path.c_str(), 0, 0) == 0);
    }
    CHECK(folder.replace("real", "y").ok());
    CHECK(folder.replace("link", "y").ok());  // the link, not what it leads to
    CHECK(folder.read("link", 10).value() == "y");
    CHECK_FALSE(folder.replace("folder", "y").ok());
    CHECK(folder.list().size() == 4);  // no leftover of that
}

TEST_CASE("private folder: what a dead writer left is swept after an hour", "[base]") {
    const auto path = test::scratch_folder();
    const auto folder = opened(path);
    std::ofstream(path + "/.part-0123456789abcdef") << "half";
    std::ofstream(path + "/.hidden") << "not ours";
    const auto now = folder.replace("file", "x").value();
    folder.sweep(now + 3599 * base::second);
    CHECK(std::filesystem::exists(path + "/.part-0123456789abcdef"));
    folder.sweep(now + 3601 * base::second);
    CHECK_FALSE(std::filesystem::exists(path + "/.part-0123456789abcdef"));
    CHECK(std::filesystem::exists(path + "/.hidden"));
    REQUIRE(folder.list().size() == 1);
    CHECK(folder.list()[0].name == "file");
    CHECK(folder.list()[0].written == now);
}

TEST_CASE("the cache folder is what the environment says, if it says it absolutely", "[base]") {
    const auto cache = test::scratch_folder();
    const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
    CHECK(base::cache_folder() == cache);
    ::setenv("XDG_CACHE_HOME", "relative", 1);
    ::setenv("HOME", "/home/somebody", 1);
    CHECK(base::cache_folder() == "/home/somebody/.cache");
    ::unsetenv("XDG_CACHE_HOME");
    ::setenv("HOME", "somewhere", 1);
    CHECK_FALSE(base::cache_folder());
    ::unsetenv("HOME");
    CHECK_FALSE(base::cache_folder());
    ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
    if (!home.empty()) ::setenv("HOME", home.c_str(), 1);
}
