#include "tracefs/tools/anon/audit_walk.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "filters/output/chain.h"
#include "tracefs/format/process_message.h"

namespace tracefs::anonymize {

using format::Argument;
using format::ArgumentCursor;
using format::Frame;
using format::Message;
using format::MessageCursor;
using format::MessageId;
using format::ReadStep;

namespace {

// The inodes of the pipes in ARG_PIPES, each as the argument that it would be
// by itself.
void ForEachInode(const Argument& argument,
                  const std::function<void(const Argument&)>& use) {
  if (argument.id != static_cast<uint16_t>(format::ArgId::kPipes)) return;
  for (ByteSpan at = argument.value; at.size() >= format::kPipeBytes;
       at = at.subspan(format::kPipeBytes)) {
    Argument inode = argument;
    inode.id = Info(tracefs::Field::kInode).arg_id;
    inode.has_length = false;
    inode.value = at.subspan(format::kPipeInodeOffset, sizeof(uint64_t));
    use(inode);
  }
}

}  // namespace

Status Walk(const std::string& name, reader::TraceSet::Options options,
            Visitor visitor, Container* container) {
  if (options.decoder == nullptr) {
    options.decoder =
        MakeDecoderFactory(options.keys, [&](const BlockNotes& notes) {
          for (const ChecksumNote& note : notes.checksums) {
            container->real_times += note.head.real_ns != 0 ? 1 : 0;
          }
        });
  }
  reader::TraceSet traces(std::move(options));
  if (Status s = traces.AddTrace({name, {name}}); !s.ok()) return s;
  format::TraceReader& trace = traces.trace(0);
  const Result<ReadStep> ready = trace.ReadPreamble();
  if (!ready.ok()) return ready.status().Prefixed(name);
  auto decoder = trace.MakeDecoder();
  if (!decoder.ok()) return decoder.status().Prefixed(name);
  std::shared_ptr<const Plan> plan;
  std::vector<char> wants_numbers;  // by field
  bool final_seen = false;
  std::vector<std::byte> block;
  for (;;) {
    Frame frame;
    const Result<ReadStep> step = trace.NextPayload(&frame);
    if (!step.ok()) return step.status().Prefixed(name);
    if (*step != ReadStep::kItem) break;
    if (final_seen) ++container->frames_after_final;
    if (Status s = (*decoder)->Decode(frame.header, frame.payload, &block);
        !s.ok()) {
      if (plan == nullptr) return s.Prefixed(name);
      ++container->undecodable;
      continue;
    }
    MessageCursor in(block);
    Message message;
    while (in.Next(&message)) {
      bool before = false;
      if (format::OperationOf(message.msg_id, &before)) {
        ++container->operations;
      }
      container->embedded_files +=
          message.msg_id == static_cast<uint16_t>(MessageId::kFile) ? 1 : 0;
      container->index_pieces +=
          message.msg_id == static_cast<uint16_t>(MessageId::kIndex) ? 1 : 0;
      final_seen |= message.msg_id == static_cast<uint16_t>(MessageId::kFinal);
      if (plan == nullptr) {
        format::SelfDescription description;
        if (message.msg_id != static_cast<uint16_t>(MessageId::kStart) ||
            !format::ReadStart(message.arguments, &description)) {
          return Status::Corrupt(name + ": the trace has lost its header");
        }
        if (Status s = visitor.on_header(description, trace.preamble(), &plan);
            !s.ok()) {
          return s.Prefixed(name);
        }
        for (const FieldPlan& field : plan->fields()) {
          wants_numbers.push_back(visitor.wants_numbers(field) ? 1 : 0);
        }
      }
      ArgumentCursor arguments(message.arguments, plan->widths());
      Argument argument;
      while (arguments.Next(&argument)) {
        const FieldPlan& field = plan->Field(argument.id);
        if (!argument.has_length &&
            wants_numbers[plan->NumberOfField(field)] == 0) {
          continue;  // half of all arguments
        }
        visitor.on_argument(message, argument, field);
        ForEachInode(argument, [&](const Argument& inode) {
          const FieldPlan& of_inode = plan->Field(inode.id);
          if (wants_numbers[plan->NumberOfField(of_inode)] != 0) {
            visitor.on_argument(message, inode, of_inode);
          }
        });
      }
      if (arguments.malformed()) ++container->undecodable;
    }
    if (in.malformed()) ++container->undecodable;
    if (visitor.on_block) visitor.on_block(std::move(block), frame);
  }
  const format::ReadStats& stats = trace.stats();
  container->unknown_frames = stats.unknown_frames;
  container->damaged_bytes = stats.damaged_bytes + stats.cut_bytes;
  container->duplicates = stats.duplicate_blocks;
  if (stats.snapshot && stats.snapshot->real_ns != 0) ++container->real_times;
  if (plan == nullptr) {
    return Status::Corrupt(name + ": the trace holds no block");
  }
  return Status::Ok();
}

Result<std::unique_ptr<const Plan>> LookupPlan(
    const Policy& policy, const format::SelfDescription& description) {
  return Plan::Make(policy, description, KeySet(), {.reveal = true});
}

bool Hidden(const FieldPlan& field) {
  return field.rule != nullptr && field.rule->action != Action::kKeep;
}

NumberGroup GroupOf(const FieldPlan& field) {
  return {field.class_name.empty() ? field.name : field.class_name,
          field.per_second, field.width};
}

uint64_t LoadVeryWide(ByteSpan bytes) {
  uint64_t number = 0;
  std::memcpy(&number, bytes.data(), std::min(sizeof number, bytes.size()));
  if (bytes.size() <= sizeof number) return number;
  return number ^ std::hash<std::string_view>()(AsText(bytes.subspan(8)));
}

}  // namespace tracefs::anonymize
