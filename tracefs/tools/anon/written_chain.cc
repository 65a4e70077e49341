#include "tracefs/tools/anon/written_chain.h"

#include <algorithm>
#include <set>
#include <utility>

#include "filters/output/chain.h"
#include "filters/output/table.h"

namespace tracefs::anonymize {
namespace {

constexpr size_t kMaxDriverName = 16;

}  // namespace

// Where the filter hands on what it made.
class PayloadMaker::Kept final : public OutputFilter {
 public:
  Status Initialize(const TraceIdentity&) override { return Status::Ok(); }
  Status Write(ByteSpan payload, const BlockInfo&) override {
    payload_ = payload;
    return Status::Ok();
  }
  Status Flush() override { return Status::Ok(); }
  Status Release() override { return Status::Ok(); }
  size_t PreferredBlockSize() const override { return 0; }

  ByteSpan payload() const { return payload_; }

 private:
  ByteSpan payload_;  // in the filter's memory
};

std::string WrittenChain::Text() const {
  std::string text;
  if (compress) {
    text = compress->algorithm == CompressAlgorithm::kZstd
               ? "compress alg=zstd; "
               : "compress alg=zlib; ";
  }
  return text + std::string(kWrittenChain);
}

WrittenChain WrittenChainFor(std::string_view original) {
  WrittenChain chain;
  for (const ChainStage& stage : ParseChain(original)) {
    if (stage.name == "compress") {
      chain.compress = CompressOptions{
          .algorithm = stage.Get("alg") == "zstd" ? CompressAlgorithm::kZstd
                                                  : CompressAlgorithm::kZlib};
    } else if (stage.name == "checksum" || stage.name == "encrypt") {
      chain.left_out.push_back(stage.name);
    }
  }
  return chain;
}

std::optional<std::string> DriverOfPlainChain(std::string_view text) {
  std::vector<ChainStage> stages = ParseChain(text);
  if (stages.empty()) return std::nullopt;
  const ChainStage driver = std::move(stages.back());
  stages.pop_back();
  std::string again;
  for (const ChainStage& stage : stages) {
    const OutputFilterRow* row = FindOutputFilter(stage.name);
    if (row == nullptr) return std::nullopt;
    again += stage.name;
    std::set<std::string_view> given;
    for (const auto& [name, value] : stage.parameters) {
      const bool known = std::any_of(
          row->entry.options.begin(), row->entry.options.end(),
          [&, &name = name, &value = value](const OptionRow& option) {
            return option.name == name && option.type == ValueType::kChoice &&
                   std::find(option.words.begin(), option.words.end(), value) !=
                       option.words.end();
          });
      if (!known || !given.insert(name).second) return std::nullopt;
      again += ' ' + name + '=' + value;
    }
    again += "; ";
  }
  const bool word = !driver.name.empty() &&
                    driver.name.size() <= kMaxDriverName &&
                    std::all_of(driver.name.begin(), driver.name.end(),
                                [](char c) { return c >= 'a' && c <= 'z'; });
  if (!word || again + driver.name != text) return std::nullopt;
  return driver.name;
}

PayloadMaker::PayloadMaker(const WrittenChain& chain) {
  if (!chain.compress) return;
  auto kept = std::make_unique<Kept>();
  kept_ = kept.get();
  filter_ = MakeCompress(*chain.compress, std::move(kept));
}

PayloadMaker::~PayloadMaker() {
  if (begun_) static_cast<void>(filter_->Release());
}

Result<ByteSpan> PayloadMaker::Make(ByteSpan block) {
  if (filter_ == nullptr) return block;
  if (!begun_) {
    if (Status s = filter_->Initialize({}); !s.ok()) return s;
    begun_ = true;
  }
  if (Status s = filter_->Write(block, {}); !s.ok()) return s;
  return kept_->payload();
}

}  // namespace tracefs::anonymize
