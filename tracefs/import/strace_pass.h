// StracePass: goes through what strace wrote, line by line, and makes events of
// the calls, as a mount would have seen them.
//
// Descriptors, offsets, working directories and umasks are followed through
// dup, clone and exec, so that each read and write has its file and offset.
// What the text does not say is counted as guessed, what cannot be an operation
// on a file of the tree as left out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/event/event.h"
#include "tracefs/import/file_tree.h"
#include "tracefs/import/strace_line.h"
#include "tracefs/import/tally.h"
#include "tracefs/import/trace_output.h"

namespace tracefs::import {

// A file that is open, as the kernel has it: shared by copies of its
// descriptor.
struct OpenFile {
  uint64_t fh = 0;
  NodeId node = kNoNode;
  uint64_t offset = 0;
  uint32_t flags = 0;
  bool is_dir = false;
};
using OpenFilePtr = std::shared_ptr<OpenFile>;

struct Descriptors {
  struct Slot {
    OpenFilePtr file;
    bool close_on_exec = false;
  };
  std::map<int64_t, Slot> slots;
};

struct Surroundings {
  std::string folder;  // working directory; empty: not known
  uint32_t umask = 022;
};

struct TracedThread {
  CallerInfo caller;
  std::shared_ptr<Descriptors> descriptors;
  std::shared_ptr<Surroundings> surroundings;
  // A call that has not ended, or an empty name.
  std::string pending_name;
  std::string pending_text;
  uint64_t pending_ns = 0;
  bool awaits_child = false;  // and the child was not seen yet
};

// Used by one thread.
class StracePass {
 public:
  // More at once are left out.
  static constexpr size_t kMostThreads = 100'000;
  static constexpr size_t kMostDescriptors = 1'000'000;
  // Of all processes: each fork copies those of its parent.
  static constexpr size_t kMostInherited = 2'000'000;

  // `folder`: the working directory at the beginning, or empty. Without `out`
  // the pass fills in `found`; with it, the pass uses what is there. All
  // outlive the pass.
  StracePass(std::string_view top, std::string_view folder, Foundling* found,
             TraceOutput* out, ImportCounts* counts);

  // `tid`: the thread of the line where the text does not say; 0: not known.
  Status Take(std::string_view line, uint32_t tid = 0);
  // The end of the text.
  Status Finish();

  // The time of the first call; 0: there was none.
  uint64_t first_ns() const { return first_ns_; }
  // Times are those since the line before (strace -r).
  bool is_relative() const { return is_relative_; }

 private:
  // How a call differs from the plain one of its family.
  enum Variant : uint32_t {
    kPlain = 0,
    kAt = 1 << 0,          // a directory's descriptor before each path
    kFd = 1 << 1,          // a descriptor instead of a path
    kLinkItself = 1 << 2,  // a link is not followed
    kFlags = 1 << 3,       // flags at the end
    kStruct = 1 << 4,      // a struct has what is arguments elsewhere
    kWrites = 1 << 5,
    kVector = 1 << 6,  // of pieces
    kPlaced = 1 << 7,  // says where in the file
    kOther = 1 << 8,   // the other one of two: see the handler
    // Of several.
    kMakeLink = 1 << 9,
    kMakeNode = 1 << 10,
    kGet = 1 << 11,
    kList = 1 << 12,
    kRemove = 1 << 13,
  };
  using Handler = void (StracePass::*)(uint32_t variant);
  struct Row {
    std::string_view name;
    Handler handler;
    uint32_t variant = kPlain;
  };
  static const Row kRows[];
  static const std::unordered_map<std::string_view, Row>& Rows();

  // --- Lines.
  TracedThread* ThreadOf(uint32_t tid);
  void Call(TracedThread& thread, uint64_t begin_ns, std::string_view name,
            std::string_view rest);
  void Gone(uint32_t tid);
  void EndPending(uint64_t begin_ns);
  uint64_t Watermark() const;

