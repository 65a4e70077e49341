#include "tracefs/tools/verify/trace_judge.h"

#include <algorithm>
#include <map>
#include <set>

#include "filters/output/proof.h"
#include "tracefs/base/choice.h"
#include "tracefs/base/clock.h"
#include "tracefs/format/frame.h"
#include "tracefs/text/duration.h"

namespace tracefs {
namespace {

// A heartbeat may be late by as much again, and by what a busy machine takes.
constexpr uint64_t kHeartbeatSlackNs = 10 * kNsPerSecond;

std::string Number(uint64_t n) { return std::to_string(n); }

// Makes one finding of those that say the same of numbers in a row.
void JoinNeighbours(std::vector<JudgedRange>* findings) {
  std::vector<JudgedRange> joined;
  for (JudgedRange& finding : *findings) {
    if (!joined.empty()) {
      JudgedRange& before = joined.back();
      if (before.trust == finding.trust && before.why == finding.why &&
          finding.first != 0 && before.last == finding.first - 1) {
        before.last = finding.last;
        continue;
      }
    }
    joined.push_back(std::move(finding));
  }
  *findings = std::move(joined);
}

// Findings about blocks that anchors name: one for all that are missing with
// nothing here between them, or unsealed in one run.
class AnchoredBlocks {
 public:
  explicit AnchoredBlocks(std::vector<JudgedRange>* findings)
      : findings_(findings) {}

  // In order. `place`: of that run, or of what comes after the gap.
  void Add(Trust trust, uint64_t place, uint64_t block) {
    if (count_ != 0 && (trust != trust_ || place != place_)) End();
    if (count_ != 0 && block == last_) return;  // another anchor of it
    if (count_++ == 0) first_ = block;
    last_ = block;
    trust_ = trust;
    place_ = place;
  }
  void End() {
    if (count_ == 0) return;
    const bool one = count_ == 1;
    std::string why =
        one ? "there is an anchor for it"
            : "there are anchors for " + Number(count_) + " of them";
    if (trust_ == Trust::kBad) {
      why = one ? "an anchor names it, and it is not sealed"
                : "anchors name " + Number(count_) +
                      " of them, and they are not sealed";
    }
    findings_->push_back(
        {.trust = trust_, .first = first_, .last = last_, .why = why});
    count_ = 0;
  }

