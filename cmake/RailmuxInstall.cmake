# Installation: library, headers, CMake package, pkg-config file, command.
include(CMakePackageConfigHelpers)

install(TARGETS railmux EXPORT railmux-targets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/railmux DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(FILES ${PROJECT_BINARY_DIR}/include/railmux/version.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/railmux)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/railmux)
install(EXPORT railmux-targets NAMESPACE railmux:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/railmux-config.cmake.in
    ${PROJECT_BINARY_DIR}/railmux-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/railmux-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/railmux-config.cmake ${PROJECT_BINARY_DIR}/railmux-config-version.cmake
    DESTINATION ${package_dir})

# Relative to the file itself, so that the package may be installed under any prefix.
file(RELATIVE_PATH RAILMUX_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/railmux.pc.in ${PROJECT_BINARY_DIR}/railmux.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/railmux.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET railmux_tool)
    install(TARGETS railmux_tool)
    include(RailmuxManPages)
endif()
