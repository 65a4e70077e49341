# -DTRACEFS_STATIC=ON: commands that need no library of the machine they run on,
# for the tarball: any glibc, or none. The targets `commands` and `documents`
# are for that; the reading library and the tests are not.
#
# What is loaded while a program runs cannot be had: bf-cbc (a module of
# OpenSSL), users and groups from elsewhere than /etc. Debian has no libnats.a,
# that of librdkafka wants SASL, and its libmicrohttpd.a a GnuTLS of which there
# are no archives: no NATS, no Kafka,
# and --metrics only with a libmicrohttpd of TRACEFS_DEPS_DIR (scripts/setup
# --packages). --version says all that.

include_guard(GLOBAL)
option(TRACEFS_STATIC "Link commands statically" OFF)

if(TRACEFS_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(OPENSSL_USE_STATIC_LIBS ON)
  set(Boost_USE_STATIC_LIBS ON)
  set(ZLIB_USE_STATIC_LIBS ON)
  # Position independent all the same: its place in memory is random.
  string(APPEND CMAKE_EXE_LINKER_FLAGS " -static-pie")
  set(TRACEFS_NATS OFF)
  set(TRACEFS_KAFKA OFF)
endif()

# tracefs_static_command(command): what each of them has besides. The linker
# writes down what went into it (packaging/sbom.py).
function(tracefs_static_command command)
  if(NOT TRACEFS_STATIC)
    return()
  endif()
  target_sources(${command} PRIVATE
    ${PROJECT_SOURCE_DIR}/tracefs/base/static_lookup.cc)
  target_link_options(${command} PRIVATE
    "LINKER:--dependency-file=${CMAKE_BINARY_DIR}/bin/${command}.parts")
endfunction()
