#include "tracefs/tally/transfer.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace tracefs::tally {
namespace {

Event Done(Op op, int64_t result, int error = 0) {
  Event event;
  event.op = op;
  event.SetResult(result, error);
  return event;
}

void ExpectBytes(const Bytes& bytes, uint64_t read, uint64_t written) {
  EXPECT_EQ(bytes.read, read);
  EXPECT_EQ(bytes.written, written);
  EXPECT_EQ(bytes.moved(), read != 0 ? read : written);
}

TEST(TransferTest, AReadAndAWriteAreOfTheirFile) {
  const TransferList read = TransfersOf(Done(Op::read_, 100));
  ASSERT_EQ(read.size(), 1u);
  EXPECT_TRUE(read.begin()->reads());
  EXPECT_EQ(read.begin()->end, End::kFile);
  EXPECT_EQ(read.begin()->bytes, 100u);
  const TransferList write = TransfersOf(Done(Op::write_, 7));
  ASSERT_EQ(write.size(), 1u);
  EXPECT_TRUE(write.begin()->writes());
  EXPECT_EQ(write.begin()->end, End::kFile);
  EXPECT_EQ(write.begin()->bytes, 7u);
}

TEST(TransferTest, ACopyReadsItsSourceAndWritesItsDestination) {
  const TransferList copy = TransfersOf(Done(Op::copy_file_range_, 4096));
  ASSERT_EQ(copy.size(), 2u);
  const Transfer from = copy.begin()[0];
  const Transfer to = copy.begin()[1];
  EXPECT_TRUE(from.reads());
  EXPECT_EQ(from.end, End::kFile);
  EXPECT_EQ(from.bytes, 4096u);
  EXPECT_TRUE(to.writes());
  EXPECT_EQ(to.end, End::kSecond);
  EXPECT_EQ(to.bytes, 4096u);
  ExpectBytes(BytesOf(Done(Op::copy_file_range_, 4096)), 4096, 4096);
}

TEST(TransferTest, EachEndOfACopyHasItsOwnWayOnly) {
  ExpectBytes(BytesOf(Op::copy_file_range_, 9, End::kFile), 9, 0);
  ExpectBytes(BytesOf(Op::copy_file_range_, 9, End::kSecond), 0, 9);
  ExpectBytes(BytesOf(Op::read_, 9, End::kFile), 9, 0);
  ExpectBytes(BytesOf(Op::write_, 9, End::kFile), 0, 9);
  ExpectBytes(BytesOf(Op::write_, 9, End::kSecond), 0, 0);
  ExpectBytes(BytesOf(Op::rename_, 9, End::kSecond), 0, 0);
}

TEST(TransferTest, TheResultCountsAndNotWhatWasAskedFor) {
  Event partial = Done(Op::write_, 10);
  partial.Set(Field::kLength, 4096);
  ExpectBytes(BytesOf(partial), 0, 10);
}

TEST(TransferTest, AReadAtTheEndOfAFileIsATransferOfNothing) {
  const TransferList list = TransfersOf(Done(Op::read_, 0));
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list.begin()->bytes, 0u);
}

TEST(TransferTest, WhatFailedOrHasNotRunTransfersNothing) {
  const Event failed = Done(Op::copy_file_range_, -1, ENOSPC);
  EXPECT_TRUE(TransfersOf(failed).empty());
  ExpectBytes(BytesOf(failed), 0, 0);
  Event before;
  before.op = Op::write_;
  before.before = true;
  before.Set(Field::kLength, 512);
  EXPECT_TRUE(TransfersOf(before).empty());
  ExpectBytes(BytesOf(before), 0, 0);
}

TEST(TransferTest, WithoutAResultBytesAreNotInvented) {
  Event event;
  event.op = Op::write_;
  event.Set(Field::kLength, 512);
  const TransferList list = TransfersOf(event);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list.begin()->bytes, 0u);
}

TEST(TransferTest, MappedTransfersAndAppendsAreReadsAndWrites) {
  for (const Op op : {Op::read_, Op::write_}) {
    Event event = Done(op, 4096);
    event.Set(Field::kMapped, 1);
    event.Set(Field::kFlags, 02000);  // O_APPEND
    EXPECT_EQ(BytesOf(event).moved(), 4096u);
  }
}

TEST(TransferTest, OnlyContentCounts) {
  // Sizes without bytes, names, attributes: whatever number is their result.
  for (size_t i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    const bool content =
        op == Op::read_ || op == Op::write_ || op == Op::copy_file_range_;
    Event event = Done(op, 1 << 30);
    event.Set(Field::kLength, 1 << 30);
    event.Set(Field::kNewSize, uint64_t{6} << 30);
    EXPECT_EQ(Transfers(op), content) << OpName(op);
    EXPECT_EQ(TransfersOf(event).empty(), !content) << OpName(op);
    EXPECT_EQ(BytesOf(event).moved() != 0, content) << OpName(op);
  }
}

TEST(TransferTest, Malicious_ANegativeResultIsNoGreatNumber) {
  ExpectBytes(BytesOf(Done(Op::write_, -5)), 0, 0);
  ExpectBytes(BytesOf(Op::read_, INT64_MIN), 0, 0);
  Event event;
  event.op = Op::read_;
  event.Set(Field::kResult, UINT64_MAX);
  ASSERT_EQ(TransfersOf(event).size(), 1u);
  EXPECT_EQ(TransfersOf(event).begin()->bytes, 0u);
}

}  // namespace
}  // namespace tracefs::tally
