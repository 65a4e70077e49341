// Tracefs is transparent: every scenario gives the same results, and leaves the
// same tree behind, on the backing directory and through the mount; as root
// and as ordinary users; on a disk and on tmpfs; in every visibility and over
// every transport.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/mount/transparency/runner.h"
#include "tests/support/mount_fixture.h"

namespace tracefs::transparency {
namespace {

struct Setting {
  const char* name;
  ScratchDir::Kind backing;
  const char* visibility;
  const char* transport;
  // In every check; the others, which differ less from these, in a soak: with
  // TRACEFS_SOAK in the environment.
  bool always;
  // Lock requests are settled by the kernel unless they are traced.
  const char* config = "";
  int max_descriptors = 0;  // of the daemon
};

// Nothing is recorded: the kernel is allowed to do all it can by itself.
constexpr char kNothing[] =
    "{ { cuid = 4000000000 } { stream = { STR_ALL } } { file = \"%TRACE%\" } }";
constexpr char kMetadataOnly[] =
    "{ { op IN { lookup getattr unlink rename } } { stream = { STR_ALL } } "
    "{ file = \"%TRACE%\" } }";

constexpr int kFewDescriptors = 2048;

constexpr Setting kSettings[] = {
    {"TmpfsExact", ScratchDir::kTmpfs, "exact", "dev", true},
    {"TmpfsAuto", ScratchDir::kTmpfs, "auto", "auto", false},
    {"TmpfsFast", ScratchDir::kTmpfs, "fast", "auto", false},
    {"TmpfsFastUntraced", ScratchDir::kTmpfs, "fast", "dev", false, kNothing},
    {"TmpfsAutoMetadataOnly", ScratchDir::kTmpfs, "auto", "auto", true,
     kMetadataOnly},
    {"DiskExact", ScratchDir::kDisk, "exact", "auto", false},
    {"DiskAuto", ScratchDir::kDisk, "auto", "dev", true},
    {"DiskFast", ScratchDir::kDisk, "fast", "auto", false},
    {"OverlayAuto", ScratchDir::kOverlay, "auto", "auto", false},
    {"OverlayFastUntraced", ScratchDir::kOverlay, "fast", "dev", false,
     kNothing},
    {"OverlayByName", ScratchDir::kOverlay, "exact", "auto", true, "",
     kFewDescriptors},
};

// So that the daemon has to open whatever comes later by its name: more files
// than it may hold descriptors of, known to the kernel.
void UseUpDescriptors(const std::string& backing, const std::string& mount) {
  const std::string folder = "/known";
  ASSERT_EQ(::mkdir((backing + folder).c_str(), 0755), 0);
  for (int i = 0; i < kFewDescriptors; ++i) {
    const std::string name = folder + "/" + std::to_string(i);
    std::ofstream(backing + name) << i;
    ASSERT_EQ(::access((mount + name).c_str(), F_OK), 0) << i;
  }
}

class TransparencyTest : public testing::TestWithParam<Setting> {};

INSTANTIATE_TEST_SUITE_P(, TransparencyTest, testing::ValuesIn(kSettings),
                         [](const auto& which) { return which.param.name; });

TEST_P(TransparencyTest, EqualToTheBackingDirectory) {
  if (const auto reason = TracefsMount::skip_reason()) GTEST_SKIP() << *reason;
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: becomes other users";
  const Setting& setting = GetParam();
  if (!setting.always && std::getenv("TRACEFS_SOAK") == nullptr) {
    GTEST_SKIP() << "takes half a minute; set TRACEFS_SOAK to run it";
  }
  if (const auto reason = ScratchDir::skip_reason(setting.backing)) {
    GTEST_SKIP() << *reason;
  }
  TracefsMount mount;
  const Status started =
      mount.Start({.backing = setting.backing,
                   .visibility = setting.visibility,
                   .transport = setting.transport,
                   .config = setting.config,
                   .max_descriptors = setting.max_descriptors});
  ASSERT_TRUE(started.ok()) << started.message();
  if (setting.max_descriptors > 0) {
    UseUpDescriptors(mount.backing_dir(), mount.mount_dir());
  }
  RunnerOptions options;
  options.backing = mount.backing_dir();
  options.mount = mount.mount_dir();
  options.expect_all_deviations = setting.backing != ScratchDir::kOverlay;
  const Report report = RunTransparency(options);
  EXPECT_GT(report.runs, 1200);
  for (const Difference& difference : report.differences) {
    ADD_FAILURE() << difference.scenario << " as " << difference.user << ":\n"
                  << difference.text;
  }
  EXPECT_EQ(mount.Stop(), "");
}

// Who may do what, on every file system, as every user, in every setting.
struct Rights {
  const char* name;
  ScratchDir::Kind backing;
  const char* visibility;
  const char* transport;
  bool always;
};

std::vector<Rights> AllRights() {
  constexpr std::pair<const char*, ScratchDir::Kind> kBackings[] = {
      {"Ext4", ScratchDir::kExt4},
      {"Xfs", ScratchDir::kXfs},
      {"Btrfs", ScratchDir::kBtrfs},
      {"Overlay", ScratchDir::kOverlay},
      {"Tmpfs", ScratchDir::kTmpfs}};
  std::vector<Rights> all;
  size_t backing = 0;
  for (const auto& [name, kind] : kBackings) {
    size_t setting = 0;
    for (const char* visibility : {"exact", "auto", "fast"}) {
      for (const char* transport : {"dev", "uring"}) {
        // One setting of each file system, another one of each.
        const bool always = setting++ == backing % 6;
        all.push_back({name, kind, visibility, transport, always});
      }
    }
    ++backing;
  }
  return all;
}

class RightsTest : public testing::TestWithParam<Rights> {};

INSTANTIATE_TEST_SUITE_P(, RightsTest, testing::ValuesIn(AllRights()),
                         [](const auto& which) {
                           return std::string(which.param.name) + "_" +
                                  which.param.visibility + "_" +
                                  which.param.transport;
                         });

TEST_P(RightsTest, EqualToTheBackingDirectory) {
  if (const auto reason = TracefsMount::skip_reason()) GTEST_SKIP() << *reason;
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: becomes other users";
  const Rights& setting = GetParam();
  if (!setting.always && std::getenv("TRACEFS_SOAK") == nullptr) {
    GTEST_SKIP() << "takes seconds; set TRACEFS_SOAK to run it";
  }
  if (const auto reason = ScratchDir::skip_reason(setting.backing)) {
    GTEST_SKIP() << *reason;
  }
  std::ifstream uring("/sys/module/fuse/parameters/enable_uring");
  if (setting.transport == std::string("uring") && uring.get() != 'Y') {
    GTEST_SKIP() << "FUSE over io_uring is switched off";
  }
  // What is recorded decides how long the kernel remembers.
  for (const char* config : {"", kNothing}) {
    TracefsMount mount;
    const Status started = mount.Start({.backing = setting.backing,
                                        .visibility = setting.visibility,
                                        .transport = setting.transport,
                                        .config = config});
    ASSERT_TRUE(started.ok()) << started.message();
    RunnerOptions options;
    options.backing = mount.backing_dir();
    options.mount = mount.mount_dir();
    options.filter = "perm.";
    const Report report = RunTransparency(options);
    EXPECT_GT(report.runs, 50);
    for (const Difference& difference : report.differences) {
      ADD_FAILURE() << difference.scenario << " as " << difference.user << ":\n"
                    << difference.text;
    }
    EXPECT_EQ(mount.Stop(), "");
  }
}

}  // namespace
}  // namespace tracefs::transparency
