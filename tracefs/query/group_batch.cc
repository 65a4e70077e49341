#include "tracefs/query/group_batch.h"

#include <algorithm>
#include <string_view>

#include "tracefs/reader/fields.h"
#include "tracefs/tally/transfer.h"

namespace tracefs::query {

Numbers::Numbers(const reader::Batch& batch, size_t column)
    : column_(batch.column(column)),
      flag_(batch.specs()[column].field->shape == reader::Shape::kFlag),
      width_(batch.specs()[column].is_dictionary()
                 ? 4
                 : batch.specs()[column].field->width) {}

BatchSums::BatchSums(const reader::Batch& batch, const GroupColumns& columns,
                     const DetailNeeds& needs,
                     std::span<const format::TraceOrigin> origins)
    : needs_(needs),
      op_(batch, columns.op),
      latency_(batch, columns.latency),
      result_(batch, columns.result),
      error_(batch, columns.error),
      before_(batch, columns.before),
      any_before_(batch.column(columns.before).absent != batch.rows()),
      origins_(origins) {
  const auto open = [&](size_t column, std::optional<Numbers>* numbers) {
    if (column != GroupColumns::kNone) numbers->emplace(batch, column);
  };
  open(columns.time, &time_);
  open(columns.inode, &inode_);
  open(columns.inode_out, &inode_out_);
  open(columns.pid, &pid_);
  open(columns.trace, &trace_);
  const reader::Column& ops = batch.column(columns.op);
  for (size_t i = 0; i + 1 < ops.offsets.size(); ++i) {
    const auto begin = static_cast<size_t>(ops.offsets[i]);
    const auto op = OpFromName(std::string_view(ops.bytes).substr(
        begin, static_cast<size_t>(ops.offsets[i + 1]) - begin));
    ways_.push_back({op && tally::Reads(*op), op && tally::Writes(*op)});
  }
}

void BatchSums::AddBytes(size_t row, GroupEnds ends,
                         GroupStore::Entry* entry) const {
  const Ways ways = ways_[op_.At(row)];
  const bool reads = ways.reads && ends != GroupEnds::kSecond;
  const bool writes = ways.writes && ends != GroupEnds::kFirst;
  if ((!reads && !writes) || error_.Has(row) || !result_.Has(row)) return;
  const auto result = static_cast<int64_t>(result_.At(row));
  if (result < 0) return;
  const auto bytes = static_cast<uint64_t>(result);
  Tally& t = entry->tally;
  ++t.sizes;
  t.bytes = tally::AddTo(t.bytes, bytes);
  if (reads) t.read = tally::AddTo(t.read, bytes);
  if (writes) t.written = tally::AddTo(t.written, bytes);
  t.size_max = std::max(t.size_max, bytes);
  if (needs_.size) entry->details->size.Add(bytes);
}

void BatchSums::AddDistinct(size_t row, GroupEnds ends,
                            GroupStore::Entry* entry) const {
  const uint64_t trace = trace_->At(row);
  const format::TraceOrigin origin =
      trace < origins_.size() ? origins_[trace] : format::TraceOrigin{};
  const auto add = [&](const std::optional<Numbers>& numbers, uint32_t of,
                       DistinctCount* count) {
    if (numbers && numbers->Has(row)) {
      count->Add(DistinctNumber(of, numbers->At(row)));
    }
  };
  TallyDetails& details = *entry->details;
  if (ends != GroupEnds::kSecond) add(inode_, origin.mount, &details.files);
  if (ends != GroupEnds::kFirst) add(inode_out_, origin.mount, &details.files);
  add(pid_, origin.machine, &details.processes);
}

void BatchSums::AddOperation(size_t row, GroupStore::Entry* entry) const {
  Tally& t = entry->tally;
  ++t.count;
  if (error_.Has(row)) ++t.errors;
  if (!latency_.Has(row)) return;
  const uint64_t ns = latency_.At(row);
  t.AddTime(ns);
  if (needs_.latency) entry->details->latency.Add(ns);
}

void BatchSums::AddTo(size_t row, GroupEnds ends,
                      GroupStore::Entry* entry) const {
  if (IsBefore(row)) {
    ++entry->tally.before;
    return;
  }
  if (ends != GroupEnds::kSecond) AddOperation(row, entry);
  AddBytes(row, ends, entry);
  Tally& t = entry->tally;
  if (time_ && time_->Has(row)) {
    t.first_ns = std::min(t.first_ns, time_->At(row));
    t.last_ns = std::max(t.last_ns, time_->At(row));
  }
  if (needs_.files || needs_.processes) AddDistinct(row, ends, entry);
}

}  // namespace tracefs::query
