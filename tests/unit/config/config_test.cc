#include "config/config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/config_schema.h"

namespace tracefs {
namespace {

using testing::kConfigSchema;

Result<Config> Parse(std::string_view text) {
  return ParseConfig(text, "x.conf", kConfigSchema);
}

std::string ErrorOf(std::string_view text) {
  const auto config = Parse(text);
  return config.ok() ? "parsed" : config.status().message();
}

constexpr std::string_view kPaper = R"({
 { cuid = 0 OR cgid = 1 }
 { stream = { STR_POST_OP | STR_PID |
              STR_UID | STR_TIMESTAMP } }
 { compress;
   filename = "/mnt/trace.log" buf = 262144 }
}
)";

TEST(ConfigTest, ThePapersSampleParsesVerbatim) {
  const auto config = Parse(kPaper);
  ASSERT_TRUE(config.ok()) << config.status().message();
  ASSERT_EQ(config->tracers.size(), 1u);
  const TracerConfig& tracer = config->tracers[0];
  EXPECT_EQ(tracer.name, "");
  EXPECT_EQ(tracer.filter, " cuid = 0 OR cgid = 1 ");
  EXPECT_EQ(tracer.filter_position, (SourcePosition{2, 3}));

  ASSERT_EQ(tracer.assembly.size(), 1u);
  EXPECT_EQ(tracer.assembly[0].name, "stream");
  EXPECT_EQ(tracer.assembly[0].position, (SourcePosition{3, 4}));
  const std::vector<ConfigWord>& flags = tracer.assembly[0].value.flags;
  ASSERT_EQ(flags.size(), 4u);
  EXPECT_EQ(flags[0].text, "STR_POST_OP");
  EXPECT_EQ(flags[2].text, "STR_UID");
  EXPECT_EQ(flags[2].position, (SourcePosition{4, 15}));

  ASSERT_EQ(tracer.output.size(), 2u);
  EXPECT_EQ(tracer.output[0].name, "compress");
  EXPECT_EQ(tracer.output[0].role, EntryRole::kFilter);
  EXPECT_EQ(tracer.output[1].name, "file");  // `filename` is an alias
  EXPECT_EQ(tracer.output[1].role, EntryRole::kDriver);
  EXPECT_EQ(tracer.output[1].value.text, "/mnt/trace.log");
  ASSERT_NE(tracer.output[1].Find("buf"), nullptr);
  EXPECT_EQ(tracer.output[1].Find("buf")->value.number, 262144u);
  EXPECT_EQ(tracer.output[1].Find("unbuffered"), nullptr);
}

TEST(ConfigTest, SeveralTracersWithNamesAndComments) {
  const auto config = Parse(R"(# two tracers
web { # the first
  { # all
  }
  { }
  { tcp = host:99 ; }
}
{
  { name = "}" }          # a brace in a string is text
  { stream; }
  { async checksum_ok }
})");
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.status().message(),
            "x.conf:11:11: 'async' has no option 'checksum_ok'");

  const auto good = Parse(R"(web{{}{}{tcp=host:99;}}
    {{ name = "}" # } { "
     }{stream data = 1K}{async;;checksum alg=hmac-sha256 block=4096;
       file=/t flush=2s unbuffered}})");
  ASSERT_TRUE(good.ok()) << good.status().message();
  ASSERT_EQ(good->tracers.size(), 2u);
  EXPECT_EQ(good->tracers[0].name, "web");
  EXPECT_EQ(good->tracers[0].filter, "");
  EXPECT_TRUE(good->tracers[0].assembly.empty());
  EXPECT_EQ(good->tracers[0].output[0].value.text, "host:99");
  const TracerConfig& second = good->tracers[1];
  EXPECT_EQ(second.filter, " name = \"}\" # } { \"\n     ");
  EXPECT_EQ(second.assembly[0].value.type, ValueType::kNone);
  EXPECT_EQ(second.assembly[0].Find("data")->value.number, 1024u);
  ASSERT_EQ(second.output.size(), 3u);
  EXPECT_EQ(second.output[1].Find("alg")->value.text, "hmac-sha256");
  EXPECT_EQ(second.output[2].Find("flush")->value.number, 2'000'000'000u);
  EXPECT_EQ(second.output[2].Find("unbuffered")->value.type, ValueType::kNone);
}

