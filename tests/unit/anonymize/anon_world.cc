#include "tests/unit/anonymize/anon_world.h"

#include <gtest/gtest.h>

#include <random>

#include "anonymize/fields.h"
#include "anonymize/session.h"
#include "tests/support/random_event.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/trace_reader.h"

namespace tracefs::anonymize {

using format::ArgId;
using test::TraceBuilder;

KeySet TestKeys(char byte) {
  KeySet keys;
  SecretKey master;
  std::fill(master.get().begin(), master.get().end(), std::byte(byte));
  keys.SetMaster(std::move(master));
  return keys;
}

std::string SampleTrace(uint64_t seed) {
  std::mt19937_64 random(seed);
  TraceBuilder trace;
  trace.header().Set("host.name", "zeus.example.org");
  trace.header().Set("mount.point", "/home/alice/project");
  trace.header().Set("config.text", "file = \"/home/alice/my.trace\"");
  const std::string names[] = {"report.txt",
                               "report.txt~",
                               ".bashrc",
                               "core.1234",
                               "img0042.jpeg",
                               "Makefile",
                               "a",
                               "..hidden.tmp",
                               "sp ace+plus.c",
                               std::string(255, 'L'),
                               std::string(200, 'M') + ".txt",
                               "\xff\x01\x02.bin",
                               "1234",
                               "\x01",
                               "noext."};
  uint64_t time = TraceBuilder::kMonotonicNs;
  for (int block = 0; block < 6; ++block) {
    const uint32_t root = trace.DefinePath(0, "");
    std::vector<uint32_t> paths = {root};
    for (const std::string& name : names) {
      paths.push_back(trace.DefinePath(paths[random() % paths.size()], name));
    }
    std::vector<uint32_t> processes = {0};
    for (int i = 0; i < 3; ++i) {
      processes.push_back(trace.DefineProcess(test::RandomCaller(random)));
    }
    for (int i = 0; i < 60; ++i) {
      time += random() % 5000;
      test::RandomEvent made(random, static_cast<Op>(random() % kOpCount),
                             time);
      // Times of files are those of this century.
      for (const Field f :
           {Field::kMtime, Field::kNewAtime, Field::kNewMtime}) {
        made.event.Set(f, TraceBuilder::kRealNs - random() % (1ULL << 50));
      }
      made.event.Set(Field::kLatency, random() % 1'000'000);
      if (i % 2 == 0) made.event.name = names[random() % std::size(names)];
      made.event.target = i % 3 == 0 ? "/etc/../home/bob//notes.md" : "";
      made.event.xattr_name = i % 5 == 0 ? "user.mime_type" : "";
      trace.Add(made.event,
                {.path = paths[random() % paths.size()],
                 .parent = paths[random() % paths.size()],
                 .new_parent = paths[random() % paths.size()],
                 .process = processes[random() % processes.size()]});
    }
    if (block == 2) {
      trace.AddLoss({.reason = "queue_full",
                     .count = 3,
                     .first_ns = time,
                     .last_ns = time + 5});
    }
    if (block == 3) {
      trace.AddRaw(static_cast<uint16_t>(format::MessageId::kChange),
                   [&](format::MessageWriter& out) {
                     out.Put<uint64_t>(ArgId::kFirstTime, time);
                     out.PutText(ArgId::kProperty,
                                 "filter.text=cname = alice-editor");
                   });
    }
    // What was counted for one user in one directory.
    trace.AddRaw(static_cast<uint16_t>(format::MessageId::kAggregate),
                 [&](format::MessageWriter& out) {
                   out.Put<uint32_t>(ArgId::kAggregate, 1);
                   out.Put<uint64_t>(ArgId::kFirstTime, time - 10);
                   out.Put<uint64_t>(ArgId::kLastTime, time);
                   out.Put<uint64_t>(ArgId::kCount, 5);
                   out.Put<uint32_t>(Info(Field::kUid).arg_id, 1000);
                   out.PutText(ArgId::kDirectory, "/home/alice/tax.2025");
                 });
    trace.EndBlock();
  }
  trace.Finish();
  return trace.bytes();
}

namespace {

Outcome Rewrite(const std::string& trace, const PlanMaker& make_plan,
                HowTo how) {
  Outcome outcome;
  MemorySink sink;
  MapTables maps;
  RewriteOptions options;
  options.name = "trace";
  options.threads = how.threads;
  options.cache_entries = how.cache_entries;
  options.salvage = how.salvage;
  format::TraceReader reader(
      std::make_unique<format::MemorySource>(AsBytes(trace)), {});
  outcome.status =
      RewriteTrace(&reader, options, make_plan, &maps, sink, &outcome.counts);
  outcome.bytes = sink.text();
  return outcome;
}

}  // namespace

Outcome HideTrace(const std::string& trace, const std::string& policy,
                  const KeySet& keys, HowTo how) {
  const Result<Policy> parsed = ParsePolicy(policy, "policy");
  if (!parsed.ok()) return {parsed.status(), {}, {}};
  return Rewrite(
      trace,
      [&](const format::SelfDescription& description) {
        return MakeHidePlan(*parsed, keys, description);
      },
      how);
}

Outcome RevealTrace(const std::string& trace,
                    const std::vector<std::string>& domains, const KeySet& keys,
                    HowTo how) {
  return Rewrite(
      trace,
      [&](const format::SelfDescription& description) {
        return MakeRevealPlan(domains, keys, description);
      },
      how);
}

std::string MustHide(const std::string& trace, const std::string& policy,
                     HowTo how) {
  const Outcome outcome = HideTrace(trace, policy, TestKeys(), how);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
  return outcome.bytes;
}

std::string MustReveal(const std::string& trace,
                       const std::vector<std::string>& domains,
                       const KeySet& keys) {
  const Outcome outcome = RevealTrace(trace, domains, keys);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
  return outcome.bytes;
}

std::string Line::Get(const std::string& name) const {
  for (const auto& [n, value] : arguments) {
    if (n == name) return value;
  }
  return {};
}

std::vector<Line> Lines(const std::string& trace) {
  std::vector<Line> lines;
  format::ReadStats stats;
  const format::ReportSink report;
  format::FrameReader frames(
      std::make_unique<format::MemorySource>(AsBytes(trace)), false, &stats,
      &report);
  if (!frames.ReadPreamble().ok()) return lines;
  format::SelfDescription description;
  format::ArgumentWidths widths;
  format::Frame frame;
  while (*frames.Next(&frame) == format::ReadStep::kItem) {
    format::MessageCursor in(frame.payload);
    format::Message message;
    while (in.Next(&message)) {
      if (message.msg_id == static_cast<uint16_t>(format::MessageId::kStart)) {
        EXPECT_TRUE(format::ReadStart(message.arguments, &description));
        for (const auto& [id, a] : description.arguments) {
          widths.Set(id, a.width);
        }
        continue;
      }
      Line line{frame.header.sequence, message.msg_id, {}};
      format::ArgumentCursor arguments(message.arguments, widths);
      format::Argument argument;
      while (arguments.Next(&argument)) {
        line.arguments.emplace_back(description.arguments[argument.id].name,
                                    AsText(argument.value));
      }
      EXPECT_FALSE(arguments.malformed());
      lines.push_back(std::move(line));
    }
    EXPECT_FALSE(in.malformed());
  }
  EXPECT_FALSE(stats.damaged_bytes);
  return lines;
}

format::TraceHeader HeaderOf(const std::string& trace) {
  format::TraceReader reader(
      std::make_unique<format::MemorySource>(AsBytes(trace)), {});
  std::unique_ptr<format::BlockDecoder> block;
  EXPECT_TRUE(reader.NextBlock(&block).ok());
  return reader.description().header;
}

std::string KeepAllBut(const std::string& statements) {
  std::string policy = statements;
  for (const ClassInfo& c : Classes()) {
    const std::string name(c.name);
    // At the start of a line.
    if (("\n" + statements).find("\n" + name + " =") == std::string::npos) {
      policy += name + " = keep;\n";
    }
  }
  if (policy.find("property *") == std::string::npos) {
    policy += "property * = drop;\n";
  }
  return policy;
}

}  // namespace tracefs::anonymize
