// Tells what becomes of the field and of the operation that docs/extending.md
// adds: from an event through a message to lines, and what filters and policies
// know of them. Compiled by tests/docs/additions_test.py, with the additions.
#include <iostream>

#include "anonymize/fields.h"
#include "drivers/assembly/stream.h"
#include "tracefs/export/jsonl.h"
#include "tracefs/export/text.h"
#include "tracefs/format/constants.h"
#include "tracefs/pipeline/block_builder.h"

namespace tracefs {
namespace {

// What the stream driver writes of the event, as a reader finds it.
void Read(const BlockBuilder& block, size_t begin, format::Record* record) {
  format::MessageCursor messages(block.block().writer.bytes().subspan(begin));
  format::Message message;
  messages.Next(&message);
  record->event.op =
      *format::OperationOf(message.msg_id, &record->event.before);
  const format::ArgumentWidths widths;
  format::ArgumentCursor arguments(message.arguments, widths);
  format::Argument argument;
  while (arguments.Next(&argument)) {
    record->event.Set(FieldByArgId(argument.id)->field,
                      argument.is<uint64_t>() ? argument.As<uint64_t>()
                                              : argument.As<uint32_t>());
  }
}

void Show(Event event) {
  BlockBuilder block(BlockBuilder::kMinBlockBytes);
  block.Mark();
  const size_t begin = block.writer().size();
  MakeStream(StreamFlagBits("STR_ARGS"))->Assemble(event, block);
  format::Record record;
  Read(block, begin, &record);
  StringOutput out;
  MakeTextExporter(out, {})->Write(record);
  MakeJsonlExporter(out, {})->Write(record);
  static_cast<void>(out.Flush());
  std::cout << out.text();
}

}  // namespace
}  // namespace tracefs

int main() {
  using namespace tracefs;  // NOLINT: a main
  Event read;
  read.op = Op::read_;
  read.Set(Field::kPriority, 4);
  Show(read);
  Event bmap;
  bmap.op = Op::bmap_;
  bmap.Set(Field::kOffset, 3);
  bmap.Set(Field::kLength, 4096);
  Show(bmap);
  const FieldInfo& field = *FieldByPredicate("Priority");
  std::cout
      << field.trace_name << ": "
      << anonymize::InfoOf(format::FindArgument(field.arg_id)->data_class).name
      << '\n';
  for (const std::string_view word : {"read", "bmap"}) {
    const Op op = *OpFromName(word);
    std::cout << format::MessageName(format::OperationMessage(op, false))
              << ": priority "
              << ((Info(op).request_fields & Bit(field.field)) != 0) << '\n';
  }
}
