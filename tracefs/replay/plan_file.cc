#include "tracefs/replay/plan_file.h"

#include <errno.h>
#include <fcntl.h>

#include <cstring>

#include "tracefs/base/crc32c.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/ownership.h"
#include "tracefs/base/printable.h"

namespace tracefs::replay {
namespace {

constexpr char kMagic[8] = {'T', 'F', 'P', 'L', 'A', 'N', '4', '\n'};
constexpr uint32_t kChunkMagic = 0x1a4b4854;
constexpr size_t kChunkHeaderBytes = 16;
constexpr size_t kChunkBytes = size_t{256} << 10;
constexpr size_t kMostChunkBytes = kMaxActionBytes + kChunkBytes;
constexpr size_t kCrcAt = PlanWriter::kHeaderBytes - 4;

constexpr uint64_t PlanHeader::*kNumbers[] = {&PlanHeader::actions,
                                              &PlanHeader::operations,
                                              &PlanHeader::initial_entries,
                                              &PlanHeader::initial_bytes,
                                              &PlanHeader::written_bytes,
                                              &PlanHeader::made_entries,
                                              &PlanHeader::span_ns,
                                              &PlanHeader::first_real_ns,
                                              &PlanHeader::lost,
                                              &PlanHeader::unplaced,
                                              &PlanHeader::without_data,
                                              &PlanHeader::unknown_content,
                                              &PlanHeader::unknown_sources,
                                              &PlanHeader::unplaced_changes};
constexpr uint32_t PlanHeader::*kSmallNumbers[] = {
    &PlanHeader::lanes, &PlanHeader::dir_slots, &PlanHeader::handle_slots};

template <typename T>
void Put(T value, std::vector<std::byte>* out) {
  const size_t at = out->size();
  out->resize(at + sizeof value);
  StoreLe<T>(out->data() + at, value);
}

void PutText(std::string_view text, std::vector<std::byte>* out) {
  Put(static_cast<uint32_t>(text.size()), out);
  const ByteSpan bytes = AsBytes(text);
  out->insert(out->end(), bytes.begin(), bytes.end());
}

Status Bad() {
  return Status::Corrupt(
      "plan: not a plan, or a damaged one; make it again from its trace");
}

// Takes as long as nothing was missing.
class Taker {
 public:
  explicit Taker(ByteSpan bytes) : in_(bytes) {}

  template <typename T>
  void Take(T* value) {
    if (const auto taken = in_.TakeLe<T>()) {
      *value = *taken;
    } else {
      bad_ = true;
    }
  }
  ByteSpan TakeBytes() {
    uint32_t size = 0;
    Take(&size);
    const auto taken = bad_ ? std::nullopt : in_.Take(size);
    bad_ |= !taken;
    return taken.value_or(ByteSpan());
  }
  void TakeText(std::string* text) { *text = AsText(TakeBytes()); }
  bool bad() const { return bad_; }
  size_t taken() const { return in_.offset(); }

 private:
  ByteCursor in_;
  bool bad_ = false;
};

void EncodeEntry(const TreeEntry& entry, std::vector<std::byte>* out) {
  Put(entry.parent, out);
  Put(entry.slot, out);
  Put(entry.mode, out);
  Put(entry.uid, out);
  Put(entry.gid, out);
  Put(entry.size, out);
  Put(entry.mtime_ns, out);
  Put(entry.rdev, out);
  Put(entry.file, out);
  Put(entry.other_parent, out);
  Put(entry.known, out);
  PutText(entry.name, out);
  PutText(entry.target, out);
  PutText(entry.other_name, out);
  PutText(entry.xattrs, out);
  Put(entry.checksum, out);
}

}  // namespace

bool IsSafePath(std::string_view path) {
  while (true) {
    const size_t end = path.find('/');
    if (!IsSafeName(path.substr(0, end))) return false;
    if (end == path.npos) return true;
    path.remove_prefix(end + 1);
  }
}

Result<PlanWriter> PlanWriter::Create(const std::string& path) {
  UniqueFd fd(::open(path.c_str(),
                     O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                     0600));
  if (!fd) return Status::System(errno, Printable(path));
  // Others may have made it: they would read along, or change what is replayed.
  if (Status s = CheckOwnership(fd.get(), {.one_name = true}, Printable(path));
      !s.ok()) {
    return s;
  }
  if (::ftruncate(fd.get(), 0) != 0) {
    return Status::System(errno, Printable(path));
  }
  return PlanWriter(std::move(fd));
}

Result<PlanWriter> PlanWriter::CreateUnnamed(const std::string& folder) {
  UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd)
    return Status::System(errno, Printable(folder) + ": room for a plan");
  return PlanWriter(std::move(fd));
}

Status PlanWriter::Add(const Action& action) {
  EncodeAction(action, &actions_.bytes);
  return FlushIfLarge(&actions_);
}

Status PlanWriter::AddInitial(const TreeEntry& entry) {
  EncodeEntry(entry, &initial_.bytes);
  return FlushIfLarge(&initial_);
}

Status PlanWriter::AddInitialData(const InitialData& data) {
  Put(data.parent, &initial_data_.bytes);
  Put(data.offset, &initial_data_.bytes);
  PutText(data.name, &initial_data_.bytes);
  PutText(AsText(data.bytes), &initial_data_.bytes);
  return FlushIfLarge(&initial_data_);
}

Status PlanWriter::AddFinal(const TreeEntry& entry) {
  EncodeEntry(entry, &final_.bytes);
  return FlushIfLarge(&final_);
}

Status PlanWriter::FlushIfLarge(Pending* pending) {
  return pending->bytes.size() < kChunkBytes ? Status() : Flush(pending);
}

