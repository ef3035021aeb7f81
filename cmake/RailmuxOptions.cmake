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
set(RAILMUX_VERBS AUTO CACHE STRING "The verbs transport (InfiniBand, RoCE): ON (fail if it cannot be built), OFF or AUTO")
set_property(CACHE RAILMUX_VERBS PROPERTY STRINGS ON OFF AUTO)
set(RAILMUX_OFI AUTO CACHE STRING "The ofi transport (libfabric): ON (fail if it cannot be built), OFF or AUTO")
set_property(CACHE RAILMUX_OFI PROPERTY STRINGS ON OFF AUTO)

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
find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto SSL)
find_package(Boost 1.74 REQUIRED)  # headers only: Asio, for the bootstrap and the tcp transport

if(RAILMUX_BUILD_FUZZERS AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "RAILMUX_BUILD_FUZZERS=ON needs clang (libFuzzer), e.g. cmake --preset fuzz; "
                        "this is ${CMAKE_CXX_COMPILER_ID}")
endif()

# railmux_transport(NAME FOUND REASON MISSING): decides by the option RAILMUX_<NAME>, and by whether what the transport needs
# was FOUND, whether it is built (RAILMUX_HAVE_<NAME>), and why (RAILMUX_<NAME>_REASON: REASON, or what is MISSING).
function(railmux_transport name found reason missing)
    set(choice "${RAILMUX_${name}}")
    if(NOT choice MATCHES "^(ON|OFF|AUTO)$")
        message(FATAL_ERROR "RAILMUX_${name} is ON, OFF or AUTO, not \"${choice}\"")
    endif()
    if(choice STREQUAL "OFF")
        set(have OFF)
        set(reason "switched off by RAILMUX_${name}")
    elseif(found)
        set(have ON)
    elseif(choice STREQUAL "AUTO")
        set(have OFF)
        set(reason "needs ${missing}")
    else()
        message(FATAL_ERROR "RAILMUX_${name}=ON needs ${missing}")
    endif()
    set(RAILMUX_HAVE_${name} ${have} PARENT_SCOPE)
    set(RAILMUX_${name}_REASON "${reason}" PARENT_SCOPE)
endfunction()

# The tcp transport learns the kinds of interfaces from the kernel by rtnetlink.
include(CheckIncludeFileCXX)
check_include_file_cxx(linux/rtnetlink.h RAILMUX_HAVE_RTNETLINK)
railmux_transport(TCP "${RAILMUX_HAVE_RTNETLINK}" "rtnetlink, Boost.Asio ${Boost_VERSION_STRING}" "Linux: linux/rtnetlink.h")

# The verbs transport: libibverbs for the devices, librdmacm for connections.
check_include_file_cxx(infiniband/verbs.h RAILMUX_HAVE_VERBS_H)
check_include_file_cxx(rdma/rdma_cma.h RAILMUX_HAVE_RDMA_CMA_H)
find_library(RAILMUX_IBVERBS ibverbs)
find_library(RAILMUX_RDMACM rdmacm)
mark_as_advanced(RAILMUX_IBVERBS RAILMUX_RDMACM)
set(verbs_found OFF)
if(RAILMUX_HAVE_VERBS_H AND RAILMUX_HAVE_RDMA_CMA_H AND RAILMUX_IBVERBS AND RAILMUX_RDMACM)
    set(verbs_found ON)
endif()
railmux_transport(VERBS ${verbs_found} "libibverbs, librdmacm"
                  "libibverbs and librdmacm with their headers (Debian: libibverbs-dev, librdmacm-dev)")

# The ofi transport: libfabric, whose interface is stable from 1.17 on. Not imported as a target, which users of an installed
# railmux would have to find, too.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND AND NOT RAILMUX_OFI STREQUAL "OFF")
    pkg_check_modules(RAILMUX_LIBFABRIC QUIET libfabric>=1.17)
endif()
set(RAILMUX_LIBFABRIC_LIBRARIES ${RAILMUX_LIBFABRIC_LINK_LIBRARIES})
railmux_transport(OFI "${RAILMUX_LIBFABRIC_FOUND}" "libfabric ${RAILMUX_LIBFABRIC_VERSION}"
                  "libfabric 1.17 or newer and pkg-config (Debian: libfabric-dev, pkg-config)")

set(RAILMUX_PC_LIBRARIES)
if(RAILMUX_HAVE_VERBS)
    set(RAILMUX_PC_LIBRARIES " -lrdmacm -libverbs")
endif()
if(RAILMUX_HAVE_OFI)  # not as a requirement: what a static libfabric needs is asked for, too, and distributions do not have it
    string(APPEND RAILMUX_PC_LIBRARIES " -lfabric")
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
        # Not to collect its garbage saves GCC a sixth of the time, for half as much memory again: up to 1.7 GB.
        target_compile_options(railmux_flags INTERFACE --param=ggc-min-heapsize=2000000)
    endif()
    target_compile_options(railmux_flags INTERFACE -fsanitize=${RAILMUX_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(railmux_flags INTERFACE -fsanitize=${RAILMUX_SANITIZE})
    if(RAILMUX_SANITIZE MATCHES "undefined")
        target_compile_options(railmux_flags INTERFACE -fno-sanitize-recover=undefined)
    endif()
endif()
# What only files put together bring about; the builds file by file check it.
set(railmux_unity "$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>")
target_compile_options(railmux_flags INTERFACE
    "$<${railmux_unity}:-Wno-shadow>" "$<$<AND:${railmux_unity},$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>")
if(RAILMUX_BUILD_FUZZERS)  # libFuzzer sees only what is compiled for it
    target_compile_options(railmux_flags INTERFACE -fsanitize=fuzzer-no-link)
    if(RAILMUX_SANITIZE MATCHES "undefined")  # asan-ubsan has these, and they cost a tenth of the time it takes to compile
        target_compile_options(railmux_flags INTERFACE -fno-sanitize=null,alignment,vptr)
    endif()
endif()
