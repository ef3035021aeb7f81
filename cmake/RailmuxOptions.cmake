# Options, compiler flags and the libraries that railmux uses inside. None of them is visible to its users.

option(RAILMUX_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(RAILMUX_BUILD_TOOLS "Build the railmux command" ${PROJECT_IS_TOP_LEVEL})
option(RAILMUX_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(RAILMUX_BUILD_BENCHMARKS "Build the benchmarks" OFF)
option(RAILMUX_BUILD_FUZZERS "Build the libFuzzer targets (clang only)" OFF)
option(RAILMUX_INSTALL "Make install rules" ${PROJECT_IS_TOP_LEVEL})
option(RAILMUX_WERROR "Treat warnings as errors" OFF)
set(RAILMUX_SANITIZE "" CACHE STRING "Sanitizers to build with, e.g. address,undefined or thread")
set(RAILMUX_TCP AUTO CACHE STRING "The tcp transport: ON (fail if it cannot be built), OFF or AUTO")
set_property(CACHE RAILMUX_TCP PROPERTY STRINGS ON OFF AUTO)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    find_program(RAILMUX_CCACHE ccache)
    if(RAILMUX_CCACHE)
        set(CMAKE_CXX_COMPILER_LAUNCHER ${RAILMUX_CCACHE})
    endif()
endif()

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_package(Threads REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto)
find_package(Boost 1.74 REQUIRED)  # headers only: Asio, for the bootstrap and the tcp transport

if(RAILMUX_BUILD_FUZZERS AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "RAILMUX_BUILD_FUZZERS=ON needs clang (libFuzzer), e.g. cmake --preset fuzz; "
                        "this is ${CMAKE_CXX_COMPILER_ID}")
endif()

# The tcp transport learns the kinds of interfaces from the kernel by rtnetlink.
include(CheckIncludeFileCXX)
check_include_file_cxx(linux/rtnetlink.h RAILMUX_HAVE_RTNETLINK)
if(RAILMUX_TCP STREQUAL "AUTO")
    set(RAILMUX_HAVE_TCP ${RAILMUX_HAVE_RTNETLINK})
elseif(RAILMUX_TCP STREQUAL "ON")
    if(NOT RAILMUX_HAVE_RTNETLINK)
        message(FATAL_ERROR "RAILMUX_TCP=ON needs Linux: linux/rtnetlink.h is not there")
    endif()
    set(RAILMUX_HAVE_TCP ON)
elseif(RAILMUX_TCP STREQUAL "OFF")
    set(RAILMUX_HAVE_TCP OFF)
else()
    message(FATAL_ERROR "RAILMUX_TCP is ON, OFF or AUTO, not \"${RAILMUX_TCP}\"")
endif()
if(RAILMUX_HAVE_TCP)
    set(RAILMUX_TCP_REASON "rtnetlink, Boost.Asio ${Boost_VERSION_STRING}")
elseif(RAILMUX_TCP STREQUAL "AUTO")
    set(RAILMUX_TCP_REASON "linux/rtnetlink.h is not there")
else()
    set(RAILMUX_TCP_REASON "switched off by RAILMUX_TCP")
endif()

# Flags of everything that is built here; not passed on to users.
add_library(railmux_flags INTERFACE)
target_compile_features(railmux_flags INTERFACE cxx_std_20)
target_compile_options(railmux_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wold-style-cast -Wnon-virtual-dtor -Woverloaded-virtual
    -Wno-missing-field-initializers)  # designated initializers leave the rest at its default on purpose
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # False alarms of GCC 12 about std::string and std::vector (GCC bugs 105329 and 105705, mended in 13).
    target_compile_options(railmux_flags INTERFACE -Wno-restrict -Wno-stringop-overflow)
endif()
if(RAILMUX_WERROR)
    target_compile_options(railmux_flags INTERFACE -Werror)
endif()
if(RAILMUX_SANITIZE)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # instrumented code misleads this warning (GCC bug 105562)
        target_compile_options(railmux_flags INTERFACE -Wno-maybe-uninitialized)
    endif()
    target_compile_options(railmux_flags INTERFACE -fsanitize=${RAILMUX_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(railmux_flags INTERFACE -fsanitize=${RAILMUX_SANITIZE})
    if(RAILMUX_SANITIZE MATCHES "undefined")
        target_compile_options(railmux_flags INTERFACE -fno-sanitize-recover=undefined)
    endif()
endif()
if(RAILMUX_BUILD_FUZZERS)  # libFuzzer sees only what is compiled for it
    target_compile_options(railmux_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
