#include "tracefs/base/helper_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <span>
#include <utility>

#include "tracefs/base/notice.h"
#include "tracefs/base/passed_files.h"

namespace tracefs {
namespace {

constexpr auto kPatience = std::chrono::seconds(3);

struct KindFacts {
  std::string_view name;
  std::string_view without;  // if no keeper starts another
};
// In the order of HelperKind.
constexpr std::array<KindFacts, kHelperKinds> kFacts = {{
    {"watch",
     "tracefs-ctl or umount(8) ends the mount; if the daemon dies, the mount "
     "stays, dead; there is no reload"},
    {"look", "another is started when it is needed"},
    {"dial",
     "its output gets no further connection: remove its tracer and add it "
     "again"},
    {"courier",
     "its output gets no further connection: remove its tracer and add it "
     "again"},
    {"trial", "threads keep the policy that they have"},
    {"log", "a log that is started again is not found"},
}};

const KindFacts& FactsOf(HelperKind kind) {
  return kFacts[static_cast<size_t>(kind)];
}

// All links of this process, and the totals of those that were.
struct HelperBook {
  std::mutex mu;                   // before the mu_ of a link
  std::vector<HelperLink*> links;  // guarded by mu
  struct Totals {
    std::atomic<bool> seen{false};
    std::atomic<uint64_t> died{0};
    std::atomic<uint64_t> replaced{0};
  };
  std::array<Totals, kHelperKinds> totals;

