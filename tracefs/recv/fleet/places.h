// Where receivers that share a directory keep what they store, and how they
// stay out of each other's way: DIR/host=H/date=D/…, a lock for each host.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

// The folder of a host is called so, and by its name.
inline constexpr std::string_view kHostPrefix = "host=";
// The folder of a day is called so, and by its date.
inline constexpr std::string_view kDayPrefix = "date=";

// Opens the directory `name` in `parent`, and makes it, for good, if it is not
// there.
Result<UniqueFd> OpenOrMakeFolder(int parent, const std::string& name);

// Names in a directory that begin with `prefix`.
std::vector<std::string> NamesIn(int directory, std::string_view prefix);

// Removes a directory of files, as far as that goes.
void RemoveFolder(int parent, const std::string& name);

// The folder of a host. One receiver at a time works in it.
class HostFolder {
 public:
  // `root` outlives it.
  static Result<HostFolder> Open(int root, const std::string& host);

  int fd() const { return folder_.get(); }
  // The folder of a day, made if need be.
  Result<UniqueFd> Day(const std::string& day) const {
    return OpenOrMakeFolder(folder_.get(), std::string(kDayPrefix) + day);
  }

  // Waits for the others. Unlocks when it goes.
  class Lock {
   public:
    explicit Lock(const HostFolder& folder);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    const Status& status() const { return status_; }

   private:
    const int fd_;
    Status status_;
  };

 private:
  UniqueFd folder_;
  UniqueFd lock_;
};

// What a file that is being written is called beside `name`: no pattern for
// files of a format (*.parquet) may find it. All begin alike, so that what was
// left behind is found.
inline constexpr std::string_view kTemporaryPrefix = ".tmp-";
std::string TemporaryNameOf(std::string_view name);

// Writes a file that is there whole, and for good, or not at all.
Status WriteFileWhole(int directory, const std::string& name,
                      std::string_view bytes);
// The other half, for who has written `temporary` himself.
Status PutInPlace(int directory, int fd, const std::string& temporary,
                  const std::string& name);

}  // namespace tracefs
