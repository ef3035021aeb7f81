#include "verbs_device.hpp"

#include <dlfcn.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <valgrind/callgrind.h>

#include <cstdlib>
#include <map>

namespace device {

namespace {

Counts counted;
bool chained = true;
bool two_queues = false;

enum class Meter { off, until_post, from_completion, running };
Meter meter = Meter::off;
bool collecting = false;

std::map<ibv_context*, ibv_context_ops> real;  // what the device's library does
std::map<ibv_cq*, ibv_cq*> receiving;          // by the queue that it stands beside

void collect(bool wanted) noexcept {
    if (collecting == wanted) return;
    collecting = wanted;
    CALLGRIND_TOGGLE_COLLECT;
}

void count(const ibv_send_wr& request) noexcept {
    constexpr std::uint32_t credit_only = 1U << 31;
    if (request.opcode == IBV_WR_RDMA_WRITE) {
        ++counted.writes;
    } else if (request.opcode == IBV_WR_RDMA_READ) {
        ++counted.reads;
    } else if ((ntohl(request.imm_data) & credit_only) != 0) {
        ++counted.credits;
    } else if (request.num_sge > 0) {
        ++counted
              .sends[*reinterpret_cast<const std::uint8_t*>(request.sg_list[0].addr)];  // a frame begins with its type
    }
}

int post_send(ibv_qp* queue, ibv_send_wr* requests, ibv_send_wr** refused) {
    collect(false);
    if (meter == Meter::until_post) meter = Meter::off;
    for (const auto* request = requests; request != nullptr; request = request->next) count(*request);
    const auto post = real[queue->context].post_send;
    int code = 0;
    while (requests != nullptr && code == 0) {
        auto* const next = requests->next;
        if (!chained) requests->next = nullptr;
        ++counted.calls;
        code = post(queue, requests, refused);
        requests = chained ? nullptr : next;
    }
    collect(meter == Meter::running);
    return code;
}

int post_receive(ibv_srq* queue, ibv_recv_wr* requests, ibv_recv_wr** refused) {
    collect(false);
    for (const auto* request = requests; request != nullptr; request = request->next) ++counted.receives;
    const int code = real[queue->context].post_srq_recv(queue, requests, refused);
    collect(meter == Meter::running);
    return code;
}

int poll(ibv_cq* queue, int most, ibv_wc* completions) {
    collect(false);
    const auto poll_one = real[queue->context].poll_cq;
    int found = poll_one(queue, most, completions);
    if (const auto other = receiving.find(queue); other != receiving.end() && found >= 0 && found < most) {
        const int more = poll_one(other->second, most - found, completions + found);
        if (more > 0) found += more;
    }
    for (int i = 0; i < found && meter == Meter::from_completion; ++i) {
        if ((completions[i].opcode & IBV_WC_RECV) != 0) meter = Meter::running;
    }
    collect(meter == Meter::running || meter == Meter::until_post);
    return found;
}

/// The function of that name that this program's own stands before.
template <typename Function>
Function behind(const char* name) {
    auto* const found = dlsym(RTLD_NEXT, name);
    if (found == nullptr) std::abort();
    return reinterpret_cast<Function>(found);
}

}  // namespace

std::uint64_t Counts::frames() const noexcept {
    std::uint64_t all = 0;
    for (const auto count : sends) all += count;
    return all - of(railmux::rails::FrameType::ack);
}

std::uint64_t Counts::requests() const noexcept {
    return frames() + of(railmux::rails::FrameType::ack) + credits + writes + reads;
}

Counts operator-(Counts a, const Counts& b) noexcept {
    for (std::size_t i = 0; i < a.sends.size(); ++i) a.sends[i] -= b.sends[i];
    a.credits -= b.credits;
    a.writes -= b.writes;
    a.reads -= b.reads;
    a.calls -= b.calls;
    a.receives -= b.receives;
    return a;
}

const Counts& counts() noexcept { return counted; }
void chain(bool wanted) noexcept { chained = wanted; }
void make_two_queues(bool two) noexcept { two_queues = two; }

void meter_until_post(bool wanted) noexcept {
    meter = wanted ? Meter::until_post : Meter::off;
    collect(wanted);
}
void meter_from_completion(bool wanted) noexcept { meter = wanted ? Meter::from_completion : Meter::off; }
void stop_metering() noexcept {
    collect(false);
    meter = Meter::off;
}
bool metering() noexcept { return meter == Meter::until_post; }

}  // namespace device

extern "C" ibv_pd* ibv_alloc_pd(ibv_context* context) {
    static const auto alloc = device::behind<ibv_pd* (*)(ibv_context*)>("ibv_alloc_pd");
    if (device::real.try_emplace(context, context->ops).second) {
        context->ops.post_send = device::post_send;
        context->ops.post_srq_recv = device::post_receive;
        context->ops.poll_cq = device::poll;
    }
    return alloc(context);
}

extern "C" int rdma_create_qp(rdma_cm_id* id, ibv_pd* domain, ibv_qp_init_attr* wanted) {
    static const auto create = device::behind<decltype(&rdma_create_qp)>("rdma_create_qp");
    if (device::two_queues && wanted->recv_cq == wanted->send_cq) {
        auto& queue = device::receiving[wanted->recv_cq];
        if (queue == nullptr)
            queue = ibv_create_cq(wanted->recv_cq->context, wanted->recv_cq->cqe, nullptr, nullptr, 0);
        if (queue == nullptr) return -1;
        wanted->recv_cq = queue;
    }
    return create(id, domain, wanted);
}
