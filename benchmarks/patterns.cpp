// The patterns of patterns.hpp over railmux. To be run as `railmux run -n N patterns PATTERN ITERATIONS [BYTES [WINDOW]]`.
#include "patterns.hpp"

#include <railmux/context.hpp>

namespace {

constexpr railmux::Tag tag = 1;

class Messages {
public:
    Messages() {
        for (std::uint32_t i = 0; i < context_.size(); ++i) peers_.push_back(context_.peer(i));
    }
    [[nodiscard]] std::uint32_t rank() const { return context_.rank(); }
    [[nodiscard]] std::uint32_t size() const { return context_.size(); }

    void start_send(std::uint32_t to, std::span<std::byte> data) {
        requests_.push_back(context_.isend(peers_[to], tag, data));
    }
    void start_receive(std::uint32_t from, std::span<std::byte> data) {
        requests_.push_back(context_.irecv(peers_[from], tag, data));
    }
    void wait() {
        context_.wait_all(requests_);
        requests_.clear();
    }
    void send(std::uint32_t to, std::span<std::byte> data) { context_.send(peers_[to], tag, data); }
    void receive(std::uint32_t from, std::span<std::byte> data) { context_.recv(peers_[from], tag, data); }

private:
    railmux::Context context_;
    std::vector<railmux::Peer> peers_;
    std::vector<railmux::Request> requests_;
};

}  // namespace

int main(int count, char** arguments) {
    const auto options = patterns::parse(count, arguments);
    Messages messages;
    return patterns::Process(messages, options).run();
}
