#include "tracefs/tools/replay/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tracefs/base/printable.h"
#include "tracefs/replay/verify.h"
#include "tracefs/text/cell_width.h"
#include "tracefs/text/duration.h"
#include "tracefs/text/units.h"

namespace tracefs {
namespace {

using Json = nlohmann::ordered_json;
using replay::OpOutcome;
using replay::Outcome;

constexpr size_t kMostShown = 20;

double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

void Column(const std::string& text, size_t width, bool left,
            std::string* line) {
  *line += (line->empty() ? "" : " ") +
           (left ? PadEnd(text, width) : PadFront(text, width));
}

uint64_t ExplainedOf(const OpOutcome& op) {
  uint64_t n = 0;
  for (const uint64_t count : op.explained) n += count;
  return n;
}

std::string Table(const Outcome& outcome) {
  std::string text;
  const auto row = [&](const std::array<std::string, 9>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      Column(cells[i], i == 0 ? 16 : 9, i == 0, &line);
    }
    text += line + "\n";
  };
  row({"operation", "count", "same", "explained", "differs", "p50 then", "now",
       "p99 then", "now"});
  for (size_t i = 0; i < outcome.ops.size(); ++i) {
    const OpOutcome& op = outcome.ops[i];
    if (op.count == 0) continue;
    row({std::string(OpName(static_cast<Op>(i))), std::to_string(op.count),
         std::to_string(op.matched), std::to_string(ExplainedOf(op)),
         std::to_string(op.mismatched), DurationText(op.then_ns.Quantile(0.5)),
         DurationText(op.now_ns.Quantile(0.5)),
         DurationText(op.then_ns.Quantile(0.99)),
         DurationText(op.now_ns.Quantile(0.99))});
  }
  return text;
}

std::string ErrorLines(const Outcome& outcome) {
  std::string text;
  for (size_t i = 0; i < outcome.ops.size(); ++i) {
    for (const auto& [pair, count] : outcome.ops[i].errors) {
      const auto name = [](uint32_t error) {
        return error == 0 ? std::string("success") : replay::ErrorName(error);
      };
      text += "  " + std::string(OpName(static_cast<Op>(i))) + ": " +
              name(pair.first) + " then, " + name(pair.second) +
              " now: " + std::to_string(count) + "\n";
    }
  }
  return text.empty() ? text : "errors that differ:\n" + text;
}

// Which contents are not those of then.
std::string Contents(const ReplayReport& r) {
  std::string text;
  if (r.header().unplaced != 0) {
    text += std::to_string(r.header().unplaced) +
            " operations could not be placed and were not done, " +
            std::to_string(r.header().unplaced_changes) + " of them changes\n";
  }
  if (r.end.not_compared != 0) {
    text += std::to_string(r.end.not_compared) +
            " files have contents that the trace does not tell: they were not "
            "compared\n";
  }
  if (!r.MadeUp()) return text;
  text += "contents were made up, since the trace does not have them";
  if (r.end.made_up == 0) {
    return text + "; --check names the files\n";
  }
  text += ":\n";
  for (size_t i = 0; i < std::min(r.end.made_up_files.size(), kMostShown);
       ++i) {
    text += "  " + r.end.made_up_files[i] + "\n";
  }
  if (r.end.made_up > kMostShown) {
    text += "... and " + std::to_string(r.end.made_up - kMostShown) + " more\n";
  }
  return text;
}

std::string Conclusion(const ReplayReport& r) {
  if (!r.Good()) {
    if (r.outcome.mismatched() != 0) {
      return std::to_string(r.outcome.mismatched()) + " results differ\n";
    }
    if (r.IsLeftOut()) {
      return "no result differs, but something was left out: the tree is not "
             "as recorded\n";
    }
    const bool whole = r.header().lost == 0 && !r.compiled->damaged;
    return whole ? "every result is the same, but not all of the rest\n"
                 : "every result is the same, of a trace that is not whole\n";
  }
  if (r.options->target.data != replay::DataMode::kRecorded) {
    return "every result is the same, with other bytes\n";
  }
  if (r.end.not_compared != 0) return "what was compared is the same\n";
  return "as recorded\n";
}

// What was asked for, in seconds; 0: nothing was.
double AskedSeconds(const ReplayReport& r) {
  const double recorded = Seconds(r.compiled->header.span_ns);
  switch (r.options->play.timing) {
    case replay::TimingMode::kOriginal:
      return recorded;
    case replay::TimingMode::kScale:
      return recorded * r.options->play.scale;
    default:
      return 0;
  }
}

}  // namespace

