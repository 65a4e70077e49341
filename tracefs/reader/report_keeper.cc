#include "tracefs/reader/report_keeper.h"

#include "tracefs/text/escape.h"

namespace tracefs {

using format::ReadStats;

void ReportKeeper::Add(const format::Report& report) {
  // Losses are summed up by reason at the end.
  if (report.kind == format::ReportKind::kLoss) return;
  if (report.kind == format::ReportKind::kUndecodable &&
      (undecodable_.size() < kMaxKept ||
       undecodable_.contains(std::string(report.detail)))) {
    Undecodable& same = undecodable_[std::string(report.detail)];
    if (same.count++ == 0) {
      same.first = report.number;
      same.text = report.Text();
    }
    return;
  }
  if (kept_.size() < kMaxKept) {
    kept_.push_back({report.kind, report.Text()});
  } else {
    ++left_out_;
  }
}

std::string ReportKeeper::Text(const std::string& prefix,
                               const ReadStats& stats) const {
  std::string text;
  const auto line = [&](const std::string& what) {
    text += prefix + what + "\n";
  };
  for (const auto& [why, blocks] : undecodable_) {
    if (blocks.count == 1) {
      line(blocks.text);
      continue;
    }
    // "block 1 at byte 7 cannot be decoded: …"
    const size_t reason = blocks.text.find(" cannot be decoded");
    line(std::to_string(blocks.count) + " blocks from block " +
         std::to_string(blocks.first) + " on" +
         (reason == std::string::npos ? "" : blocks.text.substr(reason)));
  }
  for (const Kept& report : kept_) {
    // What would say so is in blocks that cannot be read.
    if (stats.undecodable_blocks >= stats.blocks && !undecodable_.empty() &&
        (report.kind == format::ReportKind::kNoFinal ||
         report.kind == format::ReportKind::kNoHeader)) {
      continue;
    }
    line(report.text);
  }
  if (left_out_ != 0) {
    line("and " + std::to_string(left_out_) + " more of that kind");
  }
  for (const auto& [reason, count] : stats.losses) {
    line(std::to_string(count) + " operations were not recorded (" +
         TerminalWord(reason) + ")");
  }
  if (const uint64_t missing = stats.MissingEvents(); missing != 0) {
    line(std::to_string(missing) + " of " +
         std::to_string(stats.final_record->events) +
         " operations are missing");
  }
  const auto unknown = [&](const std::map<uint16_t, uint64_t>& counts,
                           const std::string& what) {
    uint64_t sum = 0;
    for (const auto& [id, count] : counts) sum += count;
    if (sum != 0) {
      line(std::to_string(sum) + " " + what +
           " of a later version: a newer "
           "tracefs-dump shows more");
    }
  };
  unknown(stats.unknown_messages, "messages");
  unknown(stats.unknown_arguments, "arguments");
  if (stats.timeless_events != 0) {
    line(std::to_string(stats.timeless_events) +
         (stats.timeless_events == 1 ? " operation has" : " operations have") +
         " no time, and can be in no answer with --from or --to: ask without "
         "them");
  }
  if (stats.unordered_events != 0) {
    line(std::to_string(stats.unordered_events) +
         " operations are listed after later ones");
  }
  return text;
}

}  // namespace tracefs
