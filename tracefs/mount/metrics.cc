#include "tracefs/mount/metrics.h"

#include <sys/random.h>

#include <array>
#include <cstdio>

#include "tracefs/base/clock.h"
#include "tracefs/feed/aggregate_lines.h"
#include "tracefs/process/siphash.h"
#include "tracefs/tally/histogram.h"
#include "tracefs/tracers/plan.h"

namespace tracefs {
namespace {

// Powers of two: of latencies from a microsecond to 17 seconds in nanoseconds,
// of sizes from 512 bytes to 16 MiB.
constexpr int kFirstLatencyBit = 10;
constexpr int kLastLatencyBit = 34;
constexpr int kFirstSizeBit = 9;
constexpr int kLastSizeBit = 24;
constexpr double kSecondsPerNs = 1e-9;

std::string TracerLabels(uint32_t id, std::string_view name) {
  return MetricLabel("tracer", std::to_string(id)) + ',' +
         MetricLabel("tracer_name", name);
}

// Each family, and what it is called here.
#define TRACEFS_FAMILIES(X)                                                   \
  X(kBuild, "tracefs_build", "info", "", "The version that runs.")            \
  X(kCpu, "process_cpu_seconds", "counter", "seconds",                        \
    "Processor time of the daemon.")                                          \
  X(kRunning, "tracefs_tracer_running", "gauge", "",                          \
    "1: the tracer runs; 0: it was stopped.")                                 \
  X(kSeen, "tracefs_tracer_seen", "counter", "",                              \
    "Operations that the tracer's filter was asked about.")                   \
  X(kMatched, "tracefs_tracer_matched", "counter", "",                        \
    "Operations that the filter keeps.")                                      \
  X(kEncoded, "tracefs_tracer_encoded", "counter", "", "Messages made.")      \
  X(kCounted, "tracefs_tracer_counted", "counter", "",                        \
    "Operations counted by aggregate drivers.")                               \
  X(kWritten, "tracefs_tracer_written", "counter", "",                        \
    "Messages in blocks that the output has taken.")                          \
  X(kLost, "tracefs_tracer_lost", "counter", "",                              \
    "Operations that were not kept.")                                         \
  X(kBlocks, "tracefs_tracer_blocks", "counter", "",                          \
    "Blocks that the output has taken.")                                      \
  X(kOperations, "tracefs_tracer_operations", "counter", "",                  \
    "Operations written, by kind.")                                           \
  X(kFilterSamples, "tracefs_filter_samples", "counter", "",                  \
    "Decisions of the filter that were timed.")                               \
  X(kFilterSeconds, "tracefs_filter_sampled_seconds", "counter", "seconds",   \
    "Time of those decisions.")                                               \
  X(kEncodeSamples, "tracefs_assembly_samples", "counter", "",                \
    "Operations whose encoding or counting was timed.")                       \
  X(kEncodeSeconds, "tracefs_assembly_sampled_seconds", "counter", "seconds", \
    "Time of those.")                                                         \
  X(kOutputUp, "tracefs_output_up", "gauge", "",                              \
    "1: the output has never failed; 0: it has.")                             \
  X(kStageBlocks, "tracefs_stage_blocks", "counter", "",                      \
    "Blocks given to a stage of the output chain.")                           \
  X(kStageBytes, "tracefs_stage_bytes", "counter", "bytes",                   \
    "Bytes given to a stage of the output chain.")                            \
  X(kStageRefused, "tracefs_stage_refused", "counter", "",                    \
    "Blocks that the stage refused.")                                         \
  X(kStageSeconds, "tracefs_stage_seconds", "counter", "seconds",             \
    "Time spent in the stage alone.")                                         \
  X(kQueueBlocks, "tracefs_stage_queue_blocks", "gauge", "",                  \
    "Blocks that wait in the stage.")                                         \
  X(kQueueBytes, "tracefs_stage_queue_bytes", "gauge", "bytes",               \
    "Bytes that wait in the stage.")                                          \
  X(kQueueLimit, "tracefs_stage_queue_limit_bytes", "gauge", "bytes",         \
    "How many may wait; 0: not bounded by bytes.")                            \
  X(kAggOperations, "tracefs_aggregate_operations", "counter", "",            \
    "Operations counted, by key.")                                            \
  X(kAggMissed, "tracefs_aggregate_missed_operations", "gauge", "",           \
    "At most so many more belong to the key, counted as other.")              \
  X(kAggErrors, "tracefs_aggregate_errors", "counter", "",                    \
    "Of the operations, those that failed.")                                  \
  X(kAggBytes, "tracefs_aggregate_transferred_bytes", "counter", "bytes",     \
    "Bytes read, written and copied.")                                        \
  X(kAggLatency, "tracefs_aggregate_latency_seconds", "histogram", "seconds", \
    "From an operation's begin to its answer.")                               \
  X(kAggSize, "tracefs_aggregate_size_bytes", "histogram", "bytes",           \
    "Bytes of single reads, writes and copies.")                              \
  X(kRuleMatched, "tracefs_rule_matched", "counter", "",                      \
    "Operations that the rule has counted.")                                  \
  X(kRuleMissed, "tracefs_rule_missed", "counter", "",                        \
    "Operations that came too fast for the rules of the tracer.")             \
  X(kRuleAlarms, "tracefs_rule_alarms", "counter", "",                        \
    "How often the rule has fired.")                                          \
  X(kRuleInAlarm, "tracefs_rule_in_alarm", "gauge", "",                       \
    "1: the rule holds, or did a moment ago.")                                \
  X(kClock, "tracefs_clock_seconds", "gauge", "seconds",                      \
    "What the host's clock says, since 1970.")                                \
  X(kConfigVersion, "tracefs_config_version", "gauge", "",                    \
    "Of the signed config that is traced by.")                                \
  X(kConfigRefused, "tracefs_config_refused", "counter", "",                  \
    "Signed configs that were not taken.")                                    \
  X(kSuccessions, "tracefs_successions", "counter", "",                       \
    "Daemons that took the place of one that was killed.")                    \
  X(kGap, "tracefs_succession_longest_seconds", "gauge", "seconds",           \
    "The longest time from such a death until another served.")               \
  X(kUntraced, "tracefs_untraced", "gauge", "",                               \
    "1: daemons crashed again and again, and the traces have ended.")         \
  X(kRequestsRefused, "tracefs_requests_refused", "counter", "",              \
    "Requests that got an error because daemons crashed at them.")

// Indexes of kFamilies.
enum Id : size_t {
#define TRACEFS_FAMILY_ID(id, ...) id,
  TRACEFS_FAMILIES(TRACEFS_FAMILY_ID)
#undef TRACEFS_FAMILY_ID
      kHelpers,  // three
};

constexpr OpenMetricsPage::Family kFamilies[] = {
#define TRACEFS_FAMILY_ROW(id, ...) {__VA_ARGS__},
    TRACEFS_FAMILIES(TRACEFS_FAMILY_ROW)
#undef TRACEFS_FAMILY_ROW
        OpenMetricsPage::kHelperFamilies[0],
    OpenMetricsPage::kHelperFamilies[1],
    OpenMetricsPage::kHelperFamilies[2],
};

}  // namespace

NamesInLabels NamesInLabels::Withheld() {
  NamesInLabels names;
  // Without it, names cannot be tried until one gives the label in question.
  std::array<uint64_t, 2> key = {RealNs(), MonotonicNs()};
  [[maybe_unused]] const ssize_t n = ::getrandom(key.data(), sizeof key, 0);
  names.key_ = key;
  return names;
}

std::string NamesInLabels::Label(const format::AggregateKeyPart& part) const {
  const std::string_view name = format::AggregateKeyLabel(part.arg_id);
  std::string value = AggregateKeyText(part);
  if (key_ && format::AggregateKeyIsText(part.arg_id) &&
      part.arg_id != Info(Field::kComm).arg_id && !value.empty()) {
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(), "withheld-%012llx",
                  static_cast<unsigned long long>(
                      SipHash24(*key_, AsBytes(value)) >> 16));
    value = text.data();
  }
  return MetricLabel(name, value);
}

