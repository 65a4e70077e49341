#include "tracefs/query/file_lives.h"

#include <linux/fs.h>
#include <sys/stat.h>

#include <algorithm>

#include "tracefs/format/file_paths.h"
#include "tracefs/query/analysis.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::query {

using format::Record;

namespace {

bool MakesNonDirectory(Op op) {
  return op == Op::create_ || op == Op::mknod_ || op == Op::tmpfile_ ||
         op == Op::symlink_;
}

// Operations that only look at files do not.
bool Matters(Op op) {
  return tally::Transfers(op) || MakesNonDirectory(op) || op == Op::unlink_ ||
         op == Op::rename_ || op == Op::link_ || op == Op::open_ ||
         op == Op::release_;
}

}  // namespace

void FileLife::Users::Add(Process process, std::string_view name) {
  for (const auto& [known, text] : kept) {
    if (known == process) return;
  }
  if (kept.size() == kMostUsers) {
    more.Add(MixedHash(process));
    return;
  }
  kept.emplace_back(process, name);
}

std::string FileLife::Users::Names() const {
  std::vector<std::string> names;
  for (const auto& [pid, name] : kept) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : " ") + (name.empty() ? "?" : name);
  }
  return more.Estimate() == 0 ? text : text + " and more";
}

std::string FileLife::Called() const {
  if (!path.empty()) return path;
  std::string text = nameless ? "(never named, made in " + born_path
                              : std::string("(name not known");
  if (inode != 0) text += ", inode " + std::to_string(inode);
  return text + ")";
}

FileLife* FileLives::Find(Number number) {
  const auto found = mount_->lives.find(number);
  return found == mount_->lives.end() ? nullptr : &found->second;
}

FileLife* FileLives::FindOrMake(const Event& event, Number number,
                                std::string_view path, Field inode) {
  if (number == FileIdentities::kNone) return nullptr;
  const auto [at, fresh] = mount_->lives.try_emplace(number);
  FileLife& life = at->second;
  if (fresh) {
    life.number = ++last_;
    life.mount = mount_->number;
    life.inode = event.GetOr0(inode);
    life.path = path;
  }
  return &life;
}

void FileLives::Part(Number number) {
  FileLife* const life = Find(number);
  if (life == nullptr) return;
  std::string path = mount_->files.PathOf(number);
  if (!path.empty()) life->path = std::move(path);
  ended_(*life, Find(life->replaced_by));
  mount_->lives.erase(number);
}

void FileLives::End(FileLife& life, const Record& record, FileLife::End end) {
  life.end = end;
  life.end_ns = record.real_ns;
  life.ended_by_ns =
      tally::AddTo(record.real_ns, record.event.GetOr0(Field::kLatency));
  life.ender = record.Text(Field::kComm);
}

void FileLives::Remove(const Record& record, Number number,
                       std::string_view path, FileLife::End end, Number by) {
  FileLife* const life = Find(number);
  if (life == nullptr || life->end != FileLife::End::kNone ||
      !mount_->files.IsRemoved(number)) {
    return;
  }
  life->path = path;
  End(*life, record, end);
  // Who has it open goes on using it.
  life->open_at_end = mount_->files.IsOpen(number);
  life->replaced_by = by;
}

void FileLives::TakeCreation(const Record& record, const Touched& touched,
                             Number called, std::string_view path) {
  // What is told of one without a name is its directory.
  const bool nameless = record.event.op == Op::tmpfile_;
  FileLife* const life =
      FindOrMake(record.event, touched.file, nameless ? "" : path);
  if (life == nullptr || !touched.made) return;
  // One with a new inode under a known name took the place of what went unseen.
  Remove(record, called, path, FileLife::End::kRemoved);
  life->created = counts_;
  life->begin_ns = record.real_ns;
  life->born_path = path;
  life->nameless = nameless;
  life->maker = record.Text(Field::kComm);
}

void FileLives::TakeLink(const Event& event, Number number,
                         format::RecordPaths& paths) {
  FileLife* const life = FindOrMake(event, number, paths.first());
  if (life == nullptr || !life->nameless || paths.second().empty()) return;
  life->nameless = false;
  life->path = life->born_path = paths.second();
}

void FileLives::TakeRelease(const Record& record, Number number,
                            std::string_view path) {
  FileLife* const life = FindOrMake(record.event, number, path);
  if (life == nullptr || mount_->files.IsOpen(number)) return;
  if (life->nameless) End(*life, record, FileLife::End::kRemoved);
  // The kernel tells of a close after it: beside the removal, it was before it.
  if (record.real_ns < life->ended_by_ns) life->open_at_end = false;
}

