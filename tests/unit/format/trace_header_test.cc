// START: what is written describes this version fully, and comes back.
#include "tracefs/format/trace_header.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <ostream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tracefs/format/message_cursor.h"
#include "tracefs/format/names.h"

namespace tracefs::format {
namespace {

// Sixteen of their own, and each operation after and before it happens.
constexpr size_t kMessages = 18 + 2 * kOpCount;

TraceHeader SomeHeader() {
  TraceHeader header;
  header.tracer_id = 3;
  header.clock = {.monotonic_ns = 1000, .real_ns = 1'700'000'000'000'000'000};
  header.Set("host.name", "box");
  header.Set("filter.text", "cuid = 0\nOR cgid = 1");
  header.Set("empty", "");
  return header;
}

SelfDescription Read(ByteSpan block) {
  MessageCursor messages(block);
  Message message;
  EXPECT_TRUE(messages.Next(&message));
  EXPECT_EQ(message.msg_id, 1);
  SelfDescription description;
  EXPECT_TRUE(ReadStart(message.arguments, &description));
  EXPECT_FALSE(messages.Next(&message));
  EXPECT_FALSE(messages.malformed());
  return description;
}

TEST(TraceHeaderTest, RoundTrip) {
  const TraceHeader header = SomeHeader();
  const std::vector<std::byte> block = EncodeStartBlock(header);
  const SelfDescription read = Read(block);
  EXPECT_EQ(read.header.tracer_id, 3u);
  EXPECT_TRUE(read.has_clock);
  EXPECT_EQ(read.header.clock.monotonic_ns, header.clock.monotonic_ns);
  EXPECT_EQ(read.header.clock.real_ns, header.clock.real_ns);
  EXPECT_EQ(read.header.properties, header.properties);
  EXPECT_EQ(read.header.Get("host.name"), "box");
  EXPECT_EQ(read.header.Get("absent"), "");
}

// Width and type of an argument, as FORMAT.md has them.
struct Specified {
  int width = 0;  // 0 = variable
  int type = 0;

