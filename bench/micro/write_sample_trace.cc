// Writes the trace of sample_trace.h to standard output, for scripts that time
// commands (bench/query, bench/reading). With a number of bytes: its blocks
// again and again, each time later, until there are so many.
#include <cstdio>
#include <cstdlib>

#include "bench/micro/sample_trace.h"
#include "tracefs/format/block_info.h"
#include "tracefs/format/frame_reader.h"
#include "tracefs/format/message_cursor.h"

namespace tracefs::bench {
namespace {

using namespace tracefs::format;  // NOLINT: a benchmark

bool Write(std::string_view bytes) {
  return std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
}

// The sample's blocks of operations.
std::vector<std::vector<std::byte>> SampleBlocks() {
  std::vector<std::vector<std::byte>> blocks;
  ReadStats stats;
  const ReportSink report;
  FrameReader frames(std::make_unique<MemorySource>(AsBytes(SampleTrace())),
                     false, &stats, &report);
  if (!frames.ReadPreamble().ok()) return blocks;
  for (Frame frame; *frames.Next(&frame) == ReadStep::kItem;) {
    if (frame.header.sequence == 0) continue;
    blocks.emplace_back(frame.payload.begin(), frame.payload.end());
  }
  blocks.pop_back();  // FINAL
  return blocks;
}

// Puts the block and its operations that much later.
BlockHead Shift(uint64_t ns, std::vector<std::byte>* block) {
  BlockHead head;
  MessageCursor in(*block);
  Message message;
  in.Next(&message);
  ReadBlockHead(message.arguments, &head);
  head.first_ns += ns;
  head.last_ns += ns;
  head.watermark_ns += ns;
  MessageWriter out(std::span<std::byte>(*block).first(kBlockInfoBytes));
  WriteBlockHead(out, head);
  while (in.Next(&message)) {
    bool before;
    if (!OperationOf(message.msg_id, &before)) continue;
    ArgumentCursor arguments(message.arguments, BuiltInWidths());
    for (Argument argument; arguments.Next(&argument);) {
      if (argument.id != Info(Field::kTime).arg_id) continue;
      std::byte* const at =
          block->data() + (argument.value.data() - block->data());
      StoreLe<uint64_t>(at, argument.As<uint64_t>() + ns);
      break;
    }
  }
  return head;
}

bool WriteLarge(uint64_t bytes) {
  const std::vector<std::vector<std::byte>> blocks = SampleBlocks();
  test::TraceBuilder trace;
  if (!Write(trace.bytes())) return false;
  uint64_t written = trace.bytes().size();
  uint64_t sequence = 1;
  FinalRecord final_record;
  uint64_t last_ns = 0;
  for (uint64_t shift = 0; written < bytes;
       shift = last_ns - test::TraceBuilder::kMonotonicNs) {
    for (std::vector<std::byte> block : blocks) {
      const BlockHead head = Shift(shift, &block);
      final_record.tracer_id = head.tracer_id;
      final_record.clock = head.clock;
      final_record.events += head.events;
      last_ns = head.last_ns;
      const std::string frame = trace.Frame(sequence++, AsText(block));
      if (!Write(frame)) return false;
      written += frame.size();
      if (written >= bytes) break;
    }
  }
  final_record.blocks = sequence + 1;
  final_record.end_reason = "unmount";
  std::vector<std::byte> memory(kBlockInfoBytes + kFinalMaxBytes);
  MessageWriter out(memory);
  WriteBlockHead(out, {.tracer_id = final_record.tracer_id,
                       .clock = final_record.clock,
                       .watermark_ns = last_ns});
  WriteFinal(out, final_record);
  return Write(trace.Frame(sequence, AsText(out.bytes())));
}

}  // namespace
}  // namespace tracefs::bench

int main(int argc, char** argv) {
  using namespace tracefs::bench;  // NOLINT: a benchmark
  const bool ok = argc > 1 ? WriteLarge(std::strtoull(argv[1], nullptr, 10))
                           : Write(SampleTrace());
  return ok && std::fflush(stdout) == 0 ? 0 : 1;
}
