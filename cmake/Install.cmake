# Where things are installed, and in which of these parts:
#
#   tools     commands, helpers of mount(8), units, manuals, completion, samples
#   receiver  tracefs-recv with its units
#   reader, reader-dev, reader-python   the reading library (tracefs/reader)
#   doc       what is read beside the manuals
#
# All destinations but those of units are below the prefix, so that
# `cmake --install B --prefix P` writes nothing outside P. DESTDIR works as ever.

include_guard(GLOBAL)
include(GNUInstallDirs)

# No command is to look for libraries where it was built; and their identity
# must not depend on the folder's name.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_SKIP_INSTALL_RPATH ON)

# mount(8) looks in /sbin and nowhere else.
set(TRACEFS_HELPER_DIR ${CMAKE_INSTALL_SBINDIR} CACHE STRING
    "Where the helpers of mount(8) go, below the prefix")
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  # That of debhelper 13 in Debian 12; later ones take both.
  set(_units /lib/systemd)
else()
  set(_units lib/systemd)
endif()
set(TRACEFS_SYSTEMD_DIR ${_units} CACHE STRING
    "Where units go: below system/ here")
unset(_units)

# tracefs_folder_of(command result): sbin for what begins with mount or umount.
function(tracefs_folder_of command result)
  set(${result} ${CMAKE_INSTALL_BINDIR} PARENT_SCOPE)
  if(command MATCHES "^u?mount\\.")
    set(${result} ${TRACEFS_HELPER_DIR} PARENT_SCOPE)
  endif()
endfunction()

# tracefs_install_command(command): a program.
function(tracefs_install_command command)
  set(component tools)
  if(command STREQUAL "tracefs-recv")
    set(component receiver)
  endif()
  tracefs_folder_of(${command} folder)
  install(TARGETS ${command} RUNTIME DESTINATION ${folder}
          COMPONENT ${component})
  set_property(GLOBAL APPEND PROPERTY TRACEFS_COMMANDS ${command})
endfunction()

# tracefs_install_link(command): another name of a command.
function(tracefs_install_link command)
  tracefs_folder_of(${command} folder)
  install(FILES ${CMAKE_BINARY_DIR}/bin/${command}
          DESTINATION ${folder} COMPONENT tools)
  set_property(GLOBAL APPEND PROPERTY TRACEFS_COMMANDS ${command})
endfunction()

# tracefs_component_of(page result): the receiver's own things apart.
function(tracefs_component_of name result)
  if(name MATCHES "tracefs-recv")
    set(${result} receiver PARENT_SCOPE)
  elseif(name MATCHES "libtracefs-reader")
    set(${result} reader-dev PARENT_SCOPE)
  else()
    set(${result} tools PARENT_SCOPE)
  endif()
endfunction()
