// A program whose loop is Boost.Asio's: railmux is one more descriptor there.
//
//   railmux run -n 2 example_asio_loop
//
// Rank 0 asks every 2 ms, by an Asio timer; the others answer.
#include <railmux/context.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <iostream>

#include "example.hpp"

namespace asio = boost::asio;

namespace {

constexpr railmux::Tag question_tag = 1;
constexpr railmux::Tag answer_tag = 2;
constexpr std::uint32_t questions = 20;

/// Keeps a context going in an Asio loop, until stop(). Everything else may then be done by callbacks.
class Driver {
public:
    Driver(asio::io_context& loop, railmux::Context& context) : context_(context), ready_(loop, context.event_fd()) {}
    ~Driver() { ready_.release(); }  // the descriptor is the context's
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;

    void run() {
        while (!stopped_ && !context_.arm()) continue;  // callbacks run in there
        if (stopped_) return;
        ready_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
            if (!error) run();
        });
    }
    void stop() {
        stopped_ = true;
        ready_.cancel();
    }
    /// Ends the loop if the operation failed. (Callbacks must not throw.)
    [[nodiscard]] bool succeeded(const railmux::Status& status) {
        if (status.ok()) return true;
        std::cerr << "no answer: " << to_string(status.code) << '\n' << context_.failure(status.peer);
        failed_ = true;
        stop();
        return false;
    }
    [[nodiscard]] bool failed() const { return failed_; }

private:
    railmux::Context& context_;
    asio::posix::stream_descriptor ready_;
    bool stopped_ = false;
    bool failed_ = false;
};

class Asker {
public:
    Asker(asio::io_context& loop, railmux::Context& context, Driver& driver)
        : timer_(loop), context_(context), driver_(driver) {}
    void ask() {
        question_[0] = std::byte{asked_ + 1 == questions};  // the last one says so
        receiving_ = context_.irecv(context_.peer(1), answer_tag, answer_, [this](const railmux::Status& status) {
            if (!driver_.succeeded(status)) return;
            if (++asked_ == questions) {
                std::cout << asked_ << " questions were answered\n";
                driver_.stop();
                return;
            }
            timer_.expires_after(std::chrono::milliseconds(2));
            timer_.async_wait([this](const boost::system::error_code& error) {
                if (!error) ask();
            });
        });
        // From outside of the driver: it notices, because such a call makes the descriptor readable.
        sending_ = context_.isend(context_.peer(1), question_tag, question_);
    }

private:
    asio::steady_timer timer_;
    railmux::Context& context_;
    Driver& driver_;
    std::array<std::byte, 8> question_{};
    std::array<std::byte, 8> answer_{};
    railmux::Request receiving_;
    railmux::Request sending_;
    std::uint32_t asked_ = 0;
};

class Answerer {
public:
    Answerer(railmux::Context& context, Driver& driver) : context_(context), driver_(driver) {}
    void listen() {
        receiving_ = context_.irecv(context_.peer(0), question_tag, question_, [this](const railmux::Status& status) {
            if (!driver_.succeeded(status)) return;
            sending_ = context_.isend(status.peer, answer_tag, question_);
            if (question_[0] != std::byte{}) {
                driver_.stop();
            } else {
                listen();
            }
        });
    }

private:
    railmux::Context& context_;
    Driver& driver_;
    std::array<std::byte, 8> question_{};
    railmux::Request receiving_;
    railmux::Request sending_;
};

int run(railmux::Context& context) {
    if (context.size() != 2) {
        std::cerr << "usage: railmux run -n 2 example_asio_loop\n";
        return 2;
    }
    asio::io_context loop;
    Driver driver(loop, context);
    Asker asker(loop, context, driver);
    Answerer answerer(context, driver);
    if (context.rank() == 0) asker.ask();
    if (context.rank() == 1) answerer.listen();
    driver.run();
    loop.run();
    return driver.failed() ? 1 : 0;
}

}  // namespace

int main() { return run_example(run); }
