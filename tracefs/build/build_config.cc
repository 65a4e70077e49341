#include "tracefs/build/build_config.h"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tracefs/base/file_io.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs::build {
namespace {

using nlohmann::json;

constexpr size_t kMaxConfigBytes = size_t{16} << 20;

Status WrongKind(const std::string& name, const std::string& key,
                 const char* wanted) {
  return Status::Invalid(name + ": \"" + key + "\" must be " + wanted);
}

Status ReadPatterns(const json& value, const std::string& name,
                    const std::string& key, Patterns* patterns) {
  if (!value.is_array()) return WrongKind(name, key, "a list of patterns");
  Patterns read;
  for (const json& pattern : value) {
    if (!pattern.is_string()) return WrongKind(name, key, "a list of patterns");
    read.push_back(pattern.get<std::string>());
  }
  *patterns = std::move(read);
  return {};
}

Status ReadVariants(const json& value, const std::string& name,
                    const std::string& key,
                    std::map<std::string, Patterns>* variants) {
  if (!value.is_object()) {
    return WrongKind(name, key, "an object of lists of patterns");
  }
  variants->clear();
  for (const auto& [module, patterns] : value.items()) {
    const Status status =
        ReadPatterns(patterns, name, key, &(*variants)[module]);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace

Patterns BuildConfig::CommandPatterns() const {
  Patterns all;
  for (const auto& [module, patterns] : exclude_command_variants) {
    for (const std::string& pattern : patterns) {
      if (std::find(all.begin(), all.end(), pattern) == all.end()) {
        all.push_back(pattern);
      }
    }
  }
  return all;
}

Status ReadBuildConfig(const std::string& text, const std::string& name,
                       BuildConfig* config) {
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) {
    return Status::Invalid(name + ": not a JSON object");
  }
  const std::pair<const char*, Patterns*> lists[] = {
      {"ld_spec", &config->ld_spec},
      {"ar_spec", &config->ar_spec},
      {"gcc_spec", &config->gcc_spec},
      {"gpp_spec", &config->gpp_spec},
      {"clang_spec", &config->clang_spec},
      {"clangpp_spec", &config->clangpp_spec},
      {"armcc_spec", &config->armcc_spec},
      {"integrated_clang_compilers", &config->integrated_clang_compilers},
      {"rbm_wrapping_binaries", &config->rbm_wrapping_binaries},
      {"dependency_exclude_patterns", &config->dependency_exclude_patterns},
      {"module_dependencies_with_pipes",
       &config->module_dependencies_with_pipes},
      {"module_dependencies_exclude_with_pipes",
       &config->module_dependencies_exclude_with_pipes},
  };
  for (const auto& [key, patterns] : lists) {
    if (!root.contains(key)) continue;
    const Status status = ReadPatterns(root[key], name, key, patterns);
    if (!status.ok()) return status;
  }
  const std::pair<const char*, std::map<std::string, Patterns>*> variants[] = {
      {"additional_module_exclude_pattern_variants",
       &config->additional_module_exclude_pattern_variants},
      {"exclude_command_variants", &config->exclude_command_variants},
  };
  for (const auto& [key, all] : variants) {
    if (!root.contains(key)) continue;
    const Status status = ReadVariants(root[key], name, key, all);
    if (!status.ok()) return status;
  }
  return {};
}

Result<BuildConfig> LoadBuildConfig(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return Status::System(errno, path);
  const Result<std::string> text = ReadText(fd.get(), kMaxConfigBytes, path);
  if (!text.ok()) return text.status();
  BuildConfig config;
  const Status status = ReadBuildConfig(*text, path, &config);
  if (!status.ok()) return status;
  return config;
}

}  // namespace tracefs::build
