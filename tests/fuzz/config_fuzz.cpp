// Config files and values, as anybody may have written them: refused with an Error, or they read back as what they are.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include <railmux/config.hpp>
#include <railmux/error.hpp>

using namespace railmux;

namespace {

void check(bool holds) {
    if (!holds) __builtin_trap();
}

/// Whatever was taken stands in the table, and is taken once more.
void read_back(const Config& config) {
    Config again;
    for (const auto& parameter : config.parameters()) {
        if (parameter.name == "config" || parameter.name == "job.key") continue;
        again.set(parameter.name, parameter.value);
    }
    const auto theirs = again.parameters();
    const auto ours = config.parameters();
    for (std::size_t i = 0; i < ours.size(); ++i)
        check(ours[i].name == "job.key" || ours[i].value == theirs[i].value || ours[i].name == "config");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
    const int file = ::memfd_create("config", MFD_CLOEXEC);
    if (file < 0) return 0;
    const bool written = ::write(file, data, size) == static_cast<ssize_t>(size);
    Config config;
    try {
        if (written) config.read_file("/proc/self/fd/" + std::to_string(file));
        read_back(config);
    } catch (const Error& error) {
        check(error.code() == ErrorCode::invalid_config && !std::string_view(error.what()).empty());
    }
    ::close(file);
    return 0;
}
