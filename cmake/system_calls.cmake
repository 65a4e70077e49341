# Writes FILE: a row {number, "name"}, for each system call that the headers of
# the C library know. They differ between machines.
function(tracefs_write_system_calls FILE)
  execute_process(
    COMMAND ${CMAKE_CXX_COMPILER} ${CMAKE_CXX_COMPILER_ARG1} -x c++ -E -dM
            -include sys/syscall.h /dev/null
    OUTPUT_VARIABLE macros
    RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "the compiler does not list sys/syscall.h")
  endif()
  string(REGEX MATCHALL "#define __NR_[a-z0-9_]+ [0-9]+" lines "${macros}")
  set(rows "")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "#define __NR_([a-z0-9_]+) ([0-9]+)" "{\\2, \"\\1\"},\n"
                         row "${line}")
    string(APPEND rows "${row}")
  endforeach()
  file(CONFIGURE OUTPUT "${FILE}" CONTENT "${rows}" @ONLY)
endfunction()
