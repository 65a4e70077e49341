// The rows of table.cc: what each driver's own file says of its options.
#pragma once

#include <algorithm>
#include <iterator>

#include "drivers/output/table.h"

namespace tracefs {

OutputDriverRow FileRow();
OutputDriverRow DeviceRow();
OutputDriverRow FifoRow();
OutputDriverRow FlightRow();
OutputDriverRow KafkaRow();
OutputDriverRow NatsRow();
OutputDriverRow SyslogRow();
OutputDriverRow TcpRow();
OutputDriverRow TlsRow();
OutputDriverRow UnixRow();

// --- What they share.

// `buf = N`: the paper's name for the size of a block.
inline constexpr OptionRow kBufOption = {.name = "buf",
                                         .type = ValueType::kSize,
                                         .min = 4096,
                                         .max = uint64_t{16} << 20};

// For outputs that wait: what may wait, and the longest pause between attempts
// to connect.
inline constexpr OptionRow kQueueOption = {.name = "queue",
                                           .type = ValueType::kSize,
                                           .min = 65536,
                                           .max = uint64_t{4} << 30};
inline constexpr OptionRow kRetryOption = {.name = "retry",
                                           .type = ValueType::kDuration,
                                           .min = 100'000'000,
                                           .max = 3'600'000'000'000};

// The words of `when_full`, in the order of LossPolicy.
inline constexpr std::string_view kPolicyWords[] = {"block", "drop", "spill",
                                                    "degrade", "fail"};
static_assert(std::size(kPolicyWords) ==
              static_cast<size_t>(LossPolicy::kFail) + 1);
inline LossPolicy PolicyOf(const ConfigEntry& entry, LossPolicy otherwise) {
  const auto* const word =
      std::find(std::begin(kPolicyWords), std::end(kPolicyWords),
                entry.Text("when_full"));
  return word == std::end(kPolicyWords)
             ? otherwise
             : static_cast<LossPolicy>(word - std::begin(kPolicyWords));
}

// `when_full = drop | degrade | fail`: of a tracer whose output is local and
// never waits.
inline constexpr std::string_view kLocalPolicies[] = {"drop", "degrade",
                                                      "fail"};
inline constexpr OptionRow kLocalPolicyOption = {
    .name = "when_full", .type = ValueType::kChoice, .words = kLocalPolicies};

// The folder of the entry's path: opened here, or the next that is given.
inline Result<OutputFolder> FolderOf(const ConfigEntry& entry, Given* given) {
  return given->any() ? OutputFolder::Adopt(entry.value.text, given->Take())
                      : OutputFolder::Open(entry.value.text);
}

// What `make` returns where there is no more to say of the driver.
inline Result<MadeOutputDriver> Made(
    Result<std::unique_ptr<OutputDriver>> driver,
    LossPolicy when_full = LossPolicy::kBlock) {
  if (!driver.ok()) return driver.status();
  return MadeOutputDriver{.driver = *std::move(driver), .when_full = when_full};
}

}  // namespace tracefs
