// What one side of a pair does to the other's memory, or, over the rail self, to its own.
//
// Threads: one, as pair.hpp.
// Lifetime: the contexts live as long as the world.
#pragma once

#include "engine/pair.hpp"

namespace railmux::test {

struct OneSidedWorld {
    explicit OneSidedWorld(bool self) : pair(config(self)), origin(pair.a), target(self ? pair.a : pair.b) {
        peer = self ? pair.a.add_peer(pair.a.address()) : pair.to_b;
    }
    static Config config(bool self) {
        auto all = two_rails();
        if (self) all.set("rails", "self");
        return all;
    }
    Status finish(Request request) { return pair.finish(origin, request); }

    Pair pair;
    Context& origin;
    Context& target;
    Peer peer;
};

}  // namespace railmux::test
