// What operations are grouped by: each word for itself against the slow way to
// work it out, with names that are not tame, and what is no word.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/read_records.h"
#include "tests/support/trace_builder.h"
#include "tracefs/query/grouping.h"

namespace tracefs::query {
namespace {

using test::TraceBuilder;

struct Told {
  std::vector<std::string> path;  // names below the root
  std::optional<uint64_t> length;
  std::optional<int64_t> result;
  uint64_t since_ns = 0;
  std::optional<uint32_t> pid;
  std::string comm;
  Op op = Op::read_;
};

std::string PathText(const Told& told) {
  std::string text;
  for (const std::string& name : told.path) text += "/" + name;
  return text.empty() ? "/" : text;
}

// How many operations each key has; absent ones are "-".
using Counts = std::map<std::string, uint64_t>;

Counts Ask(const std::vector<Told>& all, std::string_view keys,
           uint64_t every_ns = 0) {
  TraceBuilder trace;
  for (const Told& told : all) {
    Event event;
    event.op = told.op;
    event.Set(Field::kTime, TraceBuilder::kMonotonicNs + told.since_ns);
    if (told.length) event.Set(Field::kLength, *told.length);
    if (told.result) {
      event.SetResult(*told.result, 0);
    }
    uint32_t node = trace.DefinePath(0, "");
    for (const std::string& name : told.path) {
      node = trace.DefinePath(node, name);
    }
    test::References references = {.path = node};
    if (told.pid) {
      CallerInfo caller;
      caller.pid = caller.tid = *told.pid;
      caller.comm_size = static_cast<uint8_t>(told.comm.size());
      std::ranges::copy(told.comm, caller.comm_bytes.begin());
      references.process = trace.DefineProcess(caller);
    }
    trace.Add(event, references);
    trace.EndBlock();
  }
  GroupSpec spec;
  const auto parsed = ParseGroupKeys(keys, "--by");
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  spec.keys = *parsed;
  spec.values = {GroupValue::kCount};
  spec.every_ns = every_ns;
  Grouping grouping(spec);
  test::ReadRecords(trace.bytes(), [&](const format::Record& record) {
    grouping.AddRecord(record, 0);
  });
  const Table table = grouping.Finish();
  EXPECT_FALSE(table.other);
  Counts counts;
  for (const Row& row : table.rows) {
    std::string key;
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      key += i == 0 ? "" : " ";
      key += !row[i].present       ? "-"
             : row[i].text.empty() ? std::to_string(row[i].number)
                                   : row[i].text;
    }
    EXPECT_FALSE(counts.contains(key)) << key << " has two rows";
    counts[key] = row.back().number;
  }
  return counts;
}

Counts Model(const std::vector<Told>& all,
             const std::function<std::string(const Told&)>& key) {
  Counts counts;
  for (const Told& told : all) ++counts[key(told)];
  return counts;
}

std::vector<Told> Untamed() {
  std::vector<Told> all;
  const std::string names[] = {"a",
                               "a ",
                               " a",
                               "\"q\"",
                               "x,y",
                               ".hidden",
                               "two.tar.gz",
                               "ends.",
                               "\xff.\xfe",
                               std::string(200, 'l') + ".c",
                               "line\nbreak.txt",
                               "..."};
  std::mt19937_64 random(11);
  for (const std::string& one : names) {
    for (const std::string& two : names) {
      Told& told = all.emplace_back();
      told.path = {one};
      if (random() % 4 != 0) told.path.push_back(two);
      if (random() % 3 == 0) told.path.push_back(names[random() % 12]);
      told.since_ns = all.size() * 100;
    }
  }
  all.emplace_back();  // the root itself
  return all;
}

// Parent, by taking the path apart.
std::string DirOf(const Told& told, size_t depth) {
  std::string text;
  for (size_t i = 0; i + 1 < told.path.size() && (depth == 0 || i < depth);
       ++i) {
    text += "/" + told.path[i];
  }
  return text.empty() ? "/" : text;
}

std::string ExtOf(const Told& told) {
  if (told.path.empty()) return "-";
  const std::string& name = told.path.back();
  for (size_t i = name.size(); i-- > 1;) {
    if (name[i] != '.') continue;
    return i + 1 == name.size() ? "-" : name.substr(i + 1);
  }
  return "-";
}

TEST(GroupKeysTest, PathsAndTheirParts) {
  const std::vector<Told> all = Untamed();
  EXPECT_EQ(Ask(all, "path"), Model(all, &PathText));
  EXPECT_EQ(Ask(all, "name"), Model(all, [](const Told& told) {
              return told.path.empty() ? "-" : told.path.back();
            }));
  EXPECT_EQ(Ask(all, "ext"), Model(all, &ExtOf));
  EXPECT_EQ(Ask(all, "dir"),
            Model(all, [](const Told& told) { return DirOf(told, 0); }));
  for (const size_t depth : {1, 2, 64}) {
    EXPECT_EQ(Ask(all, "dir(" + std::to_string(depth) + ")"),
              Model(all, [&](const Told& told) { return DirOf(told, depth); }))
        << depth;
  }
}

TEST(GroupKeysTest, SeveralKeysTogetherAlsoWhereOnesAreAbsent) {
  std::mt19937_64 random(5);
  std::vector<Told> all;
  for (int i = 0; i < 400; ++i) {
    Told& told = all.emplace_back();
    told.path = {"f" + std::to_string(random() % 90)};
    if (random() % 3 != 0) told.length = random() % 4;
    if (random() % 3 != 0) {
      told.pid = 1 + random() % 3;
      told.comm = random() % 2 == 0 ? "cat" : "a \"b\" ";
    }
    told.since_ns = static_cast<uint64_t>(i);
  }
  const auto number = [](const auto& value) {
    return value ? std::to_string(*value) : std::string("-");
  };
  const auto comm = [](const Told& told) {
    return told.pid ? told.comm : std::string("-");
  };
  EXPECT_EQ(Ask(all, "length,cpid"), Model(all, [&](const Told& told) {
              return number(told.length) + " " + number(told.pid);
            }));
  EXPECT_EQ(Ask(all, "cpid,length,cname,path"),
            Model(all, [&](const Told& told) {
              return number(told.pid) + " " + number(told.length) + " " +
                     comm(told) + " " + PathText(told);
            }));
  EXPECT_EQ(Ask(all, "process"), Model(all, [&](const Told& told) {
              return told.pid ? told.comm + " " + std::to_string(*told.pid)
                              : "-";
            }));
}

TEST(GroupKeysTest, NumbersByTheirPowersWidthsAndAlignment) {
  std::vector<Told> all;
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    Told& told = all.emplace_back();
    told.since_ns = static_cast<uint64_t>(i);
    if (random() % 8 != 0) {
      told.length = i < 4 ? static_cast<uint64_t>(i)
                          : random() % (uint64_t{1} << random() % 40);
    }
    if (random() % 8 != 0) {
      told.result = static_cast<int64_t>(random() % 100);
    }
  }
  const auto of = [&all](const std::function<uint64_t(uint64_t)>& cut) {
    return Model(all, [&](const Told& told) {
      return told.length ? std::to_string(cut(*told.length)) : "-";
    });
  };
  EXPECT_EQ(Ask(all, "length"), of([](uint64_t n) { return n; }));
  EXPECT_EQ(Ask(all, "log2(length)"), of([](uint64_t n) {
              uint64_t power = 1;
              while (power <= n / 2) power *= 2;
              return n == 0 ? 0 : power;
            }));
  EXPECT_EQ(Ask(all, "linear(length,4K)"),
            of([](uint64_t n) { return n / 4096 * 4096; }));
  EXPECT_EQ(Ask(all, "linear( length , 10 )"),
            of([](uint64_t n) { return n / 10 * 10; }));
  EXPECT_EQ(Ask(all, "align(length)"), of([](uint64_t n) {
              uint64_t power = 1;
              while (n != 0 && n % (power * 2) == 0) power *= 2;
              return n == 0 ? 0 : power;
            }));
}

