// Writes a trace of what standard input tells, for tests whose answers are
// known because the test made them so:
//   make_scripted_trace FILE
// A line is a word and NAME=VALUE pairs with blanks between; %XX stands for a
// byte. Words: an operation (`read`; `before` in front of it for what was about
// to run), `fork`, `exec`, `exit`, `count` (what the driver `aggregate` counted
// by `op`, `uid` and `dir`, or with `other=1` of all others;
// `took`: the time of each, `times`: N,N,… of all), `loss`, `block` (ends a
// block), `clock` (its real time from now on), `cut` (the trace has no end).
// `start`: when the process began, 0 where that is not known. Times are ns
// since the trace began. Lines come in order of time.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>

#include "tests/support/trace_builder.h"
#include "tracefs/base/bytes.h"
#include "tracefs/format/aggregate.h"
#include "tracefs/format/constants.h"
#include "tracefs/format/process_message.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::test {
namespace {

constexpr size_t kPerBlock = 2000;

[[noreturn]] void Wrong(const std::string& what) {
  std::fprintf(stderr, "make_scripted_trace: %s\n", what.c_str());
  std::exit(2);
}

std::string Decoded(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%' || i + 2 >= text.size()) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
    i += 2;
  }
  return out;
}

// The pairs of a line; each is asked for once, or was a mistake.
class Line {
 public:
  explicit Line(const std::string& text) : in_(text) {
    in_ >> word_;
    if (word_ == "before") {
      before_ = true;
      in_ >> word_;
    }
    std::string pair;
    while (in_ >> pair) {
      const size_t equals = pair.find('=');
      if (equals == std::string::npos) Wrong("no pair: " + pair);
      pairs_[pair.substr(0, equals)] = Decoded(pair.substr(equals + 1));
    }
  }
  const std::string& word() const { return word_; }
  bool before() const { return before_; }
  std::string Text(const std::string& name) {
    const auto at = pairs_.find(name);
    if (at == pairs_.end()) return {};
    std::string text = at->second;
    pairs_.erase(at);
    return text;
  }
  std::optional<uint64_t> Number(const std::string& name) {
    const std::string text = Text(name);
    if (text.empty()) return std::nullopt;
    int64_t value = 0;
    uint64_t big = 0;
    const char* const end = text.data() + text.size();
    if (std::from_chars(text.data(), end, big).ptr == end) return big;
    if (std::from_chars(text.data(), end, value).ptr != end) {
      Wrong("no number: " + text);
    }
    return static_cast<uint64_t>(value);
  }
  uint64_t Time() { return Number("t").value_or(0); }
  void ExpectEmpty() const {
    if (!pairs_.empty()) Wrong(word_ + " has no " + pairs_.begin()->first);
  }

 private:
  std::istringstream in_;
  std::string word_;
  bool before_ = false;
  std::map<std::string, std::string> pairs_;
};

constexpr std::pair<const char*, Field> kNumbers[] = {
    {"dur", Field::kLatency},
    {"uid", Field::kUid},
    {"gid", Field::kGid},
    {"ino", Field::kInode},
    {"fh", Field::kFh},
    {"fh_out", Field::kFhOut},
    {"ino_out", Field::kInodeOut},
    {"off_out", Field::kOffsetOut},
    {"off", Field::kOffset},
    {"fh_out", Field::kFhOut},
    {"ino_out", Field::kInodeOut},
    {"off_out", Field::kOffsetOut},
    {"len", Field::kLength},
    {"flags", Field::kFlags},
    {"valid", Field::kValid},
    {"new_mode", Field::kArgMode},
    {"new_uid", Field::kNewUid},
    {"new_gid", Field::kNewGid},
    {"new_size", Field::kNewSize},
    {"mode", Field::kMode},
    {"nlink", Field::kNlink},
    {"size", Field::kSize},
    {"fuid", Field::kFuid},
    {"fgid", Field::kFgid},
    {"parent_ino", Field::kParentInode},
    {"new_parent_ino", Field::kNewParentInode},
    {"fh_out", Field::kFhOut},
    {"ino_out", Field::kInodeOut},
    {"off_out", Field::kOffsetOut},
    {"data_crc", Field::kDataChecksum},
    {"inferred", Field::kInferred}};

class Script {
 public:
  Script() {
    trace_.header().Set("mount.point", "/");
    trace_.header().Set("backing.path", "/");
  }

