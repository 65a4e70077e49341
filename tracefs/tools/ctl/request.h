// What a request of tracefs-ctl brings along that the daemon, in its sandbox,
// could not find for itself: users, groups, files for outputs, keys,
// certificates and connections, which are opened with the rights, and below the
// directory, of the caller. What that is follows from the caller's own words
// alone, his config and his filters; nothing that the daemon names is opened.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/control/client.h"
#include "tracefs/pipeline/wish.h"
#include "tracefs/tracers/plan.h"

namespace tracefs {

// What a tracer's output section needs: new files, which are removed again
// unless they are kept, folders, devices, keys, processes that connect.
class NewFiles {
 public:
  NewFiles() = default;
  ~NewFiles();
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;

  // Opens one, or starts it.
  Status Open(const Wish& wish);
  std::vector<int> Descriptors() const;
  void Keep() { kept_ = true; }
  // After a request that brought them along has failed with `status`: without
  // an answer it is not known whether a tracer writes them.
  void KeepIfUnknown(const Status& status);

 private:
  Status Make(const std::string& path, bool sync, bool readable);
  Status OpenFolderOf(const std::string& path);
  Status OpenDevice(const std::string& path, bool sync);
  Status OpenToRead(const std::string& path);
  Status OpenToAppend(const std::string& path);
  Status OpenDirectory(const std::string& path);
  Status ReadSecret(const std::string& source);
  Status ConnectToLog(const std::string& path);
  Status StartDialer(const std::string& address);
  Status StartCourier(const std::string& broker);

  struct File {
    std::string path;  // of a new one; else empty
    UniqueFd fd;
  };
  std::vector<File> files_;
  bool kept_ = false;
};

// {"command":NAME} as JSON, with or without "tracer":ID.
std::string SimpleRequest(const std::string& command);
std::string TracerRequest(const std::string& command, uint32_t tracer);
// The id of the tracer that `word` names: by its id, of which the mount judges,
// or by its name, which one of the mount's tracers must have.
Result<uint32_t> TracerNamed(ControlClient& client, const std::string& word);
// `release`; `how`: "go-on", "fail" or "refuse".
std::string ReleaseRequest(uint32_t hold, const std::string& how);
// `spare`, about this process.
std::string SpareRequest();
// `rules`, with all alarms that the mount remembers.
std::string AlarmsRequest();

// A request of `command` (set-filter, tail) with a filter, and with the users
// and groups that the filter names. `tracer` may be null.
Result<std::string> FilterRequest(const std::string& command,
                                  const uint32_t* tracer,
                                  const std::string& filter);
// `watch`, likewise: counts, told at that interval; of what the mount chooses,
// or `counted` says (clauses of `aggregate`).
Result<std::string> WatchRequest(const std::string& filter,
                                 std::chrono::milliseconds every,
                                 const std::string& counted = {});

// A request that adds the config `text`; `files` gets what its outputs need, as
// our own reading of it has it. kCorrupt, and nothing is opened, if the mount
// would want other files. `file` is for messages. `among`: the tracers of the
// file that `text` is a part of, by their ids; null: it is all of it.
Result<std::string> AddRequest(ControlClient& client, const std::string& file,
                               const std::string& text, NewFiles* files,
                               const std::vector<FileTracer>* among = nullptr);
// Ids as a request has them: "3 0 1".
std::string IdsText(std::span<const uint32_t> ids);

// The text of the config in `path`, 1 MiB at most. Callers may name a FIFO, and
// wait for it; what a note names must be a regular file, or a user who can
// exchange it could hold up every reload.
enum class NamedBy { kCaller, kNote };
Result<std::string> ReadConfigText(const std::string& path, NamedBy by);

}  // namespace tracefs