void FileLives::TakeRename(const Record& record, const Touched& touched,
                           format::RecordPaths& paths) {
  const Event& event = record.event;
  if ((event.GetOr0(Field::kFlags) & RENAME_EXCHANGE) != 0) return;
  const bool file =
      event.Has(Field::kMode) && !S_ISDIR(event.Get(Field::kMode));
  FileLife* const life = file ? FindOrMake(event, touched.file, paths.second())
                              : Find(touched.file);
  if (touched.second == touched.file) return;
  if (life != nullptr) life->path = paths.second();
  Remove(record, touched.second, paths.second(), FileLife::End::kReplaced,
         touched.file);
}

void FileLives::Use(FileLife& life, const Record& record,
                    FileLife::Process process,
                    const tally::Transfer& transfer) {
  const bool write = transfer.writes();
  (write ? life.writes : life.reads) += 1;
  uint64_t& moved = write ? life.written : life.read;
  moved = tally::AddTo(moved, transfer.bytes);
  (write ? life.writers : life.readers).Add(process, record.Text(Field::kComm));
  if (life.used) {
    const auto order =
        static_cast<size_t>((write ? 2 : 0) + (life.wrote ? 1 : 0));
    ++(life.user == process ? life.by_same : life.by_other)[order];
  }
  life.used = true;
  life.user = process;
  life.wrote = write;
}

// A copy uses two files: it reads one and writes the other.
void FileLives::TakeTransfers(const Record& record, const Touched& touched,
                              FileLife::Process process,
                              format::RecordPaths& paths) {
  for (const tally::Transfer& transfer : tally::TransfersOf(record.event)) {
    const bool first = transfer.end == tally::End::kFile;
    FileLife* const life =
        FindOrMake(record.event, first ? touched.file : touched.second,
                   first ? paths.first() : paths.second(),
                   tally::InodeField(transfer.end));
    if (life == nullptr) continue;
    if (counts_) Use(*life, record, process, transfer);
  }
}

void FileLives::Take(const Record& record, bool counts) {
  counts_ = counts;
  const Event& event = record.event;
  if (!HasRun(record)) return;
  const FileLife::Process process = processes_.Of(record).number;
  if (Failed(event) || !Matters(event.op)) return;
  const uint32_t mount = OriginOf(record).mount;
  mount_ = mounts_.Of(mount, mount, [this](Number number) { Part(number); });
  if (mount_ == nullptr) {
    ++not_followed_;
    return;
  }
  FileIdentities& files = mount_->files;
  format::RecordPaths paths(record);
  const bool makes = MakesNonDirectory(event.op);
  const Number called =
      makes ? files.Called(paths.first()) : FileIdentities::kNone;
  const Touched touched = files.Take(event, paths);
  if (makes) {
    TakeCreation(record, touched, called, paths.first());
  } else if (event.op == Op::unlink_) {
    // There is nothing to tell about a file that was never seen before.
    Remove(record, touched.file, paths.first(), FileLife::End::kRemoved);
  } else if (event.op == Op::rename_) {
    TakeRename(record, touched, paths);
  } else if (event.op == Op::link_) {
    TakeLink(event, touched.file, paths);
  } else if (event.op == Op::open_) {
    FindOrMake(event, touched.file, paths.first());
  } else if (event.op == Op::release_) {
    TakeRelease(record, touched.file, paths.first());
  } else {
    TakeTransfers(record, touched, process, paths);
  }
  files.Settle();
}

void FileLives::Finish() {
  struct Left {
    uint64_t number;
    Mount* mount;
    Number file;
  };
  std::vector<Left> left;
  for (auto& [number, mount] : mounts_.all()) {
    mount_ = &mount;
    mount.files.ForEachOtherName([&](Number file, std::string path) {
      if (FileLife* const life = Find(file)) life->path = std::move(path);
    });
    for (const auto& [file, life] : mount.lives) {
      left.push_back({life.number, &mount, file});
    }
  }
  std::ranges::sort(left, {}, &Left::number);
  for (const Left& file : left) {
    mount_ = file.mount;
    Part(file.file);
  }
}

uint64_t FileLives::not_followed() const {
  uint64_t sum = not_followed_;
  for (const auto& [number, mount] : mounts_.all()) {
    sum += mount.files.not_followed();
  }
  return sum;
}

std::string FileLives::Note() const {
  const uint64_t operations = not_followed();
  if (operations == 0) return {};
  return std::to_string(operations) + " operations were on files beyond the " +
         std::to_string(FileIdentities::kMost) +
         " of each mount that are followed at the same time";
}

}  // namespace tracefs::query
