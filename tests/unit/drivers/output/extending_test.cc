// docs/extending.md: the additions it describes, made in copies of the files it
// names (tests/support/make_additions.py), are there and work; the code it
// shows is that of docs/examples.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "drivers/assembly/table.h"
#include "drivers/output/table.h"
#include "filters/output/table.h"
#include "tests/unit/drivers/output/driven_trace.h"
#include "tests/unit/filters/output/filter_chain.h"
#include "tracefs/export/table.h"
#include "tracefs/tools/count/main.h"
#include "tracefs/tools/report/options.h"
#include "tracefs/tools/report/rows.h"

namespace tracefs {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Of the tree with the additions.
std::string ReadMade(const std::string& path) {
  return ReadText(std::string(TRACEFS_EXTENDED "/") + path);
}

TEST(ExtendingTest, ThePageShowsTheCodeAsItIs) {
  const std::string page = ReadText("docs/extending.md");
  const std::string code = ReadText("docs/examples/invert_filter.cc") +
                           ReadText("docs/examples/pipe_driver.cc") +
                           ReadText("docs/examples/churn_driver.cc") +
                           ReadText("docs/examples/tsv.cc") +
                           ReadText("docs/examples/count_main.cc");
  ASSERT_FALSE(page.empty());
  const std::string fence = "```cpp\n";
  int blocks = 0;
  for (size_t at = page.find(fence); at != page.npos;
       at = page.find(fence, at + 1)) {
    const size_t begin = at + fence.size();
    const std::string block =
        page.substr(begin, page.find("```", begin) - begin);
    EXPECT_NE(code.find(block), std::string::npos) << block;
    ++blocks;
  }
  EXPECT_EQ(blocks, 15);
}

// order_test.cc, as the page changes it, runs it beside the others.
TEST(ExtendingTest, TheFilterRoundTrips) {
  const std::string output = "invert block = 64K; file = x";
  ChainLog log;
  EXPECT_EQ(MustMakeFilters(output, &log)->PreferredBlockSize(), 65536u);
  const std::vector<std::string> blocks = SampleBlocks();
  const std::vector<Written> written = RunChain(output, blocks);
  ASSERT_EQ(written.size(), blocks.size());
  EXPECT_EQ(ChainTextOf(output), "invert; file");
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto block = DecodeChain("invert; file", KeyRing(), written[i]);
    ASSERT_TRUE(block.ok()) << block.status().message();
    EXPECT_EQ(*block, blocks[i]);
    if (blocks[i].empty()) continue;
    EXPECT_NE(written[i].payload, blocks[i]);
  }
}

TEST(ExtendingTest, TheSeedReachesTheDecoder) {
  const std::string seed = ReadMade("tests/fuzz/corpus/chain/invert");
  const size_t end = seed.find('\n');
  ASSERT_NE(end, seed.npos);
  Written written;
  written.payload = seed.substr(end + 1);
  const auto block = DecodeChain(seed.substr(0, end), KeyRing(), written);
  ASSERT_TRUE(block.ok()) << block.status().message();
  EXPECT_NE(*block, written.payload);
}

TEST(ExtendingTest, TheDriverWritesATrace) {
  const OutputDriverRow* const row = FindOutputDriver("pipe");
  ASSERT_NE(row, nullptr);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  ConfigEntry entry;
  entry.name = "pipe";
  entry.value.number = static_cast<uint64_t>(writer.get());
  const auto made = row->make(entry, {});
  ASSERT_TRUE(made.ok()) << made.status().message();
  writer.Reset();
  const DrivenTrace trace(3, 2, "pipe");
  trace.WriteAll(*made->driver);
  std::string text(1 << 16, '\0');
  const ssize_t n = ::read(reader.get(), text.data(), text.size());
  ASSERT_GT(n, 0);
  text.resize(static_cast<size_t>(n));
  EXPECT_EQ(text, trace.Bytes());
}

Event Done(Op op, uint32_t uid, int error) {
  Event event;
  event.op = op;
  event.Set(Field::kUid, uid);
  event.Set(Field::kErrno, static_cast<uint64_t>(error));
  return event;
}

