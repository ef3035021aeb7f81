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
    member = {Standing::there, connection, value};
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
    const auto& [standing, holder, value] = found->second;
    const auto answer = standing == Standing::left   ? MessageType::left
                        : standing == Standing::lost ? MessageType::lost
                                                     : MessageType::value;
    send_(connection, answer, rank, value);
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
    launchers_.erase(connection);
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
    if (const auto why = assign(message, first); !why.empty()) return refuse(connection, why);
    launchers_.insert(connection);
    base::Writer size;
    size.write(size_);
    send_(connection, MessageType::enrolled, first, size.view());
}

/// Why not; empty if it is done.
std::string Roster::assign(const Message& message, std::uint32_t& first) {
    if (!options_.open) return "the job was not started as one that others may join, or it is ending";
    if (!message.bytes.empty()) {
        base::Reader in(message.bytes);
        first = in.read<std::uint32_t>();
        if (!in.done()) return "it asks in a way that is not understood";
        if (first >= size_) return fmt::format("there is no rank {} in a job of {}", first, size_);
        const auto found = members_.find(first);
        const bool there = found != members_.end() && found->second.standing == Standing::there;
        return there ? fmt::format("rank {} is there", first) : std::string();
    }
    if (message.id == 0 || message.id > most_ranks - size_) {
        return fmt::format("a job of {} cannot get {} more", size_, message.id);
    }
    first = size_;
    size_ += message.id;
    for (const auto& [other, rank] : rank_of_) send_(other, MessageType::size, size_, {});
    for (const auto launcher : launchers_) send_(launcher, MessageType::size, size_, {});
    return {};
}

void Roster::refuse(std::uint64_t connection, std::string_view why) {
    send_(connection, MessageType::refused, 0, std::as_bytes(std::span(why)));
}

}  // namespace railmux::bootstrap
