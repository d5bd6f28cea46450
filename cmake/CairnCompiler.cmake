# SPDX-License-Identifier: Apache-2.0
# Language level, warnings, sanitizers and output places, for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
if(NOT CMAKE_RUNTIME_OUTPUT_DIRECTORY)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endif()

set(CAIRN_SANITIZE "" CACHE STRING "Sanitizers to build with, as for -fsanitize=")

# Warnings are errors for us, not for somebody who builds a release with another compiler.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion $<$<NOT:$<CONFIG:Release>>:-Werror>
  -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # The stable_sort of libstdc++ 12 uses what libstdc++ deprecates; g++ looks away, and still warns of
  # our own uses.
  add_compile_options(-Wthread-safety -Wno-deprecated-declarations)
elseif(CMAKE_BUILD_TYPE STREQUAL Release)
  # Optimised, g++ 12 takes `"text" + std::string` for overlapping memory (GCC bug 105329), and an
  # optional that holds nothing for one that is read (80635).
  add_compile_options(-Wno-restrict -Wno-maybe-uninitialized)
endif()
if(CAIRN_SANITIZE)
  add_compile_options(-fsanitize=${CAIRN_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${CAIRN_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Instrumented code hides from g++ what a variant holds: the warning is false then.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()

set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)
if(CAIRN_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # g++ takes a source that is included for a header, whose types must not hold unnamed ones.
  add_compile_options(-Wno-subobject-linkage)
endif()

find_program(CAIRN_CCACHE ccache)
if(CAIRN_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CAIRN_CCACHE})
endif()
