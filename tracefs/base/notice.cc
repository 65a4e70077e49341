#include "tracefs/base/notice.h"

#include <syslog.h>

#include <array>
#include <cstdio>
#include <mutex>
#include <shared_mutex>

#include "tracefs/base/printable.h"

namespace tracefs {
namespace {

// In the order of NoticeId.
constexpr std::array kKinds = {
    NoticeKind{NoticeId::kMounted, "mounted", LOG_NOTICE,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a01"},
    NoticeKind{NoticeId::kEnded, "ended", LOG_NOTICE,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a02"},
    NoticeKind{NoticeId::kFailed, "failed", LOG_ERR,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a03"},
    NoticeKind{NoticeId::kDied, "died", LOG_ERR,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a04"},
    NoticeKind{NoticeId::kOutputFailed, "output_failed", LOG_ERR,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a05"},
    NoticeKind{NoticeId::kOutputBack, "output_back", LOG_NOTICE,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a06"},
    NoticeKind{NoticeId::kLost, "lost", LOG_WARNING,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a07"},
    NoticeKind{NoticeId::kAnchorMissing, "anchor_missing", LOG_ERR,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a08"},
    NoticeKind{NoticeId::kSnapshotFailed, "snapshot_failed", LOG_ERR,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a09"},
    NoticeKind{NoticeId::kCallRefused, "call_refused", LOG_WARNING,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a0a"},
    NoticeKind{NoticeId::kLogLost, "log_lost", LOG_WARNING,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a0b"},
    NoticeKind{NoticeId::kTracers, "tracers", LOG_NOTICE,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a0c"},
    NoticeKind{NoticeId::kReloadFailed, "reload_failed", LOG_ERR,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a0d"},
    NoticeKind{NoticeId::kAlarm, "alarm", LOG_NOTICE,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a0e"},
    NoticeKind{NoticeId::kDiskFull, "disk_full", LOG_ERR,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a0f"},
    NoticeKind{NoticeId::kReceiving, "receiving", LOG_NOTICE,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a10"},
    NoticeKind{NoticeId::kSender, "sender", LOG_INFO,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a11"},
    NoticeKind{NoticeId::kSenderRefused, "sender_refused", LOG_WARNING,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a12"},
    NoticeKind{NoticeId::kTraceRemoved, "trace_removed", LOG_NOTICE,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a13"},
    NoticeKind{NoticeId::kReloaded, "reloaded", LOG_NOTICE,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a14"},
    NoticeKind{NoticeId::kBrokerLost, "broker_lost", LOG_WARNING,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a15"},
    NoticeKind{NoticeId::kHelperDied, "helper_died", LOG_WARNING,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a16"},
    NoticeKind{NoticeId::kHelperBack, "helper_back", LOG_NOTICE,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a17"},
    NoticeKind{NoticeId::kSucceeded, "succeeded", LOG_WARNING,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a18"},
    NoticeKind{NoticeId::kKeeperGone, "keeper_gone", LOG_ERR,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a19"},
    NoticeKind{NoticeId::kKeeperBack, "keeper_back", LOG_WARNING,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a1a"},
    NoticeKind{NoticeId::kRefused, "request_refused", LOG_ERR,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a1b"},
    NoticeKind{NoticeId::kUntraced, "untraced", LOG_ERR,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a1c"},
    NoticeKind{NoticeId::kUpgraded, "upgraded", LOG_NOTICE,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a1d"},
    NoticeKind{NoticeId::kKeyMissing, "key_missing", LOG_WARNING,
               "5d9f1d2e1f3a4f0c9b7c0a4f6be31a1e"},
};

struct Sink {
  std::shared_mutex mu;
  std::function<void(NoticeId, const std::string&)> put;  // guarded by mu
};

Sink& TheSink() {
  static Sink& sink = *new Sink;  // notices come until the very end
  return sink;
}

}  // namespace

const NoticeKind& KindOf(NoticeId id) {
  return kKinds[static_cast<size_t>(id)];
}

void Notify(NoticeId id, const std::string& said) {
  // Names of files and hosts may hold anything.
  const std::string text = Printable(said);
  Sink& sink = TheSink();
  std::shared_lock lock(sink.mu);
  if (sink.put) {
    sink.put(id, text);
  } else {
    std::fprintf(stderr, "tracefs: %s\n", text.c_str());
  }
}

void SetNoticeSink(std::function<void(NoticeId, const std::string&)> sink) {
  Sink& one = TheSink();
  std::unique_lock lock(one.mu);
  one.put = std::move(sink);
}

}  // namespace tracefs
