// On a host of one node this shows that nothing goes wrong; on one of several, that memory lies where it should.
#include <sys/mman.h>

#include <catch2/catch.hpp>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/numa.hpp"

using namespace railmux;

namespace {

constexpr std::size_t mapped_bytes = 1 << 20;

struct Unmap {
    void operator()(std::byte* memory) const { ::munmap(memory, mapped_bytes); }
};
using Mapping = std::unique_ptr<std::byte, Unmap>;

Mapping map() {
    return Mapping(static_cast<std::byte*>(
        ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
}

void touch(std::span<std::byte> memory) {
    for (std::size_t at = 0; at < memory.size(); at += 4096) memory[at] = std::byte{1};
}

/// Those of this host that have memory
std::vector<int> nodes() {
    std::vector<int> found;
    for (int node = 0; node < 64; ++node) {
        std::ifstream file("/sys/devices/system/node/node" + std::to_string(node) + "/meminfo");
        std::string word;
        std::uint64_t total = 0;
        while (file >> word && word != "MemTotal:") {
        }
        if (file >> total && total > 0) found.push_back(node);
    }
    return found;
}

}  // namespace

TEST_CASE("memory that is not there yet lies on no node") {
    const auto memory = map();
    REQUIRE(memory.get() != MAP_FAILED);
    CHECK(base::node_of({memory.get(), mapped_bytes}) == -1);
    CHECK(base::node_of({}) == -1);
}

TEST_CASE("memory lies on the node that it was to come from") {
    const auto known = map();
    touch({known.get(), mapped_bytes});
    if (base::node_of({known.get(), mapped_bytes}) < 0) {
        WARN("not checked: this kernel does not tell where pages are");
        return;
    }
    for (const int node : nodes()) {
        const auto memory = map();
        base::prefer_node({memory.get(), mapped_bytes}, node);
        touch({memory.get(), mapped_bytes});
        CHECK(base::node_of({memory.get(), mapped_bytes}) == node);
        // A part in the middle of a page, too
        CHECK(base::node_of({memory.get() + 100, 50'000}) == node);
    }
}

TEST_CASE("most pages decide, and those that are not there do not count") {
    const auto memory = map();
    const std::span all(memory.get(), mapped_bytes);
    const auto there = nodes();
    if (there.empty()) return;
    base::prefer_node(all.first(mapped_bytes / 4), there.front());
    base::prefer_node(all.last(mapped_bytes / 2), there.back());
    touch(all.first(mapped_bytes / 4));
    touch(all.last(mapped_bytes / 2));
    const auto found = base::node_of(all);
    CHECK((found == there.back() || found == -1));
}

TEST_CASE("a node that does not exist is not minded") {
    const auto memory = map();
    base::prefer_node({memory.get(), mapped_bytes}, -1);
    base::prefer_node({memory.get(), mapped_bytes}, 900);
    base::prefer_node({memory.get(), mapped_bytes}, 1 << 20);
    touch({memory.get(), mapped_bytes});
}
