#include "tracefs/tools/ctl/text.h"

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <vector>

#include "tracefs/base/date_text.h"
#include "tracefs/base/join.h"
#include "tracefs/text/cell_width.h"
#include "tracefs/text/duration.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/units.h"

namespace tracefs {
namespace {

using Json = nlohmann::ordered_json;

// Reads members that may be missing or of another type: answers come from a
// daemon of another version, perhaps.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  std::string Text(const char* name) const {
    const Json* j = Find(name);
    return j != nullptr && j->is_string() ? Safe(j->get<std::string>()) : "";
  }
  // One value among others: its ends can be seen.
  std::string Word(const char* name, std::string_view more = {}) const {
    return TerminalWord(RawText(name), more);
  }
  // As it came: for what is taken apart further.
  std::string RawText(const char* name) const {
    const Json* j = Find(name);
    return j != nullptr && j->is_string() ? j->get<std::string>() : "";
  }
  uint64_t Number(const char* name) const {
    const Json* j = Find(name);
    return j != nullptr && j->is_number_unsigned() ? j->get<uint64_t>() : 0;
  }
  bool Has(const char* name) const { return Find(name) != nullptr; }
  bool IsTrue(const char* name) const {
    const Json* j = Find(name);
    return j != nullptr && j->is_boolean() && j->get<bool>();
  }
  const Json& List(const char* name) const {
    static const Json empty = Json::array();
    const Json* j = Find(name);
    return j != nullptr && j->is_array() ? *j : empty;
  }
  const Json& Object(const char* name) const {
    static const Json empty = Json::object();
    const Json* j = Find(name);
    return j != nullptr && j->is_object() ? *j : empty;
  }

  // On one line, without control characters.
  static std::string Safe(const std::string& text) {
    return TerminalText(text);
  }

