// A directory that a trace has changed, and the scratch directory in which the
// same is done to find out how to take it back.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/unit/filters/output/temp_folder.h"
#include "tests/unit/replay/tree_listing.h"
#include "tracefs/replay/target_tree.h"
#include "tracefs/replay/undo.h"
#include "tracefs/replay/undo_plan.h"

namespace tracefs::replay {

class UndoWorld : public testing::Test {
 protected:
  UndoWorld();
  ~UndoWorld() override;

  // Of the initial tree.
  uint64_t Has(uint32_t dir, const std::string& name, uint32_t mode,
               std::string_view bytes = {}, uint32_t slot = kNoSlot);
  uint64_t HasLink(uint32_t dir, const std::string& name,
                   const std::string& to);

  // Operations of the trace, done in both directories. Those with `mine` are
  // to be undone. They return the number of what they made.
  uint64_t Create(uint32_t dir, std::string_view name, std::string_view bytes);
  uint64_t MakeDir(uint32_t dir, std::string_view name, uint32_t slot);
  uint64_t MakeNode(uint32_t dir, std::string_view name, uint32_t mode);
  uint64_t Symlink(uint32_t dir, std::string_view name, std::string_view to);
  void Unlink(uint32_t dir, std::string_view name);
  void RemoveDir(uint32_t dir, std::string_view name, uint32_t slot);
  void Link(uint32_t dir, std::string_view name, uint32_t to,
            std::string_view new_name);
  void Rename(uint32_t dir, std::string_view name, uint32_t to,
              std::string_view new_name, uint32_t flags = 0);
  void Write(uint32_t dir, std::string_view name, uint64_t offset,
             std::string_view bytes);
  void Truncate(uint32_t dir, std::string_view name);  // open with O_TRUNC
  void Read(uint32_t dir, std::string_view name);      // open and close
  void SetAttributes(uint32_t dir, std::string_view name, uint32_t valid,
                     uint64_t size, uint32_t mode);
  void Resize(uint32_t dir, std::string_view name, uint64_t size);
  void Chmod(uint32_t dir, std::string_view name, uint32_t mode);
  void Chown(uint32_t dir, std::string_view name, uint32_t uid, uint32_t gid);
  void SetXattr(uint32_t dir, std::string_view name, std::string_view key,
                std::string_view value);
  void RemoveXattr(uint32_t dir, std::string_view name, std::string_view key);
  void Allocate(uint32_t dir, std::string_view name, uint32_t how,
                uint64_t offset, uint64_t length);
  void Copy(uint32_t dir, std::string_view from, uint64_t offset,
            std::string_view to, uint64_t offset_out, uint64_t length);

  // Decides; "7: why" for each group that cannot be done, the last first.
  std::vector<std::string> Decide();
  // Does what can be done; what failed.
  std::vector<std::string> Apply();
  // "" if it can be done, or the reason of the only group that cannot.
  std::string WhyNot();

  std::string Live(const std::string& name) const { return live_ + '/' + name; }
  std::string Scratch(const std::string& name) const {
    return scratch_ + '/' + name;
  }
  uint64_t FileAt(uint32_t dir, std::string_view name) const;
  void Grant(Privilege privilege) { grants_.Add(privilege); }

  // Of the operations that follow.
  bool mine_ = true;
  bool made_up_ = false;  // by the plan
  bool told_ = true;      // the recorder is, of what was there
  uint32_t flags_ = 0;
  std::function<void(Action&)> alter_;  // what else is known of each
  uint64_t sequence_ = 0;
  std::map<std::string, TreeEntry> expected_;  // else: all of it is known
  bool contents_known_ = true;
  bool keeps_ = false;  // as of UndoTarget
  // As of UndoTarget: the trace is still being written.
  uint64_t told_by_ns_ = 0;
  uint64_t first_real_ns_ = 0;
  std::string left_out_;
  uint64_t most_bytes_ = UINT64_MAX;
  Status kept_;  // what the recorder said last
  std::vector<UndoGroup> groups_;
  LiveFiles looked_;
  TempFolder folder_;
  std::string live_;
  std::string scratch_;

 private:
  void Begin();
  void Act(Action action);
  Action On(Op op, uint32_t dir, std::string_view name);
  void Through(uint32_t dir, std::string_view name, Action action);

  Grants grants_;
  UniqueFd store_;
  std::unique_ptr<TargetTree> live_tree_;
  std::unique_ptr<TargetTree> scratch_tree_;
  keep::KeptReader kept_reader_{folder_.Path("kept")};  // made by the test
  std::unique_ptr<UndoRecorder> recorder_;
  WorkerState worker_;
  uint64_t files_ = kRootFile;
  std::map<std::pair<uint32_t, std::string>, uint64_t> names_;
};

}  // namespace tracefs::replay