  void Take(Line& line) {
    if (line.word() == "block") {
      End();
    } else if (line.word() == "cut") {
      cut_ = true;
    } else if (line.word() == "clock") {
      End();
      trace_.header().clock.real_ns = *line.Number("real");
    } else if (line.word() == "property") {
      trace_.header().Set(line.Text("key"), line.Text("value"));
    } else if (line.word() == "host") {
      trace_.header().Set("host.name", line.Text("name"));
    } else if (line.word() == "loss") {
      const std::string reason = line.Text("reason");
      trace_.AddLoss({.reason = reason,
                      .count = *line.Number("count"),
                      .first_ns = At(line.Time()),
                      .last_ns = At(line.Number("to").value_or(0))});
    } else if (line.word() == "count") {
      TakeCount(line);
    } else if (line.word() == "fork" || line.word() == "exec" ||
               line.word() == "exit") {
      TakeProcess(line);
    } else {
      TakeOperation(line);
    }
    line.ExpectEmpty();
    if (++lines_ == kPerBlock) End();
  }

  std::string Made() {
    End();
    if (!cut_) trace_.Finish();
    return trace_.bytes();
  }

 private:
  static uint64_t At(uint64_t ns) { return TraceBuilder::kMonotonicNs + ns; }
  // Numbers of processes start once, unless `start` says otherwise.
  static ProcessKey Key(uint64_t pid, std::optional<uint64_t> start) {
    return {static_cast<uint32_t>(pid), start.value_or(10 * pid)};
  }

  void End() {
    if (lines_ != 0) trace_.EndBlock();
    lines_ = 0;
    paths_.clear();
    processes_.clear();
  }

  static format::HistogramRecord LatencyOf(const std::string& times) {
    format::HistogramRecord latency;
    latency.present = true;
    std::map<uint16_t, uint64_t> counts;
    std::istringstream in(times);
    for (std::string one; std::getline(in, one, ',');) {
      const uint64_t ns = std::stoull(one);
      latency.sum += ns;
      latency.max = std::max(latency.max, ns);
      ++counts[tally::HistogramBucket(ns)];
    }
    for (const auto& [bucket, count] : counts) {
      latency.buckets.push_back({bucket, count});
    }
    return latency;
  }

  void TakeCount(Line& line) {
    format::AggregateRecord record;
    record.from_ns = At(line.Time());
    record.to_ns = At(line.Number("to").value_or(0));
    record.total = line.Number("total").has_value();
    record.other = line.Number("other").has_value();
    if (const auto driver = line.Number("aggregate")) {
      record.aggregate = static_cast<uint32_t>(*driver);
    }
    const std::string op_name = line.Text("op");
    const std::string directory = line.Text("dir");
    if (!op_name.empty()) {
      const auto op = OpFromName(op_name);
      if (!op) Wrong("no operation is counted");
      record.key.push_back(
          {static_cast<uint16_t>(format::ArgId::kKeyOp), Index(*op), {}});
    }
    if (const auto uid = line.Number("uid")) {
      record.key.push_back({Info(Field::kUid).arg_id, *uid, {}});
    }
    if (!directory.empty()) {
      record.key.push_back(
          {static_cast<uint16_t>(format::ArgId::kDirectory), 0, directory});
    }
    record.bytes = line.Number("bytes");
    record.count = *line.Number("n");
    record.errors = line.Number("errors").value_or(0);
    if (const auto took = line.Number("took")) {
      record.latency.present = true;
      record.latency.sum = record.count * *took;
      record.latency.max = *took;
      record.latency.buckets.push_back(
          {tally::HistogramBucket(*took), record.count});
    }
    if (const std::string times = line.Text("times"); !times.empty()) {
      record.latency = LatencyOf(times);
    }
    std::vector<std::byte> memory(format::kAggregateMaxBytes);
    format::MessageWriter out(memory);
    format::WriteAggregate(out, record);
    trace_.AddBytes(AsText(out.bytes()));
  }

  void TakeProcess(Line& line) {
    using Kind = ProcessRecord::Kind;
    ProcessRecord record;
    record.kind = line.word() == "fork"   ? Kind::kFork
                  : line.word() == "exec" ? Kind::kExec
                                          : Kind::kExit;
    record.time_ns = At(line.Time());
    const uint64_t pid = *line.Number("pid");
    record.process = Key(pid, line.Number("start"));
    record.tid = static_cast<uint32_t>(pid);
    record.ppid = static_cast<uint32_t>(line.Number("ppid").value_or(0));
    std::string argv, program;
    if (record.kind == Kind::kFork) {
      record.child = Key(*line.Number("child"), line.Number("child_start"));
      record.child_tid = record.child.pid;
      record.clone_flags = 17;
    } else if (record.kind == Kind::kExec) {
      argv = line.Text("argv");
      program = argv.substr(0, argv.find(' '));
      names_[pid] = program.substr(program.rfind('/') + 1);
      for (char& c : argv) {
        if (c == ' ') c = '\0';
      }
      argv += '\0';
      record.program = record.exe = program;
      record.cwd = "/";
      record.argv = argv;
      record.comm = names_[pid];
    } else {
      record.exit_code = static_cast<uint32_t>(line.Number("code").value_or(0));
    }
    std::vector<std::byte> memory(size_t{64} << 10);
    format::MessageWriter out(memory);
    format::WriteProcessRecord(out, record);
    trace_.AddBytes(AsText(out.bytes()));
  }

