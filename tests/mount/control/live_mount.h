// A fixture with a real mount and the real tracefs-ctl.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/mount/control/command.h"

namespace tracefs::testing {

class LiveMountTest : public ::testing::Test {
 protected:
  void SetUp() override;
  // Unmounts, and fails if anything is left.
  void TearDown() override;

  std::string Path(std::string_view name) const {
    return scratch_ + '/' + std::string(name);
  }
  // Below the mount point, and below the traced directory.
  std::string In(std::string_view name) const {
    return Path("mnt/") + std::string(name);
  }
  std::string Below(std::string_view name) const {
    return Path("src/") + std::string(name);
  }
  static void Write(const std::string& path, std::string_view text);
  static std::string Read(const std::string& path);

  // A config file of this text.
  std::string Config(std::string_view name, std::string_view text) const;
  // A tracer of everything that the filter keeps, as config text.
  std::string Tracer(std::string_view filter, std::string_view trace) const;

  // Mounts with that config text; fails the test if it cannot.
  void Mount(std::string_view config,
             const std::vector<std::string>& options = {});
  // Unmounts in order; the daemon's exit status.
  int Unmount();

  // tracefs-ctl MNT …
  Outcome Ctl(const std::vector<std::string>& arguments) const;
  std::vector<std::string> CtlWords(
      const std::vector<std::string>& arguments) const;
  // The answer of a command that takes --format json; null if it failed.
  nlohmann::json Ask(const std::string& command) const;
  // The tracer of that id in an answer of `list` or `stats`; null if none.
  static nlohmann::json TracerIn(const nlohmann::json& answer, uint32_t id);
  // The choice about that subject in an answer of `explain`.
  static nlohmann::json ChoiceIn(const nlohmann::json& answer,
                                 std::string_view subject);

  // The operations of a complete trace, in order; fails if it is damaged.
  std::vector<nlohmann::json> Events(const std::string& trace) const;

  std::string scratch_;
  std::unique_ptr<Command> daemon_;
};

}  // namespace tracefs::testing
