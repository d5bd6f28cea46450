# SPDX-License-Identifier: Apache-2.0
# libcairn.so, made of all rooms; libcairn_mpi.so, where there is MPI; and what `cmake --install` puts in
# place: the libraries, their headers, the command, and the files by which CMake and pkg-config find them.
# A build with sanitizers is for its own programs and installs nothing.
if(CAIRN_SANITIZE)
  return()
endif()

get_property(rooms GLOBAL PROPERTY CAIRN_ROOMS)
list(TRANSFORM rooms PREPEND cairn_)

set(objects)
set(headers ${PROJECT_SOURCE_DIR}/cairn/cairn.h)
foreach(room IN LISTS rooms)
  get_target_property(type ${room} TYPE)
  if(NOT type STREQUAL INTERFACE_LIBRARY)
    list(APPEND objects $<TARGET_OBJECTS:${room}>)
  endif()
  get_target_property(public ${room} HEADER_SET)
  list(APPEND headers ${public})
endforeach()

# All objects of the rooms go in, used or not; linking the rooms too brings the libraries they need.
# Until 1.0 a minor version may change the binary interface, so it is part of the soname.
add_library(cairn SHARED ${objects})
add_library(cairn::cairn ALIAS cairn)
set(map ${PROJECT_SOURCE_DIR}/cmake/libcairn.map)
set_target_properties(cairn PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINKER_LANGUAGE CXX
  LINK_DEPENDS ${map}
  VERIFY_INTERFACE_HEADER_SETS ON)
target_link_libraries(cairn PRIVATE ${rooms})
target_link_options(cairn PRIVATE -Wl,--version-script=${map} -Wl,--no-undefined)
target_compile_features(cairn INTERFACE cxx_std_20)
target_sources(cairn PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})

install(TARGETS cairn EXPORT cairn
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET cairn_coord_mpi)
  get_target_property(mpi_headers cairn_coord_mpi HEADER_SET)
  add_library(cairn_mpi SHARED $<TARGET_OBJECTS:cairn_coord_mpi>)
  add_library(cairn::mpi ALIAS cairn_mpi)
  set_target_properties(cairn_mpi PROPERTIES
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    EXPORT_NAME mpi
    LINKER_LANGUAGE CXX
    LINK_DEPENDS ${map}
    VERIFY_INTERFACE_HEADER_SETS ON)
  target_link_libraries(cairn_mpi PUBLIC cairn PRIVATE MPI::MPI_CXX fmt::fmt)
  # What MPI's wrapper adds for other languages is not needed.
  target_link_options(cairn_mpi PRIVATE -Wl,--version-script=${map} -Wl,--no-undefined -Wl,--as-needed)
  target_sources(cairn_mpi PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${mpi_headers})
  install(TARGETS cairn_mpi EXPORT cairn
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
install(TARGETS cairn_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# The command writes its own completions; each goes where its shell looks.
set(bash_place share/bash-completion/completions cairn)
set(zsh_place share/zsh/site-functions _cairn)
set(fish_place share/fish/vendor_completions.d cairn.fish)
foreach(shell IN ITEMS bash zsh fish)
  set(script ${PROJECT_BINARY_DIR}/completion.${shell})
  add_custom_command(OUTPUT ${script} COMMAND cairn_command completion ${shell} > ${script}
    DEPENDS cairn_command)
  list(APPEND scripts ${script})
  list(GET ${shell}_place 0 folder)
  list(GET ${shell}_place 1 name)
  install(FILES ${script} DESTINATION ${folder} RENAME ${name})
endforeach()
add_custom_target(cairn_completions ALL DEPENDS ${scripts})

include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/cairn)
install(EXPORT cairn FILE cairnTargets.cmake NAMESPACE cairn:: DESTINATION ${package})
configure_package_config_file(cmake/cairnConfig.cmake.in cairnConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(cairnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cairnConfig.cmake ${PROJECT_BINARY_DIR}/cairnConfigVersion.cmake
  DESTINATION ${package})

# The package may be moved: everything in it is found from where cairn.pc lies.
file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(packages cairn)
if(TARGET cairn_mpi)
  list(APPEND packages cairn-mpi)
endif()
foreach(name IN LISTS packages)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