Status PlanWriter::Flush(Pending* pending) {
  if (pending->bytes.empty()) return {};
  std::byte head[kChunkHeaderBytes];
  StoreLe<uint32_t>(head, kChunkMagic);
  StoreLe<uint32_t>(head + 4, static_cast<uint32_t>(pending->kind));
  StoreLe<uint32_t>(head + 8, static_cast<uint32_t>(pending->bytes.size()));
  StoreLe<uint32_t>(head + 12, Crc32c(ByteSpan(pending->bytes)));
  if (Status s = WriteAllAt(fd_.get(), head, at_, "plan"); !s.ok()) return s;
  at_ += sizeof head;
  if (Status s = WriteAllAt(fd_.get(), pending->bytes, at_, "plan"); !s.ok()) {
    return s;
  }
  at_ += pending->bytes.size();
  pending->bytes.clear();
  return {};
}

Result<UniqueFd> PlanWriter::Finish(const PlanHeader& header) {
  for (Pending* pending : {&actions_, &initial_, &initial_data_, &final_}) {
    if (Status s = Flush(pending); !s.ok()) return s;
  }
  std::vector<std::byte> bytes;
  for (const char c : kMagic) bytes.push_back(static_cast<std::byte>(c));
  for (const auto member : kNumbers) Put(header.*member, &bytes);
  for (const auto member : kSmallNumbers) Put(header.*member, &bytes);
  Put(at_, &bytes);
  bytes.resize(kHeaderBytes);
  StoreLe<uint32_t>(bytes.data() + kCrcAt,
                    Crc32c(ByteSpan(bytes).first(kCrcAt)));
  if (Status s = WriteAllAt(fd_.get(), bytes, 0, "plan"); !s.ok()) return s;
  return std::move(fd_);
}

Result<PlanHeader> PlanReader::ReadHeader(int fd) {
  std::vector<std::byte> bytes(PlanWriter::kHeaderBytes);
  if (!ReadAllAt(fd, bytes, 0)) return Bad();
  if (std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) return Bad();
  if (LoadLe<uint32_t>(bytes.data() + kCrcAt) !=
      Crc32c(ByteSpan(bytes).first(kCrcAt))) {
    return Bad();
  }
  PlanHeader header;
  Taker in(ByteSpan(bytes).subspan(sizeof kMagic));
  for (const auto member : kNumbers) in.Take(&(header.*member));
  for (const auto member : kSmallNumbers) in.Take(&(header.*member));
  if (header.lanes > kMaxLanes || header.dir_slots > kMaxSlots ||
      header.handle_slots > kMaxSlots) {
    return Bad();
  }
  return header;
}

Result<std::optional<std::vector<std::byte>>> PlanReader::Next() {
  std::vector<std::byte> bytes;
  const Result<bool> there = NextInto(&bytes);
  if (!there.ok()) return there.status();
  if (!*there) return std::optional<std::vector<std::byte>>();
  return std::optional(std::move(bytes));
}

Result<bool> PlanReader::NextInto(std::vector<std::byte>* bytes) {
  while (true) {
    std::byte head[kChunkHeaderBytes];
    const ssize_t n = ReadAt(fd_, head, at_);
    if (n < 0) return Status::System(errno, "plan");
    if (n == 0) return false;
    const uint32_t size = LoadLe<uint32_t>(head + 8);
    if (n != sizeof head || LoadLe<uint32_t>(head) != kChunkMagic ||
        size > kMostChunkBytes) {
      return Bad();
    }
    const uint64_t begin = at_ + sizeof head;
    at_ = begin + size;
    if (LoadLe<uint32_t>(head + 4) != static_cast<uint32_t>(kind_)) continue;
    bytes->resize(size);
    if (!ReadAllAt(fd_, *bytes, begin)) return Bad();
    if (LoadLe<uint32_t>(head + 12) != Crc32c(ByteSpan(*bytes))) return Bad();
    return true;
  }
}

Status DecodeEntry(ByteSpan bytes, bool is_path, TreeEntry* entry,
                   size_t* size) {
  *entry = {};
  Taker in(bytes);
  in.Take(&entry->parent);
  in.Take(&entry->slot);
  in.Take(&entry->mode);
  in.Take(&entry->uid);
  in.Take(&entry->gid);
  in.Take(&entry->size);
  in.Take(&entry->mtime_ns);
  in.Take(&entry->rdev);
  in.Take(&entry->file);
  in.Take(&entry->other_parent);
  in.Take(&entry->known);
  in.TakeText(&entry->name);
  in.TakeText(&entry->target);
  in.TakeText(&entry->other_name);
  in.TakeText(&entry->xattrs);
  in.Take(&entry->checksum);
  *size = in.taken();
  if (in.bad() || entry->parent >= kMaxSlots ||
      (entry->slot != kNoSlot && entry->slot >= kMaxSlots) ||
      entry->target.find('\0') != std::string::npos) {
    return Bad();
  }
  if (is_path ? !IsSafePath(entry->name) : !IsSafeName(entry->name)) {
    return Bad();
  }
  if (entry->other_parent != kNoSlot &&
      (entry->other_parent >= kMaxSlots || !IsSafeName(entry->other_name))) {
    return Bad();
  }
  return {};
}

Status DecodeInitialData(ByteSpan bytes, InitialData* data, size_t* size) {
  Taker in(bytes);
  in.Take(&data->parent);
  in.Take(&data->offset);
  in.TakeText(&data->name);
  data->bytes = in.TakeBytes();
  *size = in.taken();
  if (in.bad() || data->parent >= kMaxSlots || !IsSafeName(data->name) ||
      data->offset > INT64_MAX) {
    return Bad();
  }
  return {};
}

}  // namespace tracefs::replay
