// NodeTable: the file in which the processes of one node see each other's load (sched::NodeLoad), mapped.
//
// One for each user, network and process-number namespace, because only those share rails and know each other's processes:
// /dev/shm/railmux-1-<user>-<network>-<processes>, where 1 is the version of its layout. What is there already is refused
// unless it is a file of this user's, for nobody else, of the right size and with a table's mark. Its content needs no
// setting up, as zeros are an empty table, and none of it is trusted. Each process holds a shared lock on the file, which
// the kernel takes back when the process dies, however it does; whoever can make it exclusive is the last and removes the
// file; who comes first removes those that killed processes left. Nobody ever waits for that lock, and it is held for the
// file's existence only: what is in the table needs none.
//
// Threads: a value.
// Lifetime: the mapping lives as long as the object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/file_descriptor.hpp"
#include "base/result.hpp"
#include "sched/node_load.hpp"

namespace railmux::rails {

class NodeTable {
public:
    /// The error says why there is none, and what would help.
    [[nodiscard]] static base::Result<NodeTable> open(const std::string& folder = "/dev/shm");
    ~NodeTable();
    NodeTable(NodeTable&&) noexcept = default;
    NodeTable& operator=(NodeTable&&) = delete;

    [[nodiscard]] sched::LoadTable& table() noexcept { return *map_; }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

    /// A new owner of lines in this process: the process's number, when it started, so that the next with this number is
    /// another one, and something random, because a process may have several contexts. 0 where /proc does not tell.
    [[nodiscard]] static std::uint64_t new_owner();
    /// Whether the owner's process is still there. In doubt it is.
    [[nodiscard]] static bool alive(std::uint64_t owner) noexcept;

private:
    struct Unmap {
        void operator()(sched::LoadTable* table) const noexcept;
    };
    using Map = std::unique_ptr<sched::LoadTable, Unmap>;

    NodeTable(std::string path, base::FileDescriptor file, Map map)
        : path_(std::move(path)), file_(std::move(file)), map_(std::move(map)) {}
    /// Nothing where the file was just removed: once more.
    [[nodiscard]] static base::Result<Map> map(const std::string& path, const base::FileDescriptor& file);

    std::string path_;
    base::FileDescriptor file_;
    Map map_;
};

}  // namespace railmux::rails
