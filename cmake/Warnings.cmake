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

# Not with g++: from -O2 on, g++ 12 reports null dereferences inside its own
# std::string once Boost or nlohmann-json are inlined around it.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(tracefs_warnings INTERFACE -Wnull-dereference)
endif()
if(TRACEFS_WERROR)
  target_compile_options(tracefs_warnings INTERFACE -Werror)
endif()
