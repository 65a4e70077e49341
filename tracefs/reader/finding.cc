#include "tracefs/reader/finding.h"

#include <numeric>

namespace tracefs::reader {

using format::ReportKind;

int FindingKind(ReportKind kind) {
  switch (kind) {
    case ReportKind::kUnknownMessage:
      return TRACEFS_UNKNOWN_MESSAGE;
    case ReportKind::kUnknownArgument:
      return TRACEFS_UNKNOWN_ARGUMENT;
    case ReportKind::kMalformedMessage:
      return TRACEFS_BAD_ARGUMENT;
    case ReportKind::kMalformedBlock:
      return TRACEFS_BAD_MESSAGE;
    case ReportKind::kBadDefinition:
      return TRACEFS_BAD_DEFINITION;
    case ReportKind::kDamaged:
    case ReportKind::kUndecodable:
      return TRACEFS_DAMAGED_BLOCK;
    case ReportKind::kGap:
    case ReportKind::kNoHeader:
      return TRACEFS_MISSING_BLOCK;
    case ReportKind::kCut:
    case ReportKind::kNoFinal:
      return TRACEFS_CUT_FILE;
    case ReportKind::kDuplicate:
      return TRACEFS_DUPLICATE_BLOCK;
    case ReportKind::kUnknownFrame:
      return TRACEFS_UNKNOWN_BLOCK;
    case ReportKind::kLoss:
      return TRACEFS_LOSS;
    case ReportKind::kUnordered:
      return TRACEFS_UNORDERED;
    case ReportKind::kUnfinished:
      return TRACEFS_STILL_WRITTEN;
    case ReportKind::kChange:
    case ReportKind::kPart:
    case ReportKind::kGoesOn:
    case ReportKind::kSnapshot:
      return TRACEFS_NOTE;
  }
  return TRACEFS_NOTE;
}

void AddCounts(const format::ReadStats& stats, FindingCounts* counts) {
  const auto sum = [](const std::map<uint16_t, uint64_t>& by_id) {
    return std::accumulate(
        by_id.begin(), by_id.end(), uint64_t{0},
        [](uint64_t n, const auto& entry) { return n + entry.second; });
  };
  const auto add = [counts](int kind, uint64_t n) {
    (*counts)[static_cast<size_t>(kind)] += n;
  };
  add(TRACEFS_UNKNOWN_MESSAGE, sum(stats.unknown_messages));
  add(TRACEFS_UNKNOWN_ARGUMENT, sum(stats.unknown_arguments));
  add(TRACEFS_BAD_ARGUMENT, stats.malformed_messages);
  add(TRACEFS_BAD_MESSAGE, stats.malformed_blocks);
  add(TRACEFS_BAD_DEFINITION, stats.bad_definitions);
  add(TRACEFS_DAMAGED_BLOCK, stats.damaged_ranges + stats.undecodable_blocks);
  add(TRACEFS_MISSING_BLOCK, stats.missing_blocks);
  if (stats.no_header && stats.missing_blocks == 0) {
    add(TRACEFS_MISSING_BLOCK, 1);
  }
  const bool no_final = stats.ended && !stats.final_record &&
                        stats.goes_on == 0 && !stats.snapshot;
  add(TRACEFS_CUT_FILE, stats.cut_bytes != 0 || no_final ? 1 : 0);
  add(TRACEFS_DUPLICATE_BLOCK, stats.duplicate_blocks);
  add(TRACEFS_UNKNOWN_BLOCK, stats.unknown_frames);
  add(TRACEFS_LOSS, stats.lost_events);
  add(TRACEFS_UNORDERED, stats.unordered_events);
}

}  // namespace tracefs::reader
