# SPDX-License-Identifier: MIT
#
# The dashboard, built into becalm_admin: its own files, and uPlot, which npm fetches into dashboard/node_modules (tools/setup
# does it too). Without npm or a network the build goes on, and the page says that it has no charts.
set(folder ${PROJECT_SOURCE_DIR}/dashboard)
set(uplot node_modules/uplot/dist)
if(NOT EXISTS ${folder}/${uplot}/uPlot.iife.min.js)
    find_program(BECALM_NPM npm)
    if(BECALM_NPM AND NOT DEFINED ENV{BECALM_NO_INSTALL})
        message(STATUS "Fetching uPlot, for the dashboard's charts")
        execute_process(COMMAND ${BECALM_NPM} ci --ignore-scripts WORKING_DIRECTORY ${folder} TIMEOUT 120
                        OUTPUT_QUIET ERROR_QUIET)
    endif()
endif()

file(GLOB names RELATIVE ${folder} CONFIGURE_DEPENDS ${folder}/*.html ${folder}/*.css ${folder}/*.js
     ${folder}/*.svg)
list(TRANSFORM names REPLACE "(.+)" "\\1=dashboard/\\1" OUTPUT_VARIABLE rows)
if(EXISTS ${folder}/${uplot}/uPlot.iife.min.js)
    list(APPEND rows uplot.js=dashboard/${uplot}/uPlot.iife.min.js uplot.css=dashboard/${uplot}/uPlot.min.css)
else()
    message(WARNING "uPlot could not be fetched: the dashboard will have no charts. Run npm ci in dashboard/ and configure again.")
endif()
becalm_embed(becalm_admin dashboard ${rows})
