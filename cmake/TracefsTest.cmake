# tracefs_test() and tracefs_fuzz(): how tests are built and registered.
#
# Labels say what a test needs or is: unit, mount, tools, fuzz; `slow` for one
# that takes more than about ten seconds; `parsers` for one of code that reads
# what others wrote (the target `parsers` builds those); `no-asan` and `no-tsan` for one that
# cannot run under that sanitizer, or takes long and has nothing to show there.
# scripts/check leaves the latter two out where they apply.

include_guard(GLOBAL)
include("${CMAKE_CURRENT_LIST_DIR}/Warnings.cmake")
find_package(GTest REQUIRED)

add_custom_target(parsers)
option(TRACEFS_LIBFUZZER "Build fuzz targets for libFuzzer (clang only)" OFF)
set(_tracefs_cmake_dir "${CMAKE_CURRENT_LIST_DIR}")

# A test whose every case was skipped counts as skipped, not as passed.
set(_tracefs_skipped 77)
add_library(tracefs_test_main STATIC "${_tracefs_cmake_dir}/test_main.cc")
target_compile_features(tracefs_test_main PRIVATE cxx_std_20)
target_compile_definitions(tracefs_test_main
                           PRIVATE TRACEFS_SKIPPED=${_tracefs_skipped})
target_link_libraries(tracefs_test_main PUBLIC GTest::gmock GTest::gtest)
target_link_libraries(tracefs_test_main PRIVATE Tracefs::warnings)

# tracefs_test(NAME name SOURCES file... [LIBS target...] [LABELS label...]
#              [TIMEOUT seconds] [SERIAL] [ENVIRONMENT NAME=value...]
#              [ARGS argument...])
# Builds a GoogleTest executable, tests/<name> in the build folder, and
# registers it as one test. The default label is unit, the default time 600 s.
# SERIAL: never beside another test.
function(tracefs_test)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "SERIAL;WAITS" "NAME;TIMEOUT"
                        "SOURCES;LIBS;LABELS;ENVIRONMENT;ARGS")
  _tracefs_check_arguments(tracefs_test)
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  if(TRACEFS_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 6")
  endif()
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_compile_features(${ARG_NAME} PRIVATE cxx_std_20)
  target_include_directories(${ARG_NAME} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_LIBS} tracefs_test_main
                        Tracefs::warnings)
  if("parsers" IN_LIST ARG_LABELS)
    add_dependencies(parsers ${ARG_NAME})
  endif()
  set_target_properties(${ARG_NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME} ${ARG_ARGS}
           WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  set_tests_properties(${ARG_NAME} PROPERTIES
    LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
    SKIP_RETURN_CODE ${_tracefs_skipped} RUN_SERIAL ${ARG_SERIAL}
    ENVIRONMENT "${ARG_ENVIRONMENT}")
  tracefs_load(${ARG_NAME} ${ARG_WAITS})
endfunction()

# tracefs_fuzz(NAME name SOURCES file... [LIBS target...] CORPUS folder
#              [LABELS label...] [MUTATIONS n] [TIMEOUT seconds])
# Builds tests/<name> from a source that defines LLVMFuzzerTestOneInput(), with
# a main of ours that any compiler can build: it replays a corpus and runs
# deterministic mutations of it. Both are registered as tests: <name> and
# <name>_mutate. With TRACEFS_LIBFUZZER, libFuzzer takes the place of that main
# and only the replay is registered.
function(tracefs_fuzz)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME;CORPUS;MUTATIONS;TIMEOUT"
                        "SOURCES;LIBS;LABELS")
  _tracefs_check_arguments(tracefs_fuzz)
  if(NOT ARG_CORPUS)
    message(FATAL_ERROR "tracefs_fuzz(${ARG_NAME}): no CORPUS")
  endif()
  if(NOT ARG_MUTATIONS)
    set(ARG_MUTATIONS 20000)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  get_filename_component(corpus "${ARG_CORPUS}" ABSOLUTE)
  if(NOT IS_DIRECTORY "${corpus}")
    message(FATAL_ERROR "tracefs_fuzz(${ARG_NAME}): no folder ${corpus}")
  endif()

  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_compile_features(${ARG_NAME} PRIVATE cxx_std_20)
  target_include_directories(${ARG_NAME} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_LIBS} Tracefs::warnings)
  set_target_properties(${ARG_NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  add_dependencies(parsers ${ARG_NAME})
  if(TRACEFS_LIBFUZZER)
    if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      message(FATAL_ERROR "TRACEFS_LIBFUZZER needs clang")
    endif()
    target_link_options(${ARG_NAME} PRIVATE -fsanitize=fuzzer)
    # -runs=0: every file of the corpus once, nothing new.
    add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME} -runs=0 "${corpus}")
    set(tests ${ARG_NAME})
  else()
    target_sources(${ARG_NAME} PRIVATE "${_tracefs_cmake_dir}/fuzz_main.cc")
    add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME} "${corpus}")
    add_test(NAME ${ARG_NAME}_mutate
             COMMAND ${ARG_NAME} --mutate ${ARG_MUTATIONS} --seed 1
                     "${corpus}")
    set(tests ${ARG_NAME} ${ARG_NAME}_mutate)
  endif()
  set_tests_properties(${tests} PROPERTIES
    LABELS "fuzz;parsers;${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} PROCESSORS 4
    WORKING_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
endfunction()

# How much of the machine a test takes: one that `waits` for others most of its
# time takes half of what a busy one does. The jobs of CMakePresets.json have room
# for three that are busy and two that wait beside each other: many that are busy
# wait now and then, too.
function(tracefs_load test waits)
  if(waits)
    set_tests_properties(${test} PROPERTIES PROCESSORS 2)
  else()
    set_tests_properties(${test} PROPERTIES PROCESSORS 4)
  endif()
endfunction()

# A misspelt keyword would otherwise silently become a source or a label.
macro(_tracefs_check_arguments function)
  if(NOT ARG_NAME OR NOT ARG_SOURCES)
    message(FATAL_ERROR "${function}(${ARG_NAME}): NAME and SOURCES needed")
  endif()
  if(ARG_UNPARSED_ARGUMENTS OR ARG_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "${function}(${ARG_NAME}): "
            "${ARG_UNPARSED_ARGUMENTS} ${ARG_KEYWORDS_MISSING_VALUES}?")
  endif()
endmacro()
