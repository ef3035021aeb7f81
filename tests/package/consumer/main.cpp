#include <cstdio>

#include <railmux/context.hpp>
#include <railmux/version.hpp>

int main() {
    const railmux::Config config;
    std::printf("railmux %s, %zu parameters\n", RAILMUX_VERSION, config.parameters().size());
    return config.parameters().empty() ? 1 : 0;
}