MetricsPage::MetricsPage(const NamesInLabels& names)
    : names_(names), page_(kFamilies) {
  page_.AddProcess(kBuild, kCpu);
  page_.AddHelpers(kHelpers);
  page_.Sample(kClock, "", "",
               MetricNumber(static_cast<double>(RealNs()) * kSecondsPerNs));
}

void MetricsPage::AddTracer(const TracerStats& stats) {
  const std::string tracer = TracerLabels(stats.id, stats.name);
  page_.Gauge(kRunning, tracer, stats.running ? 1 : 0);
  page_.Count(kSeen, tracer, stats.seen);
  page_.Count(kMatched, tracer, stats.matched);
  page_.Count(kEncoded, tracer, stats.encoded);
  page_.Count(kCounted, tracer, stats.counted);
  page_.Count(kWritten, tracer, stats.written);
  // Also those that did not happen: a rate needs a first value.
  for (size_t r = 0; r < kLossReasonCount; ++r) {
    page_.Count(
        kLost,
        tracer + ',' +
            MetricLabel("reason", LossReasonName(static_cast<LossReason>(r))),
        stats.lost[r]);
  }
  page_.Count(kBlocks, tracer, stats.blocks);
  for (size_t op = 0; op < kOpCount; ++op) {
    if (stats.by_op[op] == 0) continue;
    page_.Count(kOperations,
                tracer + ',' + MetricLabel("op", OpName(static_cast<Op>(op))),
                stats.by_op[op]);
  }
  page_.Count(kFilterSamples, tracer, stats.filter_samples);
  page_.Seconds(kFilterSeconds, tracer, stats.filter_ns);
  page_.Count(kEncodeSamples, tracer, stats.encode_samples);
  page_.Seconds(kEncodeSeconds, tracer, stats.encode_ns);
  page_.Gauge(kOutputUp, tracer + ',' + MetricLabel("chain", stats.chain),
              stats.output_error.ok() ? 1 : 0);
  for (size_t i = 0; i < stats.stages.size(); ++i) {
    const TracerStats::Stage& stage = stats.stages[i];
    // A stage may be there twice.
    const std::string labels = tracer + ',' + MetricLabel("stage", stage.name) +
                               ',' +
                               MetricLabel("position", std::to_string(i + 1));
    page_.Count(kStageBlocks, labels, stage.blocks);
    page_.Count(kStageBytes, labels, stage.bytes);
    page_.Count(kStageRefused, labels, stage.refused);
    const uint64_t later =
        i + 1 == stats.stages.size() ? 0 : stats.stages[i + 1].ns;
    page_.Seconds(kStageSeconds, labels,
                  stage.ns > later ? stage.ns - later : 0);
    if (!stage.queue) continue;
    page_.Gauge(kQueueBlocks, labels, stage.queue->blocks);
    page_.Gauge(kQueueBytes, labels, stage.queue->bytes);
    page_.Gauge(kQueueLimit, labels, stage.queue->limit_bytes);
  }
}