TEST(ConfigTest, BlocksAndRulesAreKeptAsText) {
  const auto config = Parse(R"({ {}
 { aggregate = { by op, uid ; values count ; every 10s };
   when rate(op = write) > 100/s for 5s then { start "2;}" ; };
   stream }
 { file = x } })");
  ASSERT_TRUE(config.ok()) << config.status().message();
  const auto& assembly = config->tracers[0].assembly;
  ASSERT_EQ(assembly.size(), 3u);
  EXPECT_EQ(assembly[0].value.text, " by op, uid ; values count ; every 10s ");
  EXPECT_EQ(assembly[0].value.position, (SourcePosition{2, 17}));
  EXPECT_EQ(assembly[1].role, EntryRole::kRule);
  EXPECT_EQ(assembly[1].value.text,
            "rate(op = write) > 100/s for 5s then { start \"2;}\" ; }");
  EXPECT_EQ(assembly[1].value.position, (SourcePosition{3, 9}));
  EXPECT_EQ(assembly[2].name, "stream");
}

TEST(ConfigTest, ErrorsNameThePlaceTheWordAndTheNearestKnownOne) {
  const std::pair<const char*, const char*> cases[] = {
      {"",
       "x.conf:1:1: no tracer; write { { filter } { assembly drivers } { "
       "output } }"},
      {"# only a comment\n",
       "x.conf:2:1: no tracer; write { { filter } { "
       "assembly drivers } { output } }"},
      {"}",
       "x.conf:1:1: expected a tracer: '{', or its name and '{', found "
       "'}'"},
      {"web",
       "x.conf:1:4: expected '{' of a tracer, found the end of the "
       "file"},
      {"{",
       "x.conf:1:2: expected '{' of the filter section, found the end of "
       "the file"},
      {"{ cuid = 0 }",
       "x.conf:1:3: expected '{' of the filter section, found "
       "'cuid'"},
      {"{\n {{} ", "x.conf:2:2: this '{' is never closed"},
      {"{{}}",
       "x.conf:1:4: expected '{' of the assembly section (a tracer is "
       "{ { filter } { assembly drivers } { output filters and driver "
       "} }), found '}'"},
      {"{{}{}}",
       "x.conf:1:6: expected '{' of the output section (a tracer is "
       "{ { filter } { assembly drivers } { output filters and "
       "driver } }), found '}'"},
      {"{{}{}{}}",
       "x.conf:1:7: the output section names no output driver "
       "(known: async checksum compress encrypt file flight tcp tls "
       "unix kafka)"},
      {"{{}{}{file=x}",
       "x.conf:1:14: expected '}' that ends the tracer, found "
       "the end of the file"},
      {"{{}{}{file=x}{}}",
       "x.conf:1:14: expected '}' that ends the tracer, "
       "found '{'"},
      {"{{}{}{file=x", "x.conf:1:6: this '{' is never closed"},
      {"{{}{steam}{file=x}}",
       "x.conf:1:5: 'steam' is not an assembly driver; did you mean 'stream'? "
       "(known: stream aggregate when)"},
      {"{{}{}{flie=x}}",
       "x.conf:1:7: 'flie' is not an output filter or driver; did you mean "
       "'file'? (known: async checksum compress encrypt file flight tcp "
       "tls unix kafka)"},
      {"{{}{stream = {\n STR_PDI}}{file=x}}",
       "x.conf:2:2: unknown flag 'STR_PDI' of stream; did you mean 'STR_PID'?"},
      {"{{}{stream = {STR_PID STR_UID}}{file=x}}",
       "x.conf:1:23: expected '|' or '}' after flag 'STR_PID'"},
      {"{{}{stream = {STR_PID |}}{file=x}}",
       "x.conf:1:24: expected a flag after '|'"},
      {"{{}{stream = {STR_PID | STR_PID}}{file=x}}",
       "x.conf:1:25: flag 'STR_PID' is given twice"},
      {"{{}{stream = {,}}{file=x}}",
       "x.conf:1:15: expected a flag of stream, found ','"},
      {"{{}{stream = STR_PID}{file=x}}",
       "x.conf:1:14: stream takes flags in braces, as { FLAG | FLAG }"},
      {"{{}{aggregate}{file=x}}",
       "x.conf:1:5: aggregate needs '= …': a block in braces"},
      {"{{}{}{file}}",
       "x.conf:1:7: file needs '= …': a value: a string or a "
       "word"},
      {"{{}{}{file = }}", "x.conf:1:14: expected the value of file, found '}'"},
      {"{{}{}{file = \"\"}}", "x.conf:1:14: file is empty"},
      {"{{}{}{file = {x}}}",
       "x.conf:1:7: file takes a value: a string or a word"},
      {"{{}{}{file = x buff = 3}}",
       "x.conf:1:16: 'file' has no option 'buff'; did you mean 'buf'?"},
      {"{{}{}{compress file = x}}",
       "x.conf:1:16: 'compress' has no option 'file'; is a ';' missing before "
       "it?"},
      {"{{}{}{file = x buf = many}}",
       "x.conf:1:22: option buf takes a size, as 4096, 256K or 1M, not 'many'"},
      {"{{}{}{file = x buf = 1}}",
       "x.conf:1:22: option buf must lie between 4096 and 1073741824 bytes, "
       "not '1'"},
      {"{{}{}{file = x buf}}",
       "x.conf:1:16: option buf needs '= …': a size, as 4096, 256K or 1M"},
      {"{{}{}{file = x flush = 10}}",
       "x.conf:1:24: option flush takes a duration, as 250ms, 10s or 2m, not "
       "'10'"},
      {"{{}{}{file = x unbuffered = yes}}",
       "x.conf:1:29: option unbuffered takes no value"},
      {"{{}{}{file = x buf = 1M buf = 1M}}",
       "x.conf:1:25: option 'buf' is given twice"},
      {"{{}{}{checksum alg = crc32; file = x}}",
       "x.conf:1:22: unknown value 'crc32' of option alg, which takes one of "
       "crc32c hmac-sha256; did you mean 'crc32c'?"},
      {"{{}{}{encrypt; file = x}}",
       "x.conf:1:7: 'encrypt' needs the option 'key'"},
      {"{{}{}{file = x; compress}}",
       "x.conf:1:17: 'compress' comes after the output driver 'file', which "
       "must come last"},
      {"{{}{}{file = x; tcp = y}}",
       "x.conf:1:17: 'tcp' comes after the output driver 'file', which must "
       "come last"},
      {"a{{}{}{file=x}}\na{{}{}{file=y}}",
       "x.conf:2:1: a second tracer is named 'a'"},
      {"{{ name = \"x }{}{file=x}}",
       "x.conf:1:11: this string has no closing quote on its line"},
      {"{{}{}{file=x} } \x01",
       "x.conf:1:17: expected a tracer: '{', or its name and '{', found "
       "'\\x01'"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(ErrorOf(text), message) << text;
  }
}

TEST(ConfigTest, Malicious_SizesAreBounded) {
  EXPECT_EQ(ErrorOf(std::string(kMaxConfigBytes + 1, ' ')),
            "x.conf: longer than 1048576 bytes");
  EXPECT_NE(ErrorOf("{{" + std::string(100000, '{')).find("inside each other"),
            std::string::npos);
  EXPECT_NE(ErrorOf(std::string(100000, 'a')).find("longer than 64 bytes"),
            std::string::npos);
  EXPECT_NE(ErrorOf("{{}{}{file=" + std::string(5000, 'a') + "}}")
                .find("longer than 4096 bytes"),
            std::string::npos);
  EXPECT_NE(ErrorOf("{{}{}{file=\"" + std::string(5000, 'a') + "\"}}")
                .find("longer than 4096 bytes"),
            std::string::npos);
  std::string many_entries = "{{}{";
  for (int i = 0; i < 1000; ++i) many_entries += "stream;";
  EXPECT_NE(ErrorOf(many_entries).find("more than 64 entries"),
            std::string::npos);
  std::string many_tracers;
  for (int i = 0; i < 1000; ++i) many_tracers += "{{}{}{file=x}}";
  EXPECT_NE(ErrorOf(many_tracers).find("more than 64 tracers"),
            std::string::npos);
  EXPECT_NE(ErrorOf(std::string("{{a\0b}{}{file=x}}", 17)).find("NUL"),
            std::string::npos);
}

TEST(ConfigTest, Malicious_CutAnywhereItIsAnError) {
  for (size_t size = 0; size + 2 < kPaper.size(); ++size) {
    EXPECT_FALSE(Parse(kPaper.substr(0, size)).ok()) << size;
  }
}

// Positions aside, everything.
std::string Dump(const Config& config) {
  std::ostringstream out;
  const auto value = [&](const ConfigValue& v) {
    out << '=' << static_cast<int>(v.type) << ':' << v.number << ':';
    if (v.type != ValueType::kFlags) out << v.text;
    for (const ConfigWord& flag : v.flags) out << '|' << flag.text;
  };
  for (const TracerConfig& tracer : config.tracers) {
    out << tracer.name << '{' << tracer.filter << '}';
    for (const auto* section : {&tracer.assembly, &tracer.output}) {
      for (const ConfigEntry& entry : *section) {
        out << '\n' << entry.name << static_cast<int>(entry.role);
        value(entry.value);
        for (const ConfigOption& option : entry.options) {
          out << ' ' << option.name;
          value(option.value);
        }
      }
    }
  }
  return out.str();
}

TEST(ConfigTest, RoundTrip_PrintedTracersParseToTheSame) {
  const std::string_view texts[] = {
      kPaper,
      "a{{x # y\n}{when z # ;\n; aggregate={ {} }}{checksum alg=crc32c;"
      "file=\"a\\\"\\x01\\\\ b\" flush=3m}}",
  };
  for (const std::string_view text : texts) {
    const auto config = Parse(text);
    ASSERT_TRUE(config.ok()) << config.status().message();
    const std::string printed = ToText(config->tracers[0]);
    const auto again = Parse(printed);
    ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << printed;
    EXPECT_EQ(Dump(*again), Dump(*config)) << printed;
  }
}

TEST(ConfigTest, TheTextBehindAChoice) {
  for (const std::string_view text :
       {R"({ {} {} { tcp = "h:1" when_full = spill "/a b" max = 1G } })",
        R"({ {} {} { tcp = "h:1" when_full = spill /spool max = 1G } })"}) {
    const auto config = Parse(text);
    ASSERT_TRUE(config.ok()) << config.status().message();
    const ConfigEntry& tcp = config->tracers[0].output[0];
    EXPECT_EQ(tcp.Find("when_full")->value.argument.front(), '/');
    EXPECT_EQ(tcp.Find("max")->value.number, uint64_t{1} << 30);
    const auto again = Parse(ToText(config->tracers[0]));
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(again->tracers[0].output[0].Find("when_full")->value.argument,
              tcp.Find("when_full")->value.argument);
  }
  const auto missing = Parse(R"({ {} {} { tcp = "h:1" when_full = spill } })");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.status().message().find("expected a text after 'spill'"),
            std::string::npos);
  // Behind other words there is none.
  EXPECT_FALSE(
      Parse(R"({ {} {} { tcp = "h:1" when_full = fail "/x" } })").ok());
}

