// PlanBuilder: a trace in, a plan out, in one pass and in bounded memory.
//
// Operations come in order of their begin. Where two ran at once, their results
// say who was first: a look-up that found nothing while the name was being made
// comes before its making (see Agrees). What an operation shows to have been
// there before goes into the initial tree.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/format/record.h"
#include "tracefs/replay/interval_set.h"
#include "tracefs/replay/lanes.h"
#include "tracefs/replay/observed.h"
#include "tracefs/replay/ordering.h"
#include "tracefs/replay/plan_file.h"
#include "tracefs/replay/privilege.h"
#include "tracefs/replay/tree_model.h"

namespace tracefs::replay {

// What becomes of operations that are not selected, where selected ones need
// what they made.
enum class Closure : uint8_t {
  kInit,     // it is there to begin with
  kInclude,  // they are done, too, but not timed and not compared
  kNone,     // nothing
};

struct BuilderOptions {
  uint32_t lanes = 256;
  Closure closure = Closure::kInit;
  bool keep_data = true;  // bytes written and read, if the trace has them
};

// What a trace did not have, by what it was missing for (--check).
struct Lacks {
  uint64_t operations = 0;
  uint64_t without_time = 0;
  uint64_t without_duration = 0;
  uint64_t without_result = 0;
  uint64_t without_thread = 0;
  uint64_t without_inode = 0;
  uint64_t without_handle = 0;
  uint64_t without_path = 0;  // neither inode numbers nor paths
  uint64_t without_arguments = 0;
  uint64_t without_user = 0;
  uint64_t writes_without_data = 0;
  uint64_t reads_without_hash = 0;
  uint64_t xattrs_without_value = 0;
  uint64_t unplaced = 0;
  uint64_t not_replayed = 0;     // ioctl, poll
  PrivilegeCounts privileges{};  // what takes one
  uint64_t handles_before = 0;   // open files whose opening was not seen
  uint64_t entries_before = 0;
  uint64_t entries_without_attributes = 0;
  uint64_t files_without_content = 0;
  uint64_t unplaced_changes = 0;  // of `unplaced`
  uint64_t unseen_changes = 0;    // of what names mean
  // What the trace tells of files besides operations (STR_REPLAY).
  uint64_t entries_known = 0;  // of entries_before
  uint64_t handles_known = 0;  // open when the tracer began, and told of
  uint64_t states_late = 0;
  uint64_t states_incomplete = 0;
  uint64_t final_states = 0;
};

// Used by one thread.
class PlanBuilder {
 public:
  // `out` outlives it; null: only looks what the trace lacks.
  PlanBuilder(const BuilderOptions& options, PlanWriter* out);

  // The next operation. `selected`: it is to be replayed; `marked`: and undone.
  Status Take(const format::Record& record, bool selected, bool marked = false);
  // What a file was when the trace first touched it, before Take gets the
  // operation that did; or what it was in the end, at any time.
  void TakeState(const format::StateRecord& state);
  // What is held back, and the tree that is expected in the end.
  Status Finish();

  const PlanHeader& header() const { return header_; }
  const Lacks& lacks() const { return lacks_; }
  // Paths of files that were there before, with contents that are not in the
  // trace: the first of them. After Finish.
  const std::vector<std::string>& unknown_files() const {
    return unknown_files_;
  }
  // The most inodes alive at once, and bytes for all that is known of them.
  size_t peak_nodes() const { return model_.peak_nodes(); }
  size_t model_bytes() const { return model_.bytes(); }

 private:
  struct Handle {
    uint32_t slot = kNoSlot;
    NodeId node = kNoNode;
    bool is_dir = false;
  };

  // --- Who is who.
  NodeId DirOf(const format::Record& record, Field inode, uint64_t path_id);
  NodeId FileOf(const Observed& seen, const format::Record& record);
  bool IsGone(std::string_view path, uint64_t inode) const;
  NodeId WalkTo(std::string_view path, bool is_dir);
  void Learn(NodeId id, const Observed& seen);
  void LearnNames(NodeId id, const Observed& seen);
  void NoteNames(NodeId id, const Observed& seen, Action* a);
  NodeId Named(NodeId parent, std::string_view name, const Observed& seen);

  // --- Order.
  bool MustWait(const Observed& seen) const;
  bool Agrees(const Observed& seen) const;
  Status Release(uint64_t before_ns, bool all);
  Status ReleaseAgreeing();
  Status Process(const Observed& seen);

  // --- Operations, by family.
  Status DoName(const Observed& seen);    // lookup
  Status DoMake(const Observed& seen);    // mknod mkdir symlink create tmpfile
  Status DoRemove(const Observed& seen);  // unlink rmdir
  Status DoRename(const Observed& seen);
  Status DoLink(const Observed& seen, NodeId file);
  Status DoOpen(const Observed& seen, NodeId file);
  Status DoTransfer(const Observed& seen, NodeId file);  // read write
  NodeId CopiedTo(const Observed& seen) const;
  Status DoCopy(const Observed& seen, NodeId file);
  Status DoClose(const Observed& seen, NodeId file);
  Status DoSetattr(const Observed& seen, NodeId file);
  Status DoFile(const Observed& seen, NodeId file);  // all others
  Status DoLock(const Observed& seen, NodeId file);