 private:
  std::vector<JudgedRange>* findings_;
  uint64_t count_ = 0;
  uint64_t first_ = 0;
  uint64_t last_ = 0;
  Trust trust_{};
  uint64_t place_ = 0;
};

}  // namespace

std::string_view TrustWord(Trust trust) {
  static constexpr Choice<Trust> kWords[] = {
      {"ok", Trust::kOk},
      {"bad", Trust::kBad},
      {"missing", Trust::kMissing},
      {"unsealed", Trust::kUnsealed},
  };
  return WordOf(kWords, trust);
}

void TraceJudge::BeginFile(ByteSpan preamble, bool preamble_damaged) {
  file_begins_ = true;
  if (preamble_damaged) {
    other_.push_back({.trust = Trust::kBad,
                      .has_numbers = false,
                      .why = "the preamble is damaged"});
    return;
  }
  const Digest link = LinkOf(preamble);
  if (preamble_known_ && link != preamble_link_) {
    other_.push_back({.trust = Trust::kBad,
                      .has_numbers = false,
                      .why = "files of one trace have different preambles"});
  }
  if (!preamble_known_) preamble_link_ = link;
  preamble_known_ = true;
}

TraceJudge::TraceJudge(JudgeOptions options, const format::Serial& serial)
    : options_(std::move(options)), serial_(serial) {
  for (const Anchor& anchor : options_.anchors) {
    if (anchor.serial == serial_) anchors_.emplace(anchor.block, &anchor);
  }
}

void TraceJudge::AddDamage(uint64_t offset, uint64_t bytes, bool cut) {
  damage_at_.try_emplace(next_number_, damage_.size());
  damage_.push_back({.why = Number(bytes) + " bytes at byte " + Number(offset) +
                            (cut ? " are a block that was cut off"
                                 : " are no block of this trace")});
}

TraceJudge::Damage* TraceJudge::DamageAt(uint64_t number) {
  const auto found = damage_at_.find(number);
  return found == damage_at_.end() ? nullptr : &damage_[found->second];
}

void TraceJudge::AddBad(uint64_t number, uint64_t offset, std::string why) {
  bad_.push_back({number, offset, std::move(why)});
}

std::string TraceJudge::CheckClaims(uint64_t number, const ChecksumNote& note) {
  const ChecksumHead& head = note.head;
  if (!seal_) {
    seal_ = head;
  } else if (head.algorithm != seal_->algorithm ||
             head.forward != seal_->forward || head.epoch != seal_->epoch ||
             head.key_id != seal_->key_id ||
             head.has_signature != seal_->has_signature ||
             head.sign_id != seal_->sign_id) {
    return "protected in another way than the blocks before it";
  }
  if (head.previous == kNoPrevious) {
    if (preamble_known_ && head.link != preamble_link_) {
      return "the preamble is not the one that this trace was written with";
    }
    return {};
  }
  if (head.previous >= number) {
    return "it claims to follow block " + Number(head.previous);
  }
  if (any_ && head.previous == last_number_ && head.link != last_link_) {
    return "it does not follow the block " + Number(last_number_) +
           " that is here";
  }
  return {};
}

void TraceJudge::AddFrame(const BlockId& id, uint64_t offset, uint32_t crc,
                          const Status& decoded, const BlockNotes& notes,
                          bool has_final) {
  const uint64_t number = id.sequence;
  next_number_ = number + 1;
  const bool file_begins = std::exchange(file_begins_, false);
  const BlockProof proof = ProofOf(notes, *options_.keys);
  const ChecksumNote* note = proof.note;
  if (note == nullptr && !decoded.ok()) {
    return AddBad(number, offset, decoded.message());
  }
  // Each part of a rotated trace starts with a copy of block 0.
  if (note == nullptr && number == 0) {
    if (file_begins && head_crc_ == crc) return;
    if (!head_crc_) head_crc_ = crc;
  }
  if (note == nullptr) {
    if (!proof.why.empty()) return AddBad(number, offset, proof.why);
    AddToRuns(number, /*sealed=*/proof.cipher, nullptr);
    if (has_final) end_ = number;
    return;
  }
  if (file_begins && number == 0 && head_link_ &&
      *head_link_ == note->own_link) {
    return;
  }
  if (std::string why = CheckClaims(number, *note); !why.empty()) {
    return AddBad(number, offset, std::move(why));
  }
  if (number == 0) head_link_ = note->own_link;
  const auto [first, last] = anchors_.equal_range(number);
  for (auto at = first; at != last; ++at) {
    anchored_seen_[number] = note->own_link;
    if (at->second->hash == note->own_link) continue;
    AddBad(number, offset, "it is not the block that the anchor names");
    return;
  }
  const bool follows = any_ && number == last_number_ + 1;
  const uint64_t promised_ns = uint64_t{note->head.heartbeat_ms} * 1'000'000;
  if (follows && promised_ns != 0 &&
      note->head.monotonic_ns > last_monotonic_ns_ &&
      note->head.monotonic_ns - last_monotonic_ns_ >
          2 * promised_ns + kHeartbeatSlackNs) {
    other_.push_back(
        {.trust = Trust::kMissing,
         .has_numbers = false,
         .why = "silence for " +
                SpanText(note->head.monotonic_ns - last_monotonic_ns_) +
                " before block " + Number(number) +
                ", though a heartbeat was promised every " +
                SpanText(promised_ns)});
  }
  AddToRuns(number, /*sealed=*/true, note);
  any_ = true;
  last_number_ = number;
  last_link_ = note->own_link;
  last_monotonic_ns_ = note->head.monotonic_ns;
  if (note->head.last) end_ = number;
}

void TraceJudge::AddToRuns(uint64_t number, bool sealed,
                           const ChecksumNote* note) {
  uint64_t highest = 0;
  if (!runs_.empty()) {
    Run& run = runs_.back();
    // A run of copies ends where the copies end.
    const bool fresh_after_copies = run.again && number == run.highest + 1;
    if (run.sealed == sealed && run.last + 1 == number && number != 0 &&
        !fresh_after_copies) {
      run.last = number;
      return;
    }
    highest = std::max(run.highest, run.last);
  }
  Run run{.first = number,
          .last = number,
          .sealed = sealed,
          .previous = 0,
          .has_previous = false,
          .again = !runs_.empty() && number <= highest,
          .highest = highest};
  if (note != nullptr && note->head.previous != kNoPrevious) {
    run.previous = note->head.previous;
    run.has_previous = true;
  }
  runs_.push_back(run);
}

// Marks the runs that are in order, so many that as few blocks as possible are
// out of place: the heaviest increasing sequence of runs.
void TraceJudge::PutInPlace() {
  const size_t count = runs_.size();
  // Runs by their last number; a tree over these ranks has, for each prefix,
  // the heaviest sequence that ends in it.
  std::vector<uint64_t> lasts;
  lasts.reserve(count);
  for (const Run& run : runs_) lasts.push_back(run.last);
  std::sort(lasts.begin(), lasts.end());
  lasts.erase(std::unique(lasts.begin(), lasts.end()), lasts.end());
  struct Best {
    uint64_t blocks = 0;
    size_t run = SIZE_MAX;
  };
  std::vector<Best> tree(lasts.size() + 1);
  std::vector<size_t> before(count, SIZE_MAX);
  Best best;
  for (size_t i = 0; i < count; ++i) {
    const Run& run = runs_[i];
    Best so_far;
    const auto below = std::lower_bound(lasts.begin(), lasts.end(), run.first);
    for (auto at = static_cast<size_t>(below - lasts.begin()); at > 0;
         at &= at - 1) {
      if (tree[at].blocks > so_far.blocks) so_far = tree[at];
    }
    before[i] = so_far.run;
    const Best with{so_far.blocks + (run.last - run.first) + 1, i};
    if (with.blocks > best.blocks) best = with;
    const auto rank =
        std::lower_bound(lasts.begin(), lasts.end(), run.last) - lasts.begin();
    for (auto at = static_cast<size_t>(rank) + 1; at < tree.size();
         at += at & (~at + 1)) {
      if (with.blocks > tree[at].blocks) tree[at] = with;
    }
  }
  for (size_t i = best.run; i != SIZE_MAX; i = before[i]) {
    runs_[i].in_place = true;
  }
}

void TraceJudge::FindMissing(std::vector<JudgedRange>* findings) {
  // What was found under any number, ok or not, is not missing.
  struct Range {
    uint64_t first;
    uint64_t last;
    const Run* run;
  };
  std::vector<Range> found;
  uint64_t highest = 0;
  bool any = false;
  for (const Run& run : runs_) {
    found.push_back({run.first, run.last, &run});
    highest = std::max(highest, run.last);
    any = true;
  }
  // A number that only a bad frame claims says nothing about what there was.
  if (!any) return;
  for (const BadFrame& bad : bad_) {
    if (bad.number <= highest) {
      found.push_back({bad.number, bad.number, nullptr});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  uint64_t next = 0;
  for (const Range& range : found) {
    if (range.first > next) {
      if (Damage* damage = DamageAt(next)) {
        damage->named = true;
        findings->push_back({.trust = Trust::kBad,
                             .first = next,
                             .last = range.first - 1,
                             .why = damage->why});
        next = range.first;
      }
    }
    if (range.first > next) {
      std::string why;
      if (range.run != nullptr && range.run->has_previous) {
        const uint64_t previous = range.run->previous;
        why = previous < next
                  ? "never written, by the word of block " + Number(range.first)
                  : "block " + Number(range.first) + " was written after " +
                        (previous + 1 == range.first
                             ? "them"
                             : "block " + Number(previous));
      }
      findings->push_back({.trust = Trust::kMissing,
                           .first = next,
                           .last = range.first - 1,
                           .why = std::move(why)});
    }
    if (range.last == UINT64_MAX) return;
    next = std::max(next, range.last + 1);
  }
}

void TraceJudge::CheckEnd(std::vector<JudgedRange>* findings) const {
  if (runs_.empty()) return;
  uint64_t highest = 0;
  for (const Run& run : runs_) highest = std::max(highest, run.last);
  if (!end_) {
    if (options_.unfinished) return;
    findings->push_back(
        {.trust = Trust::kMissing,
         .has_numbers = false,
         .why = "the end, after block " + Number(highest) +
                (writer_lives_
                     ? ": the trace is still being written (--wait waits for "
                       "its end, --unfinished does not ask for it)"
                     : ": the trace was cut there, or is still being "
                       "written")});
  } else if (highest > *end_) {
    findings->push_back(
        {.trust = Trust::kBad,
         .first = *end_ + 1,
         .last = highest,
         .why = "after block " + Number(*end_) + ", which ends the trace"});
  }
}

void TraceJudge::CheckAnchors(std::vector<JudgedRange>* findings) const {
  std::map<uint64_t, uint64_t> runs;  // last, first
  std::set<uint64_t> here;            // first of what is here, good or bad
  for (const Run& run : runs_) {
    uint64_t& first = runs.try_emplace(run.last, run.first).first->second;
    first = std::min(first, run.first);
    here.insert(run.first);
  }
  std::set<uint64_t> bad;
  for (const BadFrame& frame : bad_) bad.insert(frame.number);
  here.insert(bad.begin(), bad.end());
  AnchoredBlocks told(findings);
  for (const auto& [block, anchor] : anchors_) {
    if (anchor->last && end_ != block) {
      findings->push_back({.trust = Trust::kBad,
                           .has_numbers = false,
                           .why = "an anchor says that the trace ended with "
                                  "block " +
                                  Number(block)});
    }
    if (anchored_seen_.contains(block)) continue;
    const auto run = runs.lower_bound(block);
    if (run != runs.end() && run->second <= block) {
      told.Add(Trust::kBad, run->second, block);
    } else if (!bad.contains(block)) {
      const auto next = here.lower_bound(block);
      told.Add(Trust::kMissing, next == here.end() ? UINT64_MAX : *next, block);
    }
  }
  told.End();
  if (anchors_.empty() && options_.anchors_wanted) {
    findings->push_back({.trust = Trust::kMissing,
                         .has_numbers = false,
                         .why = "no anchor names this trace: it may be another "
                                "one than it is taken for"});
  }
}

std::vector<JudgedRange> TraceJudge::Judge() {
  std::vector<JudgedRange> findings;
  PutInPlace();
  for (const Run& run : runs_) {
    JudgedRange finding{
        .trust = Trust::kOk, .first = run.first, .last = run.last};
    if (!run.in_place) {
      finding.trust = Trust::kBad;
      finding.why = "there twice, or out of its place";
    } else if (!run.sealed) {
      finding.trust = Trust::kUnsealed;
      finding.why = "no key covers them";
    }
    findings.push_back(std::move(finding));
  }
  for (const BadFrame& bad : bad_) {
    findings.push_back({.trust = Trust::kBad,
                        .first = bad.number,
                        .last = bad.number,
                        .why = bad.why});
  }
  FindMissing(&findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const JudgedRange& a, const JudgedRange& b) {
                     return a.first < b.first;
                   });
  JoinNeighbours(&findings);
  findings.insert(findings.end(), other_.begin(), other_.end());
  for (const Damage& damage : damage_) {
    if (damage.named) continue;
    findings.push_back(
        {.trust = Trust::kBad, .has_numbers = false, .why = damage.why});
  }
  CheckAnchors(&findings);
  CheckEnd(&findings);
  if (runs_.empty() && bad_.empty()) {
    findings.push_back({.trust = Trust::kMissing,
                        .has_numbers = false,
                        .why = "all of it: there is no block here"});
  }
  return findings;
}

}  // namespace tracefs
