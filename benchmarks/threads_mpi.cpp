// The threads of threads.hpp over MPI, to compare with. `peers` builds it with the compiler wrapper of each MPI.
#include <mpi.h>

#include "threads.hpp"

namespace {

constexpr int tag = 1;

class Messages {
public:
    Messages(int& count, char**& arguments) {
        int provided = 0;
        MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &provided);
        if (provided == MPI_THREAD_MULTIPLE) return;
        std::fprintf(stderr, "this MPI has no MPI_THREAD_MULTIPLE\n");
        std::exit(1);
    }
    ~Messages() { MPI_Finalize(); }
    Messages(const Messages&) = delete;
    Messages& operator=(const Messages&) = delete;

    /// A communicator for each thread, as MPIs advise, who can keep apart what belongs to different ones.
    class Thread {
    public:
        Thread() { MPI_Comm_dup(MPI_COMM_SELF, &self_); }
        void start_send(std::span<std::byte> data) {
            MPI_Isend(data.data(), static_cast<int>(data.size()), MPI_BYTE, 0, tag, self_, &requests_.emplace_back());
        }
        void start_receive(std::span<std::byte> data) {
            MPI_Irecv(data.data(), static_cast<int>(data.size()), MPI_BYTE, 0, tag, self_, &requests_.emplace_back());
        }
        void wait() {
            MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
            requests_.clear();
        }

    private:
        MPI_Comm self_{};
        std::vector<MPI_Request> requests_;
    };
    [[nodiscard]] Thread thread(unsigned) { return {}; }
};

}  // namespace

int main(int count, char** arguments) {
    Messages messages(count, arguments);
    threads::run(messages, threads::parse(count, arguments));
    return 0;
}