TEST(ExtendingTest, TheAssemblyDriverCountsWhatUsersMakeAndRemove) {
  const AssemblyDriverRow* const row = FindAssemblyDriver("churn");
  ASSERT_NE(row, nullptr);
  const auto made = row->make(ConfigEntry(), "t.conf");
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_TRUE((*made)->Needs(Op::unlink_).counts);
  EXPECT_FALSE((*made)->Needs(Op::read_).after);
  const std::shared_ptr<EventCounter> counter = (*made)->counter();
  EXPECT_EQ(counter->Keys(), "op uid");
  const auto one = counter->MakeShard();
  const auto other = counter->MakeShard();
  for (const auto& [op, uid, error] :
       {std::tuple{Op::create_, 7, 0}, std::tuple{Op::create_, 7, EEXIST},
        std::tuple{Op::unlink_, 7, 0}, std::tuple{Op::read_, 7, 0},
        std::tuple{Op::create_, 8, 0}, std::tuple{Op::create_, 7, 0}}) {
    Event event = Done(op, static_cast<uint32_t>(uid), error);
    counter->Count(event, uid == 7 ? *one : *other);
  }
  for (EventCounter::Shard* const shard : {one.get(), other.get()}) {
    counter->Take(*shard);
    counter->AddUp();
  }
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> counts;
  counter->Report(0, true, [&](const format::AggregateRecord& record) {
    ASSERT_EQ(record.key.size(), 2u);
    counts[{record.key[0].number, record.key[1].number}] += record.count;
  });
  EXPECT_EQ(counts, (std::map<std::pair<uint64_t, uint64_t>, uint64_t>{
                        {{Index(Op::create_), 7}, 2},
                        {{Index(Op::create_), 8}, 1},
                        {{Index(Op::unlink_), 7}, 1}}));
}

