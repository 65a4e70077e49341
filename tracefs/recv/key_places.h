// Where the keys of --key lie, so that they can be read again from within a
// sandbox: the folders of files are held open; what is in the environment, a
// credential or the keyring stays as it was found first.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "filters/output/key_ring.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/crypto/key_source.h"

namespace tracefs {

class KeyPlaces {
 public:
  // Of the arguments of --key. Before a sandbox.
  static Result<KeyPlaces> Open(const std::vector<std::string>& arguments);

  // All that is there now. Names must not lead out of their folders once a
  // sandbox has closed in: keys are replaced in place, or by rename(2).
  Result<std::shared_ptr<const KeyRing>> Read() const;

 private:
  struct Place {
    KeySource source;
    UniqueFd folder = {};   // of a file
    std::string name = {};  // in it
  };
  std::vector<Place> places_;
};

}  // namespace tracefs
