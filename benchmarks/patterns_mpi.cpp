// The patterns of patterns.hpp over MPI, to compare with. `peers` builds it with the compiler wrapper of each MPI.
#include <mpi.h>

#include "patterns.hpp"

namespace {

constexpr int tag = 1;

class Messages {
public:
    Messages(int& count, char**& arguments) {
        MPI_Init(&count, &arguments);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &size_);
    }
    ~Messages() { MPI_Finalize(); }
    Messages(const Messages&) = delete;
    Messages& operator=(const Messages&) = delete;
    [[nodiscard]] std::uint32_t rank() const { return static_cast<std::uint32_t>(rank_); }
    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(size_); }

    void start_send(std::uint32_t to, std::span<std::byte> data) {
        MPI_Isend(data.data(), bytes(data), MPI_BYTE, static_cast<int>(to), tag, MPI_COMM_WORLD, &next());
    }
    void start_receive(std::uint32_t from, std::span<std::byte> data) {
        MPI_Irecv(data.data(), bytes(data), MPI_BYTE, static_cast<int>(from), tag, MPI_COMM_WORLD, &next());
    }
    void wait() {
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        requests_.clear();
    }
    void send(std::uint32_t to, std::span<std::byte> data) {
        MPI_Send(data.data(), bytes(data), MPI_BYTE, static_cast<int>(to), tag, MPI_COMM_WORLD);
    }
    void receive(std::uint32_t from, std::span<std::byte> data) {
        MPI_Recv(data.data(), bytes(data), MPI_BYTE, static_cast<int>(from), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }

private:
    static int bytes(std::span<std::byte> data) { return static_cast<int>(data.size()); }
    MPI_Request& next() { return requests_.emplace_back(); }

    int rank_ = 0;
    int size_ = 0;
    std::vector<MPI_Request> requests_;
};

}  // namespace

int main(int count, char** arguments) {
    Messages messages(count, arguments);
    const auto options = patterns::parse(count, arguments);
    return patterns::Process(messages, options).run();
}
