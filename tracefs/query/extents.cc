// Where on their devices files lie, and how far it is from one access to the
// next (STR_EXTENTS). Each extent that a trace names of an operation is an
// access, in the order of the operations and, of one, of its offsets; what lies
// nowhere in particular, and files whose written parts are not known, are not.
#include "tracefs/event/extents.h"

#include <sys/sysmacros.h>

#include <map>
#include <unordered_map>

#include "tracefs/format/block_decoder.h"
#include "tracefs/format/file_paths.h"
#include "tracefs/query/analyses.h"
#include "tracefs/query/distinct_count.h"
#include "tracefs/query/file_layout.h"
#include "tracefs/query/file_lives.h"
#include "tracefs/tally/histogram.h"
#include "tracefs/text/flag_names.h"

namespace tracefs::query {
namespace {

constexpr size_t kMostLaidOut = size_t{1} << 16;  // files
constexpr size_t kMostPieces = size_t{1} << 19;   // extents of all of them
constexpr size_t kMostDevices = 64;
constexpr size_t kMostReasons = 64;

std::string DeviceText(uint64_t device) {
  return std::to_string(major(device)) + ":" + std::to_string(minor(device));
}

class Extents final : public Analysis {
 public:
  bool follows_files() const override { return true; }
  void Pass(const format::Record& record, size_t /*trace*/) override {
    if (HasRun(record)) files_.Take(record, /*counts=*/false);
  }
  void Take(const format::Record& record, size_t /*trace*/) override {
    if (!HasRun(record)) return;
    files_.Take(record);
    const std::string_view of = record.Text(Field::kExtentsOf);
    if (of.empty()) return;
    ++operations_;
    const Event& event = record.event;
    const uint64_t left_out = event.GetOr0(Field::kExtentsLeftOut);
    if (left_out != 0) Miss("more extents than are recorded", left_out);
    if (SaysOfExtents(of, kColdUnknown)) {
      Miss("whether a read had to fetch anything", 0);
      return;
    }
    if (const uint64_t error = event.GetOr0(Field::kExtentsErrno)) {
      Miss("where it lies: " + std::string(ErrnoName(error)), 0);
      return;
    }
    if (SaysOfExtents(of, kOfFile)) {
      Miss("which part of a file was written", 0);
    } else if (SaysOfExtents(of, kWidened)) {
      Miss("which of many parts of a file were written", 0);
    }
    TakeExtents(record, !SaysOfExtents(of, kOfFile));
  }

  std::vector<Table> Finish() override { return {Files(), Steps(), Missed()}; }

 private:
  struct Laid {
    std::string path;
    uint64_t device = 0;
    FileLayout layout;
  };
  struct Device {
    bool begun = false;
    uint64_t end = 0;  // of the last access
    uint64_t accesses = 0;
    uint64_t consecutive = 0;
    uint64_t bytes = 0;
    tally::Histogram distances;
  };
  struct Reason {
    uint64_t operations = 0;
    uint64_t bytes = 0;
  };

  void TakeExtents(const format::Record& record, bool accessed) {
    const Event& event = record.event;
    const uint64_t number = event.GetOr0(Field::kExtentsDevice);
    Device* const device = accessed ? DeviceOf(number) : nullptr;
    Laid* const file = FileOf(record, number);
    std::string_view text = record.Text(Field::kExtents);
    Extent extent;
    // No more than a tracer records, whatever the trace holds.
    for (size_t i = 0; i < kMostExtents && TakeExtent(&text, &extent); ++i) {
      if (file != nullptr && !Add(*file, extent)) {
        Miss("parts of files beyond " + std::to_string(kMostPieces), 0);
      }
      if (!accessed) continue;
      if (!extent.has_place()) {
        Miss("a place on the device (inline, or not allocated yet)",
             extent.length);
      } else if (!LiesInOnePlace(extent)) {
        Miss("how much of the device compressed data takes", extent.length);
      } else if (device != nullptr) {
        Access(*device, extent);
      }
    }
    if (!text.empty()) Miss("extents that cannot be read", 0);
  }

  static void Access(Device& device, const Extent& extent) {
    if (device.begun) {
      const uint64_t distance = SeekDistance(device.end, extent.physical);
      device.distances.Add(distance);
      if (distance == 0) ++device.consecutive;
    }
    device.begun = true;
    device.end = extent.physical + extent.length;
    ++device.accesses;
    device.bytes = tally::AddTo(device.bytes, extent.length);
  }

  Device* DeviceOf(uint64_t number) {
    if (devices_.size() < kMostDevices || devices_.contains(number)) {
      return &devices_[number];
    }
    Miss("accesses to devices beyond " + std::to_string(kMostDevices), 0);
    return nullptr;
  }

