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
                     std::span<const ProcessNumbers::Found> callers,
                     std::span<const FileNumbers::Found> files)
    : needs_(needs),
      op_(batch, columns.op),
      latency_(batch, columns.latency),
      result_(batch, columns.result),
      error_(batch, columns.error),
      before_(batch, columns.before),
      any_before_(batch.column(columns.before).absent != batch.rows()),
      callers_(callers),
      files_(files) {
  const auto open = [&](size_t column, std::optional<Numbers>* numbers) {
    if (column != GroupColumns::kNone) numbers->emplace(batch, column);
  };
  open(columns.time, &time_);
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
  if ((!reads && !writes) || error_.Has(row)) return;
  if (!result_.Has(row)) {
    if (!IsBefore(row)) ++entry->tally.unmeasured;
    return;
  }
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
  TallyDetails& details = *entry->details;
  if (needs_.processes && row < callers_.size() &&
      callers_[row].number != ProcessNumbers::kUnknown) {
    details.processes.Add(MixedHash(callers_[row].number));
  }
  if (!needs_.files || row >= files_.size()) return;
  const FileNumbers::Found& files = files_[row];
  if (ends != GroupEnds::kSecond && files.file != 0) {
    details.files.Add(files.file);
  }
  if (ends != GroupEnds::kFirst && files.second != 0) {
    details.files.Add(files.second);
  }
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
