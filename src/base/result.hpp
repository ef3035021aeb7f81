// Result: a value or the Error that took its place, for code that must not throw.
//
// Threads: a value.
// Lifetime: owns what it holds.
#pragma once

#include <utility>
#include <variant>

#include <railmux/error.hpp>

namespace railmux::base {

template <typename T>
class [[nodiscard]] Result {
public:
    Result(T value) : held_(std::move(value)) {}      // NOLINT: a value is a result
    Result(Error error) : held_(std::move(error)) {}  // NOLINT: so is an error

    [[nodiscard]] bool ok() const noexcept { return held_.index() == 0; }
    [[nodiscard]] explicit operator bool() const noexcept { return ok(); }
    [[nodiscard]] T& value() { return std::get<0>(held_); }
    [[nodiscard]] const T& value() const { return std::get<0>(held_); }
    [[nodiscard]] const Error& error() const { return std::get<1>(held_); }

    /// The value; throws the error if there is none. For set-up code, where errors are thrown.
    [[nodiscard]] T take() && {
        if (!ok()) throw std::get<1>(std::move(held_));
        return std::get<0>(std::move(held_));
    }

private:
    std::variant<T, Error> held_;
};

}  // namespace railmux::base
