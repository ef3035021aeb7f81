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
#include "bootstrap/server.hpp"
#include "bootstrap/value_store.hpp"
#include "unit/bootstrap_bytes.hpp"

using namespace railmux;
using namespace railmux::bootstrap;
using railmux::bootstrap::test::bytes;

namespace {

class JobServer {
public:
    explicit JobServer(std::string key)
        : server_(std::move(key), log_),
          values_(1000, [this](auto to, auto id, auto value) { server_.send(to, MessageType::value, id, value); }) {
        port_ = server_.listen("127.0.0.1:0");
        thread_ = std::thread([this] {
            while (!over_) {
                pollfd wait{server_.descriptor(), POLLIN, 0};
                ::poll(&wait, 1, 20);
                server_.poll([this](Connection& from, const Message& message) { values_.take(from.number, message); },
                             [this](Connection& from) { values_.forget(from.number); });
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
    ValueStore values_;
    std::uint16_t port_ = 0;
    std::atomic<bool> over_ = false;
    std::thread thread_;
};

/// The next value; nothing when none comes in 10 s or the server is lost.
std::optional<JobClient::Value> next(JobClient& client) {
    const auto deadline = base::now_ns() + 10 * base::second;
    while (base::now_ns() < deadline && !client.lost()) {
        auto values = client.poll();
        if (!values.empty()) return std::move(values.front());  // the tests ask for one at a time
        pollfd wait{client.descriptor(), POLLIN, 0};
        ::poll(&wait, 1, 100);
    }
    return std::nullopt;
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

TEST_CASE("job: what the store keeps is bounded, and nobody waits after leaving", "[job]") {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> answers;
    ValueStore store(2, [&](auto connection, auto id, auto) { answers.emplace_back(connection, id); });
    store.take(1, {MessageType::get, 5, {}});
    store.take(2, {MessageType::get, 5, {}});
    store.take(2, {MessageType::get, 5, {}});  // asking twice is answered once
    store.forget(1);
    store.take(3, {MessageType::put, 5, bytes("x")});
    CHECK(answers == std::vector<std::pair<std::uint64_t, std::uint32_t>>{{2, 5}});
    store.take(3, {MessageType::put, 6, {}});
    store.take(3, {MessageType::put, 7, {}});  // one too many
    store.take(3, {MessageType::put, 5, bytes("y")});
    store.take(4, {MessageType::get, 7, {}});
    store.take(4, {MessageType::get, 6, {}});
    CHECK(answers.size() == 2);
    CHECK(answers.back() == std::pair<std::uint64_t, std::uint32_t>{4, 6});
}
