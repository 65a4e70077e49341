#include "tracefs/replay/outcome.h"

#include <algorithm>
#include <cmath>

namespace tracefs::replay {

uint64_t CountUpTo(const tally::Histogram& values, uint64_t limit) {
  uint64_t sum = 0;
  values.ForEach([&](uint16_t bucket, uint64_t count) {
    if (bucket <= tally::HistogramBucket(limit)) sum += count;
  });
  return sum;
}

double ShareDistance(const tally::Histogram& a, const tally::Histogram& b) {
  if (a.count() == 0 || b.count() == 0) return 0;
  // By bucket: what it adds to the share of `a` less that of `b`.
  std::vector<double> steps(tally::kHistogramBuckets);
  const auto add = [&steps](const tally::Histogram& values, double sign) {
    values.ForEach([&](uint16_t bucket, uint64_t count) {
      steps[bucket] += sign * static_cast<double>(count) /
                       static_cast<double>(values.count());
    });
  };
  add(a, 1);
  add(b, -1);
  double ahead = 0;
  double distance = 0;
  for (const double step : steps) {
    ahead += step;
    distance = std::max(distance, std::abs(ahead));
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
    case Explained::kUntoldNames:
      return "names not in the trace";
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
