#include "tracefs/base/file_checksum.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tracefs/base/crc32c.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

UniqueFd File() { return UniqueFd(::memfd_create("checksum", MFD_CLOEXEC)); }

TEST(Crc32cZerosTest, IsThatOfZeroBytesOfAnyNumber) {
  const uint32_t before = Crc32c(AsBytes("what came before"));
  for (const size_t count : {0, 1, 7, 8, 9, 255, 256, 4095, 4096, 1'000'003}) {
    const std::string zeros(count, '\0');
    EXPECT_EQ(Crc32cZeros(count, before), Crc32c(AsBytes(zeros), before))
        << count;
  }
}

TEST(FileChecksumTest, HolesCountAsTheZerosThatAreReadThere) {
  const UniqueFd fd = File();
  const std::string bytes(5000, 'x');
  ASSERT_TRUE(WriteAllAt(fd.get(), AsBytes(bytes), 100'000, "it").ok());
  ASSERT_TRUE(WriteAllAt(fd.get(), AsBytes(bytes), 300'001, "it").ok());
  ASSERT_EQ(::ftruncate(fd.get(), 500'000), 0);
  ::lseek(fd.get(), 0, SEEK_SET);
  EXPECT_EQ(FileChecksum(fd.get()),
            Crc32c(AsBytes(*ReadText(fd.get(), 1'000'000, "it"))));
}

TEST(FileChecksumTest, NothingIsTheChecksumOfNoBytes) {
  EXPECT_EQ(FileChecksum(File().get()), 0u);
}

TEST(FileChecksumTest, AFileOfEndlessHolesIsNoWork) {
  const UniqueFd fd = File();
  const off_t size = off_t{1} << 61;
  ASSERT_EQ(::ftruncate(fd.get(), size), 0);
  EXPECT_EQ(FileChecksum(fd.get()), Crc32cZeros(static_cast<uint64_t>(size)));
}

}  // namespace
}  // namespace tracefs
