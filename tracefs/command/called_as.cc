#include "tracefs/command/called_as.h"

#include <sys/auxv.h>

namespace tracefs {
namespace {

const CalledAs* Find(std::span<const CalledAs> commands, const char* path) {
  if (path == nullptr) return nullptr;
  std::string_view name = path;
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  for (const CalledAs& command : commands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

}  // namespace

const CalledAs& WhatWeAreCalled(std::span<const CalledAs> commands, int argc,
                                char** argv) {
  // What was executed wins: argument 0 is whatever the caller likes.
  const auto* const file =
      reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  if (const CalledAs* const found = Find(commands, file)) return *found;
  if (const CalledAs* const found =
          Find(commands, argc > 0 ? argv[0] : nullptr)) {
    return *found;
  }
  return commands.front();
}

}  // namespace tracefs
