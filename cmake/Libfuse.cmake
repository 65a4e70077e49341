# Finds libfuse: the static one that scripts/setup built, else the installed.
#
# Defines the target Tracefs::fuse. Whoever links it may say
#   #define FUSE_USE_VERSION TRACEFS_FUSE_USE_VERSION
#   #include <fuse_lowlevel.h>
# and finds these definitions:
#   TRACEFS_FUSE_USE_VERSION  318, or 314 with Debian 12's own libfuse
#   TRACEFS_HAVE_FUSE_URING   1 if the library speaks FUSE over io_uring, else 0
#   TRACEFS_LIBFUSE_VERSION   "3.18.3", for --version
# The same two facts are cache variables, for messages.

include_guard(GLOBAL)
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# The environment wins over what an earlier configure remembered: it says where
# scripts/setup builds now.
if(DEFINED ENV{TRACEFS_DEPS_DIR})
  set(TRACEFS_DEPS_DIR "$ENV{TRACEFS_DEPS_DIR}")
elseif(NOT DEFINED TRACEFS_DEPS_DIR)
  set(TRACEFS_DEPS_DIR "${CMAKE_SOURCE_DIR}/build/deps")
endif()
set(TRACEFS_DEPS_DIR "${TRACEFS_DEPS_DIR}" CACHE PATH
    "What scripts/setup built; several checkouts may share it" FORCE)
option(TRACEFS_SYSTEM_LIBFUSE
       "Use the installed libfuse even where scripts/setup built a newer one"
       OFF)

# Runs pkg-config and stores what it prints. Asked anew at every configure:
# scripts/setup may have built a library since the last one, and what
# pkg_check_modules() has cached would hide it.
function(_tracefs_pkg_config result)
  execute_process(COMMAND "${PKG_CONFIG_EXECUTABLE}" ${ARGN}
                  OUTPUT_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "No usable libfuse: run scripts/setup")
  endif()
  set(${result} "${output}" PARENT_SCOPE)
endfunction()

set(_prefix "${TRACEFS_DEPS_DIR}/libfuse")
set(_pc "${_prefix}/lib/pkgconfig/fuse3.pc")

add_library(tracefs_fuse INTERFACE)
add_library(Tracefs::fuse ALIAS tracefs_fuse)
set(_have_uring 0)
set(_static 0)

if(EXISTS "${_pc}" AND NOT TRACEFS_SYSTEM_LIBFUSE)
  set(_origin "static, ${_prefix}")
  set(_static 1)
  # Should setup replace it, the next build configures again.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${_pc}")
  _tracefs_pkg_config(_version --modversion "${_pc}")
  # A static library brings its own needs along; only its pc file knows them.
  _tracefs_pkg_config(_requires --print-requires --print-requires-private
                      "${_pc}")
  add_library(tracefs_libfuse3 STATIC IMPORTED)
  set_target_properties(tracefs_libfuse3 PROPERTIES
    IMPORTED_LOCATION "${_prefix}/lib/libfuse3.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_prefix}/include/fuse3")
  target_link_libraries(tracefs_libfuse3
                        INTERFACE Threads::Threads ${CMAKE_DL_LIBS} rt)
  if(_requires MATCHES "liburing")
    find_library(TRACEFS_LIBURING uring REQUIRED)
    find_library(TRACEFS_LIBNUMA numa REQUIRED)
    mark_as_advanced(TRACEFS_LIBURING TRACEFS_LIBNUMA)
    target_link_libraries(tracefs_libfuse3 INTERFACE "${TRACEFS_LIBURING}"
                          "${TRACEFS_LIBNUMA}")
    set(_have_uring 1)
  endif()
else()
  set(_origin "installed")
  _tracefs_pkg_config(_version --modversion fuse3)
  _tracefs_pkg_config(_include_dir --variable=includedir fuse3)
  _tracefs_pkg_config(_lib_dir --variable=libdir fuse3)
  add_library(tracefs_libfuse3 SHARED IMPORTED)
  set_target_properties(tracefs_libfuse3 PROPERTIES
    IMPORTED_LOCATION "${_lib_dir}/libfuse3.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_include_dir}/fuse3")
  target_link_libraries(tracefs_libfuse3 INTERFACE Threads::Threads)
  # Whether a distribution built it with io_uring shows in what it needs.
  if(CMAKE_READELF)
    execute_process(COMMAND "${CMAKE_READELF}" -d "${_lib_dir}/libfuse3.so"
                    OUTPUT_VARIABLE _dynamic ERROR_QUIET)
    if(_dynamic MATCHES "liburing")
      set(_have_uring 1)
    endif()
  endif()
endif()
target_link_libraries(tracefs_fuse INTERFACE tracefs_libfuse3)

# libfuse wants major * 100 + minor. 3.18 is the newest interface this code was
# written for; a newer library keeps speaking it.
string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" _ "${_version}")
math(EXPR _use_version "${CMAKE_MATCH_1} * 100 + ${CMAKE_MATCH_2}")
if(_use_version GREATER 318)
  set(_use_version 318)
endif()

target_compile_definitions(tracefs_fuse INTERFACE
  TRACEFS_FUSE_USE_VERSION=${_use_version}
  TRACEFS_HAVE_FUSE_URING=${_have_uring}
  "TRACEFS_LIBFUSE_VERSION=\"${_version}\"")
set(TRACEFS_LIBFUSE_VERSION "${_version}" CACHE INTERNAL "libfuse in use")
set(TRACEFS_HAVE_FUSE_URING "${_have_uring}" CACHE INTERNAL
    "1 if that libfuse speaks FUSE over io_uring")
set(TRACEFS_LIBFUSE_IS_STATIC "${_static}" CACHE INTERNAL
    "1 if calls inside that libfuse can be led elsewhere")

if(_have_uring)
  message(STATUS "libfuse ${_version} (${_origin}), with io_uring")
else()
  message(STATUS "libfuse ${_version} (${_origin}), without io_uring")
endif()