void MetricsPage::AddTotal(std::string_view tracer_name,
                           const format::AggregateRecord& record) {
  std::string labels =
      TracerLabels(record.tracer_id, tracer_name) + ',' +
      MetricLabel("aggregate", std::to_string(record.aggregate));
  if (record.other) labels += ',' + MetricLabel("other", "true");
  for (const format::AggregateKeyPart& part : record.key) {
    labels += ',' + names_.Label(part);
  }
  page_.Count(kAggOperations, labels, record.count);
  if (record.missed != 0) page_.Gauge(kAggMissed, labels, record.missed);
  if (record.errors) page_.Count(kAggErrors, labels, *record.errors);
  if (record.bytes) page_.Count(kAggBytes, labels, *record.bytes);
  Histogram(kAggLatency, labels, record.latency, kFirstLatencyBit,
            kLastLatencyBit, kSecondsPerNs);
  Histogram(kAggSize, labels, record.size, kFirstSizeBit, kLastSizeBit, 1);
}

void MetricsPage::AddRule(const RuleTotals& rule) {
  const std::string labels =
      MetricLabel("tracer", std::to_string(rule.tracer)) + ',' +
      MetricLabel("rule", std::to_string(rule.number)) + ',' +
      MetricLabel("title", rule.title);
  page_.Count(kRuleMatched, labels, rule.matched);
  page_.Count(kRuleMissed, labels, rule.missed);
  page_.Count(kRuleAlarms, labels, rule.alarms);
  page_.Gauge(kRuleInAlarm, labels, rule.in_alarm ? 1 : 0);
}

