#include "tracefs/screen/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace tracefs::screen {
namespace {

// Another screen; no cursor; lines are cut at the edge; presses of the mouse
// as "ESC [ < …" (modes 1000 and 1006).
constexpr char kBegin[] = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?1000h\x1b[?1006h";
constexpr char kEnd[] =
    "\x1b[0m\x1b[?1006l\x1b[?1000l\x1b[?7h\x1b[?25h\x1b[?1049l";

}  // namespace

Terminal::Terminal(OutputBuffer& out) : out_(out) {
  if (::tcgetattr(STDIN_FILENO, &before_) != 0) return;
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_iflag &= ~static_cast<tcflag_t>(ICRNL | IXON);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  // Stopped, we would leave the screen as it is now.
  raw.c_cc[VSUSP] = _POSIX_VDISABLE;
  if (::tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0) return;
  raw_ = true;
  out_.Append(kBegin);
}

Terminal::~Terminal() {
  if (!raw_) return;
  out_.Append(kEnd);
  static_cast<void>(out_.Flush());
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

Terminal::Size Terminal::size() const {
  Size size;
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0) return size;
  if (window.ws_col != 0) size.width = window.ws_col;
  if (window.ws_row != 0) size.height = window.ws_row;
  return size;
}

Status Terminal::Show(const std::vector<Line>& lines, bool colour) {
  if (shown_size_ != size() || shown_.empty()) {
    shown_size_ = size();
    shown_.clear();
    out_.Append("\x1b[H\x1b[2J");
  }
  shown_.resize(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string drawn = lines[i].Drawn(colour);
    if (drawn == shown_[i]) continue;
    // Erased first: after a line of full width the cursor stands on its last
    // character still, which would go.
    out_.Append("\x1b[" + std::to_string(i + 1) + ";1H\x1b[K");
    out_.Append(drawn);
    shown_[i] = std::move(drawn);
  }
  return out_.Flush();
}

bool Terminal::Read(std::string* bytes) {
  std::array<char, 256> buffer;
  const ssize_t n = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (n > 0) {
    bytes->append(buffer.data(), static_cast<size_t>(n));
    return true;
  }
  return n < 0 && (errno == EINTR || errno == EAGAIN);
}

}  // namespace tracefs::screen
