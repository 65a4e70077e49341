#include "tracefs/tools/ctl/top.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "tracefs/base/clock.h"
#include "tracefs/tools/ctl/top_model.h"
#include "tracefs/tools/ctl/top_picture.h"

namespace tracefs {
namespace {

// Operations taken before keys and clock are looked at again.
constexpr int kTurn = 2000;

// The terminal without line buffering and echo, on a screen of its own, until
// this goes.
class Screen {
 public:
  explicit Screen(OutputBuffer& out) : out_(out) {
    if (::tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    // Stopped, we would leave the screen as it is now.
    raw.c_cc[VSUSP] = _POSIX_VDISABLE;
    if (::tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0) return;
    raw_ = true;
    out_.Append("\x1b[?1049h\x1b[?25l");  // other screen, no cursor
  }
  ~Screen() {
    if (!raw_) return;
    out_.Append("\x1b[?25h\x1b[?1049l");
    static_cast<void>(out_.Flush());
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void Resize(TopView* view) const {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return;
    if (size.ws_col != 0) view->width = size.ws_col;
    if (size.ws_row != 0) view->height = size.ws_row;
  }
  void Show(const std::vector<std::string>& lines) {
    out_.Append("\x1b[H");
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i != 0) out_.Append("\r\n");
      out_.Append(lines[i]);
      out_.Append("\x1b[K");
    }
    out_.Append("\x1b[J");
  }

 private:
  OutputBuffer& out_;
  termios before_{};
  bool raw_ = false;
};

class Viewer {
 public:
  Viewer(const CtlOptions& options, const std::string& mount, LiveTrace& live,
         OutputBuffer& out, const std::atomic<bool>& stop)
      : live_(live),
        out_(out),
        stop_(stop),
        interval_ns_(static_cast<uint64_t>(options.interval.count()) *
                     kNsPerMs),
        rounds_(options.rounds) {
    view_.mount = mount;
    view_.order = options.order;
    if (::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0) {
      screen_.emplace(out);
      view_.keys = true;
    } else if (rounds_ == 0) {
      rounds_ = 1;
    }
  }

  Status Run() {
    begin_ = MonotonicNs();
    Redraw();
    while (!done_ && !stop_.load() && out_.status().ok()) {
      const format::ReadStep step = TakeOperations();
      const uint64_t now = MonotonicNs();
      if (now - begin_ >= interval_ns_ || step == format::ReadStep::kEnd) {
        EndInterval(now);
      }
      if (step == format::ReadStep::kEnd) break;
      WaitForMore(step == format::ReadStep::kItem ? 0 : interval_ns_);
    }
    return out_.status();
  }

 private:
  format::ReadStep TakeOperations() {
    for (int i = 0; i < kTurn; ++i) {
      const format::ReadStep step = live_.Next(&record_);
      if (step != format::ReadStep::kItem) return step;
      model_.Add(record_);
    }
    return format::ReadStep::kItem;
  }

  void EndInterval(uint64_t now) {
    model_.AddLost(live_.stats().lost_events - lost_seen_);
    lost_seen_ = live_.stats().lost_events;
    // What is shown while paused stays; all goes on being counted.
    if (view_.paused) return;
    model_.EndInterval(now - begin_);
    begin_ = now;
    Redraw();
    if (rounds_ != 0 && --rounds_ == 0) done_ = true;
  }

  // Keys and operations; at most until the next interval.
  void WaitForMore(uint64_t most_ns) {
    constexpr uint64_t kLongestMs = 50;
    std::array<pollfd, 2> fds = {
        {{live_.fd(), POLLIN, 0}, {screen_ ? STDIN_FILENO : -1, POLLIN, 0}}};
    const auto ms = static_cast<int>(std::min(most_ns / kNsPerMs, kLongestMs));
    if (::poll(fds.data(), fds.size(), ms) <= 0) return;
    if ((fds[1].revents & (POLLIN | POLLHUP | POLLERR)) == 0) return;
    std::array<char, 64> keys;
    const ssize_t n = ::read(STDIN_FILENO, keys.data(), keys.size());
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) done_ = true;
    for (ssize_t i = 0; i < n; ++i) Obey(keys[static_cast<size_t>(i)]);
    if (n > 0) Redraw();
  }

  void Obey(char key) {
    switch (key) {
      case 'q':
      case 'Q':
        done_ = true;
        return;
      case 'c':
        view_.order = TopOrder::kCount;
        return;
      case 't':
        view_.order = TopOrder::kTime;
        return;
      case 'e':
        view_.order = TopOrder::kErrors;
        return;
      case 'b':
        view_.order = TopOrder::kBytes;
        return;
      case 'a':
        view_.all = !view_.all;
        return;
      case ' ':
        view_.paused = !view_.paused;
        return;
      case 'r':
        model_.Reset();
        return;
      default:
        return;
    }
  }

  void Redraw() {
    if (screen_) {
      screen_->Resize(&view_);
      screen_->Show(TopPicture(model_, view_));
    } else if (model_.duration_ns(true) != 0) {
      for (const std::string& line : TopPicture(model_, view_)) {
        out_.Append(line);
        out_.Append("\n");
      }
      out_.Append("\n");
    }
    static_cast<void>(out_.Flush());
  }

  LiveTrace& live_;
  OutputBuffer& out_;
  const std::atomic<bool>& stop_;
  const uint64_t interval_ns_;
  uint64_t rounds_;  // left; 0: no limit
  std::optional<Screen> screen_;
  TopView view_;
  TopModel model_;
  format::Record record_;
  uint64_t begin_ = 0;
  uint64_t lost_seen_ = 0;
  bool done_ = false;
};

}  // namespace

Status Top(const CtlOptions& options, const std::string& mount, LiveTrace& live,
           OutputBuffer& out, const std::atomic<bool>& stop) {
  const Status status = Viewer(options, mount, live, out, stop).Run();
  if (!status.ok()) return status.error() == EPIPE ? Status::Ok() : status;
  return live.status();
}

}  // namespace tracefs