void MetricsPage::Histogram(size_t id, const std::string& labels,
                            const format::HistogramRecord& histogram,
                            int first_bit, int last_bit, double unit) {
  if (!histogram.present) return;
  uint64_t sum = 0;
  auto bucket = histogram.buckets.begin();
  for (int bit = first_bit; bit <= last_bit; ++bit) {
    const uint64_t bound = uint64_t{1} << bit;
    while (bucket != histogram.buckets.end() &&
           tally::HistogramLow(bucket->bucket) <= bound) {
      sum += bucket->count;
      ++bucket;
    }
    page_.Sample(id, "_bucket",
                 labels + ",le=\"" +
                     MetricNumber(static_cast<double>(bound) * unit) + '"',
                 std::to_string(sum));
  }
  const uint64_t count = histogram.Count();
  page_.Sample(id, "_bucket", labels + ",le=\"+Inf\"", std::to_string(count));
  page_.Sample(id, "_count", labels, std::to_string(count));
  page_.Sample(id, "_sum", labels,
               MetricNumber(static_cast<double>(histogram.sum) * unit));
}

void MetricsPage::AddSurvival(const survive::Header& header) {
  page_.Count(kSuccessions, "", header.successions.load());
  page_.Sample(kGap, "", "",
               MetricNumber(static_cast<double>(header.longest_gap_ns.load()) *
                            kSecondsPerNs));
  page_.Gauge(kUntraced, "",
              header.tracing.load() == survive::Tracing::kOn ? 0 : 1);
  page_.Count(kRequestsRefused, "", header.refused.load());
}

void MetricsPage::AddSteering(const ConfigSteering& steering) {
  page_.Gauge(kConfigVersion, "", steering.version());
  for (size_t i = 0; i < kConfigRefusals; ++i) {
    const auto why = static_cast<ConfigRefusal>(i);
    page_.Count(kConfigRefused, MetricLabel("reason", ConfigRefusalName(why)),
                steering.refused(why));
  }
}

std::string MetricsText(Pipeline& pipeline,
                        const std::vector<RuleTotals>& rules,
                        const NamesInLabels& names,
                        const ConfigSteering* steering,
                        survive::Area* survives) {
  MetricsPage page(names);
  if (survives != nullptr) page.AddSurvival(survives->header());
  if (steering != nullptr) page.AddSteering(*steering);
  for (const TracerStats& stats : pipeline.Stats()) {
    if (stats.kind != TracerKind::kRules) page.AddTracer(stats);
  }
  for (const RuleTotals& rule : rules) page.AddRule(rule);
  pipeline.ForEachTotal(
      [&](const std::string& name, const format::AggregateRecord& record) {
        page.AddTotal(name, record);
      });
  return page.Text();
}

}  // namespace tracefs
