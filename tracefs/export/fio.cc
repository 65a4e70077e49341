#include "tracefs/export/fio.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "tracefs/base/clock.h"
#include "tracefs/base/printable.h"

namespace tracefs {
namespace {

constexpr size_t kMaxPath = 255;  // fio's own limit of a file name
constexpr size_t kMaxFiles = 200'000;
// fio keeps room for the largest transfer of a log; copies may be of any size.
constexpr uint64_t kCopyPiece = uint64_t{1} << 20;

// fio reads words: what a name with a blank in it would be is another file.
bool FitsFio(std::string_view path) {
  if (path.empty() || path.size() > kMaxPath) return false;
  while (!path.empty()) {
    const CodePoint point = FirstCodePoint(path);
    if (point.size == 0 || point.value <= ' ' || point.value == 0x7f) {
      return false;
    }
    path.remove_prefix(point.size);
  }
  return true;
}

class FioExporter final : public Exporter {
 public:
  explicit FioExporter(OutputBuffer& out) : out_(out) {}

  void Write(const format::Record& record) override {
    const Event& event = record.event;
    const TableRow row(record);
    std::string_view path = row.path();
    while (path.starts_with('/')) path.remove_prefix(1);
    if (event.before || row.failed() || record.time_resolution_ns == 0 ||
        !FitsFio(path)) {
      ++left_out_;
      return;
    }
    switch (event.op) {
      case Op::open_:
      case Op::create_:
        At(record, path, [&](File& file) {
          Open(file);
          if (event.Has(Field::kFh) && names_.size() < kMaxFiles) {
            names_.insert_or_assign(event.Get(Field::kFh), file.name);
          }
        });
        return;
      case Op::release_:
        At(record, path, [&](File& file) {
          Close(file);
          if (event.Has(Field::kFh)) names_.erase(event.Get(Field::kFh));
        });
        return;
      case Op::copy_file_range_:
        if (Copy(row, path)) return;
        break;
      case Op::read_:
      case Op::write_: {
        if (!event.Has(Field::kOffset) || !event.Has(Field::kLength)) break;
        // What was done, not what was asked for: fio fails at a short read.
        const auto moved =
            event.Has(Field::kResult)
                ? static_cast<int64_t>(event.Get(Field::kResult))
                : static_cast<int64_t>(event.Get(Field::kLength));
        if (moved <= 0) break;
        At(record, path, [&](File& file) {
          Use(file);
          Put(file.name, OpName(event.op),
              ' ' + std::to_string(event.Get(Field::kOffset)) + ' ' +
                  std::to_string(moved));
        });
        return;
      }
      case Op::fsync_:
        At(record, path, [&](File& file) {
          Use(file);
          const bool data =
              event.Has(Field::kFlags) && (event.Get(Field::kFlags) & 1) != 0;
          // Offset and length are read and not used.
          Put(file.name, data ? "datasync" : "sync", " 0 0");
        });
        return;
      case Op::lookup_:
      case Op::getattr_:
      case Op::setattr_:
      case Op::readlink_:
      case Op::symlink_:
      case Op::mknod_:
      case Op::mkdir_:
      case Op::unlink_:
      case Op::rmdir_:
      case Op::rename_:
      case Op::link_:
      case Op::tmpfile_:
      case Op::flush_:
      case Op::opendir_:
      case Op::readdir_:
      case Op::releasedir_:
      case Op::fsyncdir_:
      case Op::statfs_:
      case Op::setxattr_:
      case Op::getxattr_:
      case Op::listxattr_:
      case Op::removexattr_:
      case Op::access_:
      case Op::getlk_:
      case Op::setlk_:
      case Op::flock_:
      case Op::fallocate_:
      case Op::lseek_:
      case Op::ioctl_:
      case Op::poll_:
      case Op::statx_:
        break;
    }
    ++left_out_;
  }

