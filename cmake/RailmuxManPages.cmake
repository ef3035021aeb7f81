# Manual pages of the `railmux` command and each of its subcommands, made of what they say for --help (help2man).
find_program(RAILMUX_HELP2MAN help2man)
mark_as_advanced(RAILMUX_HELP2MAN)
set(RAILMUX_HAVE_MAN_PAGES OFF)
if(RAILMUX_HELP2MAN AND TARGET railmux_tool AND NOT CMAKE_CROSSCOMPILING AND NOT RAILMUX_SANITIZE)
    set(RAILMUX_HAVE_MAN_PAGES ON)
    set(pages ${PROJECT_BINARY_DIR}/man)
    set(maker ${PROJECT_SOURCE_DIR}/cmake/man_pages.sh)
    add_custom_command(OUTPUT ${pages}/railmux.1
        COMMAND ${maker} $<TARGET_FILE:railmux_tool> ${PROJECT_VERSION} ${RAILMUX_HELP2MAN} ${pages}
        DEPENDS railmux_tool ${maker} COMMENT "Writing manual pages" VERBATIM)
    add_custom_target(railmux_man_pages ALL DEPENDS ${pages}/railmux.1)
    install(DIRECTORY ${pages}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL FILES_MATCHING PATTERN "*.1")
endif()
