# railmux_layer(NAME base SOURCES a.cpp ... DEPENDS lower ... LIBRARIES lib ...)
#
# One layer of the design as one target, railmux_<name>. Internal headers are included from src/ ("base/log.hpp"); that a
# layer includes only what stands below it is checked by tests/layers. All layers together are the library, which links
# every LIBRARIES of theirs. A layer without sources is a target too, so that it can grow.
function(railmux_layer)
    cmake_parse_arguments(LAYER "" "NAME" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
    set(target railmux_${LAYER_NAME})
    if(NOT LAYER_SOURCES)
        add_library(${target} INTERFACE)
        target_include_directories(${target} INTERFACE
            ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
        return()
    endif()
    add_library(${target} OBJECT ${LAYER_SOURCES})
    # A message goes through many files of a layer: the compiler is to see them at once, as it would with -flto, which the
    # users of a static library would need as well. It also takes a quarter of the time.
    if(CMAKE_UNITY_BUILD OR (CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT DEFINED CMAKE_UNITY_BUILD))
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    endif()
    # Code that could go into a shared library is otherwise compiled as if any function might be replaced there by another
    # program's: nothing that has a name outside its file is put in line.
    target_compile_options(${target} PRIVATE -fno-semantic-interposition)
    target_include_directories(${target} PUBLIC
        ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
    target_link_libraries(${target} PRIVATE railmux_flags PUBLIC ${LAYER_LIBRARIES})
    foreach(lower IN LISTS LAYER_DEPENDS)  # usage requirements only: the objects are linked once, into the library
        target_include_directories(${target} PUBLIC
            $<TARGET_PROPERTY:railmux_${lower},INTERFACE_INCLUDE_DIRECTORIES>)
        add_dependencies(${target} railmux_${lower})
    endforeach()
    if(RAILMUX_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND LAYER_NAME MATCHES "bootstrap|tcp|shm")
        # Boost.Asio has fences; nothing here hands data over by them. Those of shm are for what other processes see.
        target_compile_options(${target} PRIVATE -Wno-tsan)
    endif()
    set_property(GLOBAL APPEND PROPERTY RAILMUX_LAYERS ${target})
    set_property(GLOBAL APPEND PROPERTY RAILMUX_LIBRARIES ${LAYER_LIBRARIES})
endfunction()
