// The sealing state of a host: the file behind `seal = forward`. It holds the
// seeds of the keys of epochs to come, one epoch a trace; taking an epoch
// replaces the file by one that no longer leads to it.
//
// Epoch keys are leaves of a key tree whose root only the verifiers keep. A
// crash after Take costs an epoch number and nothing else: none is used twice.
#pragma once

#include <cstdint>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/crypto/key_tree.h"

namespace tracefs {

class SealState {
 public:
  struct Epoch {
    uint64_t number = 0;
    SecretKey key;
    KeyId verify_id;  // of the verify secret
  };

  // Checks the file at `path` and keeps its folder open, so that a mount over
  // that folder later does not matter. Takes nothing. `folder`: that folder,
  // where somebody else has opened it, to read.
  static Result<SealState> Open(const std::string& path, UniqueFd folder = {});

  // Takes the next epoch. When this returns, its key is on disk no more.
  // Several processes may share a state; each gets epochs of its own.
  Result<Epoch> Take();

  // Makes a new state file, mode 0600, that starts at epoch 0 of `root`.
  static Status Create(const std::string& path, KeySpan root);

 private:
  struct Contents {
    KeyId verify_id;
    KeyTreeWriter keys;
  };
  SealState() = default;
  std::string what() const { return "sealing state '" + path_ + "'"; }
  Result<UniqueFd> OpenFile() const;
  // The file under its lock, which nobody has replaced meanwhile.
  Result<UniqueFd> OpenLocked() const;
  Result<Contents> Read(const UniqueFd& fd) const;

  std::string path_;
  std::string name_;  // in folder_
  UniqueFd folder_;
};

// Writes a file that must not exist yet, mode 0600, and makes it durable, with
// its name. It has its name when it is whole, where the file system can do that
// (O_TMPFILE).
Status CreateSecretFile(const std::string& path, const std::string& what,
                        std::string_view text);

}  // namespace tracefs
