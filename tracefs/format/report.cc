#include "tracefs/format/report.h"

namespace tracefs::format {
namespace {

std::string Count(uint64_t n, std::string_view one, std::string_view many) {
  return std::to_string(n) + " " + std::string(n == 1 ? one : many);
}

constexpr size_t kMaxDetailBytes = 80;
// Why a chain cannot be undone is mostly our own words, and what to do about it
// stands at their end.
constexpr size_t kMaxReasonBytes = 240;

// The detail comes from the trace: printable ASCII only, and not much of it.
std::string Detail(std::string_view detail, size_t most = kMaxDetailBytes) {
  std::string text;
  for (const char c : detail.substr(0, most)) {
    text += c >= ' ' && c <= '~' ? c : '?';
  }
  if (detail.size() > most) text += "...";
  return text;
}

// The same of what may be several lines, as a filter is.
std::string DetailOnOneLine(std::string_view detail) {
  while (!detail.empty() && detail.back() == '\n') detail.remove_suffix(1);
  std::string line;
  for (const char c : detail.substr(0, kMaxDetailBytes + 1)) {
    line += c == '\n' ? std::string("; ") : std::string(1, c);
  }
  return Detail(line);
}

}  // namespace

std::string Report::Text() const {
  const std::string at = " at byte " + std::to_string(offset);
  const std::string block = "block " + std::to_string(number) + at;
  switch (kind) {
    case ReportKind::kDamaged:
      return "damaged" + at + ": " + Count(count, "byte", "bytes") +
             " skipped (" + Detail(detail) + ")";
    case ReportKind::kCut:
      return "cut within the block" + at + ": its " +
             Count(count, "byte", "bytes") + " are not usable";
    case ReportKind::kNoFinal:
      return "ends" + at +
             " without a FINAL message: it was cut there, or is "
             "still being written";
    case ReportKind::kUnfinished:
      return "ends" + at +
             " without a FINAL message because it is still being written: its "
             "writer holds it open (--wait waits for the end)";
    case ReportKind::kNoHeader:
      return "block 0 is lost, and with it the description of the trace";
    case ReportKind::kGap:
      return (count == 1 ? "block " + std::to_string(number) + " is missing"
                         : Count(count, "block", "blocks") + " from block " +
                               std::to_string(number) + " on are missing") +
             " before byte " + std::to_string(offset) +
             (detail.empty() ? "" : ": " + Detail(detail));
    case ReportKind::kDuplicate:
      return block + " was seen before: skipped";
    case ReportKind::kUnknownFrame:
      return "a block of unknown kind " + std::to_string(number) + at +
             " was skipped";
    case ReportKind::kUndecodable:
      return block + " cannot be decoded: " + Detail(detail, kMaxReasonBytes);
    case ReportKind::kMalformedBlock:
      return block +
             " has a message of impossible length: the rest of the "
             "block was skipped";
    case ReportKind::kMalformedMessage:
      return block +
             " has a message with an argument of impossible or unknown "
             "length: the rest of the message was skipped";
    case ReportKind::kBadDefinition:
      return block + " defines a path or process out of order: skipped";
    case ReportKind::kUnknownMessage:
      return "unknown message " + Detail(detail) + " (id " +
             std::to_string(number) + ") skipped";
    case ReportKind::kUnknownArgument:
      return "unknown argument " + Detail(detail) + " (id " +
             std::to_string(number) + ")";
    case ReportKind::kLoss:
      return Count(count, "operation was", "operations were") +
             " not recorded: " + Detail(detail);
    case ReportKind::kChange:
      return "the tracer was changed: " + DetailOnOneLine(detail);
    case ReportKind::kPart:
      return "part " + std::to_string(number) +
             " of a rotated trace: blocks 1 to " + std::to_string(count - 1) +
             " are in parts before it";
    case ReportKind::kGoesOn:
      return "the trace goes on in part " + std::to_string(number);
    case ReportKind::kSnapshot:
      return "a snapshot of a flight recorder (" + Detail(detail) +
             "): " + Count(number, "operation", "operations") + ", and " +
             std::to_string(count) + " before them that were overwritten";
    case ReportKind::kUnordered:
      return "too much is open at once to keep the order of times: from here "
             "on operations are listed as early as memory demands";
  }
  return "unknown report";
}

bool ReadStats::Bad() const {
  return preamble_damaged || no_header || damaged_ranges != 0 ||
         cut_bytes != 0 || missing_blocks != 0 || duplicate_blocks != 0 ||
         undecodable_blocks != 0 || malformed_blocks != 0 ||
         malformed_messages != 0 || bad_definitions != 0 || lost_events != 0 ||
         (ended && !final_record && goes_on == 0 && !snapshot);
}

uint64_t& ReadStats::CountOf(std::string_view reason, Losses* losses) {
  constexpr size_t kMostBytes = 64;
  reason = reason.substr(0, kMostBytes);
  const auto found = losses->find(reason);
  if (found != losses->end()) return found->second;
  const bool full = losses->size() >= kMaxReasons;
  return (*losses)[full ? "other" : std::string(reason)];
}

void ReadStats::AddBlocks(const ReadStats& other) {
  for (uint64_t ReadStats::*n :
       {&ReadStats::blocks, &ReadStats::events, &ReadStats::undecodable_blocks,
        &ReadStats::malformed_blocks, &ReadStats::malformed_messages,
        &ReadStats::bad_definitions, &ReadStats::aggregates, &ReadStats::states,
        &ReadStats::files, &ReadStats::index_pieces, &ReadStats::changes,
        &ReadStats::alarms, &ReadStats::process_records,
        &ReadStats::lost_events, &ReadStats::timeless_events}) {
    this->*n += other.*n;
  }
  opaque |= other.opaque;
  for (const auto& [reason, count] : other.losses) {
    CountOf(reason, &losses) += count;
  }
  for (const auto& [id, count] : other.lost_messages) {
    if (lost_messages.size() >= kMaxReasons && !lost_messages.contains(id)) {
      continue;
    }
    lost_messages[id] += count;
  }
  for (const auto& [id, n] : other.unknown_messages) unknown_messages[id] += n;
  for (const auto& [id, n] : other.unknown_arguments) {
    unknown_arguments[id] += n;
  }
  if (other.final_record) final_record = other.final_record;
}

uint64_t ReadStats::MissingEvents() const {
  if (first_part != 0 || snapshot || jumped) return 0;
  if (!final_record || final_record->events <= events) return 0;
  return final_record->events - events;
}

}  // namespace tracefs::format
