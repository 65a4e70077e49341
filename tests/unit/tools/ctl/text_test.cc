// The mount's answers as text: complete, aligned, and safe for a terminal
// whatever names and filters hold.
#include "tracefs/tools/ctl/text.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tracefs {
namespace {

TEST(CtlTextTest, ListIsATable) {
  const auto text = ListText(R"({"mount":"/data","source":"/data","tracers":[
      {"id":1,"name":"full","state":"running","filter":"","output":"file",
       "written":1234567,"lost":0},
      {"id":12,"name":"","state":"stopped","filter":"op = read\n  AND cuid = 0",
       "output":"compress; file","written":0,"lost":3}]})");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text,
            "/data traces /data\n"
            "ID  STATE    NAME    WRITTEN  LOST  OUTPUT          FILTER\n"
            " 1  running  full  1,234,567     0  file            (all)\n"
            "12  stopped                0     3  compress; file  op = read AND "
            "cuid = 0\n");
  EXPECT_EQ(*ListText(R"({"mount":"/d","source":"/s","tracers":[]})"),
            "/d traces /s with no tracer\n");
}

TEST(CtlTextTest, RulesTellWhatFiredAndWhatWasDone) {
  ASSERT_EQ(::setenv("TZ", "UTC", 1), 0);
  const auto text = RulesText(R"({"mount":"/m","rules":[
      {"tracer":1,"rule":2,"title":"canary","text":"seen(open)  then { }",
       "state":"alarm","matched":1234,"missed":2,"alarms":70,"suppressed":10,
       "last":[{"time":1000000000,"key":"pid 7","count":3,"op":"open","pid":7,
         "uid":5,"comm":"evil\u001b","path":"/x","exe":"/bin/e v",
         "cmdline":"e\u001b -x","ancestors":[{"pid":3,"comm":"a, 1 init"},
         {"pid":2}],"touched":["/x","/y, z"],"not_known":["ancestors"],
         "actions":[
           {"action":"raise","tracer":2,"outcome":"done"}]}]}],
      "raised":[{"tracer":2,"by":1,"until":60000000000}]})");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text,
            "/m\n"
            "rule 2 of tracer 1: alarm: canary\n"
            "    when seen(open) then { }\n"
            "    counted 1,234 operations, fired 70 times, 10 of them too many "
            "to tell; 2 operations came too fast to be looked at\n"
            "    1970-01-01 00:00:01 open /x by evil\\x1b (pid 7, uid 5), for "
            "pid 7, 3 in one window\n"
            "      runs \"/bin/e v\"\n"
            "      command line \"e\\x1b -x\"\n"
            "      below 3 \"a, 1 init\", 2 ?\n"
            "      touched /x, \"/y, z\"\n"
            "      not known: ancestors\n"
            "      raise 2: done\n"
            "tracer 2 is raised until 1970-01-01 00:01:00, by a rule of tracer "
            "1\n");
  EXPECT_EQ(*RulesText(R"({"mount":"/m"})"), "/m has no rules\n");
}

TEST(CtlTextTest, ExplainGivesCauseAndEffect) {
  const auto text = ExplainText(R"({"mount":"/m","source":"/s",
      "visibility":"auto","never_visible":"dup","choices":[
       {"subject":"names","choice":"kept for 10ms","hides":"lookups",
        "why":"","for_good":false,"causes":[
         {"tracer":1,"name":"full","op":"lookup","filter":"0: keep\n"},
         {"tracer":1,"name":"full","op":"getattr","filter":"0: keep\n"},
         {"tracer":2,"name":"","op":"lookup",
          "filter":"0: cuid = 7 ? 1 : 2\n1: keep\n2: drop\n"}]},
       {"subject":"transport","choice":"/dev/fuse","why":"as asked for",
        "hides":"","for_good":true,"causes":[]}],
      "open":{"files":3,"opened_before":2,"examples":[
        {"path":"/a","mode":"passthrough","now":"direct"}]}})");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text,
            "/m traces /s, visibility auto\n\n"
            "names: kept for 10ms\n"
            "    because tracer 1 (full) may record lookup, getattr, every "
            "one\n"
            "    because tracer 2 may record lookup:\n"
            "      0: cuid = 7 ? 1 : 2\n"
            "      1: keep\n"
            "      2: drop\n"
            "    hides lookups\n"
            "transport: /dev/fuse\n"
            "    because as asked for\n"
            "    until the next mount\n"
            "\n"
            "open files: 3, of which 2 were opened before the tracers changed "
            "and stay as they are:\n"
            "    /a: passthrough, would now be direct\n"
            "    ...\n"
            "never visible to any tracer: dup\n");
}

