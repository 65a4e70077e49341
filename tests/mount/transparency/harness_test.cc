// The suite itself: a bind mount shows no difference, one with other options
// does, and a documented deviation that is none is reported.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/mount/transparency/runner.h"

namespace tracefs::transparency {
namespace {

class TransparencyHarnessTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root: mounts, other users";
    char name[] = "/tmp/tracefs_transparency.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    dir_ = name;
    ::chmod(name, 0755);
    if (::mount("transparency", name, "tmpfs", 0, "mode=755") != 0) {
      GTEST_SKIP() << "cannot mount a tmpfs";
    }
    tmpfs_ = true;
    options_.backing = dir_ + "/backing";
    options_.mount = dir_ + "/mount";
    options_.expect_deviations = false;
    ASSERT_EQ(::mkdir(options_.backing.c_str(), 0755), 0);
    ASSERT_EQ(::mkdir(options_.mount.c_str(), 0755), 0);
    ASSERT_EQ(::mount(options_.backing.c_str(), options_.mount.c_str(), nullptr,
                      MS_BIND, nullptr),
              0);
  }
  void TearDown() override {
    if (tmpfs_) {
      ::umount2(options_.mount.c_str(), MNT_DETACH);
      ::umount2(dir_.c_str(), MNT_DETACH);
    }
    if (!dir_.empty()) ::rmdir(dir_.c_str());
  }
  void Remount(unsigned long flags) {
    ASSERT_EQ(::mount(nullptr, options_.mount.c_str(), nullptr,
                      MS_BIND | MS_REMOUNT | flags, nullptr),
              0);
  }
  // The scenarios that differ.
  std::vector<std::string> Different() {
    std::vector<std::string> names;
    for (const Difference& difference : RunTransparency(options_).differences) {
      names.push_back(difference.scenario);
    }
    return names;
  }

  std::string dir_;
  bool tmpfs_ = false;
  RunnerOptions options_;
};

TEST_F(TransparencyHarnessTest, ABindMountIsTransparent) {
  const Report report = RunTransparency(options_);
  EXPECT_GE(AllScenarios().size(), 300u);
  EXPECT_GT(report.runs, 900);
  for (const Difference& difference : report.differences) {
    ADD_FAILURE() << difference.scenario << " as " << difference.user << ":\n"
                  << difference.text;
  }
}

TEST_F(TransparencyHarnessTest, AReadOnlyMountIsNot) {
  Remount(MS_RDONLY);
  options_.filter = "names.";
  EXPECT_GT(Different().size(), 50u);
}

TEST_F(TransparencyHarnessTest, ANoexecMountDiffersInExecOnly) {
  Remount(MS_NOEXEC);
  options_.filter = "exec.binary";
  EXPECT_FALSE(Different().empty());
  options_.filter = "special.";
  EXPECT_TRUE(Different().empty());
}

TEST_F(TransparencyHarnessTest, ANodevMountDiffersInDeviceNodes) {
  Remount(MS_NODEV);
  options_.filter = "special.";
  EXPECT_EQ(Different(), std::vector<std::string>{"special.open_device_nodes"});
}

TEST_F(TransparencyHarnessTest, DeviationsThatAreNoneAreReported) {
  options_.expect_deviations = true;
  for (const Deviation& deviation : Deviations()) {
    options_.filter = deviation.scenario;
    const std::vector<std::string> different = Different();
    const bool reported = std::find(different.begin(), different.end(),
                                    deviation.scenario) != different.end();
    EXPECT_EQ(reported, deviation.always) << deviation.scenario;
  }
}

TEST_F(TransparencyHarnessTest, EveryScenarioHasItsOwnName) {
  std::vector<std::string> names;
  for (const Scenario* scenario : AllScenarios()) {
    names.emplace_back(scenario->name);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  for (const Deviation& deviation : Deviations()) {
    EXPECT_TRUE(
        std::binary_search(names.begin(), names.end(), deviation.scenario))
        << deviation.scenario;
  }
}

}  // namespace
}  // namespace tracefs::transparency
