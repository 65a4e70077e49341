// Traces printed as they come: the same text as a dump of the whole trace.
#include "tracefs/recv/live_printer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/support/net_world.h"
#include "tests/support/trace_builder.h"
#include "tracefs/export/output_buffer.h"
#include "tracefs/recv/frame_parser.h"

namespace tracefs {
namespace {

// A trace with `operations` opens, ten a block, and where its preamble ends.
struct BuiltTrace {
  std::string bytes;
  size_t preamble = 0;
  format::Serial serial{};

  explicit BuiltTrace(int operations, std::string chain = "tcp") {
    test::TraceBuilder trace(std::move(chain));
    serial = trace.serial();
    for (int i = 0; i < operations; ++i) {
      Event event;
      event.op = Op::open_;
      event.Set(Field::kTime, test::TraceBuilder::kMonotonicNs +
                                  static_cast<uint64_t>(i) * 1000);
      event.Set(Field::kFh, static_cast<uint64_t>(i));
      event.SetResult(0, 0);
      trace.Add(event);
      if (i % 10 == 9) trace.EndBlock();
    }
    trace.Finish();
    bytes = trace.bytes();
    preamble = *format::PreambleLength(AsBytes(bytes).first(12));
  }
  net::Hello hello() const {
    return {.preamble = bytes.substr(0, preamble), .serial = serial};
  }
  std::string frames() const { return bytes.substr(preamble); }
};

int Lines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TEST(LivePrinterTest, EveryOperationOnceInOrderHoweverItIsCut) {
  const BuiltTrace trace(95);
  for (const size_t piece : {7u, 64u, 1000u, 1u << 20}) {
    StringOutput out;
    const auto printer = MakeLivePrinter({}, out);
    printer->Open(1, "a", trace.hello());
    const auto opened = printer->TakeEvents();
    ASSERT_EQ(opened.size(), 1u);
    ASSERT_TRUE(opened[0].opened && opened[0].status.ok());
    FrameParser parser(trace.serial, opened[0].next, 1 << 20);
    const std::string frames = trace.frames();
    for (size_t at = 0; at < frames.size(); at += piece) {
      std::vector<FrameParser::Piece> pieces;
      ASSERT_TRUE(parser
                      .Feed(AsBytes(std::string_view(frames).substr(at, piece)),
                            &pieces)
                      .ok());
      for (const FrameParser::Piece& p : pieces) {
        ASSERT_TRUE(printer->Write(1, p.bytes, p.whole, p.next).ok());
      }
    }
    printer->Close(1);
    ASSERT_TRUE(printer->Finish().ok());
    EXPECT_EQ(Lines(out.text()), 95) << piece;
    std::istringstream lines(out.text());
    std::string line;
    for (int i = 0; std::getline(lines, line); ++i) {
      EXPECT_NE(line.find("\"fh\":" + std::to_string(i)), std::string::npos);
    }
  }
}

TEST(LivePrinterTest, ASenderThatComesBackRepeatsNothing) {
  const BuiltTrace trace(20);
  StringOutput out;
  const auto printer = MakeLivePrinter({}, out);
  const std::string frames = trace.frames();
  for (const uint64_t client : {1u, 2u}) {
    printer->Open(client, "a", trace.hello());
    const auto opened = printer->TakeEvents();
    ASSERT_EQ(opened.size(), 1u);
    FrameParser parser(trace.serial, opened[0].next, 1 << 20);
    std::vector<FrameParser::Piece> pieces;
    ASSERT_TRUE(parser.Feed(AsBytes(frames), &pieces).ok());
    for (const FrameParser::Piece& p : pieces) {
      ASSERT_TRUE(printer->Write(client, p.bytes, p.whole, p.next).ok());
    }
    printer->Close(client);
  }
  ASSERT_TRUE(printer->Finish().ok());
  EXPECT_EQ(Lines(out.text()), 20);
}

TEST(LivePrinterTest, Malicious_AChainThatCannotBeUndoneIsRefused) {
  const BuiltTrace trace(1, "sqeeze; tcp");
  StringOutput out;
  const auto printer = MakeLivePrinter({}, out);
  printer->Open(1, "a", trace.hello());
  const auto opened = printer->TakeEvents();
  ASSERT_EQ(opened.size(), 1u);
  EXPECT_FALSE(opened[0].status.ok());
  EXPECT_NE(opened[0].status.message().find("sqeeze"), std::string::npos);
  printer->Close(1);
}

TEST(LivePrinterTest, Malicious_HalfBlocksOfManyClientsAreBounded) {
  const test::FakeTrace trace(1, 1000);
  StringOutput out;
  const auto printer = MakeLivePrinter({.max_memory = 10'000}, out);
  Status status;
  uint64_t client = 0;
  while (status.ok() && ++client < 100) {
    printer->Open(client, std::to_string(client),
                  {.preamble = trace.preamble(), .serial = trace.serial()});
    status = printer->Write(client, AsBytes(trace.Payload(0)), 0, 0);
  }
  EXPECT_EQ(client, 11u);
  // Those who leave make room.
  printer->Close(1);
  EXPECT_TRUE(printer->Write(2, AsBytes(trace.Payload(0)), 0, 0).ok());
  for (uint64_t i = 2; i <= client; ++i) printer->Close(i);
}

}  // namespace
}  // namespace tracefs
