// ServedRequests: how many requests the queues of this process have served, and
// how often the next request of a queue came from a different caller than the
// one before.
//
// For one caller with a queue to itself it is almost never; for many that share
// the processors, almost always. What is best for the former, that the queue's
// thread runs at once and gives the processor back, costs the latter a switch
// for each request, where the thread could serve several of them in one go.
#pragma once

#include <atomic>
#include <cstdint>

#include "tracefs/base/event_fd.h"

namespace tracefs {

class ServedRequests {
 public:
  struct Count {
    uint64_t requests = 0;
    uint64_t changes = 0;  // of caller

    friend Count operator-(const Count& a, const Count& b) {
      return {a.requests - b.requests, a.changes - b.changes};
    }
  };

  // Those of this process.
  static ServedRequests& Queues() {
    static constinit ServedRequests queues;
    return queues;
  }

  // Of each request, by the thread that serves its queue. `tid`: the caller's.
  void Note(uint32_t tid) {
    thread_local Queue queue;
    if (tid != queue.last) ++queue.count.changes;
    queue.last = tid;
    if (++queue.count.requests == kAtOnce) [[unlikely]] {
      Add(queue.count);
      queue.count = {};
    }
  }

  // Threads: any. Up to 7 requests of each queue are not in it yet.
  Count count() const {
    return {requests_.load(std::memory_order_relaxed),
            changes_.load(std::memory_order_relaxed)};
  }

  // Sets `event` once, when more are served; null: stops. The event must live
  // until then. One thread.
  void Await(const EventFd* event) {
    event_.store(event, std::memory_order_release);
  }

 private:
  static constexpr uint64_t kAtOnce = 8;
  struct Queue {
    uint32_t last = 0;
    Count count;
  };

  void Add(const Count& count) {
    requests_.fetch_add(count.requests, std::memory_order_relaxed);
    changes_.fetch_add(count.changes, std::memory_order_relaxed);
    if (event_.load(std::memory_order_relaxed) == nullptr) return;
    if (const EventFd* const event = event_.exchange(nullptr)) event->Set();
  }

  std::atomic<uint64_t> requests_{0};
  std::atomic<uint64_t> changes_{0};
  std::atomic<const EventFd*> event_{nullptr};
};

}  // namespace tracefs
