// FileShare: the descriptor that a request is about to open for its caller,
// taken from the caller's share before it is opened: a file must not be created
// and then refused.
#pragma once

#include <cstdint>

#include "tracefs/fs/user_shares.h"

namespace tracefs {

class FileShare {
 public:
  FileShare(UserShares& shares, uint32_t uid)
      : shares_(shares), uid_(uid), taken_(shares.Take(uid)) {}
  ~FileShare() {
    if (taken_) shares_.Give(uid_);
  }
  FileShare(const FileShare&) = delete;
  FileShare& operator=(const FileShare&) = delete;

  // False: the user has his share; the operation is to fail with EMFILE.
  bool taken() const { return taken_; }
  // The descriptor is open and belongs to a Handle now, which gives it back.
  void Pass() { taken_ = false; }

 private:
  UserShares& shares_;
  const uint32_t uid_;
  bool taken_;
};

}  // namespace tracefs