TEST(GroupKeysTest, TimesBelongToThePeriodTheyBeginIn) {
  std::vector<Told> all;
  for (const uint64_t ns :
       {uint64_t{0}, uint64_t{1}, uint64_t{999'999'999},
        uint64_t{1'000'000'000}, uint64_t{59'999'999'999},
        uint64_t{3'600'000'000'000}, uint64_t{7'200'000'000'000}}) {
    all.emplace_back().since_ns = ns;
  }
  const auto of = [&all](uint64_t period) {
    return Model(all, [&](const Told& told) {
      const uint64_t real = TraceBuilder::kRealNs + told.since_ns;
      return std::to_string(real / period * period);
    });
  };
  constexpr uint64_t kSecond = 1'000'000'000;
  EXPECT_EQ(Ask(all, "time(1s)"), of(kSecond));
  EXPECT_EQ(Ask(all, "minute"), of(60 * kSecond));
  EXPECT_EQ(Ask(all, "hour"), of(3600 * kSecond));
  EXPECT_EQ(Ask(all, "time(250ms)"), of(kSecond / 4));
  // In periods: the first column.
  EXPECT_EQ(Ask(all, "op", 60 * kSecond), Model(all, [&](const Told& told) {
              const uint64_t real = TraceBuilder::kRealNs + told.since_ns;
              return std::to_string(real / (60 * kSecond) * (60 * kSecond)) +
                     " read";
            }));
}

