#include "tests/unit/replay/undo_world.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>

namespace tracefs::replay {
namespace {

constexpr uint32_t kReader = 1;  // handles
constexpr uint32_t kWriter = 2;

}  // namespace

UndoWorld::UndoWorld()
    : live_(folder_.Path("live")), scratch_(folder_.Path("scratch")) {
  PlanHeader header;
  header.dir_slots = 64;
  header.handle_slots = 8;
  TargetOptions options;
  for (const Privilege privilege :
       {Privilege::kSetId, Privilege::kOwner, Privilege::kSecurityXattr,
        Privilege::kTrustedXattr, Privilege::kDevice}) {
    if (::geteuid() == 0) options.grants.Add(privilege);
  }
  const auto open = [&](const std::string& path) {
    EXPECT_EQ(::mkdir(path.c_str(), 0700), 0);
    return TargetTree::Open(
        UniqueFd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
        header, options);
  };
  live_tree_ = open(live_);
  scratch_tree_ = open(scratch_);
  EXPECT_EQ(::mkdir(Live(kRoomOfUndo).c_str(), 0700), 0);
  store_.Reset(::open(folder_.Path("").c_str(), O_TMPFILE | O_RDWR, 0600));
}

UndoWorld::~UndoWorld() = default;

void UndoWorld::Begin() {
  if (!recorder_) {
    recorder_ = std::make_unique<UndoRecorder>(*scratch_tree_, store_.get(),
                                               most_bytes_, &kept_reader_);
  }
}

uint64_t UndoWorld::FileAt(uint32_t dir, std::string_view name) const {
  const auto at = names_.find({dir, std::string(name)});
  return at == names_.end() ? kNoFile : at->second;
}

uint64_t UndoWorld::Has(uint32_t dir, const std::string& name, uint32_t mode,
                        std::string_view bytes, uint32_t slot) {
  Begin();
  TreeEntry entry;
  entry.parent = dir;
  entry.name = name;
  entry.mode = mode;
  entry.slot = slot;
  entry.file = names_[{dir, name}] = ++files_;
  for (TargetTree* tree : {live_tree_.get(), scratch_tree_.get()}) {
    EXPECT_TRUE(tree->Place(entry, true).ok()) << name;
    if (bytes.empty()) continue;
    const InitialData data{dir, name, 0, AsBytes(bytes)};
    EXPECT_TRUE(tree->PlaceData(data).ok()) << name;
  }
  if (told_) recorder_->Place(entry);
  return entry.file;
}

uint64_t UndoWorld::HasLink(uint32_t dir, const std::string& name,
                            const std::string& to) {
  Begin();
  TreeEntry entry;
  entry.parent = dir;
  entry.name = name;
  entry.mode = S_IFLNK | 0777;
  entry.target = to;
  entry.file = names_[{dir, name}] = ++files_;
  for (TargetTree* tree : {live_tree_.get(), scratch_tree_.get()}) {
    EXPECT_TRUE(tree->Place(entry, true).ok()) << name;
  }
  recorder_->Place(entry);
  return entry.file;
}

Action UndoWorld::On(Op op, uint32_t dir, std::string_view name) {
  Action a;
  a.op = op;
  a.place = Place::kName;
  a.dir = dir;
  a.name = name;
  a.file = FileAt(dir, name);
  a.flags = flags_;
  return a;
}

void UndoWorld::Act(Action a) {
  Begin();
  a.sequence = made_up_ ? 0 : ++sequence_;
  if (mine_) a.flags |= kMarked;
  if (alter_) alter_(a);
  kept_ = recorder_->Before(a);
  for (TargetTree* tree : {scratch_tree_.get(), live_tree_.get()}) {
    Done done;
    tree->Do(a, worker_, &done);
    EXPECT_EQ(done.error, 0) << Info(a.op).name << " " << a.name;
  }
}

uint64_t UndoWorld::Create(uint32_t dir, std::string_view name,
                           std::string_view bytes) {
  Action a = On(Op::create_, dir, name);
  a.file = names_[{dir, std::string(name)}] = ++files_;
  a.handle = kWriter;
  a.arg_flags = O_RDWR;
  a.mode = 0640;
  Act(a);
  Action close = On(Op::release_, dir, name);
  close.place = Place::kHandle;
  close.handle = kWriter;
  Act(close);
  if (!bytes.empty()) Write(dir, name, 0, bytes);
  return a.file;
}

uint64_t UndoWorld::MakeDir(uint32_t dir, std::string_view name,
                            uint32_t slot) {
  Action a = On(Op::mkdir_, dir, name);
  a.file = names_[{dir, std::string(name)}] = ++files_;
  a.made_dir = slot;
  a.mode = 0750;
  Act(a);
  return a.file;
}

uint64_t UndoWorld::MakeNode(uint32_t dir, std::string_view name,
                             uint32_t mode) {
  Action a = On(Op::mknod_, dir, name);
  a.file = names_[{dir, std::string(name)}] = ++files_;
  a.mode = mode;
  a.rdev = makedev(1, 3);
  Act(a);
  return a.file;
}

uint64_t UndoWorld::Symlink(uint32_t dir, std::string_view name,
                            std::string_view to) {
  Action a = On(Op::symlink_, dir, name);
  a.file = names_[{dir, std::string(name)}] = ++files_;
  a.text = to;
  Act(a);
  return a.file;
}

void UndoWorld::Unlink(uint32_t dir, std::string_view name) {
  Act(On(Op::unlink_, dir, name));
  names_.erase({dir, std::string(name)});
}

void UndoWorld::RemoveDir(uint32_t dir, std::string_view name, uint32_t slot) {
  Action a = On(Op::rmdir_, dir, name);
  a.made_dir = slot;
  Act(a);
  names_.erase({dir, std::string(name)});
}

void UndoWorld::Link(uint32_t dir, std::string_view name, uint32_t to,
                     std::string_view new_name) {
  Action a = On(Op::link_, dir, name);
  a.new_dir = to;
  a.new_name = new_name;
  Act(a);
  names_[{to, std::string(new_name)}] = a.file;
}

void UndoWorld::Rename(uint32_t dir, std::string_view name, uint32_t to,
                       std::string_view new_name, uint32_t flags) {
  Action a = On(Op::rename_, dir, name);
  a.new_dir = to;
  a.new_name = new_name;
  a.arg_flags = flags;
  a.file_out = FileAt(to, new_name);
  Act(a);
  if (a.file == a.file_out) return;
  names_[{to, std::string(new_name)}] = a.file;
  names_.erase({dir, std::string(name)});
  if ((flags & RENAME_EXCHANGE) != 0) {
    names_[{dir, std::string(name)}] = a.file_out;
  }
}

// Opens the file, does it through the handle, closes it.
void UndoWorld::Through(uint32_t dir, std::string_view name, Action action) {
  Action open = On(Op::open_, dir, name);
  open.handle = kWriter;
  open.arg_flags = O_RDWR;
  Act(open);
  Act(std::move(action));
  open.op = Op::release_;
  open.place = Place::kHandle;
  Act(open);
}

void UndoWorld::Write(uint32_t dir, std::string_view name, uint64_t offset,
                      std::string_view bytes) {
  Action a = On(Op::write_, dir, name);
  a.place = Place::kHandle;
  a.handle = kWriter;
  a.offset = offset;
  a.length = bytes.size();
  a.data = AsBytes(bytes);
  a.flags |= kHasData;
  a.result = static_cast<int64_t>(bytes.size());
  Through(dir, name, a);
}

void UndoWorld::Truncate(uint32_t dir, std::string_view name) {
  Action a = On(Op::open_, dir, name);
  a.handle = kWriter;
  a.arg_flags = O_WRONLY | O_TRUNC;
  Act(a);
  a.op = Op::release_;
  a.place = Place::kHandle;
  Act(a);
}

void UndoWorld::Read(uint32_t dir, std::string_view name) {
  Action a = On(Op::open_, dir, name);
  a.handle = kReader;
  a.arg_flags = O_RDONLY;
  Act(a);
  a.op = Op::release_;
  a.place = Place::kHandle;
  Act(a);
}

void UndoWorld::SetAttributes(uint32_t dir, std::string_view name,
                              uint32_t valid, uint64_t size, uint32_t mode) {
  Action a = On(Op::setattr_, dir, name);
  a.valid = valid;
  a.new_size = size;
  a.mode = mode;
  Act(a);
}

void UndoWorld::Resize(uint32_t dir, std::string_view name, uint64_t size) {
  SetAttributes(dir, name, FATTR_SIZE, size, 0);
}

void UndoWorld::Chmod(uint32_t dir, std::string_view name, uint32_t mode) {
  SetAttributes(dir, name, FATTR_MODE, 0, mode);
}

void UndoWorld::Chown(uint32_t dir, std::string_view name, uint32_t uid,
                      uint32_t gid) {
  Action a = On(Op::setattr_, dir, name);
  a.valid = FATTR_UID | FATTR_GID;
  a.new_uid = uid;
  a.new_gid = gid;
  Act(a);
}

void UndoWorld::SetXattr(uint32_t dir, std::string_view name,
                         std::string_view key, std::string_view value) {
  Action a = On(Op::setxattr_, dir, name);
  a.text = key;
  a.data = AsBytes(value);
  a.flags |= kHasData;
  Act(a);
}

void UndoWorld::RemoveXattr(uint32_t dir, std::string_view name,
                            std::string_view key) {
  Action a = On(Op::removexattr_, dir, name);
  a.text = key;
  Act(a);
}

void UndoWorld::Allocate(uint32_t dir, std::string_view name, uint32_t how,
                         uint64_t offset, uint64_t length) {
  Action a = On(Op::fallocate_, dir, name);
  a.place = Place::kHandle;
  a.handle = kWriter;
  a.arg_flags = how;
  a.offset = offset;
  a.length = length;
  Through(dir, name, a);
}

void UndoWorld::Copy(uint32_t dir, std::string_view from, uint64_t offset,
                     std::string_view to, uint64_t offset_out,
                     uint64_t length) {
  Action open = On(Op::open_, dir, from);
  open.handle = kReader;
  open.arg_flags = O_RDONLY;
  Act(open);
  Action a = On(Op::copy_file_range_, dir, from);
  a.place = Place::kHandle;
  a.handle = kReader;
  a.handle_out = kWriter;
  a.file_out = FileAt(dir, to);
  a.offset = offset;
  a.offset_out = offset_out;
  a.length = length;
  a.result = static_cast<int64_t>(length);
  Through(dir, to, a);
}

std::vector<std::string> UndoWorld::Decide() {
  Begin();
  UndoTarget target;
  const UniqueFd root(::open(live_.c_str(), O_PATH | O_DIRECTORY));
  target.root = root.get();
  target.scratch = scratch_tree_->root();
  target.grants = grants_;
  target.expected = expected_;
  target.keeps = keeps_;
  target.told_by_ns = told_by_ns_;
  target.first_real_ns = first_real_ns_;
  target.left_out = left_out_;
  for (const auto& [name, text] : Listing(scratch_)) {
    if (expected_.contains(name)) continue;
    struct stat st;
    EXPECT_EQ(::lstat(Scratch(name).c_str(), &st), 0);
    TreeEntry& entry = target.expected[name];
    entry.mode = st.st_mode;
    entry.uid = st.st_uid;
    entry.gid = st.st_gid;
    entry.known = TreeEntry::kMode | TreeEntry::kOwner;
    if (contents_known_) entry.known |= TreeEntry::kAllBytes;
  }
  groups_ = DecideUndo(recorder_->Take(), target, &looked_);
  recorder_.reset();
  std::vector<std::string> refused;
  for (const UndoGroup& group : groups_) {
    if (group.why_not.empty()) continue;
    refused.push_back(std::to_string(group.sequence) + ": " + group.why_not);
  }
  return refused;
}

std::string UndoWorld::WhyNot() {
  std::string all;
  for (const std::string& why : Decide()) {
    all += (all.empty() ? "" : "; ") + why.substr(why.find(' ') + 1);
  }
  return all;
}

std::vector<std::string> UndoWorld::Apply() {
  std::vector<std::string> failed;
  const UniqueFd root(::open(live_.c_str(), O_PATH | O_DIRECTORY));
  const UniqueFd room(::open(Live(kRoomOfUndo).c_str(), O_PATH | O_DIRECTORY));
  Grants grants = grants_;
  UndoApplier applier(root.get(), room.get(), store_.get(), grants, looked_);
  for (const UndoGroup& group : groups_) {
    if (!group.why_not.empty()) continue;
    if (const Status s = applier.Do(group); !s.ok()) {
      failed.push_back(s.message());
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(Live(kRoomOfUndo)));
  return failed;
}

}  // namespace tracefs::replay
