// ofi::Rail: the rail of one domain of a libfabric provider: one reliable-datagram endpoint, one completion queue, and links,
// which are agreements with other such endpoints.
//
// Sending: post() copies each work into a buffer, or hands it over at once where it is small enough for that (fi_inject). A
// put is messages that name their place, and the receiver copies from them: no fabric key is ever given out (docs/ofi.md).
// Receiving: frames are lent out of the receive buffers, in the order in which each link sent them.
// An endpoint that fails is closed and opened anew (Reopening): the rail is down meanwhile, and has another address then. One
// that cannot be closed fades (Fading), and so does one in whose way something stands for good (Obstruction).
// Threads: one engine at a time, as the contract says.
// Lifetime: tells the other sides of its links that it goes.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/looked_time.hpp"
#include "base/thread_guard.hpp"
#include "transports/event_queue.hpp"
#include "transports/link_table.hpp"
#include "transports/ofi/address.hpp"
#include "transports/ofi/endpoint.hpp"
#include "transports/ofi/fading.hpp"
#include "transports/ofi/link.hpp"
#include "transports/ofi/obstruction.hpp"
#include "transports/ofi/processes.hpp"
#include "transports/ofi/reopening.hpp"
#include "transports/ofi/wire.hpp"
#include "transports/regions.hpp"
#include "transports/transport.hpp"

namespace railmux::transports::ofi {

class Rail final : public transports::Rail {
public:
    /// What the rails of one transport share.
    struct Common {
        std::uint64_t owner = 0;  // random
        base::Nanoseconds hello_limit = 0;
        std::vector<Port> outliving;  // endpoints that no rail has any more (Port::outlives_rail)
    };

    /// The rail `name` of an endpoint. A hello that is not heard within the limit ends its link: providers may try
    /// for good to reach an endpoint that is no more. `open` makes another port like that one. Throws Error.
    Rail(std::string name, Port port, Reopening::Open open, Common& common, base::Logger& log);
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
    [[nodiscard]] int arm() noexcept override;

private:
    static constexpr std::size_t inject_most = 256;  // larger frames are not faster without a buffer
    static constexpr std::size_t greetings_room = 64;
    static constexpr std::size_t all_there_are = ~std::size_t{0};
    static constexpr std::size_t quiet_most = inject_most - Header::size;
    static constexpr std::uint32_t most_requests = 256;  // links that wait for accept or refuse
    // Another thread of the provider may be about to tell it, but not for so long.
    static constexpr base::Nanoseconds untold_limit = base::second;
    // Without a buffer, while none comes back from those that are no more: by then it would have from any other provider.
    static constexpr base::Nanoseconds stranded_limit = 10 * base::second;
    static constexpr std::size_t most_kept = 16;  // endpoints that outlive their use, of 16 MiB each

    struct Greeting {  // a message about a link, which the provider has not taken yet
        Peer* peer = nullptr;
        LinkId link;
        bool hello = false;
        base::Nanoseconds patience = 0;
        std::vector<std::byte> bytes;
    };
    enum class Sent : std::uint8_t { yes, not_now, failed };

    // rail.cpp
    Link& new_link(Phase phase, Peer* peer);
    [[nodiscard]] Link* find(const LinkName& name) noexcept;
    void end(Link& link, std::string_view cause, std::span<const std::byte> reply = {},
             ErrorCode code = ErrorCode::unreachable);
    void end_all(const Peer& peer, std::string_view cause);
    void rail_down(std::string_view cause);
    void part();
    void use_endpoint();
    void come_back() noexcept;
    void let_go() noexcept;

    // connecting.cpp: until a link is up, and its end
    [[nodiscard]] LinkId refuse_to_connect(std::string_view cause);
    void greet(Peer& peer, LinkId link, std::vector<std::byte> bytes, bool hello = false);
    [[nodiscard]] static std::vector<std::byte> bye_of(const Link& link);
    void say_bye(const Link& link);
    [[nodiscard]] Sent send_greeting(const Greeting& greeting) noexcept;
    void send_greetings() noexcept;
    void lose_patience() noexcept;
    void take_hello(std::span<const std::byte> body);
    void take_answer(const Header& header, std::span<const std::byte> body);
    void take_bye(const Header& header, std::span<const std::byte> body);

