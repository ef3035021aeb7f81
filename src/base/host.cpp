#include "base/host.hpp"

#include <sys/stat.h>

#include <fstream>

namespace railmux::base {

std::uint64_t host_identity() {
    std::string text;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
    struct stat status {};
    // The thread's own: others of the process may live in other namespaces.
    if (::stat("/proc/thread-self/ns/net", &status) == 0) text += " " + std::to_string(status.st_ino);
    // FNV-1a: stable between builds, unlike std::hash.
    std::uint64_t hash = 14695981039346656037ULL;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    return hash;
}

}  // namespace railmux::base
