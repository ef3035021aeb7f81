#include "bootstrap/job_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include <railmux/config.hpp>
#include <railmux/error.hpp>

#include "base/environment.hpp"

namespace railmux::bootstrap {

namespace {

constexpr std::size_t longest_name = 64;
constexpr std::size_t longest_file = 16 * 1024;

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

std::string first_line(std::string_view id) { return fmt::format("job.id = {}\n", id); }

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
    static_cast<void>(path(name));  // whether it is a name
    auto claimed =
        folder_.claim(name, first_line(job.id) + fmt::format("job.key = {}\njob.server = {}\n", job.key, job.servers));
    if (!claimed) {
        const auto& error = claimed.error();
        throw Error(error.code(), error.what(),
                    error.code() == ErrorCode::permission ? "remove it" : "is the file system full?");
    }
    if (!claimed.value()) {
        throw Error(ErrorCode::invalid_argument, fmt::format("a job named {} is running", name),
                    fmt::format("take another name, or join it: railmux run --join {}", name));
    }
    claimed_ = std::move(*claimed.value());
}

void JobFile::remove_leftover(const std::string& name, std::string_view id) noexcept {
    const auto folder = base::PrivateFolder::open(base::runtime_folder(), base::PrivateFolder::Missing::empty);
    if (folder) folder.value().remove_leftover(name, first_line(id));
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
