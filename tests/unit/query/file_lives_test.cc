// What becomes of files, told of random work on a small tree, beside a model
// that keeps the names of each file in a set.
#include "tracefs/query/file_lives.h"

#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/read_records.h"
#include "tests/support/trace_builder.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::query {
namespace {

using test::TraceBuilder;

struct Told {
  std::set<std::string> paths;  // any of these
  FileLife::End end = FileLife::End::kNone;
  bool open_at_end = false;
  uint64_t written = 0;
};

void PrintTo(const Told& told, std::ostream* out) {
  for (const std::string& path : told.paths) *out << path << " ";
  *out << static_cast<int>(told.end) << " " << told.open_at_end << " "
       << told.written;
}

// Numbers of files are given again as soon as they are free, as ext4 does.
class Tree {
 public:
  explicit Tree(unsigned seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) folders_.push_back("/d" + std::to_string(i));
  }

  void Work(int steps) {
    while (steps-- > 0) {
      switch (Below(9)) {
        case 0:
        case 1:
          Create(SomeName());
          break;
        case 2:
        case 3:
          Write();
          break;
        case 4:
          Close();
          break;
        case 5:
          Unlink(SomeName());
          break;
        case 6:
          Link(SomeName(), SomeName());
          break;
        case 7:
          Rename(SomeName(), SomeName(), Below(3) == 0);
          break;
        default:
          RenameFolder();
      }
    }
    trace_.EndBlock();
  }

  // By the time of each file's creation.
  std::map<uint64_t, Told> Expected() {
    std::map<uint64_t, Told> all;
    for (const auto& [began, file] : files_) {
      all[began] = file.told;
      if (!file.names.empty()) all[began].paths = file.names;
    }
    return all;
  }
  const std::string& trace() { return trace_.bytes(); }

 private:
  struct File {
    uint64_t inode = 0;
    std::set<std::string> names;
    std::vector<uint64_t> handles;
    Told told;
  };

  unsigned Below(unsigned bound) { return random_() % bound; }
  std::string SomeName() {
    return folders_[Below(3)] + "/n" + std::to_string(Below(4));
  }
  File* Called(const std::string& name) {
    const auto at = names_.find(name);
    return at == names_.end() ? nullptr : &files_.at(at->second);
  }
  File* SomeOpen() {
    std::vector<File*> open;
    for (auto& [began, file] : files_) {
      if (!file.handles.empty()) open.push_back(&file);
    }
    return open.empty() ? nullptr : open[Below(open.size())];
  }

  Event Of(Op op, const File& file) {
    Event event;
    event.op = op;
    event.Set(Field::kTime, TraceBuilder::kMonotonicNs + ++now_);
    event.Set(Field::kLatency, 0);
    event.Set(Field::kInode, file.inode);
    event.Set(Field::kMode, S_IFREG);
    event.SetResult(0, 0);
    return event;
  }
  uint32_t PathOf(const std::string& path) {
    const size_t slash = path.rfind('/');
    const uint32_t above = slash == 0 ? root_ : PathOf(path.substr(0, slash));
    return trace_.DefinePath(above, path.substr(slash + 1));
  }
  // An operation on one name, or two.
  void Add(Event event, const std::string& name,
           const std::string& second = "") {
    const size_t slash = name.rfind('/');
    const std::string last = name.substr(slash + 1);
    const auto folder = [&](const std::string& path) {
      const size_t end = path.rfind('/');
      return end == 0 ? root_ : PathOf(path.substr(0, end));
    };
    event.name = last;
    const std::string last2 = second.substr(second.rfind('/') + 1);
    event.new_name = last2;
    const bool links = event.op == Op::link_;
    if (links) event.name = {};
    trace_.Add(event, {.path = links ? PathOf(name) : 0,
                       .parent = links ? 0 : folder(name),
                       .new_parent = second.empty() ? 0 : folder(second)});
  }
  // An operation on an open file, told under one of its names if it has any.
  void AddOpen(Event event, const File& file) {
    event.Set(Field::kFh, file.handles.back());
    trace_.Add(event,
               {.path = file.names.empty() ? 0 : PathOf(*file.names.begin())});
  }

