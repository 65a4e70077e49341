// What both of XRay's formats have in common: operations as calls of functions,
// in order of their begins.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tracefs/export/exporter.h"
#include "tracefs/export/lanes.h"

namespace tracefs {

// Who called what, when.
struct FunctionCall {
  // As the format has processors; nothing told where it was.
  static constexpr uint16_t kNoCpu = UINT16_MAX;

  int32_t function = 0;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint16_t cpu = kNoCpu;
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t inode = 0;
  int64_t result = 0;     // what the call returned; -errno where it failed
  std::string_view json;  // the operation as JSON Lines have it
};

class XrayExporter : public Exporter {
 public:
  XrayExporter(OutputBuffer& out, const ExportOptions& options);

  void Write(const format::Record& record) override;
  void WriteProcess(const ProcessRecord& record) override;
  void Finish() override;
  uint64_t left_out() const override { return left_out_; }
  Status status() const override { return status_; }

 protected:
  virtual void Put(const FunctionCall& call) = 0;
  // What happened to a process, by who did it; `function` and `end` mean
  // nothing.
  virtual void PutEvent(const FunctionCall& /*event*/) {}
  virtual void End() = 0;

  OutputBuffer& out() { return out_; }
  uint64_t origin_ns() const { return origin_ns_; }
  void LeaveOut() { ++left_out_; }
  void PutHeader(uint16_t version, uint16_t type, uint64_t free_form);

 private:
  // Processes whose processor is remembered.
  static constexpr size_t kMostProcesses = 65536;

  // Told late: then at once.
  uint64_t Now(uint64_t real_ns);
  void NoteCpu(uint32_t pid, uint16_t cpu);

  OutputBuffer& out_;
  const std::string map_;
  StringOutput json_;
  const std::unique_ptr<Exporter> jsonl_;
  Lanes lanes_;
  // Where a process was when something was last told of it.
  std::unordered_map<uint32_t, uint16_t> cpus_;
  uint64_t last_ns_ = 0;
  uint64_t origin_ns_ = 0;
  uint64_t left_out_ = 0;
  Status status_;
};

}  // namespace tracefs
