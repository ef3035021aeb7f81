// Matcher: finds the receive for a message and the message for a receive, in the order MPI asks for: receives match in the
// order they were posted, messages of one sender in the order they were sent.
//
// Receives and messages whose tag is fully given are hashed by (peer, tag); a receive from any source is hashed under the
// peer "anybody". Only receives with a partial tag mask are searched one by one. So an expected message costs two
// look-ups, however many receives are posted.
// Threads: one engine at a time.
// Lifetime: links nodes owned by others; a node must be taken out before it is destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <railmux/message.hpp>

#include "base/in_line.hpp"

namespace railmux::messaging {

inline constexpr std::uint32_t anybody = ~std::uint32_t{0};  // as the peer of a receive

struct Operation;

/// A receive waiting for its message. Part of an Operation.
struct Posted {
    Operation* operation = nullptr;
    Posted* next = nullptr;
    Posted* previous = nullptr;
    std::uint64_t stamp = 0;  // order of posting
    Tag tag = 0;
    Tag mask = ~Tag{0};
    std::uint32_t peer = anybody;
    bool listed = false;
};

/// A message waiting for its receive. The base of Arrived.
struct Unexpected {
    Unexpected* next = nullptr;  // in the hash chain
    Unexpected* previous = nullptr;
    Unexpected* later = nullptr;  // in the order of arrival
    Unexpected* earlier = nullptr;
    Tag tag = 0;
    std::uint32_t peer = 0;
};

class Matcher {
public:
    Matcher();

    void post(Posted& receive);
    /// The receive that a message of `peer` with `tag` matches, taken out; nullptr if none.
    [[nodiscard]] Posted* match(std::uint32_t peer, Tag tag) noexcept;
    void withdraw(Posted& receive) noexcept;

    void add(Unexpected& message);
    /// The first message that a receive would match; it stays.
    [[nodiscard]] Unexpected* find(std::uint32_t peer, TagMatch match) const noexcept;
    void take(Unexpected& message) noexcept;

    /// Receives that name `peer`, one after the other, each taken out; nullptr when there is none.
    [[nodiscard]] Posted* withdraw_any_of(std::uint32_t peer) noexcept;
    [[nodiscard]] bool any_unexpected() const noexcept { return oldest_ != nullptr; }
    /// The first message in order of arrival; nullptr if there is none.
    [[nodiscard]] Unexpected* first() const noexcept { return oldest_; }

private:
    template <typename Node>
    struct Chain {
        Node* head = nullptr;
        Node* tail = nullptr;

        void push(Node& node) noexcept;
        void remove(Node& node) noexcept;
    };

    static constexpr Tag full_mask = ~Tag{0};
    static constexpr std::size_t initial_buckets = 64;

    [[nodiscard]] static std::size_t hash(std::uint32_t peer, Tag tag) noexcept;
    template <typename Node>
    [[nodiscard]] static Chain<Node>& chain_of(std::vector<Chain<Node>>& buckets, const Node& node) noexcept;
    template <typename Node>
    static void grow(std::vector<Chain<Node>>& buckets);
    template <typename Node>
    [[nodiscard]] static Node* find_in(const Chain<Node>& chain, std::uint32_t peer, Tag tag) noexcept;
    void unlist(Posted& receive, Chain<Posted>& chain) noexcept;
    [[nodiscard]] Posted* choose(std::uint32_t peer, Tag tag) noexcept;
    [[nodiscard]] Posted* first_exact(std::uint32_t peer, Tag tag) const noexcept;
    [[nodiscard]] Posted* first_wild(std::uint32_t peer, Tag tag) const noexcept;

    std::vector<Chain<Posted>> posted_;
    std::size_t posted_count_ = 0;
    std::size_t any_source_count_ = 0;  // of those: from anybody
    Chain<Posted> wild_;                // partial tag masks
    std::uint64_t next_stamp_ = 0;

    std::vector<Chain<Unexpected>> unexpected_;
    std::size_t unexpected_count_ = 0;
    Unexpected* oldest_ = nullptr;
    Unexpected* newest_ = nullptr;
};

template <typename Node>
inline void Matcher::Chain<Node>::push(Node& node) noexcept {
    node.next = nullptr;
    node.previous = tail;
    (tail == nullptr ? head : tail->next) = &node;
    tail = &node;
}

template <typename Node>
inline void Matcher::Chain<Node>::remove(Node& node) noexcept {
    (node.previous == nullptr ? head : node.previous->next) = node.next;
    (node.next == nullptr ? tail : node.next->previous) = node.previous;
}

inline std::size_t Matcher::hash(std::uint32_t peer, Tag tag) noexcept {
    // Fibonacci hashing; tags and peers are often small consecutive numbers, which it spreads evenly.
    const auto mixed = (tag ^ (std::uint64_t{peer} << 40)) * 0x9E3779B97F4A7C15ULL;
    return static_cast<std::size_t>(mixed >> 32);
}

template <typename Node>
inline Matcher::Chain<Node>& Matcher::chain_of(std::vector<Chain<Node>>& buckets, const Node& node) noexcept {
    return buckets[hash(node.peer, node.tag) & (buckets.size() - 1)];
}

RAILMUX_IN_LINE void Matcher::post(Posted& receive) {
    receive.stamp = next_stamp_++;
    receive.listed = true;
    if (receive.mask != full_mask) [[unlikely]] {
        wild_.push(receive);
        return;
    }
    if (++posted_count_ > posted_.size()) [[unlikely]]
        grow(posted_);
    if (receive.peer == anybody) ++any_source_count_;
    chain_of(posted_, receive).push(receive);
}

template <typename Node>
inline Node* Matcher::find_in(const Chain<Node>& chain, std::uint32_t peer, Tag tag) noexcept {
    Node* node = chain.head;
    while (node != nullptr && (node->tag != tag || node->peer != peer)) node = node->next;
    return node;
}

RAILMUX_IN_LINE Posted* Matcher::match(std::uint32_t peer, Tag tag) noexcept {
    if (wild_.head == nullptr && any_source_count_ == 0) [[likely]] {  // nothing to choose between
        auto& chain = posted_[hash(peer, tag) & (posted_.size() - 1)];
        Posted* only = find_in(chain, peer, tag);
        if (only != nullptr) unlist(*only, chain);
        return only;
    }
    return choose(peer, tag);
}

/// Of one that matches exactly.
inline void Matcher::unlist(Posted& receive, Chain<Posted>& chain) noexcept {
    receive.listed = false;
    --posted_count_;
    if (receive.peer == anybody) --any_source_count_;
    chain.remove(receive);
}

}  // namespace railmux::messaging