bool ReplayReport::MadeUp() const {
  if (options->target.data != replay::DataMode::kRecorded) return false;
  const auto kept = static_cast<size_t>(replay::Explained::kNotKept);
  for (const OpOutcome& op : outcome.ops) {
    if (op.explained[kept] != 0) return true;
  }
  if (end.made_up != 0) return true;
  if (!made_tree) return false;
  if (header().unknown_sources != 0) return true;
  // Where the end is not looked at, nothing says that it is right.
  return !end.compared && header().unknown_content + header().without_data != 0;
}

std::string LeftOutText(const ReplayReport& r) {
  std::string text;
  for (size_t i = 0; i < replay::kPrivilegeCount; ++i) {
    if (r.left_out[i] == 0) continue;
    const auto& info = replay::Info(static_cast<replay::Privilege>(i));
    text += "left out " + std::to_string(r.left_out[i]) +
            " times: " + std::string(info.text) + "; " +
            std::string(info.option) + " asks for them\n";
  }
  return text;
}

std::string ReportText(const ReplayReport& r) {
  const Outcome& o = r.outcome;
  const uint64_t done = o.operations();
  std::string text = Table(o);
  text += std::to_string(done) + " operations in " +
          DurationText(o.elapsed_ns) + ", " +
          ShortNumber(std::round(static_cast<double>(done) /
                                 std::max(Seconds(o.elapsed_ns), 1e-9))) +
          " a second; recorded in " + DurationText(r.compiled->header.span_ns) +
          "\n";
  text += std::to_string(o.bytes_written) + " bytes written, " +
          std::to_string(o.bytes_read) + " read, of these " +
          std::to_string(o.bytes_compared) + " compared; processor " +
          DurationText(static_cast<uint64_t>(r.processor_s * 1e9)) + "\n";
  if (o.lateness_ns.count() != 0) {
    text += "late: p50 " + DurationText(o.lateness_ns.Quantile(0.5)) +
            ", p99 " + DurationText(o.lateness_ns.Quantile(0.99)) + ", most " +
            DurationText(o.lateness_ns.max()) + "; within 1 ms " +
            ShareText(replay::CountUpTo(o.lateness_ns, 1'000'000),
                      o.lateness_ns.count()) +
            "\n";
  }
  if (o.skipped != 0) {
    text += std::to_string(o.skipped) +
            " looks at what had not changed were left out\n";
  }
  if (const double asked = AskedSeconds(r); asked > 0) {
    const double more = Seconds(o.elapsed_ns) - asked;
    text += "it took " + Decimal(100.0 * std::abs(more) / asked, 1) + " % " +
            (more < 0 ? "less" : "longer") + " than asked\n";
  }
  text += ErrorLines(o);
  for (size_t i = 0; i < replay::kExplainedCount; ++i) {
    uint64_t count = 0;
    for (const OpOutcome& op : o.ops) count += op.explained[i];
    if (count == 0) continue;
    text += "explained: " + std::to_string(count) + " " +
            std::string(ExplainedName(static_cast<replay::Explained>(i))) +
            "\n";
  }
  if (o.untimed != 0) {
    text += std::to_string(o.untimed) +
            " operations made up or not selected, " +
            std::to_string(o.untimed_failed) + " of them came out otherwise\n";
  }
  for (size_t i = 0; i < std::min(o.mismatches.size(), kMostShown); ++i) {
    text += "operation " + std::to_string(o.mismatches[i].sequence) + ", " +
            Printable(o.mismatches[i].text) + "\n";
  }
  if (o.mismatched() > kMostShown) {
    text +=
        "... and " + std::to_string(o.mismatched() - kMostShown) + " more\n";
  }
  if (r.prepared.failed != 0) {
    text += std::to_string(r.prepared.failed) +
            " entries of the initial tree could not be made:\n";
    for (const std::string& error : r.prepared.errors) {
      text += "  " + Printable(error) + "\n";
    }
  }
  if (r.prepared.other_contents != 0) {
    text += std::to_string(r.prepared.other_contents) + " of " +
            std::to_string(r.prepared.checked) +
            " files did not hold, before the first operation, what they did "
            "when recorded:\n";
    for (const std::string& name : r.prepared.others) {
      text += "  " + Printable(name) + "\n";
    }
  }
  if (r.end.compared) {
    text += "tree sha256=" + r.end.digest + "\n";
    text += r.end.differences == 0
                ? "the tree is as expected" +
                      std::string(r.end.made_up + r.end.not_compared == 0
                                      ? "\n"
                                      : ", but for contents\n")
                : "the tree differs in " + std::to_string(r.end.differences) +
                      " paths:\n";
    for (const std::string& line : r.end.first) text += "  " + line + "\n";
  }
  return text + LeftOutText(r) + Contents(r) + Conclusion(r);
}

