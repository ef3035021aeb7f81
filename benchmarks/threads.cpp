// The threads of threads.hpp over railmux.
#include "threads.hpp"

#include <railmux/context.hpp>

namespace {

class Messages {
public:
    Messages() : context_(shared()), self_(context_.peer(context_.rank())) {}

    class Thread {
    public:
        Thread(railmux::Context& context, railmux::Peer self, railmux::Tag tag)
            : context_(&context), self_(self), tag_(tag) {}
        void start_send(std::span<std::byte> data) { requests_.push_back(context_->isend(self_, tag_, data)); }
        void start_receive(std::span<std::byte> data) { requests_.push_back(context_->irecv(self_, tag_, data)); }
        void wait() {
            context_->wait_all(requests_);
            requests_.clear();
        }

    private:
        railmux::Context* context_;
        railmux::Peer self_;
        railmux::Tag tag_;
        std::vector<railmux::Request> requests_;
    };
    [[nodiscard]] Thread thread(unsigned index) { return {context_, self_, index}; }

private:
    static railmux::Config shared() {
        auto config = railmux::Config::load();
        config.set("thread_level", "multiple");
        return config;
    }

    railmux::Context context_;
    railmux::Peer self_;
};

}  // namespace

int main(int count, char** arguments) {
    const auto options = threads::parse(count, arguments);
    Messages messages;
    threads::run(messages, options);
    return 0;
}
