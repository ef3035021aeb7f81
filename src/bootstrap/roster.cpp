#include "bootstrap/roster.hpp"

#include <fmt/format.h>

#include "base/bytes.hpp"

namespace railmux::bootstrap {

void Roster::take(std::uint64_t connection, const Message& message) {
    switch (message.type) {
        case MessageType::put: return put(connection, message.id, message.bytes);
        case MessageType::get: return get(connection, message.id);
        case MessageType::leave: return leave(connection, message.id != 0);
        case MessageType::enroll: return enroll(connection, message);
        case MessageType::ended: return ended(connection, message.id);
        default: return;  // the others are ours to send
    }
}

void Roster::put(std::uint64_t connection, std::uint32_t rank, const std::vector<std::byte>& value) {
    if (rank >= size_) return;
    if (const auto own = rank_of_.find(connection); own != rank_of_.end() && own->second != rank) return;
    const auto [place, fresh] = members_.try_emplace(rank);
    auto& member = place->second;
    const bool same = !fresh && member.connection == connection;
    if (!fresh && !same && options_.open) {
        if (member.standing == Standing::there) tell_others(MessageType::lost, rank, member.value);
        if (member.standing == Standing::ended) tell_others(MessageType::left, rank, member.value);
    }
    if (!fresh && !same) rank_of_.erase(member.connection);
    auto launcher = member.launcher;
    // What the predecessor said last does not fulfil the promise of its successor.
    if (const auto promise = same ? promises_.end() : promise_of(rank); promise != promises_.end()) {
        launcher = promise->second.launcher;
        take_from(promise, rank);
    }
    member = {Standing::there, connection, value, launcher};
    rank_of_[connection] = rank;
    if (options_.open) {
        send_(connection, MessageType::size, size_, {});
        if (!same && (!fresh || rank >= options_.size)) tell_others(MessageType::joined, rank, value);
    }
    const auto waiting = waiting_.extract(rank);
    if (waiting.empty()) return;
    for (const auto other : waiting.mapped()) send_(other, MessageType::value, rank, value);
}

void Roster::get(std::uint64_t connection, std::uint32_t rank) {
    const auto found = members_.find(rank);
    if (found == members_.end()) {
        if (rank < size_) waiting_[rank].insert(connection);
        return;
    }
    const auto& member = found->second;
    const auto answer = member.standing == Standing::left   ? MessageType::left
                        : member.standing == Standing::lost ? MessageType::lost
                                                            : MessageType::value;
    send_(connection, answer, rank, member.value);
}

void Roster::leave(std::uint64_t connection, bool tell) {
    forget(connection);
    const auto own = rank_of_.extract(connection);
    if (own.empty()) return;
    auto& member = members_.at(own.mapped());
    member.standing = tell ? Standing::left : Standing::ended;
    member.connection = 0;
    if (tell) tell_others(MessageType::left, own.mapped(), member.value);
}

void Roster::lost(std::uint64_t connection) {
    forget(connection);
    if (launchers_.erase(connection) > 0) {
        std::erase_if(promises_, [&](const auto& entry) { return entry.second.launcher == connection; });
    }
    const auto own = rank_of_.extract(connection);
    if (own.empty()) return;
    auto& member = members_.at(own.mapped());
    member.standing = options_.open ? Standing::lost : Standing::ended;
    member.connection = 0;
    if (options_.open) tell_others(MessageType::lost, own.mapped(), member.value);
}

void Roster::forget(std::uint64_t connection) {
    for (auto entry = waiting_.begin(); entry != waiting_.end();) {
        entry->second.erase(connection);
        entry = entry->second.empty() ? waiting_.erase(entry) : std::next(entry);
    }
}

void Roster::tell_others(MessageType type, std::uint32_t rank, std::span<const std::byte> value) {
    for (const auto& [connection, other] : rank_of_) {
        if (other != rank) send_(connection, type, rank, value);
    }
}

void Roster::end() {
    options_.open = false;
    for (const auto launcher : launchers_) send_(launcher, MessageType::over, 0, {});
}

// --- Launchers that join ---------------------------------------------------------------------------------------------

void Roster::enroll(std::uint64_t connection, const Message& message) {
    std::uint32_t first = 0;
    if (const auto why = assign(connection, message, first); !why.empty()) return refuse(connection, why);
    launchers_.insert(connection);
    base::Writer size;
    size.write(size_);
    send_(connection, MessageType::enrolled, first, size.view());
}

/// Why not; empty if it is done.
std::string Roster::assign(std::uint64_t launcher, const Message& message, std::uint32_t& first) {
    if (!options_.open) return "the job was not started as one that others may join, or it is ending";
    if (!message.bytes.empty()) {
        base::Reader in(message.bytes);
        first = in.read<std::uint32_t>();
        if (!in.done()) return "it asks in a way that is not understood";
        if (first >= size_) return fmt::format("there is no rank {} in a job of {}", first, size_);
        return claim(launcher, first);
    }
    if (message.id == 0 || message.id > most_ranks - size_) {
        return fmt::format("a job of {} cannot get {} more", size_, message.id);
    }
    first = size_;
    size_ += message.id;
    promise(first, message.id, launcher);
    for (const auto& [other, rank] : rank_of_) send_(other, MessageType::size, size_, {});
    for (const auto other : launchers_) send_(other, MessageType::size, size_, {});
    return {};
}

std::string Roster::claim(std::uint64_t launcher, std::uint32_t rank) {
    if (const auto promised = promise_of(rank); promised != promises_.end()) {
        return promised->second.launcher == launcher ? std::string() : fmt::format("rank {} is being started", rank);
    }
    // Of its own process a launcher may know before us that it has ended.
    const auto found = members_.find(rank);
    const bool there = found != members_.end() && found->second.standing == Standing::there;
    if (there && found->second.launcher != launcher) return fmt::format("rank {} is there", rank);
    promise(rank, 1, launcher);
    return {};
}

void Roster::ended(std::uint64_t launcher, std::uint32_t rank) {
    const auto promised = promise_of(rank);
    if (promised != promises_.end() && promised->second.launcher == launcher) take_from(promised, rank);
}

Roster::Promises::iterator Roster::promise_of(std::uint32_t rank) {
    const auto next = promises_.upper_bound(rank);
    if (next == promises_.begin()) return promises_.end();
    const auto found = std::prev(next);
    return rank < found->second.end ? found : promises_.end();
}

/// What is left of it are the ranks before and behind.
void Roster::take_from(Promises::iterator promise, std::uint32_t rank) {
    const auto [first, whole] = *promise;
    promises_.erase(promise);
    if (first < rank) promises_[first] = {rank, whole.launcher};
    if (rank + 1 < whole.end) promises_[rank + 1] = whole;
}

void Roster::refuse(std::uint64_t connection, std::string_view why) {
    send_(connection, MessageType::refused, 0, std::as_bytes(std::span(why)));
}

}  // namespace railmux::bootstrap
