// A job's processes and its server: values put and asked for, losses noticed.
#include <poll.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/client.hpp"
#include "bootstrap/roster.hpp"
#include "bootstrap/server.hpp"
#include "unit/bootstrap_bytes.hpp"

using namespace railmux;
using namespace railmux::bootstrap;
using railmux::bootstrap::test::bytes;

namespace {

class JobServer {
public:
    explicit JobServer(std::string key)
        : server_(std::move(key), log_),
          roster_({.size = 8, .open = true},
                  [this](auto to, auto type, auto id, auto value) { server_.send(to, type, id, value); }) {
        port_ = server_.listen("127.0.0.1:0");
        thread_ = std::thread([this] {
            while (!over_) {
                pollfd wait{server_.descriptor(), POLLIN, 0};
                ::poll(&wait, 1, 20);
                server_.poll([this](Connection& from, const Message& message) { roster_.take(from.number, message); },
                             [this](Connection& from) { roster_.lost(from.number); });
            }
        });
    }
    ~JobServer() {
        over_ = true;
        thread_.join();
    }
    [[nodiscard]] std::string where() const { return "127.0.0.1:" + std::to_string(port_); }
    [[nodiscard]] Job job(std::uint32_t rank, std::uint32_t size) const {
        return {.id = "job", .key = "key", .rank = rank, .size = size, .servers = {where()}};
    }

private:
    base::Logger log_{base::LogLevel::off};
    Server server_;
    Roster roster_;
    std::uint16_t port_ = 0;
    std::atomic<bool> over_ = false;
    std::thread thread_;
};

/// What comes; nothing when that takes more than 10 s or the server is lost.
std::vector<JobClient::News> some(JobClient& client) {
    const auto deadline = base::now_ns() + 10 * base::second;
    while (base::now_ns() < deadline && !client.lost()) {
        auto news = client.poll();
        if (!news.empty()) return news;
        pollfd wait{client.descriptor(), POLLIN, 0};
        ::poll(&wait, 1, 100);
    }
    return {};
}

/// The next value, where they are asked for one at a time.
std::optional<JobClient::News> next(JobClient& client) {
    auto news = some(client);
    return news.empty() ? std::nullopt : std::optional(std::move(news.front()));
}

}  // namespace

TEST_CASE("job: read from the parameters", "[job]") {
    Config config;
    CHECK_FALSE(Job::read(config));
    config.set("job.size", "4");
    CHECK_THROWS_AS(Job::read(config), Error);  // half a job is no silent singleton
    config.set("job.server", "unix:/tmp/x/job, host:5000").set("job.rank", "3").set("job.key", "k").set("job.id", "j");
    const auto job = Job::read(config);
    REQUIRE(job);
    CHECK(job->rank == 3);
    CHECK(job->size == 4);
    CHECK(job->servers == std::vector<std::string>{"unix:/tmp/x/job", "host:5000"});
    config.set("job.rank", "4");
    try {
        (void)Job::read(config);
        FAIL("rank 4 of 4 was taken");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::invalid_config);
    }
}

TEST_CASE("job: eight processes tell each other who they are", "[job]") {
    JobServer server("key");
    constexpr std::uint32_t size = 8;
    std::atomic<int> right = 0;
    std::vector<std::thread> processes;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
        processes.emplace_back([&, rank] {
            JobClient client(server.job(rank, size));
            client.publish(rank, bytes("rank " + std::to_string(rank)));
            for (std::uint32_t other = 0; other < size; ++other) {
                client.ask(other);
                const auto value = next(client);
                if (value && value->rank == other && value->bytes == bytes("rank " + std::to_string(other))) ++right;
            }
        });
    }
    for (auto& process : processes) process.join();
    CHECK(right == size * size);
}

TEST_CASE("job: a value asked for before it is there comes when it is", "[job]") {
    JobServer server("key");
    JobClient asker(server.job(0, 2));
    JobClient teller(server.job(1, 2));
    asker.ask(1);
    asker.publish(0, bytes("zero"));
    teller.ask(0);
    REQUIRE(next(teller));  // so the server has seen the asker's question
    CHECK(asker.poll().empty());
    teller.publish(1, bytes("one"));
    const auto value = next(asker);
    REQUIRE(value);
    CHECK(value->rank == 1);
    CHECK(value->bytes == bytes("one"));
}

TEST_CASE("job: the loss of the server shows", "[job]") {
    auto server = std::make_unique<JobServer>("key");
    JobClient client(server->job(0, 2));
    CHECK_FALSE(client.lost());
    server.reset();
    client.ask(1);
    CHECK_FALSE(next(client));
    CHECK(client.lost());
}

TEST_CASE("job: places are tried in order, and all failures told", "[job]") {
    JobServer server("key");
    auto job = server.job(0, 2);
    job.servers = {"unix:/no/such/socket", server.where()};
    CHECK_FALSE(JobClient(job).lost());
    job.servers = {"unix:/no/such/socket", "unix:/nor/this/one"};
    try {
        JobClient client(job);
        FAIL("joined nothing");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::bootstrap);
        CHECK_THAT(error.what(), Catch::Contains("unix:/no/such/socket") && Catch::Contains("unix:/nor/this/one"));
    }
}

TEST_CASE("job: another job's server at the first address does not matter", "[job]") {
    JobServer ours("key");
    JobServer other("other");
    auto job = ours.job(0, 2);
    job.servers = {other.where(), ours.where()};
    CHECK_FALSE(JobClient(job).lost());
    job.servers = {other.where()};
    try {
        JobClient client(job);
        FAIL("joined with a wrong key");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::wrong_key);
    }
}

TEST_CASE("job: processes hear of each other's coming and going in the order in which it happens", "[job]") {
    JobServer server("key");
    JobClient stays(server.job(0, 8));
    stays.publish(0, bytes("zero"));
    std::vector<JobClient::News> news;
    const auto hears = [&](MessageType type, std::string_view value) {
        if (news.empty()) news = some(stays);
        REQUIRE_FALSE(news.empty());
        CHECK(news.front().type == type);
        CHECK(news.front().rank == 3);
        CHECK(news.front().bytes == bytes(value));
        news.erase(news.begin());
    };
    {
        JobClient first(server.job(3, 8));
        first.publish(3, bytes("first"));
        stays.ask(3);
        hears(MessageType::value, "first");
        first.leave();
        hears(MessageType::left, "first");
    }
    {
        JobClient second(server.job(3, 8));
        second.publish(3, bytes("second"));
        hears(MessageType::joined, "second");
    }  // ends in good order, and says so to nobody
    JobClient third(server.job(3, 8));
    third.publish(3, bytes("third"));
    hears(MessageType::left, "second");
    hears(MessageType::joined, "third");
}
