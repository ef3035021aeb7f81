#include "messaging/membership.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <string>

#include "bootstrap/client.hpp"
#include "bootstrap/server.hpp"

namespace railmux::messaging {

namespace {
constexpr base::Nanoseconds longest_wait = base::Nanoseconds{1} << 60;  // keeps sums of times far from overflow

Membership::News::Kind kind_of(bootstrap::MessageType type) noexcept {
    switch (type) {
        case bootstrap::MessageType::joined: return Membership::News::Kind::joined;
        case bootstrap::MessageType::left: return Membership::News::Kind::left;
        case bootstrap::MessageType::lost: return Membership::News::Kind::lost;
        default: return Membership::News::Kind::known;
    }
}

}  // namespace

struct Membership::Parts {
    Parts(const Config& config, base::Logger& logger)
        : log(logger), job(bootstrap::Job::read(config)), key(config.text("job.key")) {
        if (!job) return;
        client.emplace(*job);
        size = job->size;
    }

    base::Logger& log;
    std::optional<bootstrap::Job> job;
    std::string key;
    std::optional<bootstrap::JobClient> client;
    std::atomic<std::uint32_t> size = 1;
    std::optional<bootstrap::Server> door;
    std::map<std::uint32_t, bootstrap::Knock> knocks;
    std::uint32_t last_knock = 0;
    std::vector<std::byte> own;  // what the door tells those who knock
    bool loss_told = false;
};

Membership::Membership(const Config& config, base::Logger& log) : parts_(std::make_unique<Parts>(config, log)) {}

Membership::~Membership() = default;

bool Membership::in_job() const noexcept { return parts_->job.has_value(); }
std::uint32_t Membership::rank() const noexcept { return in_job() ? parts_->job->rank : 0; }
std::uint32_t Membership::size() const noexcept { return parts_->size.load(std::memory_order_relaxed); }
std::string_view Membership::job() const noexcept { return in_job() ? parts_->job->id : std::string_view(); }
std::string_view Membership::key() const noexcept { return parts_->key; }

void Membership::publish(std::vector<std::byte> address) { parts_->client->publish(rank(), address); }

void Membership::moved(const std::vector<std::byte>& address) {
    parts_->own = address;
    if (parts_->client && !parts_->client->lost()) publish(address);
}

void Membership::ask(std::uint32_t rank) {
    if (parts_->client) parts_->client->ask(rank);
}

void Membership::leave() {
    parts_->knocks.clear();
    parts_->door.reset();
    if (!parts_->client) return;
    parts_->client->leave();
    parts_->client.reset();
}

std::uint16_t Membership::listen(std::string_view where, std::vector<std::byte> own) {
    parts_->own = std::move(own);
    if (!parts_->door) parts_->door.emplace(parts_->key, parts_->log);
    return parts_->door->listen(where);
}

std::uint32_t Membership::knock(std::string_view where, std::span<const std::byte> own,
                                std::chrono::nanoseconds timeout) {
    const auto deadline = base::now_ns() + std::min<base::Nanoseconds>(timeout.count(), longest_wait);
    parts_->knocks.try_emplace(++parts_->last_knock, where, own, parts_->key, deadline);
    return parts_->last_knock;
}

std::optional<std::vector<std::byte>> Membership::answer(std::uint32_t number) {
    auto& knock = parts_->knocks.at(number);
    try {
        auto address = knock.poll(base::now_ns());
        if (const auto trouble = knock.take_trouble(); !trouble.empty()) {
            parts_->log.warning("{}: {}; waiting up to {} s for somebody to listen there", knock.where(), trouble,
                                (knock.deadline() - base::now_ns()) / base::second + 1);
        }
        if (address) parts_->knocks.erase(number);
        return address;
    } catch (const Error&) {
        parts_->knocks.erase(number);
        throw;
    }
}

std::vector<Membership::News> Membership::poll() {
    std::vector<News> news;
    if (parts_->client) {
        for (auto& item : parts_->client->poll()) {
            news.push_back({kind_of(item.type), item.rank, fmt::format("rank {}", item.rank), std::move(item.bytes)});
        }
        parts_->size.store(parts_->client->size(), std::memory_order_relaxed);
        if (parts_->client->lost() && !std::exchange(parts_->loss_told, true)) {
            parts_->log.warning("the job's server has gone; ranks not yet known stay out of reach");
        }
    }
    if (parts_->door) {
        parts_->door->poll([&](bootstrap::Connection& connection, const bootstrap::Message& message) {
            if (message.type != bootstrap::MessageType::contact) return;
            connection.channel.send(bootstrap::MessageType::contact, 0, parts_->own);
            news.push_back({News::Kind::knocked, 0, connection.from, message.bytes});
        });
    }
    return news;
}

std::vector<int> Membership::descriptors() const {
    std::vector<int> all;
    if (parts_->client && !parts_->client->lost()) all.push_back(parts_->client->descriptor());
    if (parts_->door) all.push_back(parts_->door->descriptor());
    for (const auto& [number, knock] : parts_->knocks) all.push_back(knock.descriptor());
    return all;
}

base::Nanoseconds Membership::time_left() const {
    auto left = base::never;
    for (const auto& [number, knock] : parts_->knocks) left = std::min(left, knock.wake() - base::now_ns());
    return left;
}

}  // namespace railmux::messaging