TEST(CtlTextTest, StatsShowEachStage) {
  const auto text = StatsText(R"({"mount":"/m","inodes":1500,
      "processes":{"reads":4,"gone":1},"tracers":[
       {"id":1,"name":"x","state":"running","seen":2000,"matched":1000,
        "encoded":1000,"written":1000,"queued":100,"delivered":900,
        "lost":{"queue_full":7},
        "filter_ns":12.3,"encode_ns":null,"error":"disk full",
        "stages":[
         {"name":"async","blocks":4,"bytes_in":2048,"bytes_out":2048,
          "refused":0,"ns":1000000,
          "queue":{"blocks":2,"bytes":1024,"limit_bytes":4096}},
         {"name":"file","blocks":4,"bytes_in":2048,"refused":1,"ns":5000}],
        "ops":{"read":10,"write":990}}]})");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(
      *text,
      "/m: 1,500 files known to the kernel; processes looked up 4 times, gone "
      "1\n\n"
      "tracer 1 (x): running\n"
      "  operations: seen 2,000, matched 1,000, encoded 1,000, written "
      "1,000, of these queued 100, delivered 900\n"
      "  lost: queue_full 7\n"
      "  first error: disk full\n"
      "  time for one operation: filter 12 ns, encoding not sampled yet\n"
      "  STAGE  BLOCKS       IN      OUT  REFUSED  NS/OP  QUEUE\n"
      "  async       4  2.04 kB  2.04 kB        0  1,000  2 blocks, 1.02 kB of "
      "4.09 kB\n"
      "  file        4  2.04 kB                 1      5\n"
      "  written: write 990 read 10\n");
}

TEST(CtlTextTest, AddPrintsIds) {
  EXPECT_EQ(*AddText(R"({"ids":[3,4],"warnings":["x"]})"), "3\n4\n");
}

TEST(CtlTextTest, Malicious_NothingReachesTheTerminalRaw) {
  const auto text = ListText(
      R"({"mount":"/\u001b[2J","source":"\u202e","tracers":[{"id":1,
      "name":"\u0007\u001b]0;x","state":"\r\n","filter":"\u001b[31m",
      "output":"\u0000"}]})");
  ASSERT_TRUE(text.ok());
  for (const char c : *text) {
    EXPECT_TRUE(c == '\n' || (c >= ' ' && c != 0x7f)) << static_cast<int>(c);
  }
}

TEST(CtlTextTest, Malicious_AnswersOfAnotherKindAreSurvived) {
  for (const auto show : {ListText, ExplainText, StatsText, AddText}) {
    for (const char* json : {"", "3", "[]", "nonsense", "{"}) {
      EXPECT_EQ(show(json).status().code(), StatusCode::kCorrupt) << json;
    }
    for (const char* json :
         {"{}", R"({"tracers":3,"choices":{},"open":[],"ids":"x"})",
          R"({"tracers":[3,null,[],{}],"choices":[3,null,{"causes":[1]}],
              "open":{"files":-1,"opened_before":3,"examples":[1]},
              "ids":["a",-1],"processes":[]})",
          R"({"tracers":[{"id":-1,"stages":[1,{"queue":3}],"lost":{"a":"b"},
              "ops":{"x":null},"filter_ns":"fast"}]})"}) {
      EXPECT_TRUE(show(json).ok()) << json;
    }
  }
}

}  // namespace
}  // namespace tracefs
