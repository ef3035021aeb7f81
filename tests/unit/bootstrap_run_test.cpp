// The process that bootstrap_run.hpp speaks of.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>

#include <railmux/error.hpp>

#include "unit/bootstrap_run.hpp"

namespace railmux::bootstrap::test {

namespace {
constexpr base::Nanoseconds patience = 30 * base::second;

[[noreturn]] void launch(const RunOptions& options, int out, int err) {
    ::dup2(out, 1);
    ::dup2(err, 2);
    int status = threw;
    try {
        status = run_job(options);
    } catch (const Error& error) {
        ::dprintf(2, "%s\ncure: %s\n", error.what(), error.cure().c_str());
    }
    ::_exit(status);
}

void read_into(base::FileDescriptor& from, std::string& to) {
    std::array<char, 64 * 1024> buffer;
    const auto got = ::read(from.get(), buffer.data(), buffer.size());
    if (got <= 0) return from.reset();
    to.append(buffer.data(), static_cast<std::size_t>(got));
}
}  // namespace

RunOptions script(unsigned processes, const std::string& text) {
    RunOptions options;
    options.processes = processes;
    options.command = {"/bin/sh", "-c", text};
    return options;
}

Run::Run(const RunOptions& options) {
    std::array<int, 2> out{};
    std::array<int, 2> err{};
    REQUIRE(::pipe2(out.data(), O_CLOEXEC) == 0);
    REQUIRE(::pipe2(err.data(), O_CLOEXEC) == 0);
    out_pipe_.reset(out[0]);
    err_pipe_.reset(err[0]);
    const base::FileDescriptor out_end(out[1]);
    const base::FileDescriptor err_end(err[1]);
    std::fflush(nullptr);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
        out_pipe_.reset();  // or nobody would learn that the test has stopped reading
        err_pipe_.reset();
        launch(options, out_end.get(), err_end.get());
    }
}

Run::~Run() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

bool Run::read_some(base::Nanoseconds deadline) {
    std::array<pollfd, 2> waits{pollfd{out_pipe_.get(), POLLIN, 0}, pollfd{err_pipe_.get(), POLLIN, 0}};
    const auto left = (deadline - base::now_ns()) / base::millisecond;
    if (left <= 0 || ::poll(waits.data(), waits.size(), static_cast<int>(left)) <= 0) return false;
    if (waits[0].revents != 0) read_into(out_pipe_, out_);
    if (waits[1].revents != 0) read_into(err_pipe_, err_);
    return true;
}

bool Run::wait_for(std::string_view text, std::size_t times) {
    const auto deadline = base::now_ns() + patience;
    while (true) {
        std::size_t found = 0;
        for (auto at = out_.find(text); at != std::string::npos; at = out_.find(text, at + 1)) ++found;
        if (found >= times) return true;
        if (!out_pipe_.valid() || !read_some(deadline)) return false;
    }
}

int Run::finish() {
    const auto deadline = base::now_ns() + patience;
    while (out_pipe_.valid() || err_pipe_.valid()) {
        if (!read_some(deadline)) return -1;
    }
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::vector<std::string> Run::lines() const {
    std::vector<std::string> all;
    std::istringstream text(out_);
    for (std::string line; std::getline(text, line);) all.push_back(line);
    return all;
}

bool eventually(const std::function<bool()>& holds) {
    const auto deadline = base::now_ns() + patience;
    while (!holds()) {
        if (base::now_ns() > deadline) return false;
        ::poll(nullptr, 0, 10);
    }
    return true;
}

bool lives(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    if (!std::getline(file, text)) return false;
    const auto state = text.rfind(')') + 2;
    return state < text.size() && text[state] != 'Z' && text[state] != 'X';
}

}  // namespace railmux::bootstrap::test
