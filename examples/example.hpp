// What all examples do around what they show: a context, and what is said when something goes wrong.
#pragma once

#include <railmux/context.hpp>

#include <iostream>

/// Runs `example(context)`, which returns the exit code. An error is said with what helps against it.
template <typename Example>
int run_example(Example example) {
    try {
        railmux::Context context;
        return example(context);
    } catch (const railmux::Error& error) {
        std::cerr << error.what() << '\n';
        if (!error.cure().empty()) std::cerr << error.cure() << '\n';
        return 1;
    }
}
