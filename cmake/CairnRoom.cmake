# SPDX-License-Identifier: Apache-2.0
# One function makes a room: a static library, its public headers and its tests. Before any room is built,
# tools/check_rooms.py reads these calls and checks who includes whom.
#
#   cairn_room(tree
#     DEPS base array sharding        # rooms whose headers it may include; nothing is inherited
#     PUBLIC tree.h key_path.h        # headers that users may include; installed, and compiled alone
#     SHARED child_order.h            # headers that other rooms may include, but users may not
#     PRIVATE flatten_order.h         # headers for this room only
#     SOURCES tree.cc key_path.cc
#     GENERATED version.cc            # sources that configure_file() made in the binary folder
#     TESTS tree_test.cc              # one test program for the room: cairn_tree_test
#     TEST_DEPS testing storage       # rooms that only the tests may include
#     LIBRARIES OpenSSL::Crypto)      # third-party libraries
#
# SEPARATE after the name: not a part of libcairn.
# A room made of headers alone leaves SOURCES empty.

define_property(GLOBAL PROPERTY CAIRN_ROOMS BRIEF_DOCS "Names of all rooms of libcairn, in layer order")

find_package(Python3 COMPONENTS Interpreter QUIET)
add_custom_target(cairn_check_rooms)
if(Python3_FOUND)
  file(GLOB_RECURSE checked CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cairn/*.h ${PROJECT_SOURCE_DIR}/cairn/*.cc
    ${PROJECT_SOURCE_DIR}/cairn/CMakeLists.txt)
  set(tools ${CMAKE_CURRENT_LIST_DIR}/../tools)
  set(stamp ${PROJECT_BINARY_DIR}/rooms.stamp)
  add_custom_command(OUTPUT ${stamp}
    COMMAND ${Python3_EXECUTABLE} -B ${tools}/check_rooms.py --stamp ${stamp} ${PROJECT_SOURCE_DIR}
    DEPENDS ${checked} ${tools}/check_rooms.py ${tools}/rooms.py
    COMMENT "Checking who includes whom"
    VERBATIM)
  add_custom_target(cairn_check_rooms_now DEPENDS ${stamp})
  add_dependencies(cairn_check_rooms cairn_check_rooms_now)
else()
  message(STATUS "Rooms are not checked: there is no Python")
endif()

add_custom_target(cairn_room_tests COMMENT "Test programs of all rooms")

function(cairn_room name)
  cmake_parse_arguments(ROOM "SEPARATE" "" "DEPS;PUBLIC;SHARED;PRIVATE;SOURCES;GENERATED;TESTS;TEST_DEPS;LIBRARIES" ${ARGN})
  if(ROOM_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "room ${name}: unknown arguments ${ROOM_UNPARSED_ARGUMENTS}")
  endif()
  set(target cairn_${name})
  list(TRANSFORM ROOM_DEPS PREPEND cairn_ OUTPUT_VARIABLE dep_targets)

  if(ROOM_SOURCES)
    list(TRANSFORM ROOM_GENERATED PREPEND ${CMAKE_CURRENT_BINARY_DIR}/)
    add_library(${target} STATIC ${ROOM_SOURCES} ${ROOM_GENERATED})
    if(NOT name STREQUAL testing)
      set_target_properties(${target} PROPERTIES UNITY_BUILD "${CAIRN_UNITY}")
    endif()
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE ${ROOM_LIBRARIES})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_dependencies(${target} cairn_check_rooms)
  target_link_libraries(${target} ${scope} ${dep_targets} fmt::fmt Threads::Threads)
  target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ROOM_PUBLIC})

  if(CAIRN_TESTS AND ROOM_TESTS)
    list(TRANSFORM ROOM_TEST_DEPS PREPEND cairn_ OUTPUT_VARIABLE test_targets)
    add_executable(${target}_test ${ROOM_TESTS})
    target_link_libraries(${target}_test PRIVATE ${target} ${test_targets} GTest::gmock GTest::gtest_main)
    add_dependencies(cairn_room_tests ${target}_test)
    gtest_discover_tests(${target}_test DISCOVERY_MODE PRE_TEST TEST_PREFIX ${name}.
      PROPERTIES LABELS ${name} TIMEOUT 600 SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
  endif()
  if(NOT name STREQUAL testing AND NOT ROOM_SEPARATE)
    set_property(GLOBAL APPEND PROPERTY CAIRN_ROOMS ${name})
  endif()
endfunction()
