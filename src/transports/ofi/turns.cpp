#include "transports/ofi/turns.hpp"

#include <algorithm>

namespace railmux::transports::ofi {

void Turns::wait(LinkId link) {
    if (holder_ == link) left_ = 0;
    if (std::ranges::find(waiting_, link) == waiting_.end()) waiting_.push_back(link);
}

bool Turns::has_turn(LinkId link) {
    if (holder_ == link && left_ > 0) {
        --left_;
        return true;
    }
    if (waiting_.front() != link) {
        wait(link);
        // Whoever is first may have sent by another rail what it had.
        if (++turned_away_ >= patience) next();
        return false;
    }
    next();
    holder_ = link;
    left_ = works - 1;
    return true;
}

void Turns::forget(LinkId link) noexcept {
    if (!waiting_.empty() && waiting_.front() == link) turned_away_ = 0;
    std::erase(waiting_, link);
}

void Turns::next() {
    waiting_.erase(waiting_.begin());
    turned_away_ = 0;
}

}  // namespace railmux::transports::ofi
