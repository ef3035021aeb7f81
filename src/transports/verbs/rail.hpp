// verbs::Rail: the rail of one port: its listeners, its links (a queue pair each), one completion queue and one shared receive
// queue for all of them.
//
// Sending: post() copies each work into registered memory (or into the work request, where it is small), unless its memory is
// registered, and hands the works of a link to the device with one call. A frame is a send; a put is RDMA writes into the
// region at the other side, a get RDMA reads from there, copied from registered memory where it ends unless it is registered.
// Receiving: frames are lent out of the buffers of the shared receive queue, and posted again with the next poll.
// Threads: one engine at a time, as the contract says.
// Lifetime: closes all its connections. Members end in reverse order: what was made of a device before the device.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/thread_guard.hpp"
#include "transports/event_queue.hpp"
#include "transports/link_table.hpp"
#include "transports/transport.hpp"
#include "transports/verbs/address.hpp"
#include "transports/verbs/fabric.hpp"
#include "transports/verbs/link.hpp"
#include "transports/verbs/ports.hpp"
#include "transports/verbs/regions.hpp"
#include "transports/verbs/slabs.hpp"

namespace railmux::transports::verbs {

class Rail final : public transports::Rail {
public:
    /// A rail "verbs:<device>:<port>" that listens on the port's address. Throws Error.
    /// `bulk` is the parameter verbs.bulk.
    Rail(const Port& port, std::string_view bulk, base::Logger& log);
    ~Rail() override;

    [[nodiscard]] const RailTraits& traits() const noexcept override { return traits_; }
    [[nodiscard]] std::span<const std::byte> address() const noexcept override { return encoded_address_; }
    [[nodiscard]] Reachability reach(std::span<const std::byte> address) const override;

    [[nodiscard]] LinkId connect(std::span<const std::byte> address, std::span<const std::byte> hello) override;
    void accept(LinkId link, std::span<const std::byte> reply) override;
    void refuse(LinkId link, std::span<const std::byte> reply) override;
    void disconnect(LinkId link) override;
    [[nodiscard]] std::string describe(LinkId link) const override;

    [[nodiscard]] base::Result<Region> add_region(std::span<std::byte> memory, Access access) override;
    void drop_region(const Region& region) noexcept override;

    [[nodiscard]] std::size_t post(std::span<const Work> works) noexcept override;
    [[nodiscard]] bool send_short(LinkId link, std::span<std::byte> frame, bool slow) noexcept override;
    [[nodiscard]] std::size_t poll(std::span<Event> events) noexcept override;
    void look_everywhere() noexcept override { next_look_ = polls_; }
    [[nodiscard]] int arm() noexcept override;
    [[nodiscard]] Pulse pulse(LinkId link) noexcept override;

private:
    static constexpr std::uint16_t any_port = 0;
    static constexpr std::size_t chain_length = 32;    // work requests in one call
    static constexpr std::uint64_t look_period = 64;   // polls; a look at the event channels is two system calls
    static constexpr std::size_t bulk_slabs_max = 64;  // 4 MiB on their way on all links of the rail

    struct News {  // an event of the connection manager, without what it lends
        rdma_cm_event_type kind;
        int status = 0;
        rdma_cm_id* id = nullptr;
        rdma_cm_id* listener = nullptr;
        std::vector<std::byte> data;
    };
    struct Lent {
        LinkId link;
        std::uint32_t slab = no_slab;
    };

    // rail.cpp
    [[nodiscard]] CmId listen(std::uint16_t wanted);
    void set_address();
    void watch(int descriptor);
    Link& new_link(Phase phase, CmId connection);
    void end(Link& link, std::string_view cause, std::span<const std::byte> reply = {});
    void finish(Link& link);
    void hang_up(Link& link);
    void let_go(CmId connection);

    // connecting.cpp: until a link is up, and the end of it
    [[nodiscard]] LinkId refuse_to_connect(std::string_view cause);
    void resolve(Link& link, sockaddr_storage to);
    [[nodiscard]] bool make_queue(Link& link);
    [[nodiscard]] int make_room();
    [[nodiscard]] bool next_news(News& news);
    void take_news(News& news);
    void take_request(News& news);
    void send_request(Link& link);
    void established(Link& link, std::span<const std::byte> reply);

    // watching.cpp: what becomes of the port
    void take_device_news();
    void rail_down(std::string_view cause);
    void rail_gone(std::string_view cause);
    void settle_port();
    void judge_port();
    [[nodiscard]] bool listen_anew(const Port& now);

