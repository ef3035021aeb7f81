// What libraries below libfabric do with the process's signals.
//
// Threads: any; a program's own handlers, set at any time, are left alone.
#pragma once

namespace railmux::transports::ofi {

/// Gives signals their default effect where the handler of a PSM library stands. libinfinipath (for adapters of 2005 to 2015,
/// linked by Debian's libfabric) sets one for SIGINT, SIGTERM, SIGSEGV, SIGBUS, SIGABRT and SIGILL as it is loaded. It calls
/// exit() from within the handler: a program that is ended then runs its destructors beside itself, and may hang in them;
/// one that crashes leaves no core, and its exit status does not say that it did.
void give_signals_back() noexcept;

}  // namespace railmux::transports::ofi
