#include <catch2/catch.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "rails/node_table.hpp"
#include "repeats.hpp"

using namespace railmux;
using rails::NodeTable;
using sched::NodeLoad;

namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t device = 7;

struct Folder {
    Folder() {
        std::string name = "/dev/shm/railmux-test-XXXXXX";
        if (::mkdtemp(name.data()) == nullptr) FAIL("/dev/shm cannot be written to");
        path = name;
    }
    ~Folder() { fs::remove_all(path); }
    [[nodiscard]] bool empty() const { return fs::is_empty(path); }
    [[nodiscard]] NodeTable open() const { return NodeTable::open(path).take(); }
    /// Where the table will be.
    [[nodiscard]] std::string table() const { return open().path(); }
    std::string path;
};

/// What a process does with its table.
struct Member {
    explicit Member(NodeTable& table) : load(1) {
        load.join(table.table(), NodeTable::new_owner(), &NodeTable::alive);
        shown = load.share(0, device);
    }
    NodeLoad load;
    bool shown = false;
};

std::uint64_t seen(Member& member) {
    member.load.look(base::now_ns());
    return member.load.others(0).backlog;
}

template <typename Holds>
bool comes(Holds holds, base::Nanoseconds within) {
    for (const auto end = base::now_ns() + within; base::now_ns() < end; std::this_thread::yield()) {
        if (holds()) return true;
    }
    return holds();
}

/// A child that does it until it is killed.
template <typename Do>
pid_t child(Do what) {
    const auto process = ::fork();
    if (process == 0) {
        what();
        ::_exit(0);
    }
    return process;
}
void kill_and_wait(pid_t process) {
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
}

constexpr auto table_mark = sched::LoadTable::railmux_table;

/// A file of so many words, all random but the first.
void fill(const std::string& path, std::size_t words, std::uint64_t first) {
    std::mt19937_64 random(5);
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    for (std::size_t i = 0; i < words; ++i) {
        const auto word = i == 0 ? first : random();
        file.write(reinterpret_cast<const char*>(&word), sizeof word);
    }
    file.close();
    fs::permissions(path, fs::perms(0600));
}

std::size_t taken(NodeTable& table) {
    const auto& lines = table.table().lines;
    return static_cast<std::size_t>(
        std::count_if(lines.begin(), lines.end(), [](const auto& line) { return line.owner.load() != 0; }));
}

std::string refused(const std::string& folder) {
    const auto table = NodeTable::open(folder);
    if (table) return {};
    CHECK(!table.error().cure().empty());
    return table.error().what();
}

}  // namespace

