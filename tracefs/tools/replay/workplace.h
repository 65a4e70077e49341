// Where a replay works: what others must not get at before it is done lies in a
// folder that only who replays can enter, and is handed over in the end.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/replay/private_folder.h"
#include "tracefs/replay/privilege.h"

namespace tracefs {

class Workplace {
 public:
  // `dir` is DIR, which `name` names in errors. `existing`: it is worked in as
  // it is, also if it is empty. kInvalid if it may not be used.
  static Result<std::unique_ptr<Workplace>> Open(UniqueFd dir, std::string name,
                                                 bool existing,
                                                 const replay::Grants& grants);

  // Nothing was in DIR.
  bool was_empty() const { return was_empty_; }
  // The directory to work in, by a mount of its own where there can be one: no
  // device is opened, and nothing outside reached.
  UniqueFd Tree() const;
  // Removes what was made.
  Status Clear() { return replay::ClearTree(tree_.get()); }
  // Moves what was made to DIR; once. Without it, it is gone with the object.
  Status HandOver();

 private:
  Workplace(UniqueFd dir, std::string name)
      : dir_(std::move(dir)), name_(std::move(name)) {}
  Status MakePrivate();

  UniqueFd dir_;
  const std::string name_;
  bool was_empty_ = false;
  std::optional<replay::PrivateFolder> private_;
  UniqueFd tree_;
};

}  // namespace tracefs
