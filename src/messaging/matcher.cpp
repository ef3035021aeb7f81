#include "messaging/matcher.hpp"

namespace railmux::messaging {

namespace {
constexpr Tag full_mask = ~Tag{0};
}

Matcher::Matcher() : posted_(initial_buckets), unexpected_(initial_buckets) {}

template <typename Node>
void Matcher::Chain<Node>::push(Node& node) noexcept {
    node.next = nullptr;
    node.previous = tail;
    (tail == nullptr ? head : tail->next) = &node;
    tail = &node;
}

template <typename Node>
void Matcher::Chain<Node>::remove(Node& node) noexcept {
    (node.previous == nullptr ? head : node.previous->next) = node.next;
    (node.next == nullptr ? tail : node.next->previous) = node.previous;
}

std::size_t Matcher::hash(std::uint32_t peer, Tag tag) noexcept {
    // Fibonacci hashing; tags and peers are often small consecutive numbers, which it spreads evenly.
    const auto mixed = (tag ^ (std::uint64_t{peer} << 40)) * 0x9E3779B97F4A7C15ULL;
    return static_cast<std::size_t>(mixed >> 32);
}

template <typename Node>
Matcher::Chain<Node>& Matcher::chain_of(std::vector<Chain<Node>>& buckets, const Node& node) noexcept {
    return buckets[hash(node.peer, node.tag) & (buckets.size() - 1)];
}

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

void Matcher::post(Posted& receive) {
    receive.stamp = next_stamp_++;
    receive.listed = true;
    if (receive.mask != full_mask) {
        wild_.push(receive);
        return;
    }
    if (++posted_count_ > posted_.size()) grow(posted_);
    if (receive.peer == anybody) ++any_source_count_;
    chain_of(posted_, receive).push(receive);
}

template <typename Node>
Node* Matcher::find_in(const Chain<Node>& chain, std::uint32_t peer, Tag tag) noexcept {
    Node* node = chain.head;
    while (node != nullptr && (node->tag != tag || node->peer != peer)) node = node->next;
    return node;
}

Posted* Matcher::first_exact(std::uint32_t peer, Tag tag) const noexcept {
    return find_in(posted_[hash(peer, tag) & (posted_.size() - 1)], peer, tag);
}

Posted* Matcher::first_wild(std::uint32_t peer, Tag tag) const noexcept {
    for (Posted* node = wild_.head; node != nullptr; node = node->next) {
        if ((node->peer == anybody || node->peer == peer) && ((node->tag ^ tag) & node->mask) == 0) return node;
    }
    return nullptr;
}

Posted* Matcher::match(std::uint32_t peer, Tag tag) noexcept {
    if (wild_.head == nullptr && any_source_count_ == 0) {  // nothing to choose between
        auto& chain = posted_[hash(peer, tag) & (posted_.size() - 1)];
        Posted* only = find_in(chain, peer, tag);
        if (only != nullptr) unlist(*only, chain);
        return only;
    }
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

/// Of one that matches exactly.
void Matcher::unlist(Posted& receive, Chain<Posted>& chain) noexcept {
    receive.listed = false;
    --posted_count_;
    if (receive.peer == anybody) --any_source_count_;
    chain.remove(receive);
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
    if (++unexpected_count_ > unexpected_.size()) grow(unexpected_);
    message.listed = true;
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
    message.listed = false;
    chain_of(unexpected_, message).remove(message);
    (message.earlier == nullptr ? oldest_ : message.earlier->later) = message.later;
    (message.later == nullptr ? newest_ : message.later->earlier) = message.earlier;
}

}  // namespace railmux::messaging
