#include "messaging/matcher.hpp"

namespace railmux::messaging {

Matcher::Matcher() : posted_(initial_buckets), unexpected_(initial_buckets) {}

template <typename Node>
void Matcher::grow(std::vector<Chain<Node>>& buckets) {
    std::vector<Chain<Node>> larger(buckets.size() * 2);
    for (auto& chain : buckets) {
        for (Node* node = chain.head; node != nullptr;) {
            Node* next = node->next;
            chain_of(larger, *node).push(*node);  // a chain keeps its order, and so does each part of it
            node = next;
        }
    }
    buckets = std::move(larger);
}

template void Matcher::grow(std::vector<Chain<Posted>>&);

Posted* Matcher::first_exact(std::uint32_t peer, Tag tag) const noexcept {
    return find_in(posted_[hash(peer, tag) & (posted_.size() - 1)], peer, tag);
}

Posted* Matcher::first_wild(std::uint32_t peer, Tag tag) const noexcept {
    for (Posted* node = wild_.head; node != nullptr; node = node->next) {
        if ((node->peer == anybody || node->peer == peer) && ((node->tag ^ tag) & node->mask) == 0) return node;
    }
    return nullptr;
}

/// The first posted of all that match.
Posted* Matcher::choose(std::uint32_t peer, Tag tag) noexcept {
    Posted* best = posted_count_ > any_source_count_ ? first_exact(peer, tag) : nullptr;
    const auto consider = [&best](Posted* other) {
        if (other != nullptr && (best == nullptr || other->stamp < best->stamp)) best = other;
    };
    if (any_source_count_ > 0) consider(first_exact(anybody, tag));
    if (wild_.head != nullptr) consider(first_wild(peer, tag));
    if (best != nullptr) withdraw(*best);
    return best;
}

void Matcher::withdraw(Posted& receive) noexcept {
    if (receive.mask == full_mask) return unlist(receive, chain_of(posted_, receive));
    receive.listed = false;
    wild_.remove(receive);
}

Posted* Matcher::withdraw_any_of(std::uint32_t peer) noexcept {
    const auto search = [&](Chain<Posted>& chain) -> Posted* {
        Posted* node = chain.head;
        while (node != nullptr && node->peer != peer) node = node->next;
        if (node != nullptr) withdraw(*node);
        return node;
    };
    if (Posted* node = search(wild_); node != nullptr) return node;
    for (auto& chain : posted_) {
        if (Posted* node = search(chain); node != nullptr) return node;
    }
    return nullptr;
}

void Matcher::add(Unexpected& message) {
    if (unexpected_count_ + 1 > unexpected_.size()) grow(unexpected_);
    ++unexpected_count_;
    chain_of(unexpected_, message).push(message);
    message.later = nullptr;
    message.earlier = newest_;
    (newest_ == nullptr ? oldest_ : newest_->later) = &message;
    newest_ = &message;
}

Unexpected* Matcher::find(std::uint32_t peer, TagMatch match) const noexcept {
    if (peer != anybody && match.mask == full_mask) {
        return find_in(unexpected_[hash(peer, match.tag) & (unexpected_.size() - 1)], peer, match.tag);
    }
    for (Unexpected* node = oldest_; node != nullptr; node = node->later) {
        if ((peer == anybody || node->peer == peer) && match.accepts(node->tag)) return node;
    }
    return nullptr;
}

void Matcher::take(Unexpected& message) noexcept {
    --unexpected_count_;
    chain_of(unexpected_, message).remove(message);
    (message.earlier == nullptr ? oldest_ : message.earlier->later) = message.later;
    (message.later == nullptr ? newest_ : message.later->earlier) = message.earlier;
}

}  // namespace railmux::messaging
