#include "bootstrap/value_store.hpp"

namespace railmux::bootstrap {

void ValueStore::take(std::uint64_t connection, const Message& message) {
    if (message.type == MessageType::put) put(message.id, message.bytes);
    if (message.type == MessageType::get) get(connection, message.id);
    if (message.type == MessageType::leave) forget(connection);
}

void ValueStore::put(std::uint32_t id, const std::vector<std::byte>& value) {
    if (values_.size() >= most_values_ && !values_.contains(id)) return;
    values_[id] = value;
    const auto waiting = waiting_.extract(id);
    if (waiting.empty()) return;
    for (const auto connection : waiting.mapped()) answer_(connection, id, value);
}

void ValueStore::get(std::uint64_t connection, std::uint32_t id) {
    if (const auto found = values_.find(id); found != values_.end()) {
        answer_(connection, id, found->second);
    } else if (waiting_.size() < most_values_ || waiting_.contains(id)) {
        waiting_[id].insert(connection);
    }
}

void ValueStore::forget(std::uint64_t connection) {
    for (auto entry = waiting_.begin(); entry != waiting_.end();) {
        entry->second.erase(connection);
        entry = entry->second.empty() ? waiting_.erase(entry) : std::next(entry);
    }
}

}  // namespace railmux::bootstrap