  Laid* FileOf(const format::Record& record, uint64_t device) {
    const uint64_t inode = record.event.GetOr0(Field::kInode);
    PathBuffer buffer;
    const std::string_view path = format::PathOf(record, buffer);
    if (inode == 0 && path.empty()) return nullptr;
    const uint64_t key = KeyOf(OriginOf(record).mount, inode, path);
    const auto found = by_key_.find(key);
    if (found != by_key_.end()) return &laid_[found->second];
    if (laid_.size() >= kMostLaidOut) {
      Miss("files beyond " + std::to_string(kMostLaidOut), 0);
      return nullptr;
    }
    by_key_[key] = laid_.size();
    Laid& file = laid_.emplace_back();
    file.path = path;
    file.device = device;
    return &file;
  }

  static uint64_t KeyOf(uint32_t mount, uint64_t inode, std::string_view path) {
    return DistinctNumber(
        mount, inode != 0 ? inode : std::hash<std::string_view>()(path));
  }

  bool Add(Laid& file, const Extent& extent) {
    const size_t before = file.layout.pieces();
    // One takes the place of others, or splits one in two.
    if (pieces_ + 2 > kMostPieces) return false;
    file.layout.Add(extent);
    pieces_ += file.layout.pieces() - before;
    return true;
  }

  void Miss(const std::string& what, uint64_t bytes) {
    auto found = missed_.find(what);
    if (found == missed_.end()) {
      if (missed_.size() >= kMostReasons) return;
      found = missed_.emplace(what, Reason{}).first;
    }
    ++found->second.operations;
    found->second.bytes = tally::AddTo(found->second.bytes, bytes);
  }

  Table Files() const {
    Table table;
    table.columns = {{"path"},
                     {"device"},
                     {"extents", Unit::kNumber, true},
                     {"bytes", Unit::kBytes, true},
                     {"size_mean", Unit::kBytes},
                     {"fragmentation", Unit::kShare},
                     {"shared", Unit::kShare},
                     {"unwritten", Unit::kShare},
                     {"inline", Unit::kShare},
                     {"compressed", Unit::kShare},
                     {"delayed", Unit::kShare}};
    for (const Laid& file : laid_) {
      const LayoutSums sums = file.layout.Sums();
      if (sums.extents == 0) continue;
      const auto share = [&](uint64_t part) {
        return Value::Share(part, sums.bytes);
      };
      table.rows.push_back(
          {Value::Text(file.path), Value::Text(DeviceText(file.device)),
           Value::Number(sums.extents), Value::Number(sums.bytes),
           Value::Number(sums.bytes / sums.extents),
           sums.blocks == 0 ? Value()
                            : Value::Share(sums.jumps, std::max<uint64_t>(
                                                           sums.blocks - 1, 1)),
           share(sums.shared), share(sums.unwritten), share(sums.inlined),
           share(sums.encoded), share(sums.delayed)});
    }
    table.notes.push_back(
        "as far as the trace tells: what was written or fetched while it was "
        "recorded; fragmentation: how often a block of 4096 bytes does not lie "
        "after the one before it, 0 to 1");
    return table;
  }

  Table Steps() const {
    Table table;
    table.title = "from one access to the next";
    table.columns = {{"device"},
                     {"accesses", Unit::kNumber, true},
                     {"bytes", Unit::kBytes, true},
                     {"sequential", Unit::kShare},
                     {"distance_p50", Unit::kBytes},
                     {"distance_p99", Unit::kBytes},
                     {"distance_max", Unit::kBytes}};
    for (const auto& [number, device] : devices_) {
      const uint64_t steps = device.distances.count();
      const auto quantile = [&](double share) {
        return steps == 0 ? Value()
                          : Value::Number(device.distances.Quantile(share));
      };
      table.rows.push_back(
          {Value::Text(DeviceText(number)), Value::Number(device.accesses),
           Value::Number(device.bytes), Value::Share(device.consecutive, steps),
           quantile(0.5), quantile(0.99),
           steps == 0 ? Value() : Value::Number(device.distances.max())});
    }
    if (operations_ == 0) {
      table.notes.push_back(
          "no operation says where anything lies: record with STR_EXTENTS");
    }
    return table;
  }

  Table Missed() const {
    Table table;
    table.title = "not known";
    table.columns = {{"what"},
                     {"times", Unit::kNumber, true},
                     {"bytes", Unit::kBytes, true}};
    for (const auto& [what, reason] : missed_) {
      table.rows.push_back({Value::Text(what), Value::Number(reason.operations),
                            Value::Number(reason.bytes)});
    }
    if (std::string note = files_.Note(); !note.empty()) {
      table.notes.push_back(std::move(note));
    }
    return table;
  }

  // Who gets the number of a file that is gone does not get where it lay.
  FileLives files_{[this](const FileLife& life, const FileLife*) {
    by_key_.erase(KeyOf(life.mount, life.inode, life.path));
  }};
  uint64_t operations_ = 0;
  size_t pieces_ = 0;
  std::unordered_map<uint64_t, size_t> by_key_;
  std::vector<Laid> laid_;
  std::map<uint64_t, Device> devices_;
  std::map<std::string, Reason> missed_;
};

}  // namespace

std::unique_ptr<Analysis> MakeExtents(const AnalysisOptions& /*options*/) {
  return std::make_unique<Extents>();
}

}  // namespace tracefs::query
