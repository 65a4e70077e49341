tracefs_library(NAME tracefs_count_tool
  SOURCES main.cc
  LIBS tracefs_command tracefs_reader_core)
tracefs_small(tracefs_count_tool)
