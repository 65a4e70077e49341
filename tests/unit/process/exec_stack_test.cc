// Stacks as execve(2) makes them, and what a kernel would never make.
#include "tracefs/process/exec_stack.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tracefs {
namespace {

constexpr uint64_t kPointer = 0x7ffc00001000;

// A sample after its raw part.
struct Sample {
  uint64_t abi = 2;
  uint64_t pointer = kPointer;
  uint64_t count = 0;
  uint64_t first = 0;
  std::string texts;
  uint64_t copied = UINT64_MAX;  // all
  uint64_t size = 4096;

  std::vector<std::byte> Bytes() const {
    std::string out;
    const auto put = [&out](uint64_t value) {
      out.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    put(abi);
    put(pointer);
    put(size);
    const size_t begin = out.size();
    put(count);
    put(first);
    if (first >= pointer && first - pointer < 4096) {
      out.resize(begin + (first - pointer));
      out += texts;
    }
    out.resize(begin + 4096);
    put(copied == UINT64_MAX ? 4096 : copied);
    const ByteSpan bytes = AsBytes(out);
    return {bytes.begin(), bytes.end()};
  }
};

Sample Three() {
  Sample sample;
  sample.count = 3;
  sample.first = kPointer + 100;
  sample.texts = std::string("sh\0\0two words\0HOME=/root\0", 24);
  return sample;
}

TEST(ExecStackTest, ArgumentsEndWhereTheirNumberSays) {
  const auto argv = ArgumentsOnStack(Three().Bytes());
  ASSERT_TRUE(argv);
  EXPECT_EQ(*argv, std::string("sh\0\0two words\0", 14));
}

TEST(ExecStackTest, WhatIsNotWholeIsUnknown) {
  Sample cut = Three();
  cut.copied = 110;
  EXPECT_FALSE(ArgumentsOnStack(cut.Bytes()));
  const std::vector<std::byte> whole = Three().Bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(ArgumentsOnStack(ByteSpan(whole).first(size))) << size;
  }
}

TEST(ExecStackTest, A32BitProgramIsUnknown) {
  Sample sample = Three();
  sample.abi = 1;
  EXPECT_FALSE(ArgumentsOnStack(sample.Bytes()));
}

TEST(ExecStackTest, Malicious_NumbersThatLieAreUnknown) {
  for (const uint64_t lie : {uint64_t{0}, kPointer - 1, kPointer + 4096,
                             kPointer + 4095, UINT64_MAX}) {
    Sample sample = Three();
    sample.first = lie;
    sample.texts.clear();
    if (lie != kPointer + 4095) {
      EXPECT_FALSE(ArgumentsOnStack(sample.Bytes())) << lie;
    }
    sample = Three();
    sample.count = lie;
    EXPECT_FALSE(ArgumentsOnStack(sample.Bytes())) << lie;
    sample = Three();
    sample.size = lie;
    EXPECT_FALSE(ArgumentsOnStack(sample.Bytes())) << lie;
    sample = Three();
    sample.copied = lie == UINT64_MAX ? lie - 1 : lie;
    EXPECT_FALSE(ArgumentsOnStack(sample.Bytes())) << lie;
  }
}

}  // namespace
}  // namespace tracefs