  void Create(const std::string& name) {
    File* file = Called(name);
    if (file == nullptr) {
      uint64_t inode = 10;
      while (used_.contains(inode)) ++inode;
      used_.insert(inode);
      file = &files_[TraceBuilder::kRealNs + now_ + 1];
      file->inode = inode;
      names_[name] = TraceBuilder::kRealNs + now_ + 1;
      file->names.insert(name);
      Event event = Of(Op::create_, *file);
      file->handles.push_back(++handle_);
      event.Set(Field::kFh, handle_);
      event.Set(Field::kNlink, 1);
      Add(event, name);
      return;
    }
    file->handles.push_back(++handle_);
    Event event = Of(Op::open_, *file);
    event.Set(Field::kFh, handle_);
    trace_.Add(event, {.path = PathOf(name)});
  }
  void Write() {
    File* const file = SomeOpen();
    if (file == nullptr) return;
    Event event = Of(Op::write_, *file);
    event.SetResult(7, 0);
    AddOpen(event, *file);
    file->told.written += 7;
  }
  void Close() {
    File* const file = SomeOpen();
    if (file == nullptr) return;
    AddOpen(Of(Op::release_, *file), *file);
    file->handles.pop_back();
    if (file->names.empty() && file->handles.empty()) used_.erase(file->inode);
  }
  void Lose(File& file, const std::string& name, FileLife::End end) {
    file.names.erase(name);
    names_.erase(name);
    if (!file.names.empty()) return;
    file.told.paths = {name};
    file.told.end = end;
    file.told.open_at_end = !file.handles.empty();
    if (file.handles.empty()) used_.erase(file.inode);
  }
  void Unlink(const std::string& name) {
    File* const file = Called(name);
    if (file == nullptr) return;
    Event event = Of(Op::unlink_, *file);
    event.Set(Field::kNlink, file->names.size());
    Add(event, name);
    Lose(*file, name, FileLife::End::kRemoved);
  }
  void Link(const std::string& name, const std::string& to) {
    File* const file = Called(name);
    if (file == nullptr || Called(to) != nullptr) return;
    Add(Of(Op::link_, *file), name, to);
    names_[to] = names_.at(name);
    file->names.insert(to);
  }
  void Rename(const std::string& name, const std::string& to, bool exchange) {
    File* const file = Called(name);
    File* const other = Called(to);
    if (file == nullptr || file == other || (exchange && other == nullptr)) {
      return;
    }
    Event event = Of(Op::rename_, *file);
    event.Set(Field::kFlags, exchange ? RENAME_EXCHANGE : 0);
    Add(event, name, to);
    if (exchange) {
      std::swap(names_.at(name), names_.at(to));
      other->names.erase(to);
      other->names.insert(name);
    } else {
      if (other != nullptr) Lose(*other, to, FileLife::End::kReplaced);
      names_[to] = names_.at(name);
      names_.erase(name);
    }
    file->names.erase(name);
    file->names.insert(to);
  }
  void RenameFolder() {
    const std::string from = folders_[Below(3)];
    const std::string to = "/d" + std::to_string(++folder_);
    File folder;
    folder.inode = 2;
    Event event = Of(Op::rename_, folder);
    event.Set(Field::kMode, S_IFDIR);
    Add(event, from, to);
    std::replace(folders_.begin(), folders_.end(), from, to);
    std::map<std::string, uint64_t> names;
    for (const auto& [name, began] : names_) {
      const bool below = name.starts_with(from + "/");
      const std::string now = below ? to + name.substr(from.size()) : name;
      names[now] = began;
      File& file = files_.at(began);
      if (below) file.names.erase(name);
      if (below) file.names.insert(now);
    }
    names_ = std::move(names);
  }

  std::mt19937 random_;
  TraceBuilder trace_;
  const uint32_t root_ = trace_.DefinePath(0, "");
  std::vector<std::string> folders_;
  int folder_ = 9;
  std::map<uint64_t, File> files_;         // by their creation
  std::map<std::string, uint64_t> names_;  // of these
  std::set<uint64_t> used_;                // inode numbers
  uint64_t now_ = 0;
  uint64_t handle_ = 0;
};

TEST(FileLivesTest, AreThoseOfAModelThatKeepsAllNames) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Tree tree(seed);
    tree.Work(150);
    std::map<uint64_t, Told> lives;
    FileLives files([&](const FileLife& life, const FileLife*) {
      if (!life.created) return;
      const Told told = {{life.path}, life.end, life.open_at_end, life.written};
      EXPECT_TRUE(lives.emplace(life.begin_ns, told).second);
    });
    test::ReadRecords(tree.trace(),
                      [&](format::Record& record) { files.Take(record); });
    files.Finish();
    const std::map<uint64_t, Told> expected = tree.Expected();
    ASSERT_EQ(lives.size(), expected.size()) << seed;
    for (const auto& [began, told] : expected) {
      ASSERT_TRUE(lives.contains(began)) << seed;
      const Told& life = lives.at(began);
      EXPECT_TRUE(
          told.paths.contains(*life.paths.begin()) && life.end == told.end &&
          life.open_at_end == told.open_at_end && life.written == told.written)
          << testing::PrintToString(life) << "is "
          << testing::PrintToString(told);
    }
    if (HasFailure()) {
      FAIL() << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tracefs::query
