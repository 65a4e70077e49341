// Requests of the block layer, from text that perf script printed on a real
// machine, and from text that nobody printed.
#include "tracefs/query/block_requests.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <random>
#include <string>
#include <string_view>

namespace tracefs::query {
namespace {

std::string Text(const BlockRequests& requests, uint64_t device,
                 uint64_t from_ns = 0, uint64_t to_ns = UINT64_MAX) {
  std::string text;
  requests.ForEach(device, from_ns, to_ns, [&](const BlockRequest& r) {
    text = std::to_string(r.begin) + '+' + std::to_string(r.bytes) + " " +
           std::to_string(r.issued_ns) + '-' + std::to_string(r.done_ns) +
           (text.empty() ? "" : "; ") + text;
  });
  return text;
}

void TakeAll(BlockRequests* requests, std::string_view lines) {
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    requests->Take(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  requests->Finish();
}

TEST(BlockRequestsTest, AnEndIsThatOfTheRequestWithItsFirstByte) {
  BlockRequests requests;
  // perf script --ns, of Linux 6.18, shortened to a loop device.
  TakeAll(&requests, R"(
    fuse_worker 26151 [000] 42488.225080565:    block:block_rq_issue: 7,1 WSM 1024 () 294914 + 2 0x2,0,4 [fuse_worker]
     ksoftirqd/0    14 [000] 42488.225089221: block:block_rq_complete: 7,1 WSM () 294914 + 2 0x2,0,4 [0]
 kworker/0:1H-kb    44 [000] 42488.225092709:    block:block_rq_issue: 7,1 FF 0 () 0 + 0 0x0,0,0 [kworker/0:1H]
     ksoftirqd/0    14 [000] 42488.225566875: block:block_rq_complete: 7,1 FF () 18446744073709551615 + 0 0x0,0,0 [0]
     ksoftirqd/0    14 [000] 42488.225568786: block:block_rq_complete: 7,1 WSM () 294914 + 0 0x2,0,4 [0]
)");
  EXPECT_EQ(Text(requests, makedev(7, 1)),
            "150995968+1024 42488225080565-42488225089221; "
            "0+0 42488225092709-42488225566875");
  EXPECT_EQ(requests.not_whole(), 0u);
  EXPECT_TRUE(requests.Knows(makedev(7, 1)));
  EXPECT_FALSE(requests.Knows(makedev(7, 0)));
}

TEST(BlockRequestsTest, MicrosecondsAndOtherHeadsAreReadToo) {
  BlockRequests requests;
  // trace-cmd report, and /sys/kernel/tracing/trace.
  TakeAll(&requests,
          "dd-12 [000] 12.000001: block_rq_issue:  8,0 R 4096 () 8 + 8 [dd]\n"
          "dd-12 [000] 12.000001: block_rq_issue: 8,0 R 4096 () 8 + 8 [dd]\n"
          "dd-12 [000] d..1. 12.000005: block_rq_complete: 8,0 R () 8 + 8 [0]");
  EXPECT_EQ(Text(requests, makedev(8, 0)), "4096+4096 12000001000-12000005000");
}

TEST(BlockRequestsTest, OnlyThoseUnderWayAreTold) {
  BlockRequests requests;
  TakeAll(&requests,
          "a 1.000000100: block_rq_issue: 8,0 W 512 () 1 + 1\n"
          "a 1.000000200: block_rq_issue: 8,0 W 512 () 2 + 1\n"
          "a 1.000000300: block_rq_complete: 8,0 W () 2 + 1\n"
          "a 1.000000900: block_rq_complete: 8,0 W () 1 + 1\n"
          "a 1.000000950: block_rq_issue: 8,0 W 512 () 3 + 1\n");
  const uint64_t device = makedev(8, 0);
  EXPECT_EQ(Text(requests, device, 1'000'000'400, 1'000'000'500),
            "512+512 1000000100-1000000900");
  EXPECT_EQ(Text(requests, device, 1'000'000'250, 1'000'000'260),
            "512+512 1000000100-1000000900; 1024+512 1000000200-1000000300");
  EXPECT_EQ(Text(requests, device, 1'000'000'900, UINT64_MAX), "");
  EXPECT_EQ(requests.not_whole(), 1u);
}

TEST(BlockRequestsTest, Malicious_LinesThatLie) {
  BlockRequests requests;
  TakeAll(&requests,
          "block_rq_issue: 8,0 W 512 () 1 + 1\n"
          "1.0: block_rq_issue: 8,0 W 512 () 18446744073709551615 + 1\n"
          "1.0: block_rq_issue: 8,0 W 512 () 1 + 18446744073709551615\n"
          "99999999999999999999.0: block_rq_issue: 8,0 W 512 () 1 + 1\n"
          "18446744073.999999999: block_rq_issue: 8,0 W 512 () 1 + 1\n"
          "1.0000000001: block_rq_issue: 8,0 W 512 () 1 + 1\n"
          "1.: block_rq_issue: 8,0 W 512 () 1 + 1\n"
          "1.0: block_rq_issue: 4294967296,0 W 512 () 1 + 1\n"
          "1.0: block_rq_issue: 8,0 W 512 1 + 1\n"
          "1.0: block_rq_complete: 8,0 W () 5 + 1\n");
  EXPECT_EQ(requests.size(), 0u);
  EXPECT_EQ(requests.not_whole(), 1u);
}

TEST(BlockRequestsTest, Malicious_AnyBytesEnd) {
  std::mt19937 random(5);
  constexpr std::string_view kPieces[] = {"block_rq_issue: ",
                                          "block_rq_complete: ",
                                          "1.5",
                                          ": ",
                                          "8,0",
                                          " W ",
                                          "512 ",
                                          "() ",
                                          "1 + 1",
                                          "18446744073709551615",
                                          "\n",
                                          "block:",
                                          "\t"};
  BlockRequests requests;
  for (int round = 0; round < 20000; ++round) {
    std::string line;
    for (size_t i = random() % 12; i > 0; --i) {
      line += kPieces[random() % std::size(kPieces)];
    }
    requests.Take(line);
  }
  requests.Finish();
  EXPECT_LE(requests.size(), BlockRequests::kMost);
}

}  // namespace
}  // namespace tracefs::query
