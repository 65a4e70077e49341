#include "tracefs/reader/merged_columns.h"

#include <algorithm>
#include <utility>

namespace tracefs::reader {

using format::ReportKind;

MergedColumns::~MergedColumns() {
  for (const auto& lane : lanes_) Close(lane.get());
}

void MergedColumns::Add(format::TraceReader* reader,
                        std::unique_ptr<ParallelColumns> columns,
                        Status status) {
  auto lane = std::make_unique<Lane>();
  lane->reader = reader;
  lane->columns = std::move(columns);
  lane->status = std::move(status);
  lanes_.push_back(std::move(lane));
}

// Equal times keep the order of blocks.
bool MergedColumns::Later(const std::unique_ptr<Piece>& a,
                          const std::unique_ptr<Piece>& b) {
  return a->next_time() != b->next_time() ? a->next_time() > b->next_time()
                                          : a->number > b->number;
}

void MergedColumns::Close(Lane* lane) {
  if (lane->columns == nullptr) return;
  lane->columns.reset();
  // Its threads are gone: nothing else counts.
  lane->reader->mutable_stats().unordered_events += lane->unordered;
}

void MergedColumns::ReadPiece(Lane* lane) {
  Result<std::shared_ptr<Batch>> rows = lane->columns->Next();
  if (!rows.ok()) lane->status = rows.status();
  if (!rows.ok() || *rows == nullptr) return Close(lane);
  auto piece = std::make_unique<Piece>();
  piece->rows = *std::move(rows);
  piece->number = lane->pieces++;
  piece->bytes = piece->rows->footprint();
  used_bytes_ += piece->bytes;
  lane->open.push_back(std::move(piece));
  std::ranges::push_heap(lane->open, &Later);
}

void MergedColumns::Prepare(Lane* lane) {
  while (lane->columns != nullptr) {
    if (!lane->open.empty()) {
      if (lane->open.front()->next_time() <= lane->columns->watermark_ns()) {
        return;
      }
      if (used_bytes_ >= options_.memory_bytes) {
        if (!std::exchange(lane->unordered_reported, true)) {
          lane->columns->Tell({.kind = ReportKind::kUnordered});
        }
        return;
      }
    }
    ReadPiece(lane);
  }
}

size_t MergedColumns::Oldest() const {
  size_t oldest = lanes_.size();
  uint64_t begin = UINT64_MAX;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i]->open.empty()) continue;
    const uint64_t real = lanes_[i]->open.front()->next_real();
    if (oldest != lanes_.size() && real >= begin) continue;
    oldest = i;
    begin = real;
  }
  return oldest;
}

size_t MergedColumns::EndOfRun(size_t lane, const Piece& piece) const {
  // Up to this time, it included, no row of another piece comes before.
  uint64_t until = UINT64_MAX;
  const Lane& mine = *lanes_[lane];
  if (mine.columns != nullptr) until = mine.columns->watermark_ns();
  if (!mine.open.empty()) {
    const Piece& other = *mine.open.front();
    const uint64_t time = other.next_time();
    until = std::min(
        until, piece.number < other.number || time == 0 ? time : time - 1);
  }
  uint64_t until_real = UINT64_MAX;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (i == lane || lanes_[i]->open.empty()) continue;
    const uint64_t real = lanes_[i]->open.front()->next_real();
    until_real = std::min(until_real, lane < i || real == 0 ? real : real - 1);
  }
  const std::vector<uint64_t>& times = piece.rows->order().times;
  size_t end = piece.at + 1;  // the first is the oldest
  while (
      end < times.size() && times[end] <= until &&
      (until_real == UINT64_MAX || piece.RealTime(times[end]) <= until_real)) {
    ++end;
  }
  return end;
}

void MergedColumns::TakeRun(size_t number, Batch* made) {
  Lane& lane = *lanes_[number];
  std::ranges::pop_heap(lane.open, &Later);
  std::unique_ptr<Piece> piece = std::move(lane.open.back());
  lane.open.pop_back();
  const size_t most = options_.batch_rows - made->rows();
  const size_t count = made->Append(
      *piece->rows, piece->at,
      std::min(EndOfRun(number, *piece) - piece->at, most), &piece->numbers);
  const std::vector<uint64_t>& times = piece->rows->order().times;
  for (const size_t end = piece->at + count; piece->at < end; ++piece->at) {
    if (times[piece->at] < lane.last_time) {
      ++lane.unordered;
    } else {
      lane.last_time = times[piece->at];
    }
  }
  if (piece->at == times.size()) {
    used_bytes_ -= piece->bytes;
    return;
  }
  lane.open.push_back(std::move(piece));
  std::ranges::push_heap(lane.open, &Later);
}

std::shared_ptr<Batch> MergedColumns::Next() {
  auto made = std::make_shared<Batch>(options_.specs);
  for (const auto& lane : lanes_) {
    for (const auto& piece : lane->open) piece->numbers.clear();
  }
  while (made->rows() < options_.batch_rows && !made->full()) {
    for (const auto& lane : lanes_) Prepare(lane.get());
    const size_t oldest = Oldest();
    if (oldest == lanes_.size()) break;
    TakeRun(oldest, made.get());
  }
  return made->rows() == 0 ? nullptr : made;
}

}  // namespace tracefs::reader
