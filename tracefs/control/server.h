// ControlServer: the control socket of one mount (docs/control-protocol.md).
//
// One thread serves all connections with poll(2) and answers what never waits;
// a second one runs the commands that may. Neither touches the mount, and
// neither takes part in serving it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/event_fd.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/base/worker.h"
#include "tracefs/control/connection.h"
#include "tracefs/control/handler.h"
#include "tracefs/control/place.h"

namespace tracefs {

struct ControlServerOptions {
  std::string name;  // of the socket
  // Who may ask, beside root.
  uid_t owner = 0;
  // At a time. When one more comes, the one that was idle longest goes.
  size_t max_connections = 64;
  ConnectionLimits limits;
};

class ControlServer {
 public:
  // Opens the socket in `folder`. The sandbox may be entered after that:
  // nothing more is opened, and the socket is removed through a descriptor.
  static Result<std::unique_ptr<ControlServer>> Create(
      ControlServerOptions options, ControlFolder folder);
  // One that another program has opened.
  static Result<std::unique_ptr<ControlServer>> Adopt(
      ControlServerOptions options, UniqueFd directory, UniqueFd listener,
      std::string path);
  // Stops, and removes the socket.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  const std::string& path() const { return path_; }
  const std::string& name() const { return options_.name; }
  int directory() const { return directory_.get(); }
  int listener() const { return listener_.get(); }

  // Begins to answer. `handler` is used until StopCommands returns, streams of
  // its until Stop does.
  Status Start(ControlHandler& handler);
  // Takes no more requests and waits for those that run.
  void StopCommands();
  // The same, and ends connections: streams get a moment to send their rest.
  void Stop();

 private:
  struct Finished {
    uint64_t connection;
    std::optional<uint64_t> id;
    ControlAnswer answer;
  };

  ControlServer(ControlServerOptions options, UniqueFd directory,
                UniqueFd listener, std::string path);

  void ServeLoop();
  void DoTasks();
  void Post(std::function<void()> task);
  bool PostRequest(std::function<void()> task);

  void Accept(uint64_t now);
  bool MakeRoom();
  void Serve(Connection& c, short events, uint64_t now);
  void Dispatch(Connection& c, std::string_view line,
                std::vector<UniqueFd> files, uint64_t now);
  void Deliver(Connection& c, Finished finished, uint64_t now);
  void DeliverFinished(uint64_t now);
  bool AllSent() const;
  void DropStream(std::shared_ptr<ControlStream> stream);
  void RemoveFinished();
  int PollTimeout(uint64_t now, uint64_t drain_until) const;
  void RemoveSocket();

  const ControlServerOptions options_;
  const UniqueFd directory_;
  const UniqueFd listener_;
  const EventFd wake_;
  const std::string path_;
  const ino_t inode_;  // of what is there
  ControlHandler* handler_ = nullptr;
  bool socket_removed_ = false;

  // The server thread's own.
  std::vector<std::unique_ptr<Connection>> connections_;
  uint64_t next_serial_ = 1;
  uint64_t accept_after_ = 0;  // a pause, where descriptors have run out

  std::mutex mu_;
  // Guarded by mu_.
  std::deque<std::function<void()>> tasks_;
  std::vector<Finished> finished_;
  bool refusing_ = false;     // no more requests
  uint64_t drain_until_ = 0;  // ServeLoop ends then; 0: it does not

  Worker server_;
  Worker commands_;
};

}  // namespace tracefs
