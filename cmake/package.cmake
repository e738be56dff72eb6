# SPDX-License-Identifier: MIT
#
# Packages: the files of each package, and the settings of cpack. make deb, make rpm; docs/install.md.
# Two packages: becalm (the command, its pages, units, rules and examples) and libbecalm-dev (headers and libraries).
set(share ${CMAKE_INSTALL_DATADIR})

# Steps that depend on the prefix, which is known only at the installation: the unit starts the program from there, and
# the prefix /usr gets a first policy.
string(CONFIGURE [[
    set(to "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
    file(READ "@PROJECT_SOURCE_DIR@/deploy/systemd/becalm.service" unit)
    string(REPLACE /usr/local/bin/ "${CMAKE_INSTALL_PREFIX}/bin/" unit "${unit}")
    file(WRITE "${to}/lib/systemd/system/becalm.service" "${unit}")
    if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
        configure_file("@PROJECT_SOURCE_DIR@/deploy/package/becalm.yaml" "$ENV{DESTDIR}/etc/becalm/becalm.yaml" COPYONLY)
    endif()
]] code @ONLY)
install(CODE "${code}" COMPONENT command)
install(FILES deploy/systemd/becalm.socket DESTINATION lib/systemd/system COMPONENT command)
install(DIRECTORY policies DESTINATION ${share}/becalm COMPONENT command FILES_MATCHING PATTERN "*.yaml")
install(DIRECTORY deploy/prometheus deploy/grafana deploy/logs deploy/openapi deploy/kubernetes deploy/helm DESTINATION ${share}/becalm COMPONENT command PATTERN tests EXCLUDE)
install(FILES deploy/package/becalm.yaml DESTINATION ${share}/becalm COMPONENT command)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command)

set(CPACK_PACKAGE_NAME becalm)
set(CPACK_PACKAGE_VENDOR becalm)
set(CPACK_PACKAGE_CONTACT "the authors of Becalm <becalm@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Keeps retries from becoming storms: gateway, sidecar, simulator")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON) # for /etc
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL command library)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_VERBATIM_VARIABLES ON)
set(scripts ${PROJECT_SOURCE_DIR}/deploy/package)

file(WRITE ${PROJECT_BINARY_DIR}/package/conffiles "/etc/becalm/becalm.yaml\n")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME becalm)
# Loaded when they are needed, so that no tool finds them: OpenSSL for TLS and keys, libcurl for traces and becalm top.
set(CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS "libssl3 | libssl3t64")
set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS libcurl4)
set(CPACK_DEBIAN_COMMAND_PACKAGE_CONTROL_EXTRA
    ${scripts}/postinst ${scripts}/prerm ${scripts}/postrm ${PROJECT_BINARY_DIR}/package/conffiles)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libbecalm-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
# The packages that the .pc files require: pkg-config reads the .pc files of private requirements, too.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "libyaml-dev, libcurl4-openssl-dev, libhiredis-dev, libssl3 | libssl3t64")

set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE MIT)
set(CPACK_RPM_PACKAGE_RELOCATABLE OFF)
set(CPACK_RPM_COMMAND_PACKAGE_NAME becalm)
string(REGEX MATCH "^[0-9]+" number "${SSL_VERSION}") # as src/libssl loads it
set(bits "")
if(CMAKE_SIZEOF_VOID_P EQUAL 8)
    set(bits "()(64bit)")
endif()
set(openssl "libssl.so.${number}${bits}, libcrypto.so.${number}${bits}")
set(CPACK_RPM_COMMAND_PACKAGE_REQUIRES "${openssl}")
set(CPACK_RPM_COMMAND_USER_FILELIST "%config(noreplace) /etc/becalm/becalm.yaml")
set(CPACK_RPM_COMMAND_POST_INSTALL_SCRIPT_FILE ${scripts}/postinst)
set(CPACK_RPM_COMMAND_PRE_UNINSTALL_SCRIPT_FILE ${scripts}/prerm)
set(CPACK_RPM_COMMAND_POST_UNINSTALL_SCRIPT_FILE ${scripts}/postrm)
set(CPACK_RPM_LIBRARY_PACKAGE_NAME becalm-devel)
set(CPACK_RPM_LIBRARY_PACKAGE_REQUIRES "pkgconfig(yaml-0.1), pkgconfig(libcurl), pkgconfig(hiredis), ${openssl}")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /etc /usr /usr/bin /usr/lib /usr/lib/systemd /usr/lib/systemd/system /usr/include
    /usr/share /usr/share/doc /usr/share/man /usr/share/man/man1 /usr/share/man/man3 /usr/share/man/man5 /usr/share/man/man7
    /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/zsh /usr/share/zsh/site-functions
    /usr/share/fish /usr/share/fish/vendor_completions.d)
include(CPack)
