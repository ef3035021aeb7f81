#include "bootstrap/job_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include <railmux/config.hpp>
#include <railmux/error.hpp>

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/text.hpp"
#include "bootstrap/endpoint.hpp"

namespace railmux::bootstrap {

namespace {

constexpr std::size_t longest_name = 64;
constexpr std::size_t longest_file = 16 * 1024;
constexpr base::Nanoseconds answer_limit = base::second / 5;  // of a server on this host

base::PrivateFolder open_folder(base::PrivateFolder::Missing missing) {
    auto folder = base::PrivateFolder::open(base::runtime_folder(), missing);
    if (!folder) {
        throw Error(folder.error().code(), std::string("the files of jobs: ") + folder.error().what(),
                    "set XDG_RUNTIME_DIR to a folder of your own");
    }
    return std::move(folder.value());
}

/// The content of the file in our own folder: nobody else may have put it there.
bool there(const base::PrivateFolder& folder, const std::string& name) {
    const auto content = folder.read(name, longest_file);
    if (!content) throw Error(content.error().code(), content.error().what(), "remove it");
    return content.value().has_value();
}

JobIdentity parse(const std::string& path) {
    Config config;
    config.read_file(path);
    JobIdentity job{
        .id = config.text("job.id"), .key = config.text("job.key"), .servers = config.text("job.server"), .size = 1};
    if (!config.warnings().empty() || job.key.empty() || job.servers.empty()) {
        throw Error(ErrorCode::invalid_config,
                    config.warnings().empty() ? path + " is not the file of a job" : config.warnings().front(),
                    "copy the file that `railmux run --name` has written, as one that you alone may read");
    }
    return job;
}

/// Whether a server on this host answers at one of the job's places.
bool runs(const JobIdentity& job) {
    for (const auto place : base::split(job.servers, ',')) {
        if (!place.starts_with("unix:")) continue;
        try {
            static_cast<void>(connect_to(place, base::now_ns() + answer_limit));
            return true;
        } catch (const Error&) {  // nobody is there
        }
    }
    return false;
}

}  // namespace

std::string JobFile::path(std::string_view name) {
    const auto good = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
    if (name.empty() || name.size() > longest_name || name.front() == '.' ||
        !std::all_of(name.begin(), name.end(), good)) {
        throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no name for a job", name),
                    fmt::format("use at most {} letters, digits, '-', '_' and '.'", longest_name));
    }
    return base::runtime_folder() + "/" + std::string(name);
}

JobFile::JobFile(const std::string& name, const JobIdentity& job)
    : folder_(open_folder(base::PrivateFolder::Missing::make)), name_(name) {
    const auto file = path(name);
    if (there(folder_, name) && runs(parse(file))) {
        throw Error(ErrorCode::invalid_argument, fmt::format("a job named {} is running", name),
                    fmt::format("take another name, or join it: railmux run --join {}", name));
    }
    const auto written = folder_.replace(
        name, fmt::format("job.id = {}\njob.key = {}\njob.server = {}\n", job.id, job.key, job.servers));
    if (!written) throw Error(written.error().code(), written.error().what(), "is the file system full?");
}

JobIdentity JobFile::read(const std::string& name) {
    if (name.find('/') != std::string::npos) return parse(name);
    const auto file = path(name);
    if (!there(open_folder(base::PrivateFolder::Missing::empty), name)) {
        throw Error(ErrorCode::invalid_argument, fmt::format("there is no job named {} on this host", name),
                    fmt::format("start it with `railmux run --name {}`; if it runs on another host, copy its file {} "
                                "from there, and join that: --join ./{}",
                                name, file, name));
    }
    return parse(file);
}

}  // namespace railmux::bootstrap
