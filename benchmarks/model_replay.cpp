// model_replay: what the present code makes of points that were measured before.
//
//   railmux probe --connect HOST:PORT --points FILE
//   model_replay FILE [sizes]
//
// Prints the model of the first rail of FILE, as JSON; with `sizes`, what the samples say of each size instead: bytes, and in
// ns half a round trip (the low end and the median), the gap and its error, o_s and o_r.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "model/assess.hpp"

#include <railmux/loggp.hpp>

namespace {

using namespace railmux;

std::vector<std::string> cells(const std::string& row) {
    std::vector<std::string> all;
    std::istringstream text(row);
    for (std::string cell; std::getline(text, cell, ',');) all.push_back(cell);
    return all;
}

std::vector<model::Sample> read(const std::string& name) {
    std::ifstream file(name);
    std::string row;
    if (!std::getline(file, row)) throw std::runtime_error(name + " cannot be read");
    const auto head = cells(row);
    std::vector<model::Sample> samples;
    std::string rail;
    while (std::getline(file, row)) {
        const auto all = cells(row);
        if (all.size() != head.size()) throw std::runtime_error(fmt::format("{} is not complete: {}", name, row));
        std::map<std::string, std::string> of;
        for (std::size_t i = 0; i < all.size(); ++i) of[head[i]] = all[i];
        const auto cell = [&](const char* column) -> const std::string& {
            const auto found = of.find(column);
            if (found != of.end()) return found->second;
            throw std::runtime_error(
                fmt::format("{} has no column {}: not written by this railmux probe", name, column));
        };
        if (rail.empty()) rail = cell("rail");
        if (cell("rail") != rail) break;
        const auto number = [&](const char* column) {
            const auto& text = cell(column);
            base::Nanoseconds value = 0;
            const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
            if (end.ec == std::errc{} && end.ptr == text.data() + text.size()) return value;
            throw std::runtime_error(fmt::format("{}: {} is not a number: {}", name, column, text));
        };
        model::Sample sample;
        sample.train = {.n = static_cast<std::uint32_t>(number("n")),
                        .bytes = static_cast<std::uint64_t>(number("bytes"))};
        sample.train.delay = number("delay_ns");
        sample.train.late_look = number("late");
        sample.mirror_held = number("held_ns");
        sample.round_trip = number("prtt_ns") + sample.mirror_held;
        sample.idle = sample.train.delay * (sample.train.n - 1);
        sample.send_cpu = number("send_cpu_ns");
        sample.receive_cpu = number("receive_cpu_ns");
        sample.mirror_receive_cpu = number("mirror_receive_cpu_ns");
        sample.mirror_blind = number("unseen_ns");
        samples.push_back(sample);
    }
    return samples;
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 2) throw std::runtime_error("which points? model_replay FILE [sizes]");
    const auto samples = read(argv[1]);
    if (argc == 2) {
        fmt::print("{}\n", to_json(model::assess(samples).model));
        return 0;
    }
    for (const auto& size : model::summarise_sizes(samples).sizes) {
        fmt::print("{} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}\n", size.bytes, size.single.low / 2,
                   size.single.median / 2, size.gap.median, size.gap.error, size.send.median, size.receive.median);
    }
} catch (const std::exception& error) {
    std::fprintf(stderr, "model_replay: %s\n", error.what());
    return 1;
}
