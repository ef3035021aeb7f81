#include "model/raw.hpp"

#include <iterator>

#include <fmt/format.h>

namespace railmux::model {

std::string to_csv(std::span<const Sample> samples) {
    std::string text =
        "train,n,bytes,delay_ns,late_look_ns,round_trip_ns,idle_ns,send_cpu_ns,receive_cpu_ns,blind_ns,"
        "mirror_held_ns,mirror_blind_ns,mirror_receive_cpu_ns,interrupted\n";
    for (const auto& s : samples) {
        fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", s.train.id, s.train.n,
                       s.train.bytes, s.train.delay, s.train.late_look, s.round_trip, s.idle, s.send_cpu, s.receive_cpu,
                       s.blind, s.mirror_held, s.mirror_blind, s.mirror_receive_cpu, s.interrupted() ? 1 : 0);
    }
    return text;
}

}  // namespace railmux::model
