// RAILMUX_IN_LINE: for the functions that each small message goes through. Compilers judge by size, and would call what the
// text divides for its reader; a call and what it saves and restores are as much as many of these do.
#pragma once

#define RAILMUX_IN_LINE [[gnu::always_inline]] inline
// The same of a lambda, behind its parameters.
#define RAILMUX_LAMBDA_IN_LINE __attribute__((always_inline))
