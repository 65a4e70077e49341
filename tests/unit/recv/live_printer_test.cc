// Traces printed as they come: the same text as a dump of the whole trace.
#include "tracefs/recv/live_printer.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <sstream>

#include "tests/support/net_world.h"
#include "tests/support/trace_builder.h"
#include "tracefs/format/frame_parser.h"
#include "tracefs/text/output_buffer.h"

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

// Waits until the printer has something to say. It may have woken us for a
// client that was closed meanwhile.
std::vector<Keeper::Event> Await(Keeper& printer) {
  std::vector<Keeper::Event> events;
  while (events.empty()) {
    pollfd ready = {printer.event_fd(), POLLIN, 0};
    const int n = ::poll(&ready, 1, 10'000);
    EXPECT_EQ(n, 1) << "the printer says nothing";
    if (n != 1) break;
    events = printer.TakeEvents();
  }
  return events;
}

// The answer to Open.
Keeper::Event Open(Keeper& printer, uint64_t client, const std::string& name,
                   const net::Hello& hello) {
  printer.Open(client, name, hello);
  const auto events = Await(printer);
  EXPECT_EQ(events.size(), 1u);
  return events.empty() ? Keeper::Event() : events[0];
}

std::unique_ptr<Keeper> Started(LivePrinterOptions options, OutputBuffer& out) {
  auto printer = MakeLivePrinter(std::move(options), out);
  EXPECT_TRUE(printer->Start().ok());
  return printer;
}

int Lines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TEST(LivePrinterTest, EveryOperationOnceInOrderHoweverItIsCut) {
  const BuiltTrace trace(95);
  for (const size_t piece : {7u, 64u, 1000u, 1u << 20}) {
    StringOutput out;
    const auto printer = Started({}, out);
    const Keeper::Event opened = Open(*printer, 1, "a", trace.hello());
    ASSERT_TRUE(opened.opened && opened.status.ok());
    FrameParser parser(trace.serial, opened.next, 1 << 20);
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
  const auto printer = Started({}, out);
  const std::string frames = trace.frames();
  for (const uint64_t client : {1u, 2u}) {
    const Keeper::Event opened = Open(*printer, client, "a", trace.hello());
    EXPECT_EQ(opened.next, client == 1 ? 0u : 4u);
    FrameParser parser(trace.serial, opened.next, 1 << 20);
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
  const auto printer = Started({}, out);
  const Keeper::Event opened = Open(*printer, 1, "a", trace.hello());
  EXPECT_FALSE(opened.status.ok());
  EXPECT_NE(opened.status.message().find("sqeeze"), std::string::npos);
  printer->Close(1);
}

TEST(LivePrinterTest, Malicious_AChainThatIsTooLongIsRefused) {
  std::string chain;
  for (int i = 0; i < 9; ++i) chain += "compress; ";
  const BuiltTrace trace(1, chain + "tcp");
  StringOutput out;
  const auto printer = Started({}, out);
  const Keeper::Event opened = Open(*printer, 1, "a", trace.hello());
  EXPECT_FALSE(opened.status.ok());
  EXPECT_NE(opened.status.message().find("more than 8"), std::string::npos)
      << opened.status.message();
  printer->Close(1);
}

TEST(LivePrinterTest, Malicious_HalfBlocksOfManyClientsAreBounded) {
  const size_t block = 1 << 20;
  const test::FakeTrace trace(1, block);
  const std::string half = trace.Payload(0);
  StringOutput out;
  // A sixth of the least is for them.
  const size_t least = MinLiveMemory(block);
  const auto printer =
      Started({.max_block_bytes = block, .max_memory = least}, out);
  Status status;
  uint64_t client = 0;
  while (status.ok() && ++client < 100) {
    printer->Open(client, std::to_string(client),
                  {.preamble = trace.preamble(), .serial = trace.serial()});
    status = printer->Write(client, AsBytes(half), 0, 0);
  }
  EXPECT_EQ(status.error(), ENOBUFS);
  EXPECT_EQ(client, least / 6 / block + 1);
  // Those who leave make room.
  printer->Close(1);
  EXPECT_TRUE(printer->Write(2, AsBytes(half), 0, 0).ok());
  for (uint64_t i = 2; i <= client; ++i) printer->Close(i);
}

// Sends all frames as one piece.
void WriteAll(Keeper& printer, uint64_t client, const BuiltTrace& trace) {
  FrameParser parser(trace.serial, 0, 1 << 20);
  std::vector<FrameParser::Piece> pieces;
  const std::string frames = trace.frames();
  ASSERT_TRUE(parser.Feed(AsBytes(frames), &pieces).ok());
  for (const FrameParser::Piece& p : pieces) {
    ASSERT_TRUE(printer.Write(client, p.bytes, p.whole, p.next).ok());
  }
}

// An output whose reader is slow.
class StuckOutput final : public OutputBuffer {
 public:
  void Release() {
    {
      std::lock_guard lock(mu_);
      open_ = true;
    }
    changed_.notify_all();
  }
  size_t bytes() const { return bytes_.load(); }

 protected:
  Status Emit(std::string_view text) override {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return open_; });
    bytes_ += text.size();
    return Status::Ok();
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool open_ = false;
  std::atomic<size_t> bytes_{0};
};

TEST(LivePrinterTest, ASlowReaderHoldsUpSendersButNotConnections) {
  const BuiltTrace trace(20'000);
  StuckOutput out;
  const auto printer = Started({}, out);
  ASSERT_TRUE(Open(*printer, 1, "a", trace.hello()).opened);
  const auto begin = std::chrono::steady_clock::now();
  // All this returns although nothing can be printed.
  uint64_t client = 1;
  while (!printer->Busy(client)) WriteAll(*printer, client, trace);
  printer->Open(2, "b", trace.hello());
  EXPECT_FALSE(printer->Busy(2));
  EXPECT_TRUE(printer->Tick().ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  out.Release();
  EXPECT_TRUE(test::Eventually([&] { return !printer->Busy(1); }));
  printer->Close(1);
  printer->Close(2);
  ASSERT_TRUE(printer->Finish().ok());
  EXPECT_GT(out.bytes(), 0u);
}

TEST(LivePrinterTest, WhatBelongsToAnEndedConnectionComesBeforeTheNextOne) {
  const BuiltTrace trace(95);
  StringOutput out;
  const auto printer = Started({}, out);
  ASSERT_TRUE(Open(*printer, 1, "a", trace.hello()).opened);
  WriteAll(*printer, 1, trace);
  // It may not be printed yet.
  printer->Close(1);
  const Keeper::Event again = Open(*printer, 2, "a", trace.hello());
  EXPECT_TRUE(again.opened);
  EXPECT_EQ(again.next, 11u);
  printer->Close(2);
  ASSERT_TRUE(printer->Finish().ok());
  EXPECT_EQ(Lines(out.text()), 95);
}

TEST(LivePrinterTest, Malicious_WhatComesBehindTheEndIsNotKept) {
  const BuiltTrace trace(95);
  StringOutput out;
  const auto printer = Started({}, out);
  ASSERT_TRUE(Open(*printer, 1, "a", trace.hello()).opened);
  for (int i = 0; i < 50; ++i) {
    WriteAll(*printer, 1, trace);
    ASSERT_TRUE(
        test::Eventually([&] { return !printer->TakeEvents().empty(); }));
  }
  printer->Close(1);
  ASSERT_TRUE(printer->Finish().ok());
  EXPECT_EQ(Lines(out.text()), 95);
}

}  // namespace
}  // namespace tracefs