  friend bool operator==(const Specified&, const Specified&) = default;
};
std::ostream& operator<<(std::ostream& out, const Specified& s) {
  return out << "width " << s.width << ", type " << s.type;
}

std::string Specification() {
  std::ifstream in(TRACEFS_FORMAT_MD);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

int WidthIn(const std::string& text) {
  return text.rfind("var", 0) == 0 ? 0 : std::stoi(text);
}

// The arguments by id: those of the table of section 9, and the sentence behind
// it on those that the sections before name.
std::map<int, Specified> SpecifiedArguments(const std::string& format,
                                            std::map<int, std::string>* names) {
  std::map<int, Specified> arguments;
  // | ARG_UID | 24 | 4 | 8 | user who asked |
  const std::regex row(
      R"(\| (ARG_[A-Z0-9_]+)[^|]*\| ([0-9]+) \| (var|[0-9]+) \| ([0-9]+) \|)");
  for (std::sregex_iterator at(format.begin(), format.end(), row), end;
       at != end; ++at) {
    const int id = std::stoi((*at)[2]);
    arguments[id] = {WidthIn((*at)[3]), std::stoi((*at)[4])};
    (*names)[id] = (*at)[1];
  }
  // 134 (8, 0), 140 to 144 (8; 5, but 141: 0), 145 and 146 (8, 0), …
  const size_t begin = format.find("Widths and types of the arguments named");
  const std::string sentence =
      format.substr(begin, format.find("\n\n", begin) - begin);
  const std::regex group(
      R"(([0-9][0-9a-z,\s]*)\((variable|[0-9]+)[,;]\s+([0-9]+)(, but ([0-9]+): ([0-9]+))?\))");
  for (std::sregex_iterator
           at(sentence.begin() + static_cast<long>(sentence.find(':')),
              sentence.end(), group),
       end;
       at != end; ++at) {
    const Specified specified = {WidthIn((*at)[2]), std::stoi((*at)[3])};
    // "175 to 178 and 182"
    std::istringstream words((*at)[1]);
    int last = 0;
    bool range = false;
    for (std::string word; words >> word;) {
      if (word == "to") {
        range = true;
      } else if (word != "and") {
        const int id = std::stoi(word);
        for (int i = range ? last + 1 : id; i <= id; ++i) {
          arguments[i] = specified;
        }
        last = id;
        range = false;
      }
    }
    if ((*at)[4].matched) {
      arguments[std::stoi((*at)[5])].type = std::stoi((*at)[6]);
    }
  }
  return arguments;
}

// What START says of each argument is what the specification says, which
// readers of others were written from.
TEST(TraceHeaderTest, NamesEveryArgumentAsTheSpecificationDoes) {
  const std::string format = Specification();
  ASSERT_FALSE(format.empty()) << TRACEFS_FORMAT_MD;
  std::map<int, std::string> names;
  const std::map<int, Specified> specified = SpecifiedArguments(format, &names);
  EXPECT_GT(specified.size(), 90u);
  EXPECT_EQ(specified.at(180), (Specified{8, 6}));
  EXPECT_EQ(specified.at(141), (Specified{8, 0}));
  const SelfDescription read = Read(EncodeStartBlock(SomeHeader()));
  std::set<int> told;
  for (const auto& [id, argument] : read.arguments) {
    told.insert(id);
    ASSERT_EQ(specified.count(id), 1u)
        << argument.name << " is not in FORMAT.md";
    EXPECT_EQ((Specified{argument.width, static_cast<int>(argument.type)}),
              specified.at(id))
        << argument.name;
    if (names.count(id) != 0) {
      EXPECT_EQ(argument.name, names.at(id));
    } else {
      EXPECT_NE(format.find(std::string(argument.name)), std::string::npos)
          << argument.name;
    }
  }
  for (const auto& [id, unused] : specified) {
    if (id == 192) continue;  // only in anonymised traces
    EXPECT_EQ(told.count(id), 1u) << "START does not name " << id;
  }
}

TEST(TraceHeaderTest, NumbersEveryOperationAsTheSpecificationDoes) {
  const std::string format = Specification();
  const size_t begin = format.find("Op numbers:");
  const std::string table =
      format.substr(begin, format.find("## 5.", begin) - begin);
  const std::regex cell(R"(\| ([0-9]+) ([a-z_]+) )");
  size_t told = 0;
  for (std::sregex_iterator at(table.begin(), table.end(), cell), end;
       at != end; ++at, ++told) {
    const auto op = OpFromNumber(std::stoul((*at)[1]));
    ASSERT_TRUE(op) << (*at)[0];
    EXPECT_EQ(OpName(*op), std::string((*at)[2]));
  }
  EXPECT_EQ(told, kOpCount);
}

TEST(TraceHeaderTest, NamesEveryMessageAndArgument) {
  const SelfDescription read = Read(EncodeStartBlock(SomeHeader()));
  EXPECT_EQ(read.messages.at(1), "MSG_START");
  EXPECT_EQ(read.messages.at(0x100 + 11), "MSG_OPEN");
  EXPECT_EQ(read.messages.at(0x200 + 34), "MSG_BEFORE_COPY_FILE_RANGE");
  EXPECT_EQ(read.messages.size(), kMessages);
  EXPECT_EQ(read.arguments.at(24).name, "ARG_UID");
  EXPECT_EQ(read.arguments.at(24).width, 4);
  EXPECT_EQ(read.arguments.at(24).type, 8);
  EXPECT_EQ(read.arguments.at(162).name, "ARG_PROPERTY");
  EXPECT_EQ(read.arguments.size(), BuiltInArguments().size());
  for (const FieldInfo& f : Fields()) {
    if (f.arg_id == 0) continue;  // in no trace
    EXPECT_EQ(read.arguments.at(f.arg_id).name, f.trace_name);
    EXPECT_EQ(read.arguments.at(f.arg_id).width, f.width);
  }
}

TEST(TraceHeaderTest, NamesAreDistinct) {
  std::set<std::string_view> names;
  std::set<uint16_t> ids;
  for (const ArgumentInfo& argument : BuiltInArguments()) {
    EXPECT_TRUE(names.insert(argument.name).second) << argument.name;
    EXPECT_TRUE(ids.insert(argument.arg_id).second) << argument.arg_id;
  }
}

TEST(TraceHeaderTest, NeedsExactlyStartBytes) {
  const TraceHeader header = SomeHeader();
  std::vector<std::byte> memory(StartBytes(header));
  MessageWriter exact(memory);
  EXPECT_TRUE(WriteStart(exact, header));
  EXPECT_EQ(exact.left(), 0u);
  MessageWriter small(std::span<std::byte>(memory).first(memory.size() - 1));
  EXPECT_FALSE(WriteStart(small, header));
  EXPECT_EQ(small.size(), 0u);
}

TEST(TraceHeaderTest, Malicious_CutAnywhereReadsWhatCameBefore) {
  const std::vector<std::byte> block = EncodeStartBlock(SomeHeader());
  const ByteSpan arguments = ByteSpan(block).subspan(kMessageHeaderBytes);
  for (size_t size = 0; size < arguments.size(); ++size) {
    SelfDescription read;
    ReadStart(arguments.first(size), &read);
    EXPECT_LE(read.messages.size(), kMessages);
  }
}

TEST(MessageNameTest, UnknownIdsHaveTheirNumber) {
  EXPECT_EQ(MessageName(0x100 + kOpCount),
            "MSG_" + std::to_string(0x100 + kOpCount));
  EXPECT_EQ(MessageName(0xffff), "MSG_65535");
  EXPECT_EQ(MessageName(0), "MSG_0");
}

TEST(OperationOfTest, IsTheInverseOfOperationMessage) {
  size_t operations = 0;
  for (uint32_t id = 0; id <= 0xffff; ++id) {
    bool before = false;
    const auto op = OperationOf(static_cast<uint16_t>(id), &before);
    if (!op) continue;
    EXPECT_EQ(OperationMessage(*op, before), id);
    ++operations;
  }
  EXPECT_EQ(operations, 2 * kOpCount);
}

}  // namespace
}  // namespace tracefs::format