    // sending.cpp
    [[nodiscard]] Sent send(Link& link, const Work& work) noexcept;
    [[nodiscard]] Sent send_frame(Link& link, const Work& work) noexcept;
    [[nodiscard]] Sent send_pieces(Link& link) noexcept;
    [[nodiscard]] Sent send_message(Link& link, Kind kind, const PutHeader* put, std::uint8_t flags, Source& source,
                                    std::size_t bytes) noexcept;
    void go_on_with_puts() noexcept;
    void fail(Link& link, ssize_t code);
    void look_for_stranded() noexcept;
    void look_for_obstruction() noexcept;

    // receiving.cpp
    void give_up_earliest();
    void take_back() noexcept;
    void hand_out(Batch& batch) noexcept;
    void take_completions(Batch& batch) noexcept;
    [[nodiscard]] bool more_completions() noexcept;
    void take_completion(const fi_cq_data_entry& completion, Batch& batch) noexcept;
    [[nodiscard]] bool take_error() noexcept;
    void sent(SendBuffer& buffer) noexcept;
    void take_message(ReceiveBuffer& buffer, std::span<const std::byte> bytes, Batch& batch) noexcept;
    void keep_early(Link& link, const Early& early);
    void deliver(Link& link, const Early& message, Batch& batch) noexcept;
    void deliver_early(Batch& batch) noexcept;
    void place(Link& link, const Early& message, Batch& batch) noexcept;

    RailTraits traits_;
    base::Logger& log_;
    Common& common_;
    std::unique_ptr<Endpoint> endpoint_;  // nullptr while it is opened anew
    Reopening reopening_;
    Fading fading_;
    base::FileDescriptor awake_;  // readable when the endpoint's descriptor or that of reopening_ is
    RailAddress address_;
    std::vector<std::byte> encoded_address_;
    std::size_t inject_bytes_ = 0;
    std::size_t most_on_their_way_ = 0;  // messages that the endpoint may have; greetings come on top
    bool down_ = false;
    bool obstructed_ = false;     // why it is down: nothing that failed, and would fail again
    bool unlike_before_ = false;  // what was opened anew last

    RegionTable regions_;
    LinkTable<Link> links_;
    std::uint32_t requests_ = 0;

    std::deque<Greeting> greetings_;
    std::vector<LinkId> impatient_;    // links whose hello has not been heard
    base::LookedTime patience_spent_;  // by those two
    std::vector<LinkId> putting_;      // links with an open put
    std::vector<LinkId> ready_;        // links with early messages whose turn has come

    EventQueue events_;
    std::vector<ReceiveBuffer*> lent_views_;  // of frames handed out

    std::array<fi_cq_data_entry, 32> found_;  // completions, from found_at_ to found_end_ not looked at
    std::size_t found_at_ = 0;
    std::size_t found_end_ = 0;
    bool all_read_ = false;               // the provider had no more, when asked last
    std::vector<Bye> byes_;               // to be said over the endpoint that is left
    base::Nanoseconds untold_since_ = 0;  // an error that the provider has not told; 0: there is none
    std::vector<LinkId> refused_;         // links whose last work was refused, at least
    std::size_t starved_bytes_ = 0;       // of a message for which there was no buffer since the last look
    base::Nanoseconds next_look_for_stranded_ = 0;
    base::Nanoseconds stranded_since_ = 0;
    Obstruction obstruction_;
    base::Nanoseconds next_look_for_obstruction_ = 0;
    std::uint64_t numbered_ = 0;  // of messages that are told of in order
    Processes processes_;
    bool moved_ = false;  // pieces of puts, in this poll
    bool room_ = false;   // came since for one of them or an open put, perhaps without an event that would tell
    base::ThreadGuard guard_;
};

}  // namespace railmux::transports::ofi
