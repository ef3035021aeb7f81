// What is written to standard error meanwhile.
//
// Threads: one, which nobody else writes beside.
// Lifetime: a function.
#pragma once

#include <unistd.h>
#include <catch2/catch.hpp>

#include <cstdio>
#include <string>

namespace railmux::test {

/// What `call` writes to standard error.
template <typename Call>
std::string captured(Call&& call) {
    std::FILE* file = std::tmpfile();
    REQUIRE(file != nullptr);
    const int saved = ::dup(STDERR_FILENO);
    ::dup2(::fileno(file), STDERR_FILENO);
    call();
    ::dup2(saved, STDERR_FILENO);
    ::close(saved);
    std::rewind(file);
    std::string text(1 << 20, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file));
    std::fclose(file);
    return text;
}

}  // namespace railmux::test