TEST(ExtendingTest, TheAssemblyDriverKeepsABoundedNumberOfUsersAndLosesNone) {
  const auto made = FindAssemblyDriver("churn")->make(ConfigEntry(), "t.conf");
  ASSERT_TRUE(made.ok());
  const std::shared_ptr<EventCounter> counter = (*made)->counter();
  constexpr uint64_t kUsers = 30'000;
  for (int thread = 0; thread < 2; ++thread) {
    const auto shard = counter->MakeShard();
    for (uint32_t uid = 0; uid < kUsers; ++uid) {
      Event event = Done(Op::create_, uid, 0);
      counter->Count(event, *shard);
    }
    counter->Take(*shard);
    counter->AddUp();
  }
  uint64_t records = 0;
  uint64_t count = 0;
  uint64_t others = 0;
  counter->Report(0, true, [&](const format::AggregateRecord& record) {
    ++records;
    count += record.count;
    if (record.other) ++others;
  });
  EXPECT_LE(records, 10'001u);
  EXPECT_EQ(count, 2 * kUsers);
  EXPECT_EQ(others, 1u);
}

// hostile_names_test.cc tries it, too.
TEST(ExtendingTest, TheExportFormatWritesLines) {
  const ExportFormat* const format = FindExportFormat("tsv");
  ASSERT_NE(format, nullptr);
  StringOutput out;
  format::Record record;
  record.event.op = Op::mkdir_;
  record.real_ns = 5;
  const size_t path = format::Record::TextIndex(Field::kPath);
  record.text[path] = "/a,b";
  record.text_present = 1U << path;
  format->make(out, {})->Write(record);
  ASSERT_TRUE(out.Flush().ok());
  EXPECT_EQ(out.text(), "5\tmkdir\t/a,b\n");
}

TEST(ExtendingTest, TheKeyIsReadAndChecked) {
  ChainLog log;
  const auto fast = ParseOutput("compress fast; file = x");
  ASSERT_TRUE(fast.ok()) << fast.status().message();
  EXPECT_TRUE(MakeFilters(*fast, &log).ok());
  const auto both = ParseOutput("compress fast level = 3; file = x");
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_EQ(MakeFilters(*both, &log).status().message(),
            "t.conf:1:11: compress: fast is a level; leave one out");
}

// --- What stands in a table is described, here with the additions.

void ExpectDescribed(const EntryRow& entry) {
  static const std::string reference = ReadMade("config/REFERENCE.md");
  const auto described = [](std::string_view name) {
    const std::string word = '`' + std::string(name);
    return reference.find(word + '`') != reference.npos ||
           reference.find(word + ' ') != reference.npos;
  };
  EXPECT_TRUE(described(entry.name)) << entry.name;
  for (const std::string_view alias : entry.aliases) {
    EXPECT_TRUE(described(alias)) << alias;
  }
  for (const OptionRow& option : entry.options) {
    EXPECT_TRUE(described(option.name)) << entry.name << ' ' << option.name;
  }
}

TEST(ExtendingTest, TheReferenceDescribesEveryKey) {
  for (const auto& row : AssemblyDrivers()) ExpectDescribed(row.entry);
  for (const auto& row : OutputFilters()) ExpectDescribed(row.entry);
  for (const auto& row : OutputDrivers()) ExpectDescribed(row.entry);
}

TEST(ExtendingTest, TheManualNamesEveryFormat) {
  const std::string manual = ReadMade("docs/man/tracefs-dump.1");
  for (const ExportFormat& format : ExportFormats()) {
    std::string word;
    for (const char c : format.name)
      word += c == '-' ? "\\-" : std::string(1, c);
    EXPECT_TRUE(manual.find(".B " + word + '\n') != manual.npos ||
                manual.find(".BR " + word + ' ') != manual.npos)
        << word;
  }
}

constexpr char kTrace[] = "tests/golden/v1/every_operation.trace";

// What a command of the report answers.
std::string Answer(std::vector<const char*> words) {
  words.insert(words.begin(), "tracefs-report");
  const auto options =
      ParseReportOptions(static_cast<int>(words.size()), words.data());
  if (!options.ok()) return options.status().message();
  StringOutput out;
  StringOutput err;
  options->row->run(*options, out, err);
  EXPECT_TRUE(out.Flush().ok() && err.Flush().ok());
  return out.text();
}

TEST(ExtendingTest, TheQuestionIsAnswered) {
  const std::string answer = Answer({"links", "--format", "csv", kTrace});
  EXPECT_NE(answer.find(",link,1,"), answer.npos) << answer;
  EXPECT_NE(answer.find(",symlink,1,"), answer.npos) << answer;
  EXPECT_NE(Answer({"links", "--format", "text", kTrace}).find("links\n"),
            answer.npos);
  EXPECT_NE(ReadMade("docs/man/tracefs-report.1").find("\n.B links\n"),
            answer.npos);
}

TEST(ExtendingTest, ThePageHasThePanel) {
  const std::string page = Answer({"page", "--format", "html", kTrace});
  EXPECT_NE(page.find("<a href=\"#users\">Users</a>"), page.npos);
  EXPECT_NE(page.find("<section id=\"users\"><h2>Users</h2>"), page.npos);
  EXPECT_NE(page.find("<th scope=\"row\">1000</th><td>38</td>"), page.npos);
}

TEST(ExtendingTest, TheToolCounts) {
  const auto count = [](std::vector<std::string> words) {
    std::vector<char*> all;
    for (std::string& word : words) all.push_back(word.data());
    testing::internal::CaptureStdout();
    const int status = CountMain(static_cast<int>(all.size()), all.data());
    return std::to_string(status) + " " +
           testing::internal::GetCapturedStdout();
  };
  const std::string listed = Answer({"summary", "--format", "csv", kTrace});
  const std::string counted = count({"tracefs-count", kTrace});
  EXPECT_EQ(counted.substr(0, 2), "0 ");
  const std::string number = counted.substr(2, counted.find('\n') - 2);
  EXPECT_NE(listed.find("\noperations," + number + ","), listed.npos)
      << counted << listed;
  EXPECT_NE(count({"tracefs-count", "--help"}).find("Usage: tracefs-count "),
            counted.npos);
}

}  // namespace
}  // namespace tracefs
