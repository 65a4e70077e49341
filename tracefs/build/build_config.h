// What a build's programs are called: patterns of compilers, linkers, shells,
// as CAS's .bas_config names them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tracefs/base/status.h"

namespace tracefs::build {

using Patterns = std::vector<std::string>;

struct BuildConfig {
  Patterns ld_spec = {"*/ld",     "*/ld.bfd",   "*/ld.gold",
                      "*/ld.lld", "*/ld64.lld", "*/mold",
                      "*-ld",     "*-ld.bfd",   "*-ld.gold"};
  Patterns ar_spec = {"*/ar", "*-ar", "*/llvm-ar", "*/llvm-ar-[0-9]*"};
  Patterns gcc_spec = {"*/gcc", "*/cc",         "*/c99",
                       "*-gcc", "*/gcc-[0-9]*", "*-gcc-[0-9]*"};
  Patterns gpp_spec = {"*/g++", "*/c++", "*-g++", "*/g++-[0-9]*",
                       "*-g++-[0-9]*"};
  Patterns clang_spec = {"*/clang", "*/clang-[0-9]*"};
  Patterns clangpp_spec = {"*/clang++", "*/clang++-[0-9]*"};
  Patterns armcc_spec;
  // Drivers that compile in their own process.
  Patterns integrated_clang_compilers = {"*/clang", "*/clang++",
                                         "*/clang-[0-9]*", "*/clang++-[0-9]*"};
  Patterns rbm_wrapping_binaries = {"/bin/bash",     "/bin/sh",
                                    "/usr/bin/bash", "/usr/bin/sh",
                                    "/bin/dash",     "/usr/bin/dash"};
  Patterns dependency_exclude_patterns = {"/dev/*", "/proc/*", "*.rsp"};
  // By module: patterns of files, and of commands, that are excluded for it.
  std::map<std::string, Patterns> additional_module_exclude_pattern_variants;
  std::map<std::string, Patterns> exclude_command_variants;
  Patterns module_dependencies_with_pipes;
  Patterns module_dependencies_exclude_with_pipes;

  // All patterns of commands, each once, in order: the bits of "n".
  Patterns CommandPatterns() const;
};

// Takes a JSON object with these keys; those that are not there keep what they
// are, unknown ones are not looked at. kInvalid, with the place, if it is none
// or a value is of another kind.
Status ReadBuildConfig(const std::string& text, const std::string& name,
                       BuildConfig* config);
// The same from a file.
Result<BuildConfig> LoadBuildConfig(const std::string& path);

}  // namespace tracefs::build