TEST(ConfigTest, AnOptionBySecondNameIsTheOptionItself) {
  const auto config =
      Parse("{ {} {} { compress algorithm = zstd; file = x } }");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->tracers[0].output[0].Text("alg", ""), "zstd");
  const auto twice =
      Parse("{ {} {} { compress alg = zlib algorithm = zstd; file = x } }");
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.status().message().find("option 'alg' is given twice"),
            std::string::npos)
      << twice.status().message();
}

TEST(ConfigTest, WhatAnOptionSaysOrIsTakenToSay) {
  const auto config = Parse(
      R"({ {} {} { compress level = 7 alg = zstd; file = x flush = 2s } })");
  ASSERT_TRUE(config.ok()) << config.status().message();
  const ConfigEntry& compress = config->tracers[0].output[0];
  EXPECT_TRUE(compress.Has("level"));
  EXPECT_FALSE(compress.Has("lev"));
  EXPECT_EQ(compress.Number("level", 3), 7u);
  EXPECT_EQ(compress.Number("block", 3), 3u);
  EXPECT_EQ(compress.Number("block"), 0u);
  EXPECT_EQ(compress.Text("alg", "zlib"), "zstd");
  EXPECT_EQ(compress.Text("layout", "columns"), "columns");
  EXPECT_EQ(compress.Text("layout"), "");
  const ConfigEntry& file = config->tracers[0].output[1];
  using std::chrono::seconds;
  EXPECT_EQ(file.Duration("flush", seconds(1)), seconds(2));
  EXPECT_EQ(file.Duration("retry", seconds(1)), seconds(1));
}

TEST(ConfigTest, SamplesParse) {
  int samples = 0;
  for (const auto& file :
       std::filesystem::directory_iterator("config/samples")) {
    if (file.path().extension() != ".conf") continue;
    const auto config = LoadConfig(file.path(), kConfigSchema);
    EXPECT_TRUE(config.ok()) << config.status().message();
    ++samples;
  }
  EXPECT_EQ(samples, 11);
}

TEST(ConfigTest, AFileThatCannotBeReadIsTheSystemsRefusal) {
  const auto config = LoadConfig("config/samples/none.conf", kConfigSchema);
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(ExitStatus(config.status()), 3);
  EXPECT_EQ(LoadConfig("config/samples", kConfigSchema).status().code(),
            StatusCode::kSystem);
  // Endless input ends at the limit.
  EXPECT_EQ(LoadConfig("/dev/zero", kConfigSchema).status().code(),
            StatusCode::kInvalid);
}

}  // namespace
}  // namespace tracefs
