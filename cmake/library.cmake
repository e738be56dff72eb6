# SPDX-License-Identifier: MIT
#
# libbecalm and libbecalm-curl, shared and static, and their installation.

# becalm_library_pair(TARGET OUTPUT MODULES ... [HIDDEN ...]): TARGET_shared and TARGET_static, libOUTPUT.so and .a, from
# these modules. HIDDEN are modules of another library whose hidden names these use.
function(becalm_library_pair target output)
    cmake_parse_arguments(arg "" "" "MODULES;HIDDEN" ${ARGN})
    list(TRANSFORM arg_MODULES REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
    set(exports ${PROJECT_SOURCE_DIR}/cmake/libbecalm.map)
    add_library(${target}_shared SHARED ${objects})
    add_library(${target}_static STATIC ${objects})
    set_target_properties(${target}_shared ${target}_static PROPERTIES OUTPUT_NAME ${output} LINKER_LANGUAGE C)
    set_target_properties(${target}_shared PROPERTIES LINK_DEPENDS ${exports}
                                                      VERSION ${PROJECT_VERSION} SOVERSION ${BECALM_SOVERSION})
    target_link_options(${target}_shared PRIVATE LINKER:--version-script=${exports} LINKER:-z,defs)
    target_include_directories(${target}_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_include_directories(${target}_static INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    list(TRANSFORM arg_MODULES REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)
    list(TRANSFORM arg_HIDDEN REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE hidden)
    add_dependencies(${target}_static ${arg_MODULES} ${arg_HIDDEN})
    add_custom_command(TARGET ${target}_static POST_BUILD VERBATIM
                       COMMAND ${CMAKE_COMMAND} -DARCHIVE=$<TARGET_FILE:${target}_static> "-DMODULES=${archives};${hidden}"
                               -DNM=${CMAKE_NM} -DOBJCOPY=${CMAKE_OBJCOPY} -P ${PROJECT_SOURCE_DIR}/cmake/prefix_hidden.cmake)
    install(TARGETS ${target}_shared ${target}_static EXPORT becalm COMPONENT library)

    set(pcdir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
    file(RELATIVE_PATH up_to_prefix /prefix/${pcdir} /prefix) # relative, so that an installed tree may be moved
    string(REGEX REPLACE "/$" "" up_to_prefix ${up_to_prefix})
    configure_file(${PROJECT_SOURCE_DIR}/cmake/lib${output}.pc.in lib${output}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/lib${output}.pc DESTINATION ${pcdir} COMPONENT library)
endfunction()

# becalm_library(MODULE...): libbecalm.so and libbecalm.a from these modules, with headers, pkg-config and CMake files.
function(becalm_library)
    becalm_library_pair(becalm becalm MODULES ${ARGN})
    set_target_properties(becalm_shared PROPERTIES EXPORT_NAME becalm)
    set_target_properties(becalm_static PROPERTIES EXPORT_NAME static)
    target_link_libraries(becalm_shared PRIVATE Threads::Threads PkgConfig::YAML)
    target_link_libraries(becalm_static PUBLIC Threads::Threads INTERFACE yaml) # by name: the path is this machine's

    set(cmakedir ${CMAKE_INSTALL_LIBDIR}/cmake/Becalm)
    configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/BecalmConfig.cmake.in BecalmConfig.cmake
                                  INSTALL_DESTINATION ${cmakedir})
    # There is no stable ABI before 1.0, so 0.2 does not stand in for 0.1.
    write_basic_package_version_file(BecalmConfigVersion.cmake COMPATIBILITY SameMinorVersion)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/becalm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library
            FILES_MATCHING PATTERN "*.h")
    install(EXPORT becalm NAMESPACE Becalm:: FILE BecalmTargets.cmake DESTINATION ${cmakedir} COMPONENT library)
    install(FILES ${PROJECT_BINARY_DIR}/BecalmConfig.cmake ${PROJECT_BINARY_DIR}/BecalmConfigVersion.cmake
            DESTINATION ${cmakedir} COMPONENT library)
endfunction()

# becalm_curl_library(MODULE... HIDDEN MODULE...): libbecalm-curl from these modules, around libbecalm.
# libbecalm-curl.so has copies of the hidden functions of libbecalm that it uses; they are in the archives of the hidden
# modules, and the linker takes only those that libbecalm.so does not export. libbecalm-curl.a finds them in
# libbecalm.a.
function(becalm_curl_library)
    cmake_parse_arguments(arg "" "" "MODULES;HIDDEN;MAN" ${ARGN})
    becalm_library_pair(becalm_curl becalm-curl MODULES ${arg_MODULES} HIDDEN ${arg_HIDDEN})
    # The search path of a program does not count for the libraries of its libraries: libbecalm.so is beside this one.
    set_target_properties(becalm_curl_shared PROPERTIES EXPORT_NAME curl INSTALL_RPATH "$ORIGIN")
    set_target_properties(becalm_curl_static PROPERTIES EXPORT_NAME curl_static)
    list(TRANSFORM arg_HIDDEN REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)
    add_dependencies(becalm_curl_shared ${arg_HIDDEN})
    target_link_libraries(becalm_curl_shared PRIVATE Threads::Threads PUBLIC becalm_shared INTERFACE curl
                                             PRIVATE ${archives} PkgConfig::CURL PkgConfig::HIREDIS ${CMAKE_DL_LIBS})
    # By name: the paths are this machine's.
    target_link_libraries(becalm_curl_static PUBLIC becalm_static Threads::Threads INTERFACE curl hiredis ${CMAKE_DL_LIBS})
    install(FILES ${arg_MAN} DESTINATION ${CMAKE_INSTALL_MANDIR}/man3 COMPONENT library)
endfunction()
