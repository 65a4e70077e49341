// Files that a trace embeds (FORMAT.md section 8e), given back or listed. The
// trace may be anybody's: paths stay in the folder, contents must be what their
// hashes say, and what is written is bounded.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/format/embedded_file.h"

namespace tracefs {

// Used by one thread.
class EmbeddedFiles {
 public:
  // Bytes that are written in all, and files.
  static constexpr uint64_t kMostBytes = uint64_t{1} << 30;
  static constexpr uint64_t kMostFiles = uint64_t{1} << 20;

  // `folder`: where they are put, which is new and nobody else's; empty: they
  // are listed only.
  explicit EmbeddedFiles(std::string folder) : folder_(std::move(folder)) {}
  Status Begin();

  // A FILE message. What is wrong with it is in problems().
  void Take(const format::EmbeddedFile& file);
  // After all: files that hold what another one does.
  void Finish();

  // A line for each file: its size, whether it is surely what was read, or why
  // it is not there, and its path.
  const std::string& listing() const { return listing_; }
  const std::vector<std::string>& problems() const { return problems_; }
  uint64_t files() const { return files_; }

 private:
  struct Same {  // as a content that may come later
    std::string hash;
    std::string path;
    uint32_t mode = 0;
  };
  void List(const format::EmbeddedFile& file);
  void Problem(std::string_view path, const std::string& what);
  Status Put(std::string_view path, uint32_t mode, ByteSpan content);
  Result<UniqueFd> Create(std::string_view path, uint32_t mode);

  const std::string folder_;
  UniqueFd base_;
  std::string listing_;
  std::vector<std::string> problems_;
  std::map<std::string, std::string> written_;  // paths, by hash
  std::vector<Same> same_;
  uint64_t files_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace tracefs