    // sending.cpp
    [[nodiscard]] bool has_room_for_short(const Link& link, std::size_t bytes) const noexcept;
    [[nodiscard]] bool add(Link& link, const Work& work) noexcept;
    [[nodiscard]] bool add_frame(Link& link, const Work& work, std::size_t bytes) noexcept;
    [[nodiscard]] bool add_put(Link& link, const Work& work, std::size_t bytes) noexcept;
    [[nodiscard]] bool add_get(Link& link, const Work& work, std::size_t bytes) noexcept;
    [[nodiscard]] bool has_room(Link& link, std::size_t requests, std::size_t slabs) noexcept;
    void write(Link& link, const RegionKey& remote, std::uint64_t to, const std::byte* data, std::size_t bytes,
               std::uint32_t key) noexcept;
    void read(Link& link, const RegionKey& remote, std::uint64_t from, std::byte* data, std::size_t bytes,
              std::uint32_t key) noexcept;
    ibv_send_wr& append(Link& link, RequestKind kind, const std::byte* data, std::size_t bytes,
                        std::uint32_t key) noexcept;
    bool flush(Link& link) noexcept;
    void refused_by_device(Link& link, int code) noexcept;
    [[nodiscard]] static std::uint64_t request_id(const Link& link) noexcept {
        return std::uint64_t{link.id.index} << 32 | link.next;
    }
    [[nodiscard]] bool grow(Slabs& slabs, std::size_t count, std::size_t needed) noexcept;
    void give_back(const Request& request) noexcept;
    void grant(Link& link) noexcept;
    void grant_all() noexcept;

    // receiving.cpp
    void take_back() noexcept;
    void look() noexcept;
    void take_completions(Batch& batch) noexcept;
    [[nodiscard]] bool more_completions() noexcept;
    [[nodiscard]] Link* link_of(std::uint32_t queue) noexcept;
    [[nodiscard]] bool take_frame(const ibv_wc& completion, Batch& batch) noexcept;
    [[nodiscard]] bool take_receive(const ibv_wc& completion, Batch& batch) noexcept;
    void take_send(const ibv_wc& completion) noexcept;
    void complete(Link& link, Request& request, WorkStatus status) noexcept;
    void found_room() noexcept { room_ = room_ || std::exchange(refused_, false); }
    void post_receives() noexcept;

    RailTraits traits_;
    Port port_;
    base::Logger& log_;
    RailAddress address_;
    std::vector<std::byte> encoded_address_;
    bool down_ = false;       // nothing is connected
    bool gone_ = false;       // for good: nothing is asked of the device any more
    bool moved_ = false;      // what the listeners are bound to is no longer the port's
    bool look_owed_ = false;  // there were news of the port
    std::string down_cause_;  // of a rail_down that waits for the last link_down

    base::FileDescriptor epoll_;
    Device device_;  // for news of the port; links live in the connection manager's own context of the device
    CmChannel channel_;
    CmId full_listener_;
    CmId short_listener_;
    ProtectionDomain domain_;
    CompletionChannel wakeups_;
    CompletionQueue completions_;
    std::uint32_t most_completions_ = 0;  // that a queue of this device holds
    Slabs send_slabs_;
    Slabs bulk_slabs_;
    Slabs receive_slabs_;
    SharedReceiveQueue receives_;
    std::uint32_t queues_ = 0;      // queue pairs there are
    std::uint32_t queues_max_ = 0;  // whose buffers the shared receive queue has room for
    std::uint32_t posted_ = 0;      // receives
    Regions regions_;

    LinkTable<Link> links_;
    std::vector<CmId> let_go_;  // that could not be ended yet
    std::unordered_map<std::uint32_t, LinkId> by_queue_;
    struct Recent {
        std::uint32_t queue = 0;
        Link* link = nullptr;
    };
    Recent recent_;                 // of by_queue_, looked up last
    std::vector<LinkId> granting_;  // links that owe credits

    EventQueue events_;
    std::vector<Lent> lent_slabs_;  // frames handed out

    std::array<ibv_wc, 32> found_;  // completions, from found_at_ to found_end_ not looked at
    std::size_t found_at_ = 0;
    std::size_t found_end_ = 0;
    bool armed_ = false;
    bool refused_ = false;  // something, by post
    bool room_ = false;     // came since, perhaps without an event that would tell
    std::uint64_t polls_ = 0;
    std::uint64_t next_look_ = 0;

    // Work requests that are to go to the device together.
    std::array<ibv_send_wr, chain_length> chain_;
    std::array<ibv_sge, chain_length> pieces_;
    std::array<std::array<std::byte, inline_bytes>, chain_length> small_;
    std::size_t chained_ = 0;
    ibv_send_wr short_{};  // what send_short posts: but for number, place and credits always the same
    ibv_sge short_piece_{};
    base::ThreadGuard guard_;
};

}  // namespace railmux::transports::verbs
