// The anonymiser as an output filter.
#include <gtest/gtest.h>

#include <cstdlib>

#include "anonymize/policy.h"
#include "tests/support/definitions.h"
#include "tests/support/memory_scan.h"
#include "tests/unit/filters/output/chain_end.h"
#include "tests/unit/filters/output/filter_chain.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/format/block_info.h"
#include "tracefs/format/trace_header.h"

namespace tracefs {
namespace {

// The header and one block of a tracer.
std::vector<std::string> Blocks() {
  format::TraceHeader header;
  header.clock = {.monotonic_ns = 5, .real_ns = 1'767'323'045'000'000'000};
  header.Set("host.name", "zeus.example.org");
  header.Set("visibility", "exact");
  std::vector<std::byte> memory(65536);
  format::MessageWriter out(memory);
  format::WriteBlockHead(out, format::BlockHead());
  format::WriteDefPath(out, 1, 0, "");
  format::WriteDefPath(out, 2, 1, "salaries.ods");
  return {std::string(AsText(format::EncodeStartBlock(header))),
          std::string(AsText(out.bytes()))};
}

class AnonymizeFilterTest : public testing::Test {
 protected:
  AnonymizeFilterTest() {
    SecretKey key;
    ::setenv("ANON_TEST_KEY", KeyLine(KeyKind::kSecret, key.get()).c_str(), 1);
  }
};

constexpr char kAnonymize[] =
    "anonymize policy = research key = \"env:ANON_TEST_KEY\"; ";

TEST_F(AnonymizeFilterTest, NothingHiddenLeavesTheHost) {
  const auto written =
      RunChain(std::string(kAnonymize) + "file = \"/x\"", Blocks());
  ASSERT_EQ(written.size(), 2U);
  for (const Written& w : written) {
    EXPECT_EQ(w.payload.find("zeus"), std::string::npos);
    EXPECT_EQ(w.payload.find("salaries"), std::string::npos);
  }
  EXPECT_NE(written[0].payload.find("visibility=exact"), std::string::npos);
  EXPECT_NE(written[0].payload.find("anon.keys=cgroup="), std::string::npos);
}

TEST_F(AnonymizeFilterTest, TheMasterIsWipedOnceTheTraceHasBegun) {
  ::setenv("ANON_TEST_MASTER",
           KeyLine(KeyKind::kSecret, test::KeyNumber(2).get()).c_str(), 1);
  const test::Masked master(test::KeyNumber(2).get());
  ChainLog log;
  const auto filter = MustMakeFilters(
      "anonymize policy = research key = \"env:ANON_TEST_MASTER\"; "
      "file = \"/x\"",
      &log);
  ASSERT_NE(filter, nullptr);
  ASSERT_TRUE(filter->Initialize(TestIdentity()).ok());
  EXPECT_GE(test::CopiesInMemory(master), 1U);
  const std::vector<std::string> blocks = Blocks();
  ASSERT_TRUE(filter->Write(AsBytes(blocks[0]), {.sequence = 0}).ok());
  EXPECT_EQ(test::CopiesInMemory(master), 0U);
  // It hides on all the same.
  ASSERT_TRUE(filter->Write(AsBytes(blocks[1]), {.sequence = 1}).ok());
  EXPECT_EQ(log.written.at(1).payload.find("salaries"), std::string::npos);
  EXPECT_TRUE(filter->Release().ok());
  ::unsetenv("ANON_TEST_MASTER");
}

TEST_F(AnonymizeFilterTest, StandsBeforeOtherFilters) {
  const std::string output =
      std::string(kAnonymize) + "compress; file = \"/x\"";
  // Readers need not know of it.
  EXPECT_EQ(ChainTextOf(output), "compress alg=zlib; file");
  const auto written = RunChain(output, Blocks());
  ASSERT_EQ(written.size(), 2U);
  const Result<std::string> block =
      DecodeChain(ChainTextOf(output), KeyRing(), written[1]);
  ASSERT_TRUE(block.ok());
  EXPECT_EQ(
      *block,
      RunChain(std::string(kAnonymize) + "file = \"/x\"", Blocks())[1].payload);
}

TEST_F(AnonymizeFilterTest, CannotStandBehindAFilterThatChangesBytes) {
  const Result<TracerConfig> tracer =
      ParseOutput("compress; " + std::string(kAnonymize) + "file = \"/x\"");
  ASSERT_TRUE(tracer.ok());
  const Status status = CheckChain("conf", tracer->output);
  EXPECT_NE(status.message().find("must stand before compress"),
            std::string::npos)
      << status.message();
}

TEST_F(AnonymizeFilterTest, BadConfigurationsAreRefusedBeforeTheMount) {
  const auto error = [](const std::string& output) {
    const Result<TracerConfig> tracer = ParseOutput(output);
    if (!tracer.ok()) return tracer.status().message();
    ChainLog log;
    const auto made = MakeFilters(*tracer, &log);
    return made.ok() ? std::string() : made.status().message();
  };
  EXPECT_NE(error("anonymize policy = research; file = \"/x\"")
                .find("needs the key of domain"),
            std::string::npos);
  EXPECT_NE(error("anonymize policy = reserch; file = \"/x\"")
                .find("there are the profiles"),
            std::string::npos);
  EXPECT_NE(error("anonymize policy = research key = \"secret\"; file = "
                  "\"/x\"")
                .find("named by where it is"),
            std::string::npos);
  EXPECT_EQ(error("anonymize policy = public key = \"env:ANON_TEST_KEY\"; "
                  "file = \"/x\""),
            "");
}

}  // namespace
}  // namespace tracefs
