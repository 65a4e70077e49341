#include "tracefs/tools/verify/part_check.h"

#include <algorithm>

namespace tracefs {
namespace {

using format::FrameKind;
using format::PartMark;

std::string Part(uint64_t n) { return "part " + std::to_string(n); }

JudgedRange About(Trust trust, std::string why) {
  return {.trust = trust, .has_numbers = false, .why = std::move(why)};
}

}  // namespace

void PartCheck::BeginFile() {
  if (begin_) {
    part_before_ = begin_->part;
    if (!ended_) before_.reset();
  }
  begin_.reset();
  link_ = {};
  ended_ = false;
}

bool PartCheck::Add(const format::FrameHeader& header, ByteSpan payload) {
  const auto kind = static_cast<FrameKind>(header.kind);
  if (kind == FrameKind::kSnapshot && format::DecodeSnapshotMark(payload)) {
    snapshot_ = true;
    return true;
  }
  const std::optional<PartMark> mark =
      kind == FrameKind::kPart || kind == FrameKind::kPartEnd
          ? format::DecodePartMark(payload)
          : std::nullopt;
  if (mark && kind == FrameKind::kPartEnd) {
    End(*mark);
    return true;
  }
  link_.Add(header.crc);
  if (mark) Begin(*mark);
  return mark.has_value();
}

void PartCheck::Begin(const PartMark& mark) {
  begin_ = mark;
  const uint64_t expected = part_before_ ? *part_before_ + 1 : 0;
  if (mark.part > expected) {
    missing_.push_back(
        About(Trust::kMissing,
              (mark.part == expected + 1
                   ? Part(expected)
                   : "parts " + std::to_string(expected) + " to " +
                         std::to_string(mark.part - 1)) +
                  " of the trace: removed, or not among these files"));
  } else if (mark.part < expected) {
    wrong_links_.push_back(
        About(Trust::kBad, Part(mark.part) + " is there twice"));
  } else if (before_ && before_->link != mark.link) {
    wrong_links_.push_back(
        About(Trust::kBad, Part(mark.part) + " does not follow the part " +
                               std::to_string(before_->part) +
                               " that is here: its link is another one"));
  }
}

void PartCheck::End(const PartMark& mark) {
  ended_ = true;
  before_ = mark;
  if (!begin_ || begin_->part != mark.part || mark.link != link_.value()) {
    wrong_links_.push_back(
        About(Trust::kBad, "the end of " + Part(mark.part) +
                               " does not belong to what is before it"));
  }
}

void PartCheck::AddTo(std::vector<JudgedRange>* findings) const {
  const bool well =
      std::all_of(findings->begin(), findings->end(), [](const JudgedRange& f) {
        return f.trust == Trust::kOk || f.trust == Trust::kUnsealed ||
               !f.has_numbers;
      });
  findings->insert(findings->end(), missing_.begin(), missing_.end());
  if (well) {
    findings->insert(findings->end(), wrong_links_.begin(), wrong_links_.end());
  }
}

}  // namespace tracefs
