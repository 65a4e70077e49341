#include "tracefs/screen/viewer.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "tracefs/base/date_text.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/screen/keys.h"
#include "tracefs/screen/picture.h"
#include "tracefs/screen/plain_report.h"
#include "tracefs/screen/terminal.h"
#include "tracefs/text/cell_width.h"

namespace tracefs::screen {
namespace {

constexpr size_t kReportWidth = 100;
constexpr size_t kReportHeight = 50;
// For a view alone: names are whole.
constexpr size_t kWholeNames = 8192;
// Between two looks at what may have come.
constexpr int kPauseMs = 100;
// After an escape that is not followed by more.
constexpr int kEscapeMs = 40;

// The rows in a new file of the working directory; its name, or why not.
std::string Save(const Browser& browser) {
  const std::string stamp = LocalText(std::time(nullptr), "%Y%m%d-%H%M%S");
  if (stamp.empty()) return "not saved: no time of day";
  const std::string name =
      "tracefs-" + std::string(browser.view().name) + '-' + stamp + ".csv";
  const UniqueFd file(
      ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return Status::System(errno, name).message();
  if (Status s = WriteAll(file.get(), AsBytes(browser.Csv()), name); !s.ok()) {
    return s.message();
  }
  return "saved as " + name;
}

class Viewer {
 public:
  Viewer(const ViewerOptions& options, Feed& feed, OutputBuffer& out,
         const std::atomic<bool>& stop)
      : options_(options),
        feed_(feed),
        out_(out),
        stop_(stop),
        browser_(options.browser, feed),
        rounds_(options.rounds) {
    means_ = {.colour = WantsColour(options.colour, STDOUT_FILENO),
              .utf8 = HasUtf8()};
  }

  Status Run() {
    if (!options_.batch && CanDraw()) return RunScreen();
    return RunReports();
  }

 private:
  Status RunReports() {
    // Into a pipe one is enough; on a terminal without a screen they go on.
    if (rounds_ == 0 && ::isatty(STDOUT_FILENO) != 1) rounds_ = 1;
    while (!stop_.load()) {
      const Result<bool> fresh = browser_.Take();
      if (!fresh.ok()) return fresh.status();
      if (*fresh) {
        if (Status s = PrintReport(); !s.ok()) return s;
        if (rounds_ != 0 && --rounds_ == 0) break;
      }
      if (feed_.ended()) break;
      Wait(nullptr);
    }
    return out_.Flush();
  }

  Status PrintReport() {
    const bool whole = options_.only != nullptr;
    for (const std::string& line :
         Report(browser_, options_.only, whole ? kWholeNames : kReportWidth,
                kReportHeight, means_)) {
      out_.Append(line);
      out_.Append("\n");
    }
    out_.Append("\n");
    return out_.Flush();
  }

  Status RunScreen() {
    Terminal terminal(out_);
    Terminal::Size drawn_size;
    bool changed = true;
    bool done = false;
    while (!done && !stop_.load()) {
      const Result<bool> fresh = browser_.Take();
      if (!fresh.ok()) return fresh.status();
      if (*fresh && rounds_ != 0 && --rounds_ == 0) done = true;
      if (feed_.ended()) done |= options_.browser.live;
      if (changed || *fresh || drawn_size != terminal.size()) {
        drawn_size = terminal.size();
        Picture picture =
            Draw(browser_, drawn_size.width, drawn_size.height, means_);
        if (Status s = terminal.Show(picture.lines, means_.colour); !s.ok()) {
          return s;
        }
        browser_.Drawn(std::move(picture.hits), picture.rows,
                       picture.page_lines);
      }
      changed = false;
      if (done) break;
      std::string bytes;
      if (!Wait(&terminal, &bytes)) break;
      std::vector<Key> keys =
          bytes.empty() ? decoder_.Pause() : decoder_.Take(bytes);
      for (const Key& key : keys) {
        changed = true;
        if (key.kind == Key::Kind::kRedraw) terminal.Forget();
        done |= !Do(browser_.Obey(key));
      }
    }
    return Status::Ok();
  }

  // False if that is the end.
  bool Do(Wish wish) {
    switch (wish) {
      case Wish::kNothing:
        return true;
      case Wish::kQuit:
        return false;
      case Wish::kFollow:
        if (Status s = browser_.Follow(); !s.ok()) browser_.Say(s.message());
        return true;
      case Wish::kStopFollowing:
        feed_.StopFollowing();
        return true;
      case Wish::kSave:
        browser_.Say(Save(browser_));
        return true;
    }
    return true;
  }

  // Waits until there may be something; false if there are no more keys.
  bool Wait(Terminal* terminal, std::string* bytes = nullptr) {
    std::vector<pollfd> fds;
    if (terminal != nullptr) fds.push_back({STDIN_FILENO, POLLIN, 0});
    if (!browser_.paused()) feed_.AddDescriptors(&fds);
    const int ms = decoder_.waiting() ? kEscapeMs : kPauseMs;
    if (::poll(fds.data(), static_cast<nfds_t>(fds.size()), ms) <= 0) {
      return true;
    }
    if (terminal == nullptr || fds[0].revents == 0) return true;
    return terminal->Read(bytes);
  }

  const ViewerOptions& options_;
  Feed& feed_;
  OutputBuffer& out_;
  const std::atomic<bool>& stop_;
  Browser browser_;
  uint64_t rounds_;
  Means means_;
  KeyDecoder decoder_;
};

}  // namespace

Status RunViewer(const ViewerOptions& options, Feed& feed, OutputBuffer& out,
                 const std::atomic<bool>& stop) {
  const Status status = Viewer(options, feed, out, stop).Run();
  // A reader that has seen enough is not an error.
  return status.error() == EPIPE ? Status::Ok() : status;
}

}  // namespace tracefs::screen
