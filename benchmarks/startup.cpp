// What starting costs: making a context, and the first message to a new peer, connecting included.
//
//   startup                                 time to make a context without peers
//   startup --listen PORT                   answers one message
//   startup --connect HOST:PORT             time from isend to the answer, halved: the first message there
//   startup --listen PORT 2                 answers two
//   startup --connect HOST:PORT MICROSECONDS
//                                           ... and from the second isend to its answer, so long after the first one was here:
//                                           whatever is measured of a link that has come up is under way then; and how often
//                                           either process had to make way for another one meanwhile
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include <railmux/context.hpp>

using Clock = std::chrono::steady_clock;

static double milliseconds(Clock::time_point since) {
    return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

static long evictions() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return used.ru_nivcsw;
}

static std::span<std::byte> bytes_of(long& number) { return std::as_writable_bytes(std::span(&number, 1)); }

/// `evicted`: how often the other side has been, so far.
static double there_and_back(railmux::Context& context, railmux::Peer peer, long& evicted) {
    long data = 0;
    const auto begun = Clock::now();
    auto answer = context.irecv(peer, 2, bytes_of(evicted));
    context.send(peer, 1, bytes_of(data));
    context.wait(answer);
    return milliseconds(begun);
}

static void answer(railmux::Context& context, railmux::Peer peer) {
    long data = 0;
    context.recv(peer, 1, bytes_of(data));
    data = evictions();
    context.send(peer, 2, bytes_of(data));
}

int main(int count, char** arguments) {
    const std::string mode = count > 2 ? arguments[1] : "";
    const auto start = Clock::now();
    railmux::Context context;
    const auto made = milliseconds(start);
    if (mode == "--listen") {
        context.listen(arguments[2]);
        const auto peer = context.accept(std::chrono::seconds(30));
        if (!peer) return 1;
        for (int messages = count > 3 ? std::atoi(arguments[3]) : 1; messages > 0; --messages) answer(context, *peer);
    } else if (mode == "--connect") {
        const auto peer = context.connect(arguments[2]);
        long there = 0, later_there = 0;
        const auto here = evictions();
        std::printf("{\"first_message_ms\":%.3f", there_and_back(context, peer, there));  // an upper bound
        if (count > 3) {
            const auto until = Clock::now() + std::chrono::microseconds(std::atoi(arguments[3]));
            while (Clock::now() < until) context.progress();
            std::printf(",\"later_message_ms\":%.4f", there_and_back(context, peer, later_there));
            std::printf(",\"evictions\":%ld", evictions() - here + later_there - there);
        }
        std::printf("}\n");
    } else {
        std::printf("{\"context_ms\":%.3f}\n", made);
    }
    return 0;
}
