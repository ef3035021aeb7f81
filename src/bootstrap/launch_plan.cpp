#include "bootstrap/launch_plan.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include <railmux/error.hpp>

#include "base/host.hpp"
#include "base/text.hpp"
#include "base/values.hpp"

namespace railmux::bootstrap {

namespace {

// Without questions: the launcher's children are not in the foreground of a terminal, so nobody could answer them.
constexpr std::string_view remote_shell = "ssh -o BatchMode=yes -o ConnectTimeout=10 {host}";
constexpr std::string_view host_mark = "{host}";

// What stands between a launch command and the program; $1 is the folder, then NAME=value words and the program.
//
// The key must not show in the list of processes, so it is read from standard input. What follows there are names of
// signals for the program's process group, "END" when the program has ended, or the end of the stream: then the
// launcher or the connection to it is gone and nothing may stay behind. A helper in the background reads them; it is in
// the same group, so that the group's number cannot be given away while it lives; field 3 behind the name in
// /proc/PID/stat is that number. Two forks make it nobody's child: a program may wait for all of its own.
//
// One line and no exclamation mark: the other host's login shell may be one that stumbles over either.
constexpr std::string_view start_script =
    "IFS= read -r RAILMUX_JOB_KEY || { echo railmux run: the launch command hands no standard input on >&2; exit 126; "
    "}; "
    "export RAILMUX_JOB_KEY; cd \"$1\" || exit 126; shift; exec 3<&0 </dev/null; "
    "( ( trap '' INT TERM HUP QUIT USR1 USR2; read -r stat </proc/$$/stat; set -- ${stat##*) }; "
    "while read -r name <&3; do if [ \"$name\" = END ]; then exit; fi; kill -s \"$name\" -- \"-$3\"; done; "
    "kill -s TERM -- \"-$3\"; sleep 3; kill -s KILL -- \"-$3\" ) >/dev/null 2>&1 & ); "
    "exec 3<&-; exec env \"$@\"";

struct Slots {
    std::string host;
    std::uint64_t count = 1;
};

Slots parse_slots(const std::string& entry) {
    const auto colon = entry.rfind(':');
    const bool bare_v6 = colon != std::string::npos && entry.front() != '[' && entry.find(':') != colon;
    if (colon == std::string::npos || bare_v6 || entry.back() == ']') return {entry};
    const auto count = base::parse_count(std::string_view(entry).substr(colon + 1));
    if (!count || *count == 0 || colon == 0) {
        throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not HOST or HOST:SLOTS", entry),
                    "e.g. --hosts host-a:4,host-b:8");
    }
    return {entry.substr(0, colon), *count};
}

std::string replace_host(std::string_view word, const std::string& host) {
    std::string text;
    for (auto at = word.find(host_mark); at != std::string_view::npos; at = word.find(host_mark)) {
        text.append(word.substr(0, at)).append(host);
        word.remove_prefix(at + host_mark.size());
    }
    return text.append(word);
}

/// For a shell. ssh joins its arguments with blanks and has the other host's shell take them apart again.
std::string quoted(const std::string& text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

bool handed_over(const RunOptions& options, std::string_view name) {
    if (name.starts_with("RAILMUX_")) return !name.starts_with("RAILMUX_JOB_");
    return std::find(options.environment.begin(), options.environment.end(), name) != options.environment.end();
}

/// Behind a launch command the environment may not arrive, so it is given on the command line; all but the key.
void append_program(ChildPlan& plan, const RunOptions& options, const std::vector<std::string>& job) {
    std::vector<std::string> words{"sh", "-c", std::string(start_script), "sh",
                                   std::filesystem::current_path().string()};
    words.insert(words.end(), job.begin(), job.end());
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        if (handed_over(options, text.substr(0, text.find('=')))) words.emplace_back(text);
    }
    words.insert(words.end(), options.command.begin(), options.command.end());
    const bool joined = std::filesystem::path(plan.command[0]).filename() == "ssh";
    for (const auto& word : words) plan.command.push_back(joined ? quoted(word) : word);
}

}  // namespace

std::vector<std::string> place_ranks(const RunOptions& options) {
    if (options.hosts.empty() && options.launch.find(host_mark) != std::string::npos) {
        throw Error(ErrorCode::invalid_argument, "--launch speaks of {host}, but there are no hosts",
                    "add --hosts a,b,...");
    }
    std::vector<std::string> slots;
    for (const auto& entry : options.hosts) {
        const auto [host, count] = parse_slots(entry);
        slots.insert(slots.end(), std::min<std::uint64_t>(count, options.processes), host);
    }
    if (slots.empty()) slots.emplace_back();
    std::vector<std::string> hosts;
    for (unsigned rank = 0; rank < options.processes; ++rank) hosts.push_back(slots[rank % slots.size()]);
    return hosts;
}

ChildPlan plan_child(const RunOptions& options, const JobIdentity& job, std::uint32_t rank, const std::string& host) {
    ChildPlan plan;
    const std::vector<std::string> variables{"RAILMUX_JOB_ID=" + job.id, fmt::format("RAILMUX_JOB_RANK={}", rank),
                                             fmt::format("RAILMUX_JOB_SIZE={}", job.size),
                                             "RAILMUX_JOB_SERVER=" + job.servers};
    const bool here = host.empty() || host == "localhost" || host == base::host_name();
    if (options.launch.empty() && here) {
        plan.command = options.command;
        plan.environment = variables;
        plan.environment.push_back("RAILMUX_JOB_KEY=" + job.key);  // other users cannot read a process's environment
        return plan;
    }
    const auto launch = options.launch.empty() ? remote_shell : std::string_view(options.launch);
    for (const auto word : base::split(launch, ' ')) {
        if (!word.empty()) plan.command.push_back(replace_host(word, host));
    }
    if (plan.command.empty())
        throw Error(ErrorCode::invalid_argument, "--launch is blank", "leave it out, or name a command");
    plan.by_launch_command = true;
    plan.input = job.key + "\n";
    append_program(plan, options, variables);
    return plan;
}

std::string find_program(const std::string& name) {
    const auto runs = [](const std::string& path) {
        std::error_code ignored;
        return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
    };
    if (name.find('/') != std::string::npos) return runs(name) ? name : std::string();
    const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): the launcher has one thread
    for (const auto folder : base::split(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
        auto full = (folder.empty() ? std::string(".") : std::string(folder)) + "/" + name;
        if (runs(full)) return full;
    }
    return {};
}

}  // namespace railmux::bootstrap
