#include "filters/output/anonymize.h"

#include "anonymize/block_rewriter.h"
#include "anonymize/session.h"
#include "filters/output/payload_filter.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/trace_header.h"

namespace tracefs {
namespace {

using anonymize::BlockRewriter;
using anonymize::ByteBuffer;
using anonymize::MapTables;

// The description in a START block; false if the block is another.
bool ReadDescription(ByteSpan block, format::SelfDescription* description) {
  format::MessageCursor in(block);
  format::Message message;
  return in.Next(&message) &&
         message.msg_id == static_cast<uint16_t>(format::MessageId::kStart) &&
         format::ReadStart(message.arguments, description);
}

class Anonymize final : public PayloadFilter {
 public:
  Anonymize(anonymize::Policy policy, anonymize::KeySet keys,
            size_t block_bytes, std::unique_ptr<OutputFilter> next)
      : PayloadFilter(block_bytes, std::move(next)),
        policy_(std::move(policy)),
        keys_(std::move(keys)) {}

  // Plans for a trace that says this of itself.
  Status Plan(const format::SelfDescription& description) {
    auto plan = anonymize::MakeHidePlan(policy_, keys_, description);
    if (!plan.ok()) return plan.status();
    auto rewriter = BlockRewriter::Create(plan->get(), serial_,
                                          BlockRewriter::kDefaultCache, &maps_);
    if (!rewriter.ok()) return rewriter.status();
    rewriter_ = *std::move(rewriter);  // before the plan that the old one uses
    plan_ = *std::move(plan);
    return Status::Ok();
  }

 private:
  Status Begin(const TraceIdentity& identity) override {
    serial_ = identity.serial;
    rewriter_.reset();
    return Status::Ok();
  }

  // Whatever the policy: nobody needs the times of seals to be real.
  bool HidesTimes() const override { return true; }

  Result<ByteSpan> Encode(ByteSpan block, const BlockInfo& info) override {
    format::SelfDescription description;
    if (rewriter_ == nullptr) {
      // The tracer writes its header first. Nothing may pass without a plan.
      if (!ReadDescription(block, &description)) {
        return Status::Invalid("anonymize: the trace did not begin with START");
      }
      if (Status s = Plan(description); !s.ok()) return s;
      // A filter serves one trace, and its plan has the keys of that.
      keys_.ForgetMaster();
    }
    out_.Clear();
    if (Status s = rewriter_->Rewrite(block, info.sequence, &out_); !s.ok()) {
      return s.Prefixed("anonymize");
    }
    return out_.bytes();
  }

  const anonymize::Policy policy_;
  anonymize::KeySet keys_;
  format::Serial serial_{};
  MapTables maps_;
  std::unique_ptr<const anonymize::Plan> plan_;
  std::unique_ptr<BlockRewriter> rewriter_;
  ByteBuffer out_;
};

}  // namespace

Result<std::unique_ptr<OutputFilter>> MakeAnonymize(
    anonymize::Policy policy, anonymize::KeySet keys, size_t block_bytes,
    std::unique_ptr<OutputFilter> next) {
  auto filter = std::make_unique<Anonymize>(std::move(policy), std::move(keys),
                                            block_bytes, std::move(next));
  // Better now than after the mount: what this version describes.
  format::SelfDescription description;
  const std::vector<std::byte> start = format::EncodeStartBlock({});
  (void)ReadDescription(start, &description);
  if (Status s = filter->Plan(description); !s.ok()) {
    return s.Prefixed("anonymize");
  }
  return std::unique_ptr<OutputFilter>(std::move(filter));
}

}  // namespace tracefs