TEST_CASE("all who open it have the same table, and the last one takes it away", "[rails][node]") {
    const Folder folder;
    {
        auto a = folder.open();
        {
            auto b = folder.open();
            CHECK(a.path() == b.path());
            Member one(a);
            Member two(b);
            one.load.sent(0, 1000, base::now_ns());
            CHECK(seen(two) == 1000);
        }
        CHECK(fs::exists(a.path()));
        CHECK(fs::status(a.path()).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
    }
    CHECK(folder.empty());
}

TEST_CASE("a table is refused that is not ours alone", "[rails][node]") {
    using Catch::Matchers::Contains;
    const Folder folder;
    const auto path = folder.table();
    SECTION("no folder") { CHECK_THAT(refused(folder.path + "/none"), Contains("No such file or directory")); }
    SECTION("a folder") {
        fs::create_directory(path);
        CHECK_THAT(refused(folder.path), Contains("Is a directory"));
    }
    SECTION("a link") {
        fs::create_symlink("/etc/passwd", path);
        CHECK_THAT(refused(folder.path), Contains("symbolic links"));
    }
    SECTION("a pipe") {
        REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
        CHECK_THAT(refused(folder.path), Contains("is not a file"));
    }
    SECTION("open to others") {
        std::ofstream(path).put('x');
        fs::permissions(path, fs::perms(0666));
        CHECK_THAT(refused(folder.path), Contains("is open to other users"));
    }
    SECTION("somebody else's") {
        std::ofstream(path).put('x');
        fs::permissions(path, fs::perms(0600));
        if (::chown(path.c_str(), 12345, 12345) == 0) {
            CHECK_THAT(refused(folder.path), Contains("belongs to user 12345"));
        } else {
            WARN("only root can give files away");
        }
    }
}

TEST_CASE("a file that is no table is refused, and left as it is", "[rails][node]") {
    using Catch::Matchers::Contains;
    const Folder folder;
    const auto path = folder.table();
    const auto refused_with = [&](std::size_t words, std::uint64_t first) {
        fill(path, words, first);
        auto why = refused(folder.path);
        CHECK(fs::file_size(path) == words * sizeof(std::uint64_t));
        return why;
    };
    CHECK_THAT(refused_with(1, 0), Contains("is damaged: it has 8 bytes, not 65536"));
    CHECK_THAT(refused_with(8191, table_mark), Contains("is damaged"));
    CHECK_THAT(refused_with(8193, table_mark), Contains("is damaged"));
    CHECK_THAT(refused_with(8192, table_mark + 1), Contains("does not begin as a table does"));
}

TEST_CASE("tables that killed processes left are taken away, and nothing else", "[rails][node]") {
    const Folder folder;
    const auto prefix = folder.path + "/railmux-1-" + std::to_string(::geteuid()) + "-";
    const auto used = prefix + "1-1";
    const auto left = prefix + "1-2";
    const auto other = folder.path + "/railmux-1-x";
    const auto no_table = prefix + "1-3";
    fill(used, 8192, table_mark);
    fill(left, 8192, table_mark);
    fill(other, 8192, table_mark);
    fill(no_table, 8192, table_mark + 1);
    const base::FileDescriptor user(::open(used.c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(::flock(user.get(), LOCK_SH) == 0);
    const auto table = folder.open();
    CHECK(fs::exists(used));
    CHECK_FALSE(fs::exists(left));
    CHECK(fs::exists(other));
    CHECK(fs::exists(no_table));
    CHECK(fs::exists(table.path()));
}

TEST_CASE("what is in a table from before does no harm", "[rails][node]") {
    const Folder folder;
    const auto first = GENERATE(std::uint64_t{0}, table_mark);
    fill(folder.table(), 8192, first);
    auto table = folder.open();
    Member one(table);
    Member two(table);
    CHECK(one.shown);
    CHECK(two.shown);
    CHECK(comes([&] { return seen(one) == 0; }, base::second));
    two.load.sent(0, 1000, base::now_ns());
    CHECK(comes([&] { return seen(one) == 1000; }, base::second));
}

TEST_CASE("a process is another one than that with its number before it", "[rails][node]") {
    const auto self = NodeTable::new_owner();
    CHECK(NodeTable::alive(self));
    CHECK_FALSE(NodeTable::alive(self + 1));  // it started a moment later
    CHECK_FALSE(NodeTable::alive(0));
    const auto process = child([] { ::pause(); });
    const auto owner = static_cast<std::uint64_t>(process) << 42;
    CHECK_FALSE(NodeTable::alive(owner));  // it did not start with the machine
    ::kill(process, SIGKILL);
    siginfo_t info{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOWAIT) == 0);
    CHECK_FALSE(NodeTable::alive(owner));  // nobody has waited for it: it is there, and dead
    ::waitpid(process, nullptr, 0);
    CHECK_FALSE(NodeTable::alive(owner));
}

TEST_CASE("processes killed at any moment leave no load, no line and no file", "[rails][node]") {
    const Folder folder;
    std::mt19937_64 random(6);
    {
        auto table = folder.open();
        Member watcher(table);
        std::vector<pid_t> children(4, 0);
        const auto comes_and_goes = [&] {
            while (true) {
                auto own = folder.open();
                Member member(own);
                for (std::uint64_t i = 0; i < 200; ++i) {
                    member.load.sent(0, 1000, base::now_ns());
                    static_cast<void>(seen(member));
                    member.load.left(0, i % 3 * 1000, base::now_ns());
                }
            }
        };
        bool seen_any = false;
        for (int round = 0; round < railmux::test::repeats(200); ++round) {
            auto& place = children[random() % children.size()];
            if (place != 0) kill_and_wait(place);
            place = child(comes_and_goes);
            REQUIRE(place > 0);
            const auto until = base::now_ns() + static_cast<base::Nanoseconds>(random() % (3 * base::millisecond));
            while (base::now_ns() < until) {
                const auto backlog = seen(watcher);
                seen_any = seen_any || backlog > 0;
                REQUIRE(backlog <= (children.size() + taken(table)) * 200'000);
            }
        }
        CHECK((seen_any || comes([&] { return seen(watcher) > 0; }, 10 * base::second)));
        for (const auto process : children) {
            if (process != 0) kill_and_wait(process);
        }
        CHECK(comes([&] { return seen(watcher) == 0; }, base::second));
        // The dead have their lines yet. Whoever comes takes them over instead of others.
        const auto before = taken(table);
        std::vector<std::unique_ptr<Member>> others;
        while (others.size() < before) others.push_back(std::make_unique<Member>(table));
        CHECK(taken(table) <= before + 1);
        CHECK(seen(watcher) == 0);
    }
    CHECK(folder.empty());
}

TEST_CASE("many come and go at once, and all who are there see each other", "[rails][node]") {
    const Folder folder;
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) {
        children.push_back(child([&] {
            for (int round = 0; round < 300; ++round) {
                auto table = NodeTable::open(folder.path);
                if (!table) ::_exit(1);
                Member member(table.value());
                if (!member.shown) ::_exit(2);
                // Nobody has taken the file away from under us.
                struct stat here {};
                if (::stat(table.value().path().c_str(), &here) != 0) ::_exit(3);
            }
        }));
    }
    for (const auto process : children) {
        int status = -1;
        ::waitpid(process, &status, 0);
        CHECK(status == 0);
    }
    static_cast<void>(folder.table());  // two that leave at the same instant may each leave it to the other
    CHECK(folder.empty());
}
