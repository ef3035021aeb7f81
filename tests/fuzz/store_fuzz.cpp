// What the store reads from files that anybody may have damaged. The first byte says whether the rest is a file, or what stands
// in one before its checksum: a fuzzer would hardly find a checksum that is right.
#include <cstdint>
#include <string>
#include <string_view>

#include "model/store_entry.hpp"

using namespace railmux;
using model::StoreEntry;

namespace {

void check(bool holds) {
    if (!holds) __builtin_trap();
}

void read_entry(std::string_view file) {
    const auto entry = StoreEntry::parse(file);
    if (!entry) return;
    check(file.size() <= StoreEntry::max_bytes);
    check(valid(entry.value().model));
    check(entry.value().text() == file);
    check(StoreEntry::for_people(entry.value().link) == entry.value().link);
    check(StoreEntry::is_file_name(StoreEntry::file_name(entry.value().key, entry.value().version)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    check(!StoreEntry::is_file_name(text) || text.size() == StoreEntry::file_name({}, "").size());
    read_entry(data[0] % 2 == 0 ? std::string(text) : model::with_checksum(std::string(text)));
    return 0;
}
