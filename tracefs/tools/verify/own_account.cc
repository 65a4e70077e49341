#include "tracefs/tools/verify/own_account.h"

#include <algorithm>

#include "tracefs/format/block_info.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/report.h"

namespace tracefs {

using format::MessageId;
using format::ReadStats;

bool OwnAccount::Add(ByteSpan block) {
  format::MessageCursor messages(block);
  format::Message message;
  bool final = false;
  while (messages.Next(&message)) {
    if (message.msg_id == static_cast<uint16_t>(MessageId::kLoss)) {
      format::LossRecord loss;
      format::ReadLoss(message.arguments, &loss);
      ReadStats::CountOf(loss.reason, &told_) += loss.count;
    } else if (message.msg_id == static_cast<uint16_t>(MessageId::kFinal)) {
      final = true;
      format::FinalRecord record;
      format::ReadFinal(message.arguments, &record);
      for (const format::FinalRecord::LossTotal& total : record.loss_totals) {
        uint64_t& count = ReadStats::CountOf(total.reason, &in_all_);
        count = std::max(count, total.count);
      }
    }
  }
  return final;
}

void OwnAccount::AddTo(std::vector<JudgedRange>* findings) const {
  ReadStats::Losses lost = told_;
  for (const auto& [reason, count] : in_all_) {
    uint64_t& known = lost[reason];
    known = std::max(known, count);
  }
  for (const auto& [reason, count] : lost) {
    if (count == 0) continue;
    const format::Report report{
        .kind = format::ReportKind::kLoss, .count = count, .detail = reason};
    findings->push_back({.trust = Trust::kMissing,
                         .has_numbers = false,
                         .why = report.Text() + ", as the trace itself says",
                         .by_own_account = true});
  }
}

}  // namespace tracefs
