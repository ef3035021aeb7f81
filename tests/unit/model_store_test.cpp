// The store: what it gives back is what was kept, or nothing.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "model/prior.hpp"
#include "model/store.hpp"
#include "scratch.hpp"
#include "unit/model_systems.hpp"

using namespace railmux;
using model::Store;
using model::StoreEntry;
using model::StoreKey;
using model::StoreOptions;

namespace {

constexpr StoreKey key{0x1111, 0x2222};

StoreOptions options() { return {.folder = test::scratch_folder() + "/store", .named = true, .version = "1.2.3"}; }

std::string path_of(const StoreKey& of) { return options().folder + "/" + StoreEntry::file_name(of, "1.2.3"); }

std::string content_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void put(const std::string& path, const std::string& content) { std::ofstream(path, std::ios::binary) << content; }

std::vector<LogGP> models() {
    std::vector<LogGP> all{model::prior("tcp", 0)};
    for (const auto& system : test::systems()) all.push_back(system.truth);
    return all;
}

constexpr auto ends = "host-a tcp:eth1 to host-b";

std::string text_of(const LogGP& m) { return StoreEntry{key, "1.2.3", ends, m}.text(); }

bool refused(const std::string& text) { return !StoreEntry::parse(text).ok(); }

/// What goes to standard error meanwhile: the log.
template <typename Work>
std::string logged(Work work) {
    const auto path = test::scratch_folder() + "/log";
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    const int kept = ::dup(STDERR_FILENO);
    REQUIRE((file >= 0 && kept >= 0 && ::dup2(file, STDERR_FILENO) >= 0));
    work();
    ::dup2(kept, STDERR_FILENO);
    ::close(kept);
    ::close(file);
    return content_of(path);
}

long lines_in(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

}  // namespace

TEST_CASE("store: entries are read back exactly", "[model][store]") {
    for (const auto& m : models()) {
        const auto text = text_of(m);
        const auto entry = StoreEntry::parse(text);
        REQUIRE(entry.ok());
        CHECK(entry.value().key == key);
        CHECK(entry.value().version == "1.2.3");
        CHECK(entry.value().link == ends);
        CHECK(entry.value().model == m);
        CHECK(text.size() < StoreEntry::max_bytes);
    }
}

TEST_CASE("store: an entry that was cut or changed anywhere is refused", "[model][store]") {
    const auto text = text_of(test::systems().back().truth);
    for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
        if (!refused(text.substr(0, bytes))) FAIL("accepted without its end, of " << bytes << " bytes");
        if (bytes > 0 && !refused(text.substr(bytes))) FAIL("accepted without its first " << bytes << " bytes");
    }
    for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
        auto changed = text;
        changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
        if (!refused(changed)) FAIL("accepted with another bit " << bit);
    }
    CHECK(refused(text + "\n"));
    CHECK(refused(text + text));
    CHECK(refused(std::string(100'000, 'x')));
}

TEST_CASE("store: an entry of another format or with numbers out of range is refused", "[model][store]") {
    const auto text = text_of(test::systems().front().truth);
    const auto body = text.substr(0, text.rfind("checksum"));
    CHECK(model::with_checksum(body) == text);
    const auto with = [&](std::string_view old, std::string_view other) {
        auto changed = body;
        REQUIRE(changed.find(old) != changed.npos);
        return model::with_checksum(changed.replace(changed.find(old), old.size(), other));
    };
    CHECK(refused(with("railmux-model 1", "railmux-model 2")));
    CHECK(refused(with("loggp 1", "loggp 2")));
    CHECK(refused(with("jitter=", "jitter=-1")));
    CHECK(refused(with(" g=", " g=nan")));
    CHECK(refused(with(" g=", " g=1e300")));
    CHECK(refused(with(" G=", " G=-")));
    CHECK(refused(with("loggp", "\nloggp")));  // not as it is written
    CHECK(refused(with("local 0000", "local 000")));
    CHECK(refused(with("local 0000", "local -000")));
    CHECK(refused(with("local 0000000000001111", "local 11110000000000000000")));
    CHECK(refused(with("host-a", "host\ta")));
    CHECK(refused(with("host-a", std::string(201, 'a'))));
    CHECK(refused(with("link ", "")));
    CHECK_FALSE(refused(with("host-a", "host-c")));
    CHECK(refused(model::with_checksum("")));
}

TEST_CASE("store: what was kept is found, by its key and version", "[model][store]") {
    base::Logger log;
    Store store(options(), log);
    const auto all = models();
    const auto said = logged([&] {
        CHECK_FALSE(store.find(key));
        CHECK_FALSE(std::filesystem::exists(options().folder));  // looking makes nothing
        CHECK(store.content().models.size() == 0);
        CHECK_FALSE(store.link_of(key));
        store.keep(key, ends, all[0]);
        CHECK(store.find(key) == all[0]);
        CHECK(store.link_of(key) == ends);
        store.keep(key, ends, all[1]);
        CHECK(store.find(key) == all[1]);
        CHECK_FALSE(store.find({key.remote, key.local}));
        auto newer = options();
        newer.version = "1.2.4";
        CHECK_FALSE(Store(newer, log).find(key));
        Store(newer, log).keep(key, ends, all[2]);
        CHECK(store.find(key) == all[1]);
        CHECK(Store(newer, log).find(key) == all[2]);
        CHECK(store.content().models.size() == 2);
        CHECK(store.content().models[0].entry.link == ends);
        put(options().folder + "/" + std::string(32, '0') + ".model", "damaged");
        CHECK(store.content().models.size() == 2);
        CHECK(store.content().refused == 1);
        put(options().folder + "/notes", "of somebody");
        CHECK(store.clear() == 3);
        CHECK(store.content().models.size() == 0);
        CHECK(std::filesystem::exists(options().folder + "/notes"));
    });
    CHECK(said == "");
}

TEST_CASE("store: a file that cannot be trusted is said once, goes, and is made anew", "[model][store]") {
    base::Logger log;
    const auto m = test::systems().front().truth;
    const auto good = text_of(m);
    const std::array bad{std::string(),
                         std::string("not a model"),
                         good.substr(0, good.size() / 2),
                         StoreEntry{key, "1.2.2", ends, m}.text(),
                         StoreEntry{{key.remote, key.local}, "1.2.3", ends, m}.text(),
                         std::string(1'000'000, '\0')};
    for (const auto& content : bad) {
        Store store(options(), log);
        store.keep(key, ends, m);
        put(path_of(key), content);
        const auto said = logged([&] {
            CHECK_FALSE(store.find(key));
            CHECK_FALSE(std::filesystem::exists(path_of(key)));
            put(path_of(key), content);
            CHECK_FALSE(store.find(key));
        });
        CHECK(lines_in(said) == 1);
        CHECK_THAT(said, Catch::Contains(path_of(key)) && Catch::Contains("replaces it"));
        store.keep(key, ends, m);
        CHECK(store.find(key) == m);
    }
}

TEST_CASE("store: files that others could have written are not read", "[model][store]") {
    base::Logger log;
    const auto m = test::systems().front().truth;
    const auto expect_refused = [&](std::string_view why, auto spoil) {
        INFO(why);
        Store store(options(), log);
        store.keep(key, ends, m);
        spoil(path_of(key));
        const auto said = logged([&] { CHECK_FALSE(store.find(key)); });
        CHECK_THAT(said, Catch::Contains(std::string(why)));
        store.keep(key, ends, m);
        CHECK(store.find(key) == m);
    };
    expect_refused("others may write", [](const std::string& path) { REQUIRE(::chmod(path.c_str(), 0666) == 0); });
    expect_refused("it is a link", [](const std::string& path) {
        std::filesystem::rename(path, path + ".real");
        std::filesystem::create_symlink(path + ".real", path);
    });
    if (::geteuid() == 0) {
        expect_refused("another user",
                       [](const std::string& path) { REQUIRE(::chown(path.c_str(), 1234, 1234) == 0); });
    }
}

TEST_CASE("store: a folder that cannot be used is said once, and nothing fails", "[model][store]") {
    auto there = options();
    std::string why = "Not a directory";
    put(test::scratch_folder() + "/file", "x");
    SECTION("a file in its place") { there.folder = test::scratch_folder() + "/file"; }
    SECTION("a file above it") { there.folder = test::scratch_folder() + "/file/store"; }
    SECTION("others write to it") {
        std::filesystem::create_directory(there.folder);
        std::filesystem::permissions(there.folder, std::filesystem::perms::all);
        why = "others may write";
    }
    SECTION("nothing can be made there") {
        there.folder = "/proc/railmux";
        why = "No such file";
    }
    base::Logger log;
    Store store(there, log);
    const auto said = logged([&] {
        for (int i = 0; i < 3; ++i) {
            store.keep(key, ends, model::prior("tcp", 0));
            CHECK_FALSE(store.find(key));
            store.confirm(key);
        }
    });
    CHECK(lines_in(said) == 1);
    CHECK_THAT(said, Catch::Contains(why) && Catch::Contains(there.folder) && Catch::Contains("RAILMUX_PROBE_STORE"));
    there.named = false;  // nobody asked for it
    Store quiet(there, log);
    CHECK(logged([&] { quiet.keep(key, ends, model::prior("tcp", 0)); }) == "");
}

TEST_CASE("store: of too many models the oldest go, and those that are old", "[model][store]") {
    base::Logger log;
    auto few = options();
    few.max_entries = 10;
    const auto m = test::systems().front().truth;
    const auto age = [&](std::uint64_t i, std::int64_t seconds) {
        const timespec at{::time(nullptr) - seconds, 0};
        const std::array times{at, at};
        REQUIRE(::utimensat(AT_FDCWD, path_of({i, 1}).c_str(), times.data(), 0) == 0);
    };
    for (std::uint64_t i = 1; i <= 20; ++i) {
        Store(options(), log).keep({i, 1}, ends, m);
        age(i, static_cast<std::int64_t>(1000 * i));
    }
    Store(few, log).confirm({20, 1});
    Store(few, log).keep({1, 1}, ends, m);
    Store store(few, log);
    CHECK(store.content().models.size() == 10);
    CHECK(store.find({20, 1}));  // the oldest, had it not been confirmed
    CHECK(store.find({9, 1}));
    CHECK_FALSE(store.find({10, 1}));
    age(9, 91 * 86'400);
    Store(few, log).keep({1, 1}, ends, m);
    CHECK_FALSE(store.find({9, 1}));
    CHECK(store.content().models.size() == 9);
}

TEST_CASE("store: two hundred processes write at once, and no reader sees anything but a whole model",
          "[model][store]") {
    constexpr int writers = 200;
    constexpr std::uint64_t keys = 4;
    base::Logger log;
    const auto all = models();
    for (std::uint64_t k = 1; k <= keys; ++k) Store(options(), log).keep({k, 1}, ends, all[0]);
    std::vector<pid_t> children;
    for (int i = 0; i < writers; ++i) {
        const auto child = ::fork();
        REQUIRE(child >= 0);
        if (child > 0) {
            children.push_back(child);
            continue;
        }
        Store store(options(), log);
        bool found = true;
        for (std::size_t round = 0; round < 20; ++round) {
            const StoreKey mine{1 + (static_cast<std::uint64_t>(i) + round) % keys, 1};
            store.keep(mine, ends, all[(static_cast<std::size_t>(i) + round) % all.size()]);
            found = store.find(mine).has_value() && found;
        }
        ::_exit(found ? 0 : 1);
    }
    const auto said = logged([&] {
        Store reader(options(), log);
        std::size_t wrong = 0;
        for (std::size_t left = children.size(), turn = 0; left > 0; ++turn) {
            const auto found = reader.find({1 + turn % keys, 1});
            wrong += found && std::ranges::find(all, *found) != all.end() ? 0 : 1;
            int status = 0;
            if (::waitpid(-1, &status, WNOHANG) <= 0) continue;
            wrong += status == 0 ? 0 : 1;
            --left;
        }
        CHECK(wrong == 0);
    });
    CHECK(said == "");
    CHECK(Store(options(), log).content().models.size() == keys);
    const std::filesystem::directory_iterator left(options().folder);
    CHECK(std::distance(begin(left), end(left)) == keys);  // no half-written ones either
}

TEST_CASE("store: where it is, by parameter and environment", "[model][store]") {
    Config config;
    REQUIRE(StoreOptions::read(config));
    CHECK(StoreOptions::read(config)->folder == test::scratch_folder() + "/railmux");
    CHECK_FALSE(StoreOptions::read(config)->named);
    config.set("probe.store", "/var/tmp/models");
    CHECK(StoreOptions::read(config)->folder == "/var/tmp/models");
    CHECK(StoreOptions::read(config)->named);
    config.set("probe.store", "models");
    CHECK_THROWS_WITH(StoreOptions::read(config), Catch::Contains("not an absolute path"));
    config.set("probe.store", "");
    const auto cache = test::scratch_folder();
    const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
    ::unsetenv("XDG_CACHE_HOME");
    ::unsetenv("HOME");
    CHECK_FALSE(StoreOptions::read(config));
    ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
    if (!home.empty()) ::setenv("HOME", home.c_str(), 1);
}
