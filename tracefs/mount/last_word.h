// LastWord: what the owner of a mount should know about the previous one: that
// it was never completed, or had losses. Kept in a small file beside the
// control socket, until the next mount at that place has reported it.
#pragma once

#include <memory>
#include <string>

#include "tracefs/base/unique_fd.h"
#include "tracefs/control/place.h"

namespace tracefs {

// Used by one thread. A sandbox may close in after Open.
class LastWord {
 public:
  // Null where there is no place for it, or another mount lives there.
  static std::unique_ptr<LastWord> Open(const ControlFolder& folder,
                                        const std::string& mount_point);
  // The file that another program opened for this mount and has handed over.
  static std::unique_ptr<LastWord> Adopt(UniqueFd folder, UniqueFd file,
                                         const std::string& mount_point);
  int folder() const { return folder_.get(); }
  int file() const { return file_.get(); }
  // Leaves nothing behind for a mount that has nothing to report.
  ~LastWord();
  LastWord(const LastWord&) = delete;
  LastWord& operator=(const LastWord&) = delete;

  // The report about the previous mount, on one line; empty if all went well.
  const std::string& before() const { return before_; }

  // This mount serves from now on: it may be killed at any time.
  void Begin();
  // It has ended: with `losses`, or (empty) well.
  void End(const std::string& losses);

 private:
  LastWord() = default;
  void Put(const std::string& text);
  // Unless it is to be kept, or the next mount's is there.
  void Remove();

  UniqueFd folder_;
  UniqueFd file_;
  std::string name_;
  std::string before_;
  bool keep_ = false;
};

}  // namespace tracefs
