// ControlHandler: what the server does with requests; the mount implements it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tracefs/base/status.h"
#include "tracefs/control/request.h"

namespace tracefs {

// Bytes that follow an answer, until one side ends it: a trace.
class ControlStream {
 public:
  // Ends what feeds it. May block; not called by the server's poll thread.
  virtual ~ControlStream() = default;
  // At most `max` of the next bytes; empty if there are none now. Never blocks.
  virtual std::string Take(size_t max) = 0;
  // No more will come after what Take still returns.
  virtual bool ended() const = 0;
  // `wake` is called, from any thread, when there is more. Called once, before
  // the rest.
  virtual void OnMore(std::function<void()> wake) = 0;
};

struct ControlAnswer {
  ControlAnswer(Status failed) : status(std::move(failed)) {}  // NOLINT
  explicit ControlAnswer(std::string json) : result(std::move(json)) {}

  Status status;
  std::string result;  // one JSON value on one line, if `status` is OK
  std::shared_ptr<ControlStream> stream;  // may be null
};

class ControlHandler {
 public:
  virtual ~ControlHandler() = default;
  // Whether the command never waits, neither for outputs nor for other
  // commands. Such requests are answered by the thread that serves all
  // connections; all others by one other thread, one after another.
  virtual bool IsQuick(std::string_view command) const = 0;
  virtual ControlAnswer Handle(ControlRequest& request) = 0;
};

}  // namespace tracefs
