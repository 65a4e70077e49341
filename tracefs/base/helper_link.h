// The daemon's side of its helpers: a socket to each, whether it is still
// alive, and how many have died and been replaced. A daemon in its sandbox can
// neither start a process nor get a signal when one has ended: it polls.
#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/unique_fd.h"

namespace tracefs {

enum class HelperKind : uint8_t {
  kWatch,
  kLook,
  kDial,
  kCourier,
  kTrial,
  kLog,
};
inline constexpr size_t kHelperKinds = 6;
// "watch"; its process is called "tracefs-watch".
std::string_view HelperName(HelperKind kind);

struct HelperCounts {
  HelperKind kind = HelperKind::kWatch;
  uint64_t living = 0;
  uint64_t died = 0;
  uint64_t replaced = 0;
};

// One helper, and its replacements. Threads: any.
class HelperLink {
 public:
  using Socket = std::shared_ptr<const UniqueFd>;

  // `work`: its purpose, for the log ("connects to unix:/run/x"). `keeper`:
  // where the helpers of a KeepHelper come from; without one they come by Put.
  HelperLink(HelperKind kind, std::string work, UniqueFd keeper = UniqueFd());
  ~HelperLink();
  HelperLink(const HelperLink&) = delete;
  HelperLink& operator=(const HelperLink&) = delete;

  // A helper is at the other end of `file`: a socket, or a process's pidfd,
  // whose `end` is then POLLIN.
  void Put(UniqueFd file, short end = POLLHUP);
  // It answers nonsense, or nothing: treated as dead.
  void Drop();
  // It has ended as intended.
  void Forget();

  // From now on `place`, which outlives this, has the descriptor of the current
  // helper, or -1: for another process that has the same table of descriptors,
  // and takes over with a copy of this. It then goes on with what is there.
  void KeepIn(std::atomic<int32_t>& place);
  bool is_kept();
  // Where the helpers come from, or -1.
  int keeper() const { return keeper_.get(); }

  // The current helper, which may be the keeper's next one; null if there is
  // none. Never waits.
  Socket Now();
  // The same, after a wait for the keeper to start another: 3 s at most, or
  // until `cancel` is readable.
  Socket Await(int cancel = -1);

 private:
  friend std::vector<HelperCounts> LookAtHelpers();

  // With mu_.
  void Set(Socket socket);
  void Look();
  void TakeNext();
  void Died();
  // What there is to report about it since the last call.
  struct News {
    bool back = false;
    std::string text;
  };
  std::vector<News> Tell();
  std::string Described() const;
  bool is_there();

  const HelperKind kind_;
  const std::string work_;
  const UniqueFd keeper_;
  std::mutex mu_;       // guards what follows
  bool keeps_ = false;  // the keeper is there
  Socket socket_;
  std::atomic<int32_t>* place_ = nullptr;
  short end_ = POLLHUP;
  bool has_died_ = false;     // and was not replaced since
  bool awaits_next_ = false;  // it was reported that the keeper starts another
  uint64_t died_ = 0;
  uint64_t told_died_ = 0;
};

// Checks all helpers of this process, takes over replacements that keepers have
// started, and logs what has happened to them. Returns the kinds that there are
// or were, with their totals. Threads: any.
std::vector<HelperCounts> LookAtHelpers();

// Waits until all that keepers start are there; and HelperLink::KeepIn of all,
// in the order in which they were made.
void AwaitHelpers();
void KeepHelpersIn(std::span<std::atomic<int32_t>> places);
// Which of the places that one has.
size_t PlaceOf(const HelperLink& link);

}  // namespace tracefs
