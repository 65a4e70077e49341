#include "tracefs/replay/outcome.h"

#include <algorithm>
#include <cmath>

namespace tracefs::replay {

void Distribution::Add(const Distribution& other) {
  if (other.counts_.empty()) return;
  if (counts_.empty()) counts_.resize(format::kHistogramBuckets);
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

uint64_t Distribution::Quantile(double share) const {
  const auto wanted =
      static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (counts_[i] != 0 && seen >= wanted) {
      return std::min(max_, format::HistogramHigh(static_cast<uint16_t>(i)));
    }
  }
  return max_;
}

uint64_t Distribution::CountUpTo(uint64_t value) const {
  if (counts_.empty()) return 0;
  uint64_t count = 0;
  for (size_t i = 0; i <= format::HistogramBucket(value); ++i) {
    count += counts_[i];
  }
  return count;
}

double Distribution::Distance(const Distribution& a, const Distribution& b) {
  if (a.count_ == 0 || b.count_ == 0) return 0;
  double distance = 0;
  uint64_t of_a = 0;
  uint64_t of_b = 0;
  for (size_t i = 0; i < a.counts_.size(); ++i) {
    of_a += a.counts_[i];
    of_b += b.counts_[i];
    distance = std::max(
        distance,
        std::abs(static_cast<double>(of_a) / static_cast<double>(a.count_) -
                 static_cast<double>(of_b) / static_cast<double>(b.count_)));
  }
  return distance;
}

std::string_view ExplainedName(Explained why) {
  switch (why) {
    case Explained::kNotSupported:
      return "not supported here";
    case Explained::kLayout:
      return "layout of the file system";
    case Explained::kRaced:
      return "raced when recorded";
    case Explained::kNotKept:
      return "bytes not in the trace";
    case Explained::kDevice:
      return "devices are not made";
    case Explained::kRights:
      return "another user's rights";
    case Explained::kLeftOut:
      return "left out, not asked for";
  }
  return "";
}

void Outcome::Add(const Outcome& other) {
  for (size_t i = 0; i < ops.size(); ++i) {
    OpOutcome& mine = ops[i];
    const OpOutcome& its = other.ops[i];
    mine.count += its.count;
    mine.matched += its.matched;
    mine.mismatched += its.mismatched;
    for (size_t k = 0; k < kExplainedCount; ++k) {
      mine.explained[k] += its.explained[k];
    }
    mine.then_ns.Add(its.then_ns);
    mine.now_ns.Add(its.now_ns);
    for (const auto& [pair, count] : its.errors) mine.errors[pair] += count;
  }
  untimed += other.untimed;
  untimed_failed += other.untimed_failed;
  bytes_compared += other.bytes_compared;
  bytes_written += other.bytes_written;
  bytes_read += other.bytes_read;
  waits += other.waits;
  skipped += other.skipped;
  lateness_ns.Add(other.lateness_ns);
  elapsed_ns = std::max(elapsed_ns, other.elapsed_ns);
  mismatches.insert(mismatches.end(), other.mismatches.begin(),
                    other.mismatches.end());
  std::stable_sort(mismatches.begin(), mismatches.end(),
                   [](const Mismatch& a, const Mismatch& b) {
                     return a.sequence < b.sequence;
                   });
  if (mismatches.size() > kMostMismatches) mismatches.resize(kMostMismatches);
}

uint64_t Outcome::operations() const {
  uint64_t n = 0;
  for (const OpOutcome& op : ops) n += op.count;
  return n;
}
uint64_t Outcome::matched() const {
  uint64_t n = 0;
  for (const OpOutcome& op : ops) n += op.matched;
  return n;
}
uint64_t Outcome::mismatched() const {
  uint64_t n = 0;
  for (const OpOutcome& op : ops) n += op.mismatched;
  return n;
}
uint64_t Outcome::explained() const {
  uint64_t n = 0;
  for (const OpOutcome& op : ops) {
    for (const uint64_t count : op.explained) n += count;
  }
  return n;
}

}  // namespace tracefs::replay