std::string ReportJson(const ReplayReport& r) {
  const Outcome& o = r.outcome;
  Json ops = Json::object();
  for (size_t i = 0; i < o.ops.size(); ++i) {
    const OpOutcome& op = o.ops[i];
    if (op.count == 0) continue;
    Json explained = Json::object();
    for (size_t k = 0; k < replay::kExplainedCount; ++k) {
      if (op.explained[k] == 0) continue;
      explained[std::string(ExplainedName(static_cast<replay::Explained>(k)))] =
          op.explained[k];
    }
    Json errors = Json::array();
    for (const auto& [pair, count] : op.errors) {
      errors.push_back({{"then", replay::ErrorName(pair.first)},
                        {"now", replay::ErrorName(pair.second)},
                        {"count", count}});
    }
    const auto latency = [](const tally::Histogram& d) {
      return Json{{"p50", d.Quantile(0.5)},
                  {"p99", d.Quantile(0.99)},
                  {"max", d.max()},
                  {"sum", d.sum()}};
    };
    ops[std::string(OpName(static_cast<Op>(i)))] = {
        {"count", op.count},
        {"same", op.matched},
        {"differs", op.mismatched},
        {"explained", explained},
        {"errors", errors},
        {"then_ns", latency(op.then_ns)},
        {"now_ns", latency(op.now_ns)},
        {"ks_distance", replay::ShareDistance(op.then_ns, op.now_ns)}};
  }
  Json mismatches = Json::array();
  for (const auto& m : o.mismatches) {
    mismatches.push_back(
        {{"operation", m.sequence}, {"text", Printable(m.text)}});
  }
  const double asked = AskedSeconds(r);
  const double elapsed = Seconds(o.elapsed_ns);
  Json left_out = Json::object();
  for (size_t i = 0; i < replay::kPrivilegeCount; ++i) {
    if (r.left_out[i] == 0) continue;
    left_out[std::string(Info(static_cast<replay::Privilege>(i)).key)] =
        r.left_out[i];
  }
  Json all = {
      {"good", r.Good()},
      {"left_out", left_out},
      {"operations", o.operations()},
      {"same", o.matched()},
      {"differs", o.mismatched()},
      {"explained", o.explained()},
      {"untimed", o.untimed},
      {"untimed_failed", o.untimed_failed},
      {"elapsed_s", elapsed},
      {"recorded_s", Seconds(r.compiled->header.span_ns)},
      {"operations_per_s",
       static_cast<double>(o.operations()) / std::max(elapsed, 1e-9)},
      {"compile_s", Seconds(r.compiled->compile_ns)},
      {"peak_inodes", r.compiled->peak_nodes},
      {"model_bytes", r.compiled->model_bytes},
      {"processor_s", r.processor_s},
      {"bytes_written", o.bytes_written},
      {"bytes_read", o.bytes_read},
      {"bytes_compared", o.bytes_compared},
      {"waits", o.waits},
      {"skipped", o.skipped},
      {"lateness_ns",
       {{"p50", o.lateness_ns.Quantile(0.5)},
        {"p99", o.lateness_ns.Quantile(0.99)},
        {"max", o.lateness_ns.max()},
        {"count", o.lateness_ns.count()},
        {"within_1ms", replay::CountUpTo(o.lateness_ns, 1'000'000)}}},
      {"makespan_error", asked > 0 ? Json((elapsed - asked) / asked) : Json()},
      {"ops", ops},
      {"mismatches", mismatches},
      {"initial",
       {{"entries", r.prepared.entries},
        {"failed", r.prepared.failed},
        {"errors", r.prepared.errors},
        {"checked", r.prepared.checked},
        {"other_contents", r.prepared.other_contents},
        {"others", r.prepared.others}}},
      {"end",
       {{"compared", r.end.compared},
        {"tree_sha256", r.end.digest},
        {"differences", r.end.differences},
        {"first", r.end.first},
        {"made_up", r.end.made_up},
        {"made_up_files", r.end.made_up_files},
        {"not_compared", r.end.not_compared}}},
      {"made_up", r.MadeUp()},
      {"unplaced", r.header().unplaced},
      {"unplaced_changes", r.header().unplaced_changes}};
  return JsonWithoutHidden(
             all.dump(2, ' ', false, Json::error_handler_t::replace)) +
         "\n";
}

}  // namespace tracefs
