#include "transports/ofi/signals.hpp"

#include <dlfcn.h>

#include <csignal>
#include <string_view>

namespace railmux::transports::ofi {

namespace {

bool is_of_psm(const void* handler) noexcept {
    Dl_info where{};
    if (::dladdr(handler, &where) == 0 || where.dli_fname == nullptr) return false;
    std::string_view library = where.dli_fname;
    library.remove_prefix(library.rfind('/') + 1);  // none: npos + 1 is 0
    return library.starts_with("libinfinipath.") || library.starts_with("libpsm");
}

}  // namespace

void give_signals_back() noexcept {
    for (const int signal : {SIGINT, SIGTERM, SIGSEGV, SIGBUS, SIGABRT, SIGILL}) {
        struct sigaction now {};
        if (::sigaction(signal, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) == 0) continue;
        if (!is_of_psm(reinterpret_cast<const void*>(now.sa_sigaction))) continue;
        struct sigaction plain {};
        plain.sa_handler = SIG_DFL;
        ::sigaction(signal, &plain, nullptr);
    }
}

}  // namespace railmux::transports::ofi
