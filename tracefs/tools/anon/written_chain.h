// The output chain of a trace that is written here: what the chain of the
// original did to the size of blocks is done again, and what needs a key is
// not.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "filters/output/compress.h"
#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"

namespace tracefs::anonymize {

// The driver alone: the chain text of what was not compressed.
inline constexpr std::string_view kWrittenChain = "file";

struct WrittenChain {
  std::optional<CompressOptions> compress;
  // Filters of the original that are not applied again: "checksum".
  std::vector<std::string> left_out;

  // As a preamble names it.
  std::string Text() const;
};

// `original`: the chain text of its preamble, or anything: it is not believed
// to be more than it can be.
WrittenChain WrittenChainFor(std::string_view original);

// The driver of a chain text that is as tracers and tracefs-anon write it:
// names of filters, words that their options have, and one spelling, so that
// nothing else can be told by it. Nothing if it is not.
std::optional<std::string> DriverOfPlainChain(std::string_view text);

// Makes payloads of blocks. Threads: one at a time.
class PayloadMaker {
 public:
  explicit PayloadMaker(const WrittenChain& chain);
  ~PayloadMaker();
  // What stands for `block` in the trace; valid until the next call.
  Result<ByteSpan> Make(ByteSpan block);

 private:
  class Kept;
  Kept* kept_ = nullptr;                  // what the filter made; lives in it
  std::unique_ptr<OutputFilter> filter_;  // null: blocks go as they are
  bool begun_ = false;
};

}  // namespace tracefs::anonymize
