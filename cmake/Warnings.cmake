# Tracefs::warnings: the one warning set, clean on g++ 12 and clang 14. Link it
# PRIVATE to every target of ours. -Wconversion and -Wsign-conversion are left
# out: almost all they find in code that talks to system calls is harmless.

include_guard(GLOBAL)
option(TRACEFS_WERROR "Treat warnings as errors (scripts/check does)" OFF)

add_library(tracefs_warnings INTERFACE)
add_library(Tracefs::warnings ALIAS tracefs_warnings)
target_compile_options(tracefs_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  -Wcast-align -Wformat=2 -Wimplicit-fallthrough)

# g++ reports null dereferences that only a sanitizer's own branches introduce.
if(NOT (TRACEFS_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"))
  target_compile_options(tracefs_warnings INTERFACE -Wnull-dereference)
endif()
if(TRACEFS_WERROR)
  target_compile_options(tracefs_warnings INTERFACE -Werror)
endif()