  // --- Arguments of the call at hand.
  std::string_view arg(size_t i) const { return call_.at(i); }
  bool ok() const { return error_ == 0; }
  uint64_t Unsigned(size_t i) const;
  // The absolute path of argument `i`, relative to the directory of argument
  // `dir`; -1: the working directory. Empty: it is not known, and counted.
  std::string PathOf(size_t i, int dir);
  // The node that a path, or descriptor, leads to in a call that succeeded, and
  // what is on the way. Not kFound: it is none of ours, and counted.
  Spot Reach(const std::string& path, bool follow, uint32_t type);
  // The same for what the call makes or removes: kMissing, too.
  Spot ReachParent(const std::string& path);
  NodeId NodeAt(size_t i, int dir, bool follow, uint32_t type);
  OpenFilePtr FileAt(size_t i);
  NodeId Announce(NodeId parent, std::string_view name, uint32_t type);
  // `id`, which has no name yet, was there before: that is told first.
  void AnnounceAs(NodeId id, NodeId parent, std::string_view name);
  // The call said that there is no such file.
  void Missing(const std::string& path, bool follow);
  // Whether a failed call never came to the file system.
  bool IsKernels();

  // --- Events.
  Event Make(Op op) const;
  void About(NodeId node, Event* event) const;
  void In(NodeId parent, std::string_view name, Event* event) const;
  void Emit(Event* event);
  void Close(OpenFilePtr file);
  void NewFile(int64_t fd, NodeId node, uint32_t flags, bool is_dir,
               Event* event);
  void Note(NodeId node, std::string_view stat);
  void Changed(NodeId node) { tree_.node(node).written = true; }
  void Moved(Op op, const OpenFilePtr& file, uint64_t offset, uint64_t length,
             ByteSpan data, bool has_data);
  void Setattr(NodeId node, uint32_t valid, Event* event);
  void Attach(int64_t fd, const OpenFilePtr& file, bool close_on_exec);
  void Detach(int64_t fd);
  void Child(TracedThread& parent, uint32_t tid, uint64_t flags);
  std::shared_ptr<Descriptors> Inherited(const Descriptors& parents);
  bool TakeData(size_t i, bool vector, uint64_t most);

  // --- Calls, by family.
  void DoOpen(uint32_t variant);
  void OpenFailed(const std::string& path, uint32_t flags);
  void DoClose(uint32_t variant);
  void DoDup(uint32_t variant);
  void DoFcntl(uint32_t variant);
  void DoTransfer(uint32_t variant);
  void DoSeek(uint32_t variant);
  void DoCopy(uint32_t variant);
  void DoStat(uint32_t variant);
  void DoAccess(uint32_t variant);
  void DoReadlink(uint32_t variant);
  void DoMake(uint32_t variant);
  void DoRemove(uint32_t variant);
  void DoRename(uint32_t variant);
  void DoLink(uint32_t variant);
  void DoMode(uint32_t variant);
  void DoOwner(uint32_t variant);
  void DoTimes(uint32_t variant);
  void DoTruncate(uint32_t variant);
  void DoFallocate(uint32_t variant);
  void DoSync(uint32_t variant);
  void DoList(uint32_t variant);
  void DoStatfs(uint32_t variant);
  void DoXattr(uint32_t variant);
  void DoFlock(uint32_t variant);
  void DoMap(uint32_t variant);
  void DoFolder(uint32_t variant);
  void DoUmask(uint32_t variant);
  void DoClone(uint32_t variant);
  void DoExec(uint32_t variant);
  void DoNothing(uint32_t variant);

  bool first() const { return out_ == nullptr; }
  void LeaveOut(std::string_view what) { counts_->left_out.Add(what); }
  // Of a line that cannot be read.
  void Unread(std::string_view what) {
    ++counts_->unread;
    LeaveOut(what);
  }
  void SumTime(std::string_view line);
  void Guess(std::string_view what) { counts_->guessed.Add(what); }

  FileTree tree_;
  const std::string folder_;
  Foundling* const found_;
  TraceOutput* const out_;
  ImportCounts* const counts_;
  size_t inherited_ = 0;  // before those that count it down
  std::unordered_map<uint32_t, TracedThread> threads_;
  std::multiset<uint64_t> pending_;  // begins of calls that have not ended
  std::set<uint64_t> maybe_new_;     // inodes that O_CREAT made, or found
  Status status_;
  uint64_t first_ns_ = 0;
  uint64_t now_ns_ = 0;
  bool has_time_ = false;     // a line has told one
  bool is_relative_ = false;  // strace -r
  uint64_t sum_ns_ = 0;       // then: of all times so far
  uint64_t next_fh_ = 1;
  uint64_t next_serial_ = 1;

  // The call at hand.
  TracedThread* thread_ = nullptr;
  StraceCall call_;
  uint64_t begin_ns_ = 0;
  int64_t result_ = 0;
  int error_ = 0;
  std::string data_;
};

}  // namespace tracefs::import
