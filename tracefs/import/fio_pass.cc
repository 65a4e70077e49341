#include "tracefs/import/fio_pass.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/base/printable.h"
#include "tracefs/import/import.h"
#include "tracefs/import/line_reader.h"

namespace tracefs::import {
namespace {

constexpr size_t kMostWords = 6;

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  while (words.size() < kMostWords) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (line.empty()) break;
    const size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

bool ReadNumber(std::string_view word, uint64_t* value) {
  const auto [end, error] =
      std::from_chars(word.data(), word.data() + word.size(), *value);
  return error == std::errc() && end == word.data() + word.size();
}

}  // namespace

FioPass::FioPass(SizesBefore* sizes, TraceOutput* out, ImportCounts* counts)
    : tree_("/", /*special=*/true), sizes_(sizes), out_(out), counts_(counts) {}

Status FioPass::Take(std::string_view line) {
  ++counts_->lines;
  std::vector<std::string_view> words = Words(line);
  if (version_ == 0) {
    if (words.size() == 4 && words[0] == "fio" && words[1] == "version" &&
        words[3] == "iolog") {
      version_ = words[2] == "2" ? 2 : words[2] == "3" ? 3 : 0;
    }
    if (version_ != 0) return {};
    return Status::Corrupt(
        "the first line is not \"fio version 2 iolog\" or \"fio version 3 "
        "iolog\"");
  }
  if (words.empty()) return {};
  const auto leave_out = [&](std::string_view why) {
    ++counts_->unread;
    counts_->left_out.Add(why);
    return Status();
  };
  if (version_ == 3) {
    uint64_t us = 0;
    constexpr uint64_t kMost = UINT64_MAX / 4 / kNsPerUs;
    if (!ReadNumber(words[0], &us) || us > kMost) {
      return leave_out("lines without a time");
    }
    now_ns_ = std::max(now_ns_, kFirstNs + us * kNsPerUs);
    words.erase(words.begin());
  }
  uint64_t offset = 0;
  uint64_t length = 0;
  const bool has_range = words.size() == 4;
  if (words.size() != 2 && !has_range) {
    return leave_out("not a line of an iolog: " +
                     Printable(line.substr(0, 40)));
  }
  constexpr uint64_t kMostOffset = INT64_MAX / 2;
  constexpr uint64_t kMostLength = INT32_MAX;
  if (has_range &&
      (!ReadNumber(words[2], &offset) || !ReadNumber(words[3], &length) ||
       offset > kMostOffset || length > kMostLength)) {
    return leave_out("numbers that no file has");
  }
  return Act(words[0], words[1], offset, length);
}

Status FioPass::Act(std::string_view name, std::string_view action,
                    uint64_t offset, uint64_t length) {
  if (action == "wait") {
    // Since the wait before, in microseconds.
    waited_ns_ += std::min(offset, UINT64_MAX / 8 / kNsPerUs) * kNsPerUs;
    now_ns_ = std::max(now_ns_, waited_ns_);
    return {};
  }
  const std::string path = Normal(name);
  const Spot spot = tree_.Find(path, /*follow=*/false);
  using State = Spot::State;
  const bool good = path != "/" && (spot.state == State::kFound ||
                                    spot.state == State::kMissing ||
                                    spot.state == State::kUnknown);
  const bool is_new = !files_.contains(path);
  if (!good || (is_new && files_.size() >= kMostFiles)) {
    counts_->left_out.Add(good ? "files, as there are too many"
                               : "names that no kernel takes");
    return {};
  }
  File& file = files_[path];
  if (action == "add") return {};
  if (action == "open") return Open(path, &file);
  if (action == "close") return Close(&file);
  const bool reads = action == "read";
  const bool writes = action == "write";
  const bool trims = action == "trim";
  const bool syncs = action == "sync" || action == "datasync";
  if (!reads && !writes && !trims && !syncs) {
    counts_->left_out.Add("the action " + Printable(action));
    return {};
  }
  if (file.fh == 0) {
    if (Status s = Open(path, &file); !s.ok()) return s;
  }
  if (file.fh == 0) return {};
  const uint64_t end = offset + length;
  if (out_ == nullptr && reads && end > file.written) {
    uint64_t& size = (*sizes_)[path];
    size = std::max(size, end);
  }
  if (writes) file.written = std::max(file.written, end);
  Event event = Make(reads    ? Op::read_
                     : writes ? Op::write_
                     : trims  ? Op::fallocate_
                              : Op::fsync_,
                     file);
  if (syncs) {
    event.Set(Field::kFlags, action == "datasync" ? 1 : 0);
    event.SetResult(0, 0);
  } else {
    event.Set(Field::kOffset, offset);
    event.Set(Field::kLength, length);
    event.Set(Field::kFlags,
              trims ? FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE : O_RDWR);
    event.SetResult(trims ? 0 : static_cast<int64_t>(length), 0);
  }
  return Emit(&event);
}

// Tells of a file for the first time: it was there, or it is made now, and open
// then.
Status FioPass::Introduce(std::string_view name, File* file) {
  Spot spot;
  for (;;) {
    spot = tree_.Find(name, /*follow=*/false);
    if (spot.state != Spot::State::kUnknown) break;
    // A directory on the way.
    tree_.Link(spot.parent, spot.name, tree_.Make(S_IFDIR | 0755));
  }
  if (spot.state != Spot::State::kMissing ||
      !S_ISDIR(tree_.node(spot.parent).mode)) {
    counts_->left_out.Add("files that are directories of others");
    return {};
  }
  file->node = tree_.Make(S_IFREG | 0644);
  tree_.Link(spot.parent, spot.name, file->node);
  const auto size = sizes_->find(name);
  const bool existed = size != sizes_->end();
  if (!existed) {
    file->fh = next_fh_++;
    tree_.Opened(file->node);
  }
  Event event = Make(existed ? Op::lookup_ : Op::create_, *file);
  event.node = 0;
  event.parent = tree_.InodeOf(spot.parent);
  event.Set(Field::kParentInode, event.parent);
  event.name = spot.name;
  if (existed) {
    event.Set(Field::kMode, S_IFREG | 0644);
    event.Set(Field::kType, S_IFREG >> 12);
    event.Set(Field::kSize, size->second);
  } else {
    event.Set(Field::kFlags, O_RDWR | O_CREAT);
    event.Set(Field::kArgMode, S_IFREG | 0644);
    event.Set(Field::kUmask, 022);
  }
  return Emit(&event);
}

Status FioPass::Open(std::string_view name, File* file) {
  if (file->node == kNoNode) {
    if (Status s = Introduce(name, file); !s.ok()) return s;
  }
  if (file->node == kNoNode || file->fh != 0) return {};
  file->fh = next_fh_++;
  Event event = Make(Op::open_, *file);
  event.Set(Field::kFlags, O_RDWR);
  tree_.Opened(file->node);
  return Emit(&event);
}

Status FioPass::Close(File* file) {
  if (file->fh == 0) return {};
  Event event = Make(Op::release_, *file);
  event.Set(Field::kFlags, O_RDWR);
  file->fh = 0;
  if (Status s = Emit(&event); !s.ok()) return s;
  tree_.Closed(file->node);
  return {};
}

Event FioPass::Make(Op op, const File& file) const {
  Event event;
  event.op = op;
  event.caller_resolved = true;
  event.attributes_resolved = true;
  event.details_resolved = true;
  event.Set(Field::kTime, now_ns_);
  event.SetResult(0, 0);
  if (file.node != kNoNode) {
    event.node = tree_.InodeOf(file.node);
    event.Set(Field::kInode, event.node);
  }
  if (file.fh != 0) event.Set(Field::kFh, file.fh);
  return event;
}

Status FioPass::Emit(Event* event) {
  if (out_ == nullptr) return {};
  ++counts_->operations;
  event->resolver = &tree_;
  event->rename_epoch = tree_.epoch();
  return out_->Put(*event, now_ns_);
}

Status FioPass::Finish() {
  for (auto& [name, file] : files_) {
    if (Status s = Close(&file); !s.ok()) return s;
  }
  return {};
}

Status ImportFio(int fd, const ImportOptions& options,
                 const TraceOutput::Write& write, ImportCounts* counts) {
  LineReader lines(fd);
  SizesBefore sizes;
  const auto go = [&](TraceOutput* out, ImportCounts* counted) {
    FioPass pass(&sizes, out, counted);
    std::string_view line;
    lines.Rewind();
    while (lines.Next(&line)) {
      if (Status s = pass.Take(line); !s.ok()) return s;
    }
    if (!lines.status().ok()) return lines.status();
    if (counted->lines == 0) return Status::Corrupt("it is empty");
    return pass.Finish();
  };
  ImportCounts unused;
  if (Status s = go(nullptr, &unused); !s.ok()) return s;
  TraceOutput out(write, ForeignHeader("fio iolog", options, FioPass::kFirstNs),
                  options.name);
  if (Status s = out.Begin(); !s.ok()) return s;
  if (Status s = go(&out, counts); !s.ok()) return s;
  for (uint64_t i = 0; i < lines.too_long(); ++i) {
    counts->left_out.Add("lines that are too long");
    ++counts->unread;
  }
  return out.End("end of the iolog");
}

}  // namespace tracefs::import