 private:
  const Json* Find(const char* name) const {
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(name);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  const Json& json_;
};

Result<Json> Parse(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return json;
  return Status::Corrupt("the mount's answer makes no sense");
}

// Columns as wide as what is in them; numbers to the right.
class Table {
 public:
  // `left`: columns of words.
  explicit Table(std::vector<bool> left) : left_(std::move(left)) {}
  void Row(std::vector<std::string> cells) {
    rows_.push_back(std::move(cells));
  }
  std::string Text(std::string_view indent) const {
    std::vector<size_t> width(left_.size());
    for (const auto& row : rows_) {
      for (size_t i = 0; i < row.size(); ++i) {
        width[i] = std::max(width[i], WidthOf(row[i]));
      }
    }
    std::string text;
    for (const auto& row : rows_) {
      std::string line(indent);
      for (size_t i = 0; i < row.size(); ++i) {
        line +=
            left_[i] ? PadEnd(row[i], width[i]) : PadFront(row[i], width[i]);
        line += "  ";
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + '\n';
    }
    return text;
  }

 private:
  const std::vector<bool> left_;
  std::vector<std::vector<std::string>> rows_;
};

// Blanks and line ends in a row become one blank.
std::string OnOneLine(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!blank) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  if (!line.empty() && line.back() == ' ') line.pop_back();
  return Reader::Safe(line);
}

std::string TracerName(const Reader& tracer, const char* id) {
  const std::string name = tracer.Text("name");
  return "tracer " + std::to_string(tracer.Number(id)) +
         (name.empty() ? "" : " (" + name + ")");
}

std::string NsText(const Json& tracer, const char* name) {
  const auto found = tracer.find(name);
  if (found == tracer.end() || !found->is_number()) return "not sampled yet";
  return DurationText(
      static_cast<uint64_t>(std::clamp(found->get<double>(), 0.0, 1e18)));
}

// What forced a choice, tracer by tracer.
std::string CausesText(const Json& causes) {
  struct Cause {
    std::string tracer;
    std::string filter;
    std::string ops;
  };
  std::vector<Cause> all;
  for (const Json& j : causes) {
    const Reader cause(j);
    const std::string tracer = TracerName(cause, "tracer");
    const std::string filter = cause.RawText("filter");
    const auto same = std::find_if(all.begin(), all.end(), [&](const Cause& c) {
      return c.tracer == tracer && c.filter == filter;
    });
    if (same != all.end()) {
      same->ops += ", " + cause.Text("op");
    } else {
      all.push_back({tracer, filter, cause.Text("op")});
    }
  }
  std::string text;
  for (const Cause& cause : all) {
    text += "    because " + cause.tracer + " may record " + cause.ops;
    if (cause.filter == "0: keep\n") {
      text += ", every one\n";
      continue;
    }
    text += ":\n";
    // The program of the filter, a line a test.
    for (size_t at = 0; at < cause.filter.size();) {
      const size_t end =
          std::min(cause.filter.find('\n', at), cause.filter.size());
      text += "      " + Reader::Safe(cause.filter.substr(at, end - at)) + '\n';
      at = end + 1;
    }
  }
  return text;
}

// Local date and time of `ns` since the epoch.
std::string LocalTime(uint64_t ns) {
  return LocalText(static_cast<time_t>(ns / 1'000'000'000), "%F %T");
}

// What made a rule fire, in words of which each shows where it ends.
std::string AlarmText(const Reader& alarm) {
  std::string text = alarm.Text("op");
  if (alarm.Has("path")) text += ' ' + alarm.Word("path");
  text +=
      " by " + (alarm.Text("comm").empty() ? "?" : alarm.Word("comm", "()"));
  text += " (pid " + std::to_string(alarm.Number("pid")) + ", uid " +
          std::to_string(alarm.Number("uid")) + ")";
  if (const std::string key = alarm.RawText("key"); !key.empty()) {
    // A name of a command behind "cname ".
    const size_t blank = std::min(key.find(' '), key.size());
    text += ", for " + Reader::Safe(key.substr(0, blank));
    if (blank < key.size()) {
      text += ' ' + TerminalWord(key.substr(blank + 1), ",");
    }
  }
  return text + ", " + CountText(alarm.Number("count")) + " in one window";
}

std::string ActionText(const Json& json) {
  const Reader action(json);
  // A hold is of no tracer.
  const uint64_t tracer = action.Number("tracer");
  return action.Text("action") +
         (tracer == 0 ? "" : ' ' + std::to_string(tracer)) + ": " +
         action.Text("outcome");
}

// The texts of a list, each of which shows where it ends.
std::string WordsIn(const Json& list) {
  std::string text;
  for (const Json& j : list) {
    if (!j.is_string()) continue;
    AppendWord(TerminalWord(j.get<std::string>(), ","), ", ", &text);
  }
  return text;
}

// Who made a rule fire, as far as the mount found that out.
std::vector<std::string> SourceLines(const Reader& alarm) {
  std::vector<std::string> lines;
  const auto add = [&lines](const char* what, const std::string& text) {
    if (!text.empty()) lines.push_back(what + text);
  };
  const auto word = [&](const char* what, const char* name) {
    if (alarm.Has(name)) add(what, alarm.Word(name));
  };
  word("runs ", "exe");
  word("command line ", "cmdline");
  word("terminal ", "tty");
  word("control group ", "cgroup");
  std::string above;
  for (const Json& j : alarm.List("ancestors")) {
    const Reader ancestor(j);
    above += (above.empty() ? "" : ", ") +
             std::to_string(ancestor.Number("pid")) + ' ' +
             (ancestor.Text("comm").empty() ? "?" : ancestor.Word("comm", ","));
  }
  add("below ", above);
  add("touched ", WordsIn(alarm.List("touched")));
  add("not known: ", WordsIn(alarm.List("not_known")));
  return lines;
}

// For `rules`: below the rule.
std::string AlarmLines(const Json& json) {
  const Reader alarm(json);
  std::string text =
      "    " + LocalTime(alarm.Number("time")) + ' ' + AlarmText(alarm) + '\n';
  for (const std::string& line : SourceLines(alarm)) {
    text += "      " + line + '\n';
  }
  for (const Json& j : alarm.List("actions")) {
    text += "      " + ActionText(j) + '\n';
  }
  return text;
}

// For `rules --follow`: one line.
std::string AlarmLine(const Reader& rule, const Json& json) {
  const Reader alarm(json);
  std::string text = LocalTime(alarm.Number("time")) + " rule " +
                     std::to_string(rule.Number("rule")) + " of tracer " +
                     std::to_string(rule.Number("tracer")) + ' ' +
                     rule.Word("title", ":") + ": " + AlarmText(alarm);
  for (const std::string& line : SourceLines(alarm)) text += "; " + line;
  for (const Json& j : alarm.List("actions")) text += "; " + ActionText(j);
  return text + '\n';
}

// "helpers: watch 1, look 2, dial 1 (3 died, 3 replaced)".
std::string HelpersText(const Json& helpers) {
  std::string text;
  for (const Json& j : helpers) {
    const Reader helper(j);
    text += text.empty() ? "helpers: " : ", ";
    text += helper.Text("kind") + ' ' + CountText(helper.Number("living"));
    if (const uint64_t died = helper.Number("died"); died != 0) {
      text += " (" + CountText(died) + " died, " +
              CountText(helper.Number("replaced")) + " replaced)";
    }
  }
  return text.empty() ? text : text + '\n';
}

}  // namespace

Result<std::string> RulesText(std::string_view json) {
  const Result<Json> parsed = Parse(json);
  if (!parsed.ok()) return parsed.status();
  const Reader answer(*parsed);
  const Json& rules = answer.List("rules");
  std::string text =
      answer.Word("mount") + (rules.empty() ? " has no rules\n" : "\n");
  for (const Json& j : rules) {
    const Reader rule(j);
    text += "rule " + std::to_string(rule.Number("rule")) + " of tracer " +
            std::to_string(rule.Number("tracer")) + ": " + rule.Text("state") +
            ": " + rule.Word("title", ":") + '\n';
    text += "    when " + OnOneLine(rule.RawText("text")) + '\n';
    text += "    counted " + CountText(rule.Number("matched")) +
            " operations, fired " + CountText(rule.Number("alarms")) + " times";
    if (const uint64_t n = rule.Number("suppressed"); n != 0) {
      text += ", " + CountText(n) + " of them too many to tell";
    }
    if (const uint64_t n = rule.Number("missed"); n != 0) {
      text += "; " + CountText(n) + " operations came too fast to be looked at";
    }
    text += '\n';
    for (const Json& alarm : rule.List("last")) text += AlarmLines(alarm);
  }
  for (const Json& j : answer.List("raised")) {
    const Reader raised(j);
    text += "tracer " + std::to_string(raised.Number("tracer")) +
            " is raised until " + LocalTime(raised.Number("until")) +
            ", by a rule of tracer " + std::to_string(raised.Number("by")) +
            '\n';
  }
  return text;
}

Result<std::string> HeldText(std::string_view json) {
  const Result<Json> parsed = Parse(json);
  if (!parsed.ok()) return parsed.status();
  const Reader answer(*parsed);
  const Json& holds = answer.List("holds");
  std::string text =
      answer.Word("mount") + (holds.empty() ? ": nobody is held\n" : "\n");
  for (const Json& j : holds) {
    const Reader hold(j);
    text += "hold " + std::to_string(hold.Number("hold")) + ": " +
            (hold.Has("pid")
                 ? "process " + std::to_string(hold.Number("pid")) + " (" +
                       hold.Word("comm", "()") + ") and all below it"
                 : "user " + std::to_string(hold.Number("uid"))) +
            ", by rule " + std::to_string(hold.Number("rule")) + " of tracer " +
            std::to_string(hold.Number("tracer")) + ": " + hold.Word("title") +
            '\n';
    text += "    since " + LocalTime(hold.Number("since")) + ", until " +
            LocalTime(hold.Number("until")) + ", then " +
            (hold.Text("then") == "fail" ? "fail" : "go on") + "; " +
            CountText(hold.Number("refused")) + " changes were refused\n";
    for (const Json& k : hold.List("waiting")) {
      const Reader one(k);
      text += "    waits: process " + std::to_string(one.Number("pid")) + " (" +
              one.Word("comm", "()") + "), " + one.Text("op") + ' ' +
              one.Word("path") + ", since " + LocalTime(one.Number("since")) +
              '\n';
    }
  }
  return text;
}

Result<uint32_t> HeldProcess(std::string_view json, uint32_t hold) {
  const Result<Json> parsed = Parse(json);
  if (!parsed.ok()) return parsed.status();
  for (const Json& j : Reader(*parsed).List("holds")) {
    const Reader one(j);
    if (one.Number("hold") != hold) continue;
    const uint64_t pid = one.Number("pid");
    if (pid > 1 && pid <= INT32_MAX) return static_cast<uint32_t>(pid);
    return Status::Invalid("release --undo: that hold is not of a process");
  }
  return Status::Invalid("there is no hold " + std::to_string(hold) +
                         "; it may have ended");
}

Result<std::string> NewAlarms(std::string_view json, bool as_json,
                              AlarmsSeen* seen) {
  const Result<Json> parsed = Parse(json);
  if (!parsed.ok()) return parsed.status();
  struct Line {
    uint64_t time;
    std::string text;
  };
  std::vector<Line> lines;
  AlarmsSeen now;
  std::map<uint64_t, uint64_t> fresh;  // of each tracer
  for (const Json& j : Reader(*parsed).List("rules")) {
    const Reader rule(j);
    const uint64_t tracer = rule.Number("tracer");
    const uint64_t told = rule.Number("told");
    now.told[tracer] = told;
    // One that came meanwhile may have fired already.
    uint64_t before = seen->started ? 0 : told;
    if (const auto found = seen->told.find(tracer);
        found != seen->told.end() && found->second <= told) {
      before = found->second;
    }
    for (const Json& alarm : rule.List("last")) {
      if (Reader(alarm).Number("number") <= before) continue;
      ++fresh[tracer];
      std::string text;
      if (as_json) {
        Json whole = {{"tracer", tracer},
                      {"rule", rule.Number("rule")},
                      {"title", rule.RawText("title")}};
        whole.update(alarm);
        text = JsonWithoutHidden(
                   whole.dump(-1, ' ', false, Json::error_handler_t::replace)) +
               '\n';
      } else {
        text = AlarmLine(rule, alarm);
      }
      lines.push_back({Reader(alarm).Number("time"), std::move(text)});
    }
    now.unseen[tracer] = told - before;
  }
  std::stable_sort(
      lines.begin(), lines.end(),
      [](const Line& a, const Line& b) { return a.time < b.time; });
  std::string text;
  for (const Line& line : lines) text += line.text;
  for (auto& [tracer, count] : now.unseen) count -= fresh[tracer];
  now.started = true;
  *seen = std::move(now);
  return text;
}

Result<std::string> ListText(std::string_view json) {
  const Result<Json> parsed = Parse(json);
  if (!parsed.ok()) return parsed.status();
  const Reader answer(*parsed);
  const Json& tracers = answer.List("tracers");
  std::string text = answer.Word("mount") + " traces " + answer.Word("source") +
                     (tracers.empty() ? " with no tracer\n" : "\n");
  if (const std::string before = answer.Text("before"); !before.empty()) {
    text += "of the mount that was here before: " + before + '\n';
  }
  if (tracers.empty()) return text;
  Table table({false, true, true, false, false, true, true});
  table.Row({"ID", "STATE", "NAME", "WRITTEN", "LOST", "OUTPUT", "FILTER"});
  for (const Json& j : tracers) {
    const Reader tracer(j);
    const std::string filter = OnOneLine(tracer.RawText("filter"));
    table.Row({std::to_string(tracer.Number("id")), tracer.Text("state"),
               tracer.Text("name"), CountText(tracer.Number("written")),
               CountText(tracer.Number("lost")), tracer.Text("output"),
               filter.empty() ? "(all)" : filter});
  }
  return text + table.Text("");
}

Result<std::string> ExplainText(std::string_view json) {
  const Result<Json> parsed = Parse(json);
  if (!parsed.ok()) return parsed.status();
  const Reader answer(*parsed);
  std::string text = answer.Word("mount") + " traces " + answer.Word("source") +
                     ", visibility " + answer.Text("visibility") + '\n';
  if (const std::string sandbox = answer.Text("sandbox"); !sandbox.empty()) {
    text += "sandbox: " + sandbox + '\n';
  }
  text += '\n';
  for (const Json& j : answer.List("choices")) {
    const Reader choice(j);
    text += choice.Text("subject") + ": " + choice.Text("choice") + '\n';
    text += CausesText(choice.List("causes"));
    if (const std::string why = choice.Text("why"); !why.empty()) {
      text += "    because " + why + '\n';
    }
    if (const std::string hides = choice.Text("hides"); !hides.empty()) {
      text += "    hides " + hides + '\n';
    }
    if (choice.IsTrue("for_good")) text += "    until the next mount\n";
  }
  const Reader open(answer.Object("open"));
  text += "\nopen files: " + CountText(open.Number("files"));
  if (const uint64_t before = open.Number("opened_before"); before != 0) {
    text += ", of which " + CountText(before) +
            " were opened before the tracers changed and stay as they are:\n";
    for (const Json& j : open.List("examples")) {
      const Reader file(j);
      text += "    " + file.Word("path", ":") + ": " + file.Text("mode") +
              ", would now be " + file.Text("now") + '\n';
    }
    if (open.List("examples").size() < before) text += "    ...\n";
  } else {
    text += '\n';
  }
  return text + "never visible to any tracer: " + answer.Text("never_visible") +
         '\n';
}

Result<std::string> StatsText(std::string_view json) {
  const Result<Json> parsed = Parse(json);
  if (!parsed.ok()) return parsed.status();
  const Reader answer(*parsed);
  const Reader processes(answer.Object("processes"));
  std::string text = answer.Word("mount") + ": " +
                     CountText(answer.Number("inodes")) +
                     " files known to the kernel; processes looked up " +
                     CountText(processes.Number("reads")) + " times, gone " +
                     CountText(processes.Number("gone")) + '\n';
  text += HelpersText(answer.List("helpers"));
  if (const Json& object = answer.Object("survival"); !object.empty()) {
    const Reader survival(object);
    text += "its daemon was replaced " +
            CountText(survival.Number("successions")) + " times, within " +
            DurationText(survival.Number("longest_gap_ns")) +
            "; what came of " + CountText(survival.Number("doubts")) +
            " requests was inferred\n";
    if (const uint64_t upgrades = survival.Number("upgrades"); upgrades != 0) {
      text += "another program took over " + CountText(upgrades) +
              " times, now Tracefs " + survival.Text("version") + '\n';
    }
    if (!survival.IsTrue("tracing")) {
      text += "daemons crashed " + CountText(survival.Number("crashes")) +
              " times: the traces have ended\n";
    }
  }
  for (const Json& j : answer.List("tracers")) {
    const Reader tracer(j);
    text +=
        '\n' + TracerName(tracer, "id") + ": " + tracer.Text("state") + '\n';
    text += "  operations: seen " + CountText(tracer.Number("seen")) +
            ", matched " + CountText(tracer.Number("matched")) + ", encoded " +
            CountText(tracer.Number("encoded")) + ", written " +
            CountText(tracer.Number("written")) + ", of these queued " +
            CountText(tracer.Number("queued")) + ", delivered " +
            CountText(tracer.Number("delivered")) + '\n';
    std::string lost;
    for (const auto& [reason, count] : tracer.Object("lost").items()) {
      if (!count.is_number_unsigned()) continue;
      AppendWord(Reader::Safe(reason) + ' ' + CountText(count.get<uint64_t>()),
                 ", ", &lost);
    }
    text += "  lost: " + (lost.empty() ? "none" : lost) + '\n';
    if (const std::string error = tracer.Text("error"); !error.empty()) {
      text += "  first error: " + error + '\n';
    }
    text += "  time for one operation: filter " + NsText(j, "filter_ns") +
            ", encoding " + NsText(j, "encode_ns") + '\n';
    Table table({true, false, false, false, false, false, true});
    table.Row({"STAGE", "BLOCKS", "IN", "OUT", "REFUSED", "NS/OP", "QUEUE"});
    const uint64_t written = std::max<uint64_t>(tracer.Number("written"), 1);
    for (const Json& s : tracer.List("stages")) {
      const Reader stage(s);
      const Reader queue(stage.Object("queue"));
      table.Row(
          {stage.Text("name"), CountText(stage.Number("blocks")),
           SizeText(stage.Number("bytes_in")),
           stage.Has("bytes_out") ? SizeText(stage.Number("bytes_out")) : "",
           CountText(stage.Number("refused")),
           CountText(stage.Number("ns") / written),
           stage.Has("queue")
               ? CountText(queue.Number("blocks")) + " blocks, " +
                     SizeText(queue.Number("bytes")) + " of " +
                     SizeText(queue.Number("limit_bytes"))
               : ""});
    }
    text += table.Text("  ");
    std::vector<std::pair<uint64_t, std::string>> ops;
    for (const auto& [name, count] : tracer.Object("ops").items()) {
      if (count.is_number_unsigned()) {
        ops.emplace_back(count.get<uint64_t>(), Reader::Safe(name));
      }
    }
    std::stable_sort(ops.begin(), ops.end(), [](const auto& a, const auto& b) {
      return a.first > b.first;
    });
    if (ops.empty()) continue;
    text += "  written:";
    for (const auto& [count, name] : ops) {
      text += ' ' + name + ' ' + CountText(count);
    }
    text += '\n';
  }
  return text;
}

Result<std::string> AddText(std::string_view json) {
  const Result<Json> parsed = Parse(json);
  if (!parsed.ok()) return parsed.status();
  std::string text;
  for (const Json& id : Reader(*parsed).List("ids")) {
    if (!id.is_number_unsigned()) continue;
    text += std::to_string(id.get<uint64_t>()) + '\n';
  }
  return text;
}

}  // namespace tracefs
