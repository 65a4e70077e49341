// RequestLoop: reads and serves requests of /dev/fuse where the mount is to
// survive its daemon (--survive yes); otherwise libfuse's own loop does.
//
// Requests are read into memory that is there (a read that is killed in the
// midst of a page that is not fails the request), and FORGETs, which the kernel
// does not repeat, into memory that a later daemon sees.
//
// A later daemon is given the kernel's first request again, as it was kept, so
// that libfuse is in the state that the first one's was in; the kernel ignores
// the answer. Then the kernel sends again all requests that were not answered
// (FUSE_NOTIFY_RESEND): these come before all others, and so it is known which
// were.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "tracefs/fs/file_system.h"

namespace tracefs {

class RequestLoop {
 public:
  // What was answered with EIO, because daemons had crashed at it again and
  // again: what it was, and of which file as far as that is known.
  using Refused =
      std::function<void(const std::string& request, const std::string& file)>;

  // `area` of `fs`; `readers`: threads that read, at most. All outlive this.
  RequestLoop(fuse_session* session, FileSystem& fs, int readers,
              Refused refused);
  ~RequestLoop();
  RequestLoop(const RequestLoop&) = delete;
  RequestLoop& operator=(const RequestLoop&) = delete;

  // The first daemon: the kernel's first request. kSystem if none comes.
  Status Begin();
  // A later one, which has restored `fs`: takes over what was not answered.
  Status TakeOver();
  // What the kernel asked first, served once more; false where that is not
  // known. The kernel ignores the answer.
  static bool ServeFirstAgain(fuse_session* session, survive::Area& area);
  // Makes the first thread, which waits for Serve: nothing is served before
  // others are told of it. kSystem if it cannot be made.
  Status Start();
  // Serves until the session ends. 0 or an errno value. After Start.
  int Serve();

  // Takes no more requests, which wait in the kernel, and waits until those
  // that were taken are answered, but for the ones in the side pool. False if
  // that is not within `patience`, or the session has ended. Then, in any case,
  // Resume. Threads: any one that serves nothing.
  bool Pause(std::chrono::milliseconds patience);
  void Resume();

 private:
  struct Reader;
  void Run(Reader& reader);
  // A message into the buffer of a reader; its size, 0 when the session is over
  // or nothing came in this time.
  size_t Read(std::byte* buffer, Reader* reader = nullptr);
  size_t ReadAsForget(size_t number, survive::WorkSlot& slot,
                      Reader* reader = nullptr);
  ssize_t ReadOnce(std::byte* buffer, Reader* reader);
  void AwaitResume();
  std::unordered_set<uint64_t> TakeSentAgain();
  void RefuseDeadly();
  void Process(std::byte* message, size_t size);
  bool AnswerAgain(std::byte* message, size_t size);
  void Answer(uint64_t unique, int error);
  void StartReader();
  // The next message that was sent again; false: there are none.
  bool TakeLeft(std::vector<std::byte>* message);

  fuse_session* const session_;
  FileSystem& fs_;
  const Refused refused_;
  const size_t most_readers_;
  survive::Area& area_;
  const int device_;
  std::mutex mu_;  // guards what follows
  std::condition_variable ended_;
  std::deque<std::vector<std::byte>> left_;
  std::list<Reader> readers_;
  std::atomic<size_t> left_count_{0};
  std::atomic<int> idle_{0};
  std::atomic<int> running_{0};
  std::atomic<bool> paused_{false};
  bool serves_ = false;
  int parked_ = 0;  // readers, while it is paused
  std::condition_variable resumed_;
};

}  // namespace tracefs