  void Finish() override {
    PutHead();
    for (auto& [name, file] : files_) {
      if (file.opens != 0) Put(name, "close", "");
    }
  }

  uint64_t left_out() const override { return left_out_; }

 private:
  struct File {
    std::string name;
    uint64_t opens = 0;
  };

  template <typename Do>
  void At(const format::Record& record, std::string_view path, Do act) {
    PutHead();
    if (!origin_known_) origin_ns_ = record.real_ns;
    origin_known_ = true;
    const uint64_t since =
        record.real_ns < origin_ns_ ? 0 : record.real_ns - origin_ns_;
    at_us_ = std::max(at_us_, since / kNsPerUs);
    auto found = files_.find(std::string(path));
    if (found == files_.end()) {
      if (files_.size() >= kMaxFiles) {
        ++left_out_;
        return;
      }
      found = files_.emplace(path, File{.name = std::string(path)}).first;
      Put(path, "add", "");
    }
    act(found->second);
  }

  // As who copies without that call: what is read is written. False if it
  // cannot be told.
  bool Copy(const TableRow& row, std::string_view path) {
    const format::Record& record = row.record();
    const Event& event = record.event;
    if (!event.Has(Field::kOffset) || !event.Has(Field::kOffsetOut) ||
        !event.Has(Field::kResult)) {
      return false;
    }
    const std::string to_path = DestinationOf(row);
    const uint64_t moved = event.Get(Field::kResult);
    // Linux moves no more at a time (MAX_RW_COUNT).
    if (!FitsFio(to_path) || moved > INT32_MAX) return false;
    for (uint64_t done = 0; done < moved; done += kCopyPiece) {
      const uint64_t piece = std::min(kCopyPiece, moved - done);
      const auto put = [&](std::string_view name, Op op, Field offset) {
        At(record, name, [&](File& file) {
          Use(file);
          Put(file.name, OpName(op),
              ' ' + std::to_string(event.Get(offset) + done) + ' ' +
                  std::to_string(piece));
        });
      };
      put(path, Op::read_, Field::kOffset);
      put(to_path, Op::write_, Field::kOffsetOut);
    }
    return moved != 0;
  }

  // In traces from before copies named both files, only the handle says what is
  // written. Empty if it is not known.
  std::string DestinationOf(const TableRow& row) const {
    std::string_view path = row.path2();
    while (path.starts_with('/')) path.remove_prefix(1);
    if (!path.empty()) return std::string(path);
    const Event& event = row.event();
    if (!event.Has(Field::kFhOut)) return {};
    const auto to = names_.find(event.Get(Field::kFhOut));
    return to == names_.end() ? std::string() : to->second;
  }

  // fio has a file open or not, whatever the number of handles.
  void Open(File& file) {
    if (file.opens++ == 0) Put(file.name, "open", "");
  }
  void Use(File& file) {
    if (file.opens == 0) Open(file);
  }
  void Close(File& file) {
    if (file.opens != 0 && --file.opens == 0) Put(file.name, "close", "");
  }

  void PutHead() {
    if (head_done_) return;
    head_done_ = true;
    out_.Append("fio version 3 iolog\n");
  }

  void Put(std::string_view name, std::string_view what,
           const std::string& more) {
    std::string line = std::to_string(at_us_) + ' ';
    ((line += name) += ' ') += what;
    out_.Append(line + more + '\n');
  }

  OutputBuffer& out_;
  bool head_done_ = false;
  bool origin_known_ = false;
  uint64_t origin_ns_ = 0;
  uint64_t at_us_ = 0;
  uint64_t left_out_ = 0;
  std::unordered_map<std::string, File> files_;
  std::unordered_map<uint64_t, std::string> names_;  // of open files, by handle
};

}  // namespace

std::unique_ptr<Exporter> MakeFioExporter(OutputBuffer& out,
                                          const ExportOptions&) {
  return std::make_unique<FioExporter>(out);
}

}  // namespace tracefs