  void TakeOperation(Line& line) {
    const auto op = OpFromName(line.word());
    if (!op) Wrong("no operation: " + line.word());
    Event event;
    event.op = *op;
    event.before = line.before();
    // As of a tracer that records no times.
    if (!line.Number("timeless")) event.Set(Field::kTime, At(line.Time()));
    for (const auto& [name, field] : kNumbers) {
      if (const auto value = line.Number(name)) event.Set(field, *value);
    }
    const auto result = static_cast<int64_t>(line.Number("res").value_or(0));
    const auto error = line.Number("err").value_or(0);
    if (!event.before) {
      event.SetResult(error != 0 ? -1 : result, static_cast<int>(error));
    }
    References references;
    references.process = Process(line);
    const std::string path = line.Text("path");
    const std::string path2 = line.Text("path2");
    std::string name = path.substr(path.rfind('/') + 1);
    std::string name2 = path2.substr(path2.rfind('/') + 1);
    if (HasName(*op) && *op != Op::link_ && !path.empty()) {
      references.parent = Path(Parent(path));
      event.name = name;
    } else if (!path.empty()) {
      references.path = Path(path);
    }
    if (!path2.empty() && HasTwoFiles(*op)) {
      references.new_parent = Path(path2);
    } else if (!path2.empty()) {
      references.new_parent = Path(Parent(path2));
      event.new_name = name2;
    }
    const std::string xattr = line.Text("xattr");
    event.xattr_name = xattr;
    const std::string target = line.Text("target");
    event.target = target;
    const std::string data = line.Text("data");
    event.data = AsBytes(data);
    trace_.Add(event, references);
  }

  uint32_t Process(Line& line) {
    const auto pid = line.Number("pid");
    const auto ppid = line.Number("ppid");
    const std::string comm = line.Text("comm");
    if (!comm.empty() && pid) names_[*pid] = comm;
    if (!pid) return 0;
    const ProcessKey key = Key(*pid, line.Number("start"));
    uint32_t& id = processes_[{*pid, key.start_ticks, names_[*pid]}];
    if (id != 0) return id;
    CallerInfo caller;
    caller.pid = caller.tid = static_cast<uint32_t>(*pid);
    caller.ppid = static_cast<uint32_t>(ppid.value_or(0));
    caller.start_time = key.start_ticks;
    const std::string& known = names_[*pid];
    known.copy(caller.comm_bytes.data(), caller.comm_bytes.size());
    caller.comm_size =
        static_cast<uint8_t>(std::min(known.size(), caller.comm_bytes.size()));
    return id = trace_.DefineProcess(caller);
  }

  static std::string Parent(const std::string& path) {
    return path.substr(0, std::max<size_t>(path.rfind('/'), 1));
  }
  uint32_t Path(const std::string& path) {
    if (const auto at = paths_.find(path); at != paths_.end()) {
      return at->second;
    }
    const uint32_t id =
        path.size() <= 1 ? trace_.DefinePath(0, "")
                         : trace_.DefinePath(Path(Parent(path)),
                                             path.substr(path.rfind('/') + 1));
    paths_.emplace(path, id);
    return id;
  }

  TraceBuilder trace_;
  bool cut_ = false;
  size_t lines_ = 0;
  std::map<uint64_t, std::string> names_;
  std::map<std::tuple<uint64_t, uint64_t, std::string>, uint32_t> processes_;
  std::map<std::string, uint32_t> paths_;
};

}  // namespace
}  // namespace tracefs::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_scripted_trace FILE < SCRIPT\n", stderr);
    return 2;
  }
  tracefs::test::Script script;
  std::string text;
  while (std::getline(std::cin, text)) {
    if (text.empty() || text[0] == '#') continue;
    tracefs::test::Line line(text);
    script.Take(line);
  }
  std::ofstream out(argv[1], std::ios::binary);
  out << script.Made();
  return out.flush() ? 0 : 3;
}