TEST(GroupKeysTest, WhatIsNoKeyIsRefusedWithTheNearestOne) {
  const auto why = [](std::string_view keys) {
    const auto parsed = ParseGroupKeys(keys, "--by");
    return parsed.ok() ? "(taken)" : parsed.status().message();
  };
  EXPECT_NE(why("pathh").find("did you mean 'path'"), std::string::npos);
  EXPECT_NE(why("USER").find("did you mean 'cuid'"), std::string::npos);
  EXPECT_NE(why("folder").find("did you mean 'dir'"), std::string::npos);
  for (const char* bad : {"dir(0)",
                          "dir(65)",
                          "dir(x)",
                          "dir()",
                          "dir(1",
                          "ext(2)",
                          "time",
                          "time()",
                          "time(0s)",
                          "time(x)",
                          "log2",
                          "log2(path)",
                          "log2(nothing)",
                          "linear(length)",
                          "linear(length,0)",
                          "linear(path,4)",
                          "align(path)",
                          "op(1)",
                          "",
                          ",",
                          "op,op",
                          "op,,op",
                          "name,name"}) {
    EXPECT_EQ(ParseGroupKeys(bad, "--by").status().code(), StatusCode::kInvalid)
        << bad;
  }
  EXPECT_EQ(why("op,op"), "--by: op is given twice");
  std::string many = "op";
  const char* const more[] = {"path", "cpid", "cuid",  "errno", "length",
                              "ext",  "dir",  "cname", "name",  "hour"};
  size_t count = 1;
  for (const char* word : more) {
    if (count++ == GroupKey::kMax) break;
    many += std::string(",") + word;
  }
  ASSERT_LE(GroupKey::kMax, 10u);
  EXPECT_EQ(why(many), "(taken)");
  EXPECT_NE(why(many + ",minute").find("needs 1 to"), std::string::npos);
  EXPECT_EQ(why("dir(64),time(1s)"), "(taken)");
}

TEST(GroupKeysTest, ValuesAreTakenInTheirOrderAndOnce) {
  const auto names = [](std::string_view text) {
    const auto parsed = ParseGroupValues(text, "--values");
    if (!parsed.ok()) return parsed.status().message();
    std::string list;
    for (const GroupValue value : *parsed) {
      list += (list.empty() ? "" : " ") + ColumnOf(value).name;
    }
    return list;
  };
  EXPECT_EQ(names(""), "count errors bytes time p50 p99 max");
  EXPECT_EQ(names("max, count ,latency"), "max count time p50 p99");
  EXPECT_EQ(names("size"), "size_mean size_p50 size_p99 size_max");
  EXPECT_EQ(names("count,count"), "--values: count is given twice");
  EXPECT_EQ(names("latency,p50"), "--values: p50 is given twice");
  EXPECT_NE(names("cuont").find("did you mean 'count'"), std::string::npos)
      << names("cuont");
  for (const auto& [value, unit] : {std::pair{GroupValue::kBytes, Unit::kBytes},
                                    {GroupValue::kP999, Unit::kDuration},
                                    {GroupValue::kFirst, Unit::kTime},
                                    {GroupValue::kTimeShare, Unit::kShare},
                                    {GroupValue::kFiles, Unit::kNumber}}) {
    EXPECT_EQ(ColumnOf(value).unit, unit);
  }
  // Only what adds up is in the line `other`.
  EXPECT_TRUE(ColumnOf(GroupValue::kErrors).adds);
  EXPECT_FALSE(ColumnOf(GroupValue::kMax).adds);
}

}  // namespace
}  // namespace tracefs::query
