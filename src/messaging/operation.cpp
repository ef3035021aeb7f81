#include "messaging/operation.hpp"

#include <algorithm>

#include "base/bytes.hpp"

namespace railmux::messaging {

Operation& Operations::begin(bool receive, Completion&& done) {
    Operation& operation = begun(receive);
    operation.piece = {};
    operation.bytes = 0;
    if (done) operation.done = std::move(done);
    return operation;
}

void Operations::call_later(Operation& operation) noexcept {
    operation.become(OperationState::finishing);
    finishing_.push(operation);
}

void Operations::detach(Operation& operation) noexcept {
    if (operation.over()) {
        free(operation);
    } else {
        operation.detached = true;
    }
}

Operations::Called Operations::next_finished() {
    Operation& operation = finishing_.pop();
    return {operation.index, operation.status, std::exchange(operation.done, nullptr)};
}

void Operations::called(const Called& call) noexcept {
    Operation& operation = at(call.index);
    ++ended_;
    operation.end();
    if (operation.detached) free(operation);
}

void scatter_pieces(std::span<const transports::Segment> to, std::span<const std::byte> from) noexcept {
    for (const auto& piece : to) {
        const auto count = std::min(piece.size, from.size());
        base::copy(piece.data, from.data(), count);
        from = from.subspan(count);
    }
}

void gather_part(std::byte* to, std::span<const transports::Segment> from, std::size_t offset,
                 std::size_t bytes) noexcept {
    for (const auto& piece : from) {
        const auto skipped = std::min(piece.size, offset);
        const auto count = std::min(piece.size - skipped, bytes);
        base::copy(to, piece.data + skipped, count);
        offset -= skipped;
        to += count;
        bytes -= count;
    }
}

void copy_pieces(std::span<const transports::Segment> to, std::span<const transports::Segment> from,
                 std::size_t bytes) noexcept {
    std::size_t written = 0;  // of the first piece of `to`
    for (const auto& piece : from) {
        auto left = std::span(piece.data, std::min(piece.size, bytes));
        bytes -= left.size();
        while (!left.empty()) {
            const auto count = std::min(to.front().size - written, left.size());
            base::copy(to.front().data + written, left.data(), count);
            left = left.subspan(count);
            written += count;
            if (written < to.front().size) continue;
            to = to.subspan(1);
            written = 0;
        }
    }
}

}  // namespace railmux::messaging