  Totals& Of(HelperKind kind) { return totals[static_cast<size_t>(kind)]; }
};

HelperBook& TheBook() {
  static HelperBook& book = *new HelperBook;  // links come until the very end
  return book;
}

bool HasEvent(int fd, short event) {
  // POLLHUP comes unasked.
  pollfd ready = {fd, static_cast<short>(event & POLLIN), 0};
  return ::poll(&ready, 1, 0) > 0 && (ready.revents & event) != 0;
}

}  // namespace

std::string_view HelperName(HelperKind kind) { return FactsOf(kind).name; }

HelperLink::HelperLink(HelperKind kind, std::string work, UniqueFd keeper)
    : kind_(kind),
      work_(std::move(work)),
      keeper_(std::move(keeper)),
      keeps_(keeper_.valid()) {
  HelperBook& book = TheBook();
  const std::lock_guard lock(book.mu);
  book.links.push_back(this);
}

HelperLink::~HelperLink() {
  HelperBook& book = TheBook();
  const std::lock_guard lock(book.mu);
  std::erase(book.links, this);
}

void HelperLink::Put(UniqueFd file, short end) {
  const std::lock_guard lock(mu_);
  HelperBook::Totals& totals = TheBook().Of(kind_);
  totals.seen = true;
  if (socket_ != nullptr) Died();
  Set(std::make_shared<const UniqueFd>(std::move(file)));
  end_ = end;
  if (std::exchange(has_died_, false)) ++totals.replaced;
}

void HelperLink::Drop() {
  const std::lock_guard lock(mu_);
  if (socket_ != nullptr) Died();
}

void HelperLink::Forget() {
  const std::lock_guard lock(mu_);
  Set(nullptr);
}

void HelperLink::KeepIn(std::atomic<int32_t>& place) {
  const std::lock_guard lock(mu_);
  const int before = place.load();
  // The one that this has is of the first process, and may be closed.
  if (before >= 0 && (socket_ == nullptr || before != socket_->get())) {
    socket_ = std::make_shared<const UniqueFd>(before);
  }
  place_ = &place;
  Set(socket_);
}

bool HelperLink::is_kept() {
  const std::lock_guard lock(mu_);
  return place_ != nullptr;
}

void HelperLink::Set(Socket socket) {
  // In this order: a descriptor that is closed must not be found.
  if (place_ != nullptr) {
    place_->store(socket != nullptr ? socket->get() : -1);
  }
  socket_ = std::move(socket);
}

void HelperLink::Died() {
  Set(nullptr);
  has_died_ = true;
  ++died_;
  ++TheBook().Of(kind_).died;
}

void HelperLink::Look() {
  if (socket_ != nullptr && HasEvent(socket_->get(), end_)) Died();
  if (socket_ == nullptr && keeps_) TakeNext();
}

void HelperLink::TakeNext() {
  std::byte one{};
  std::vector<UniqueFd> files;
  const ssize_t n = ReceiveWithFiles(keeper_.get(), std::span(&one, 1), &files,
                                     /*cut=*/nullptr, MSG_DONTWAIT);
  if (n > 0 && !files.empty()) {
    HelperBook::Totals& totals = TheBook().Of(kind_);
    totals.seen = true;
    Set(std::make_shared<const UniqueFd>(std::move(files.front())));
    if (std::exchange(has_died_, false)) ++totals.replaced;
    return;
  }
  if (n == 0 || (n < 0 && errno != EAGAIN)) keeps_ = false;
}

HelperLink::Socket HelperLink::Now() {
  const std::lock_guard lock(mu_);
  Look();
  return socket_;
}

HelperLink::Socket HelperLink::Await(int cancel) {
  using std::chrono::steady_clock;
  const auto end = steady_clock::now() + kPatience;
  for (;;) {
    {
      const std::lock_guard lock(mu_);
      Look();
      if (socket_ != nullptr || !keeps_) return socket_;
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - steady_clock::now());
    if (left.count() <= 0) return nullptr;
    std::array<pollfd, 2> ready = {pollfd{keeper_.get(), POLLIN, 0},
                                   pollfd{cancel, POLLIN, 0}};
    const int n =
        ::poll(ready.data(), ready.size(), static_cast<int>(left.count()));
    if (n < 0 && errno != EINTR) return nullptr;
    if (n > 0 && ready[1].revents != 0) return nullptr;
  }
}

std::string HelperLink::Described() const {
  std::string text = "tracefs-" + std::string(HelperName(kind_));
  if (!work_.empty()) text += ", which " + work_ + ',';
  return text;
}

std::vector<HelperLink::News> HelperLink::Tell() {
  const std::lock_guard lock(mu_);
  Look();
  std::vector<News> news;
  const std::string without = ": " + std::string(FactsOf(kind_).without);
  if (std::exchange(told_died_, died_) != died_) {
    awaits_next_ = has_died_ && keeps_;
    news.push_back({.text = Described() + " died" +
                            (!has_died_     ? ", and another is in its place"
                             : awaits_next_ ? ", and another is being started"
                                            : without)});
  } else if (awaits_next_ && !has_died_) {
    awaits_next_ = false;
    news.push_back({.back = true, .text = Described() + " is there again"});
  } else if (awaits_next_ && !keeps_) {
    awaits_next_ = false;
    news.push_back({.text = Described() + " is not started again" + without});
  }
  return news;
}

bool HelperLink::is_there() {
  const std::lock_guard lock(mu_);
  return socket_ != nullptr;
}

void AwaitHelpers() {
  HelperBook& book = TheBook();
  const std::lock_guard lock(book.mu);
  for (HelperLink* const link : book.links) static_cast<void>(link->Await());
}

void KeepHelpersIn(std::span<std::atomic<int32_t>> places) {
  HelperBook& book = TheBook();
  const std::lock_guard lock(book.mu);
  for (size_t i = 0; i < std::min(places.size(), book.links.size()); ++i) {
    book.links[i]->KeepIn(places[i]);
  }
}

size_t PlaceOf(const HelperLink& link) {
  HelperBook& book = TheBook();
  const std::lock_guard lock(book.mu);
  return static_cast<size_t>(std::ranges::find(book.links, &link) -
                             book.links.begin());
}

std::vector<HelperCounts> LookAtHelpers() {
  HelperBook& book = TheBook();
  std::vector<HelperLink::News> news;
  std::array<uint64_t, kHelperKinds> living{};
  {
    const std::lock_guard lock(book.mu);
    for (HelperLink* const link : book.links) {
      std::ranges::move(link->Tell(), std::back_inserter(news));
      if (link->is_there()) ++living[static_cast<size_t>(link->kind_)];
    }
  }
  for (const HelperLink::News& one : news) {
    Notify(one.back ? NoticeId::kHelperBack : NoticeId::kHelperDied, one.text);
  }
  std::vector<HelperCounts> counts;
  for (size_t i = 0; i < kHelperKinds; ++i) {
    const HelperBook::Totals& totals = book.totals[i];
    if (!totals.seen) continue;
    counts.push_back({.kind = static_cast<HelperKind>(i),
                      .living = living[i],
                      .died = totals.died,
                      .replaced = totals.replaced});
  }
  return counts;
}

}  // namespace tracefs
