// The device driver, on a loop device: needs root and losetup(8).
#include "drivers/output/device.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "tests/unit/drivers/output/driven_trace.h"
#include "tests/unit/filters/output/temp_folder.h"

namespace tracefs {
namespace {

std::string OutputOf(const std::string& command) {
  std::string text;
  if (FILE* const pipe = ::popen(command.c_str(), "r")) {
    char part[256];
    while (::fgets(part, sizeof part, pipe) != nullptr) text += part;
    ::pclose(pipe);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    image_ = folder_.Write("image", std::string(1 << 20, 'o'));
    device_ = OutputOf("losetup -f --show '" + image_ + "' 2>/dev/null");
    if (device_.empty()) GTEST_SKIP() << "no loop device can be had here";
  }
  void TearDown() override {
    if (!device_.empty()) OutputOf("losetup -d " + device_);
  }
  Result<std::unique_ptr<OutputDriver>> Make() {
    Result<UniqueFd> fd = DeviceDriver::Open({.path = device_});
    if (!fd.ok()) return fd.status();
    return DeviceDriver::Create({.path = device_}, *std::move(fd));
  }

  TempFolder folder_;
  std::string image_;
  std::string device_;
};

TEST_F(DeviceTest, ATraceIsReadBackFromTheDeviceAndFromItsImage) {
  const DrivenTrace trace(20, 10, "device");
  auto driver = Make();
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  trace.WriteAll(**driver);
  driver->reset();
  for (const std::string& path : {device_, image_}) {
    const ReadBack back = ReadFiles({path});
    EXPECT_EQ(back.numbers, Range(1, 200)) << path << back.error;
    EXPECT_FALSE(back.stats.Bad()) << path << ": " << back.reports;
    EXPECT_TRUE(back.stats.final_record.has_value());
  }
}

TEST_F(DeviceTest, WithoutItsEndWhatIsBehindIsNotTakenForDamage) {
  // A longer trace, and over it the beginning of another one.
  const DrivenTrace old(40, 40, "device");
  auto driver = Make();
  ASSERT_TRUE(driver.ok());
  old.WriteAll(**driver);
  driver->reset();
  const DrivenTrace trace(20, 10, "device");
  driver = Make();
  ASSERT_TRUE(driver.ok());
  ASSERT_TRUE((*driver)->Initialize(trace.Identity()).ok());
  for (size_t i = 0; i <= 10; ++i) {
    ASSERT_TRUE(trace.Write(**driver, i).ok());
  }
  driver->reset();  // as if killed
  const ReadBack back = ReadFiles({device_});
  EXPECT_EQ(back.numbers, Range(1, 100));
  EXPECT_EQ(back.stats.damaged_bytes, 0u) << back.reports;
  EXPECT_NE(back.reports.find("without a FINAL"), std::string::npos);
}

TEST_F(DeviceTest, DataLoss_AFullDeviceHasRoomForTheEnd) {
  const DrivenTrace trace(2000, 40, "device");
  auto driver = Make();
  ASSERT_TRUE(driver.ok());
  ASSERT_TRUE((*driver)->Initialize(trace.Identity()).ok());
  size_t kept = 0;
  for (size_t i = 0; i + 1 < trace.size(); ++i) {
    const Status status = trace.Write(**driver, i);
    if (status.ok()) {
      ++kept;
    } else {
      EXPECT_EQ(status.error(), ENOSPC);
    }
  }
  EXPECT_LT(kept + 1, trace.size());
  EXPECT_TRUE(trace.Write(**driver, trace.size() - 1).ok());
  EXPECT_TRUE((*driver)->Release().ok());
  const ReadBack back = ReadFiles({device_});
  EXPECT_EQ(back.stats.blocks, kept + 1);
  EXPECT_TRUE(back.stats.final_record.has_value());
  EXPECT_EQ(back.stats.damaged_bytes, 0u);
}

TEST_F(DeviceTest, AMountedDeviceIsRefused) {
  if (OutputOf("mkfs.ext4 -q -F " + device_ + " 2>&1 && echo made")
          .find("made") == std::string::npos) {
    GTEST_SKIP() << "no mkfs.ext4";
  }
  const std::string at = folder_.Path("m");
  ASSERT_EQ(::mkdir(at.c_str(), 0700), 0);
  if (::mount(device_.c_str(), at.c_str(), "ext4", 0, nullptr) != 0) {
    GTEST_SKIP() << "cannot mount ext4";
  }
  const auto driver = Make();
  ::umount2(at.c_str(), MNT_DETACH);
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.status().error(), EBUSY);
  EXPECT_NE(driver.status().message().find("mounted"), std::string::npos);
}

TEST(DeviceFileTest, AFileIsNoDevice) {
  const TempFolder folder;
  const std::string path = folder.Write("file", "precious");
  auto fd = DeviceDriver::Open({.path = path});
  ASSERT_TRUE(fd.ok());
  const auto driver = DeviceDriver::Create({.path = path}, *std::move(fd));
  ASSERT_FALSE(driver.ok());
  EXPECT_NE(driver.status().message().find("file = "), std::string::npos);
  EXPECT_EQ(TempFolder::Read(path), "precious");
}

}  // namespace
}  // namespace tracefs
