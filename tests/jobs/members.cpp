// Processes of a job that changes: each plays ball with every other one that is there, and checks each message: whose it is,
// what is in it, and that none is missing between two processes that both live on.
//
//   railmux run --name JOB -n 4 job_members FOLDER
//
// FOLDER/RANK.PID gets a line "PEER PID" when the two have heard of each other, and "lost PEER PID" when that one is lost (0:
// nothing had come of it yet). A process leaves when FOLDER/leave.RANK is there, and all do when FOLDER/leave is.
#include <railmux/context.hpp>

#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr railmux::Tag tag = 1;
constexpr std::size_t largest = 24 * 1024;  // words: by rendezvous, over all rails

/// The first words of a message; those that follow depend on the first three.
struct Head {
    std::uint64_t rank, process, number;
    std::uint64_t heard_process;  // the process of yours whose message this answers; 0: none
};
constexpr std::size_t head_words = sizeof(Head) / sizeof(std::uint64_t);
using Words = std::vector<std::uint64_t>;

std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

std::uint64_t word(const Head& head, std::size_t place) {
    return mixed(head.rank * 0x9e3779b97f4a7c15ULL + mixed(head.process + mixed(head.number) + place));
}

std::size_t words_of(std::uint64_t number) { return number % 8 == 7 ? largest : head_words + mixed(number) % 100; }

class Member {
public:
    explicit Member(std::filesystem::path folder) : folder_(std::move(folder)), own_(::getpid()) {
        log_.open(folder_ / (std::to_string(context_.rank()) + "." + std::to_string(own_)));
        context_.on_peer_joined([this](const railmux::PeerEvent& event) { serve_.push_back(event.peer); });
        context_.on_peer_left([this](const railmux::PeerEvent& event) { others_[event.peer.index()] = {}; });
        context_.on_peer_lost([this](const railmux::PeerEvent& event) {
            others_[event.peer.index()] = {};
            const auto process = std::exchange(newest_[event.peer.index()], 0);
            gone_[event.peer.index()] = process;
            log_ << "lost " << *context_.rank(event.peer) << ' ' << process << std::endl;
        });
        for (std::uint32_t rank = 0; rank < context_.size(); ++rank) {
            if (rank != context_.rank()) serve_.push_back(context_.peer(rank));
        }
        receive();
    }

    void play() {
        while (!told_to_leave()) {
            for (const auto peer : std::exchange(serve_, {})) send(peer, 0);
            if (const auto status = context_.test(receive_)) {
                take(*status);
                receive();
            } else if (context_.arm()) {
                pollfd wait{context_.event_fd(), POLLIN, 0};
                ::poll(&wait, 1, 20);
            }
            forget_sent();
        }
        context_.leave();
    }

private:
    struct Other {
        std::uint64_t sent = 0;
        std::uint64_t process = 0;  // heard of; 0: none
        std::uint64_t heard = 0;    // its last message
        bool known = false;         // it has heard of us, too
    };
    struct Sent {
        Words words;
        railmux::Request request;
    };

    [[nodiscard]] bool told_to_leave() const {
        return std::filesystem::exists(folder_ / "leave") ||
               std::filesystem::exists(folder_ / ("leave." + std::to_string(context_.rank())));
    }

    void receive() { receive_ = context_.irecv(railmux::any_source, tag, std::as_writable_bytes(std::span(room_))); }

    void send(railmux::Peer to, std::uint64_t answers) {
        const Head head{context_.rank(), own_, ++others_[to.index()].sent, answers};
        auto& sent = sent_.emplace_back();
        sent.words.resize(words_of(head.number));
        std::memcpy(sent.words.data(), &head, sizeof head);
        for (std::size_t i = head_words; i < sent.words.size(); ++i) sent.words[i] = word(head, i);
        sent.request = context_.isend(to, tag, std::as_bytes(std::span(sent.words)));
    }

    /// What goes to a process that ends is lost with it; what it sends next it begins anew.
    static bool harmless(railmux::ErrorCode code) {
        return code == railmux::ErrorCode::ok || code == railmux::ErrorCode::peer_lost ||
               code == railmux::ErrorCode::peer_left;
    }

    void forget_sent() {
        for (auto sent = sent_.begin(); sent != sent_.end();) {
            const auto status = context_.test(sent->request);
            if (status && !harmless(status->code)) {
                throw railmux::Error(
                    status->code,
                    "a message to " + context_.name(status->peer) + " failed: " + std::string(to_string(status->code)),
                    context_.failure(status->peer));
            }
            sent = status ? sent_.erase(sent) : std::next(sent);
        }
    }

    void take(const railmux::Status& status) {
        auto& other = others_[status.peer.index()];
        if (!status.ok() && harmless(status.code)) {
            other.process = 0;  // a message that was announced and did not come; shorter ones behind it may have
            return;
        }
        Head head{};
        std::memcpy(&head, room_.data(), sizeof head);
        check(status, head);
        if (head.process == gone_[status.peer.index()]) return;  // it had come when its sender was given up
        if (other.process != head.process) other.known = false;
        other.process = newest_[status.peer.index()] = head.process;
        other.heard = head.number;
        if (!other.known && head.heard_process == own_) {
            other.known = true;
            log_ << head.rank << ' ' << head.process << std::endl;
        }
        send(status.peer, head.process);
    }

    void check(const railmux::Status& status, const Head& head) {
        const auto complain = [&](const std::string& what) {
            throw railmux::Error(railmux::ErrorCode::protocol, "message " + std::to_string(head.number) + " of " +
                                                                   context_.name(status.peer) + " " + what);
        };
        if (!status.ok()) complain("failed: " + std::string(to_string(status.code)));
        if (status.bytes < sizeof head || context_.rank(status.peer) != head.rank) complain("is another's");
        if (status.bytes != words_of(head.number) * sizeof(std::uint64_t)) complain("has another length");
        for (std::size_t i = head_words; i < status.bytes / sizeof(std::uint64_t); ++i) {
            if (room_[i] != word(head, i)) complain("is damaged");
        }
        const auto& other = others_[status.peer.index()];
        if (other.process == head.process && other.heard + 1 != head.number) {
            complain("comes after " + std::to_string(other.heard));
        }
    }

    railmux::Context context_;
    std::filesystem::path folder_;
    std::uint64_t own_;
    std::ofstream log_;
    std::vector<railmux::Peer> serve_;  // who is to get a first ball
    std::map<std::uint32_t, Other> others_;
    std::map<std::uint32_t, std::uint64_t> newest_;  // the process of each that was heard of last; 0: lost since
    std::map<std::uint32_t, std::uint64_t> gone_;    // the process of each that was lost last
    std::list<Sent> sent_;
    Words room_ = Words(largest);
    railmux::Request receive_;
};

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc != 2) return 2;
        Member(argv[1]).play();
        return 0;
    } catch (const railmux::Error& error) {
        std::cerr << error.what() << '\n' << error.cure() << '\n';
        return 1;
    }
}
