#include "model/mirror.hpp"

#include <algorithm>

namespace railmux::model {

bool Mirror::arrived(const ProbeRequest& request, const Seen& seen) noexcept {
    const bool same = count_ > 0 && request.train == train_.train && request.n == train_.n && count_ < train_.n;
    if (!same) {
        count_ = 0;
        receive_cpu_ = 0;
    }
    train_ = request;
    ++count_;
    last_ = seen;
    if (seen.receive_cpu > 0 && (receive_cpu_ == 0 || seen.receive_cpu < receive_cpu_)) receive_cpu_ = seen.receive_cpu;
    return count_ == request.n;
}

ProbeReply Mirror::reply(base::Nanoseconds now) const noexcept {
    return {.train = train_.train,
            .put = train_.put,
            .bytes = train_.bytes,
            .held = std::max<base::Nanoseconds>(0, now - last_.at),
            .blind = last_.blind,
            .receive_cpu = receive_cpu_};
}

}  // namespace railmux::model
