#include "tracefs/query/group_spill.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "tracefs/base/bytes.h"

namespace tracefs::query {
namespace {

using Entry = GroupStore::Entry;

constexpr size_t kWriteBytes = size_t{1} << 20;
constexpr size_t kLeastReadBytes = 4096;
constexpr size_t kMostReadBytes = size_t{1} << 18;

static_assert(std::is_trivially_copyable_v<Tally>);

// What is written is read by this process only: as memory has it.
template <typename Number>
void Put(Number number, std::string* out) {
  out->append(reinterpret_cast<const char*>(&number), sizeof number);
}

void PutHistogram(const tally::SparseHistogram& histogram, std::string* out) {
  const size_t at = out->size();
  uint32_t cells = 0;
  Put(cells, out);
  histogram.ForEach([&](uint16_t bucket, uint64_t count) {
    Put(bucket, out);
    Put(count, out);
    ++cells;
  });
  std::memcpy(out->data() + at, &cells, sizeof cells);
}

void PutEntry(const Entry& entry, std::string* out) {
  const size_t at = out->size();
  uint32_t size = 0;
  Put(size, out);
  Put(static_cast<uint32_t>(entry.key.size()), out);
  *out += entry.key;
  Put(entry.tally, out);
  if (entry.details != nullptr) {
    PutHistogram(entry.details->latency, out);
    PutHistogram(entry.details->size, out);
  }
  size = static_cast<uint32_t>(out->size() - at - sizeof size);
  std::memcpy(out->data() + at, &size, sizeof size);
}

class EntryCursor {
 public:
  explicit EntryCursor(std::string_view rest) : rest_(rest) {}

  template <typename Number>
  Number Take() {
    Number number;
    std::memcpy(&number, rest_.data(), sizeof number);
    rest_.remove_prefix(sizeof number);
    return number;
  }
  std::string_view TakeText(size_t size) {
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return text;
  }
  void TakeHistogram(tally::SparseHistogram* histogram) {
    for (auto cells = Take<uint32_t>(); cells != 0; --cells) {
      const auto bucket = Take<uint16_t>();
      histogram->AddBucket(bucket, Take<uint64_t>());
    }
  }
  bool AtEnd() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

Entry EntryOf(std::string_view text) {
  EntryCursor in(text);
  Entry entry;
  entry.key = in.TakeText(in.Take<uint32_t>());
  entry.tally = in.Take<Tally>();
  if (!in.AtEnd()) {
    entry.details = std::make_unique<TallyDetails>();
    in.TakeHistogram(&entry.details->latency);
    in.TakeHistogram(&entry.details->size);
  }
  return entry;
}

}  // namespace

// The entries of one run, one after the other.
class GroupSpill::RunReader {
 public:
  RunReader(const SpoolFile& file, Run run, size_t buffer_bytes)
      : file_(file), run_(run), buffer_bytes_(buffer_bytes) {}

  const Entry& entry() const { return entry_; }
  Entry& entry() { return entry_; }
  bool ended() const { return ended_; }

  Status Next() {
    uint32_t size;
    if (Status s = Need(sizeof size); !s.ok() || ended_) return s;
    std::memcpy(&size, buffer_.data() + at_, sizeof size);
    if (Status s = Need(sizeof size + size); !s.ok()) return s;
    entry_ =
        EntryOf(AsText(std::span(buffer_).subspan(at_ + sizeof size, size)));
    at_ += sizeof size + size;
    return {};
  }

 private:
  // So many bytes behind at_; or the run has ended.
  Status Need(size_t size) {
    if (buffer_.size() - at_ >= size) return {};
    buffer_.erase(buffer_.begin(),
                  buffer_.begin() + static_cast<ptrdiff_t>(at_));
    at_ = 0;
    const size_t had = buffer_.size();
    const size_t more = std::min<uint64_t>(std::max(buffer_bytes_, size - had),
                                           run_.end - run_.begin);
    if (more == 0) {
      ended_ = true;
      return {};
    }
    buffer_.resize(had + more);
    const Status read =
        file_.ReadAt(std::span(buffer_).subspan(had), run_.begin);
    run_.begin += more;
    return read;
  }

  const SpoolFile& file_;
  Run run_;  // what is still to be read
  const size_t buffer_bytes_;
  std::vector<std::byte> buffer_;
  size_t at_ = 0;
  bool ended_ = false;
  Entry entry_;
};

Status GroupSpill::Add(const std::deque<Entry>& entries) {
  if (!status_.ok() || entries.empty()) return status_;
  std::vector<const Entry*> order;
  order.reserve(entries.size());
  for (const Entry& entry : entries) order.push_back(&entry);
  std::ranges::sort(order, {}, [](const Entry* entry) -> const std::string& {
    return entry->key;
  });
  Run run = {UINT64_MAX, 0};
  std::string text;
  const auto write = [&] {
    const Result<uint64_t> at = file_.Append(text);
    if (!at.ok()) {
      status_ = at.status();
      return;
    }
    run = {std::min(run.begin, *at), *at + text.size()};
    text.clear();
  };
  for (const Entry* const entry : order) {
    PutEntry(*entry, &text);
    if (text.size() >= kWriteBytes) write();
    if (!status_.ok()) return status_;
  }
  if (!text.empty()) write();
  if (status_.ok()) runs_.push_back(run);
  return status_;
}

Status GroupSpill::Merge(size_t memory_bytes,
                         const std::function<void(Entry&)>& use) {
  if (!status_.ok()) return status_;
  const size_t buffer = std::clamp(memory_bytes / (runs_.size() + 1),
                                   kLeastReadBytes, kMostReadBytes);
  std::vector<std::unique_ptr<RunReader>> heap;
  const auto later = [](const std::unique_ptr<RunReader>& a,
                        const std::unique_ptr<RunReader>& b) {
    return a->entry().key > b->entry().key;
  };
  const auto push = [&](std::unique_ptr<RunReader> reader) {
    Status next = reader->Next();
    if (!next.ok() || reader->ended()) return next;
    heap.push_back(std::move(reader));
    std::ranges::push_heap(heap, later);
    return next;
  };
  const auto pop = [&] {
    std::ranges::pop_heap(heap, later);
    std::unique_ptr<RunReader> reader = std::move(heap.back());
    heap.pop_back();
    return reader;
  };
  for (const Run& run : runs_) {
    const Status first = push(std::make_unique<RunReader>(file_, run, buffer));
    if (!first.ok()) return first;
  }
  while (!heap.empty()) {
    std::unique_ptr<RunReader> reader = pop();
    Entry sum = std::move(reader->entry());
    if (Status s = push(std::move(reader)); !s.ok()) return s;
    while (!heap.empty() && heap.front()->entry().key == sum.key) {
      reader = pop();
      sum.tally.Add(reader->entry().tally);
      if (sum.details != nullptr) sum.details->Add(*reader->entry().details);
      if (Status s = push(std::move(reader)); !s.ok()) return s;
    }
    use(sum);
  }
  return {};
}

}  // namespace tracefs::query