  // --- Putting it down.
  Action Common(const Observed& seen);
  static void NoteKept(const Observed& seen, Action* a);
  // Undoing it takes what the trace lacks; what was kept may stand for that.
  void LacksBytes(NodeId file, Action* a) const;
  bool Wanted(const Observed& seen, NodeId a, NodeId b = kNoNode) const;
  Status Ensure(NodeId id);
  Status EnsureEntry(NodeId id);
  Status EnsureHandle(const Observed& seen, NodeId file, uint64_t fh,
                      Handle** handle);
  void KeepState(const format::StateRecord& state);
  Status TakeOpenFile(const format::StateRecord& state);
  NodeId NodeOfOpen(const Observed& seen, std::string_view path);
  Status MakeNameless(const Observed& seen, NodeId file, uint32_t slot);
  Action CommonOfMadeUp(const Observed& seen, Op op);
  bool PlaceAt(NodeId id, Action* action);
  void UseOf(const Action& action, NodeId id, UseKind kind);
  void UseName(NodeId parent, std::string_view name, UseKind kind,
               bool changes);
  Status Emit(Action* action);
  bool HasNoName(const Observed& seen) const;
  Status Unplaced(const Observed& seen);
  void NoteLacks(const format::Record& record);
  void NotePrivilege(Privilege privilege) {
    ++lacks_.privileges[static_cast<size_t>(privilege)];
  }
  void NotePrivileges(const Action& action);
  void NotePrivileges(const TreeEntry& entry);
  uint64_t FileNumber(NodeId id) const {
    return id == kNoNode ? kNoFile : model_.node(id).serial;
  }

  // --- Of which bytes the plan has what was recorded (plan_contents.cc).
  Status ReadInitial(const Observed& seen, NodeId file, const Action& action);
  void Replaced(NodeId file, uint64_t begin, uint64_t end, bool recorded);
  void Resized(NodeId file, uint64_t size);
  void Grew(NodeId file, uint64_t begin);
  bool KnowsSize(NodeId id) const;
  bool HasInitialBytes(NodeId id, uint64_t begin, uint64_t end) const;
  bool HasBytes(NodeId id, uint64_t begin, uint64_t end) const;
  bool HasAllBytes(NodeId id) const { return HasBytes(id, 0, UINT64_MAX); }
  bool KnowsAttributes(NodeId id) const;
  bool CanBeMadeAgain(NodeId id) const;
  bool MayHaveAcl(NodeId id) const;
  void NoteSource(NodeId file, uint64_t begin, uint64_t end);
  void NoteUnknown(NodeId id);
  void CollectUnknown();
  void Unlinked(NodeId id);
  // Its names are about to change: the first of them, by which it is in the
  // initial tree, is kept.
  void KeepInitialName(NodeId id);
  bool LooksAgain(NodeId id, const Observed& seen);
  uint32_t NewSlot(std::vector<uint32_t>* free, uint32_t* count);
  std::string AnotherName(NodeId id, NodeId parent,
                          std::string_view name) const;
  Status WriteFinal();

  const BuilderOptions options_;
  PlanWriter* const out_;
  TreeModel model_;
  OrderTracker order_;
  Lanes lanes_;
  PlanHeader header_;
  Lacks lacks_;
  std::unordered_map<uint64_t, Handle> handles_;
  Handle no_handle_;  // of what contradicts itself
  // covered_: the bytes of initial files that the plan has, or that had gone
  // when they were first asked for. made_up_: the bytes of all files that the
  // plan makes up.
  std::unordered_map<NodeId, IntervalSet> covered_;
  std::unordered_map<NodeId, IntervalSet> made_up_;
  // Initial files with a checksum, that are compared before the first
  // operation.
  std::unordered_set<NodeId> checked_;
  std::vector<std::string> unknown_files_;
  // Initial files that have been renamed, linked or removed, and their first
  // names.
  struct InitialName {
    uint32_t parent = kRootSlot;
    std::string name;
  };
  std::unordered_map<NodeId, InitialName> initial_names_;
  // What is known of files before they were touched, by inode number, until
  // they are.
  struct InitialState {
    std::string target;
    std::string xattrs;
    uint64_t rdev = 0;
    std::optional<uint32_t> checksum;
    IntervalSet holes;
    bool has_holes = false;
    bool is_whole = false;
  };
  std::unordered_map<uint64_t, InitialState> states_;
  Status state_status_;
  // Of files with several names, in the end; by inode.
  std::unordered_map<uint64_t, uint32_t> linked_checksums_;
  // Symbolic links of the initial tree that have not been read yet.
  std::unordered_map<NodeId, TreeEntry> links_before_;
  std::vector<uint32_t> free_handles_;
  std::vector<uint32_t> free_dirs_;
  std::vector<std::unique_ptr<KeptObserved>> held_;
  std::string path_;
  uint64_t first_ns_ = 0;
  uint64_t sequence_ = 0;
  bool begun_ = false;
};

}  // namespace tracefs::replay
