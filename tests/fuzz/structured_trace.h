// Traces that keep their structure: frames with the length of what they hold,
// messages with that of their arguments. Checksums are put right by
// fuzzed_trace.h.
#pragma once

#include "tests/fuzz/structured.h"
#include "tracefs/format/constants.h"
#include "tracefs/format/frame.h"
#include "tracefs/format/message_cursor.h"

namespace tracefs::fuzz {

struct LooseArgument {
  uint16_t id = 0;
  std::string value;
  bool has_length = false;
};
struct LooseMessage {
  uint16_t id = 0;
  std::vector<LooseArgument> arguments;
  std::string rest;  // what is no argument
};

inline std::vector<LooseMessage> TakeApart(std::string_view block) {
  std::vector<LooseMessage> messages;
  format::MessageCursor in{AsBytes(block)};
  format::Message message;
  while (in.Next(&message)) {
    LooseMessage loose{.id = message.msg_id, .arguments = {}, .rest = {}};
    std::string_view left = AsText(message.arguments);
    while (left.size() >= 2) {
      const auto raw = LoadLe<uint16_t>(left.data());
      LooseArgument argument{.id = static_cast<uint16_t>(raw & 0x7FFF),
                             .value = {},
                             .has_length = (raw & 0x8000) != 0};
      size_t head = 2;
      size_t size = 0;
      if (argument.has_length) {
        if (left.size() < 6) break;
        head = 6;
        size = LoadLe<uint32_t>(left.data() + 2);
      } else {
        const int width = format::BuiltInWidths().Of(argument.id);
        if (width <= 0) break;
        size = static_cast<size_t>(width);
      }
      if (size > left.size() - head) break;
      argument.value = left.substr(head, size);
      left.remove_prefix(head + size);
      loose.arguments.push_back(std::move(argument));
    }
    loose.rest = left;
    messages.push_back(std::move(loose));
  }
  return messages;
}

template <typename T>
void AppendLe(std::string& out, T value) {
  out.resize(out.size() + sizeof value);
  StoreLe<T>(out.data() + out.size() - sizeof value, value);
}

inline std::string PutTogether(const std::vector<LooseMessage>& messages) {
  std::string block;
  for (const LooseMessage& message : messages) {
    std::string body;
    for (const LooseArgument& argument : message.arguments) {
      AppendLe<uint16_t>(
          body, static_cast<uint16_t>(argument.id |
                                      (argument.has_length ? 0x8000 : 0)));
      if (argument.has_length) {
        AppendLe<uint32_t>(body, static_cast<uint32_t>(argument.value.size()));
      }
      body += argument.value;
    }
    body += message.rest;
    AppendLe<uint16_t>(block, message.id);
    AppendLe<uint32_t>(block, static_cast<uint32_t>(6 + body.size()));
    block += body;
  }
  return block;
}

inline void ChangeValue(std::string& value, bool may_grow, Dice& dice) {
  if (Below(dice, 3) == 0) {
    constexpr std::array<uint64_t, 10> kEdges = {0,
                                                 1,
                                                 0x7F,
                                                 0xFF,
                                                 0xFFFF,
                                                 0x7FFFFFFF,
                                                 0xFFFFFFFF,
                                                 ~uint64_t{0} >> 1,
                                                 uint64_t{1} << 63,
                                                 ~uint64_t{0}};
    const uint64_t edge = kEdges[Below(dice, kEdges.size())];
    std::memcpy(value.data(), &edge, std::min(value.size(), sizeof edge));
    return;
  }
  const size_t size = value.size();
  if (may_grow) value.resize(size + Below(dice, 64));
  if (value.empty()) return;
  const size_t made = LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(value.data()),
                                       size, value.size());
  value.resize(may_grow ? made : size);
}

template <typename T>
void ChangeList(std::vector<T>& list, Dice& dice) {
  if (list.empty()) return;
  const size_t at = Below(dice, list.size());
  const size_t other = Below(dice, list.size());
  const auto place = list.begin() + static_cast<std::ptrdiff_t>(at);
  switch (Below(dice, 3)) {
    case 0:
      list.erase(place);
      break;
    case 1: {
      const T copy = list[other];
      list.insert(place, copy);
      break;
    }
    default:
      std::swap(list[at], list[other]);
  }
}

inline std::string ChangedBlock(std::string_view block, Dice& dice) {
  std::vector<LooseMessage> messages = TakeApart(block);
  for (size_t n = 1 + Below(dice, 4); n > 0 && !messages.empty(); --n) {
    LooseMessage& message = messages[Below(dice, messages.size())];
    LooseArgument* const argument =
        message.arguments.empty()
            ? nullptr
            : &message.arguments[Below(dice, message.arguments.size())];
    switch (Below(dice, 8)) {
      case 0:
        ChangeList(messages, dice);
        break;
      case 1:
        ChangeList(message.arguments, dice);
        break;
      case 2:
        message.id = static_cast<uint16_t>(Below(dice, 90));
        break;
      case 3:
        if (argument != nullptr) {
          argument->id = static_cast<uint16_t>(Below(dice, 260));
        }
        break;
      case 4:  // one of another message
        if (argument != nullptr) {
          const LooseArgument copy = *argument;
          messages[Below(dice, messages.size())].arguments.push_back(copy);
        }
        break;
      case 5:
        ChangeValue(message.rest, /*may_grow=*/true, dice);
        break;
      default:
        if (argument != nullptr) {
          ChangeValue(argument->value, argument->has_length, dice);
        }
    }
  }
  return PutTogether(messages);
}

// `trace` from its first frame on.
inline std::string ChangedFrames(std::string_view frames, Dice& dice) {
  struct Frame {
    format::FrameHeader header;
    std::string head;
    std::string payload;
  };
  std::vector<Frame> all;
  while (frames.size() >= format::kFrameHeaderBytes) {
    Frame frame;
    if (!format::DecodeFrameHeader(
            AsBytes(frames).first<format::kFrameHeaderBytes>(),
            &frame.header)) {
      break;
    }
    frame.head = frames.substr(0, format::kFrameHeaderBytes);
    frames.remove_prefix(format::kFrameHeaderBytes);
    frame.payload = frames.substr(0, frame.header.payload_bytes);
    frames.remove_prefix(frame.payload.size());
    all.push_back(std::move(frame));
  }
  if (!all.empty()) {
    Frame& frame = all[Below(dice, all.size())];
    switch (Below(dice, 6)) {
      case 0:
        ChangeList(all, dice);
        break;
      case 1:
        frame.head[8 + Below(dice, 8)] = static_cast<char>(dice());  // number
        break;
      case 2:
        frame.payload.resize(Below(dice, frame.payload.size() + 1));
        break;
      default:
        frame.payload = ChangedBlock(frame.payload, dice);
    }
  }
  std::string made;
  for (Frame& frame : all) {
    StoreLe<uint32_t>(frame.head.data() + 4,
                      static_cast<uint32_t>(frame.payload.size()));
    made += frame.head + frame.payload;
  }
  return made + std::string(frames);
}

// Inputs of fuzzed_trace.h.
inline size_t MutateTrace(uint8_t* data, size_t size, size_t max,
                          unsigned seed) {
  Dice dice(seed + 1);
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with('B') && Below(dice, 4) != 0) {
    return PutBack("B" + ChangedBlock(input.substr(1), dice), data, max);
  }
  const size_t kind = input.starts_with('R') ? 1 : 0;
  if (size >= kind + 12 && Below(dice, 4) != 0) {
    const size_t preamble = LoadLe<uint32_t>(input.data() + kind + 8);
    if (preamble <= size - kind) {
      const std::string made =
          "R" + std::string(input.substr(kind, preamble)) +
          ChangedFrames(input.substr(kind + preamble), dice);
      return PutBack(made, data, max);
    }
  }
  return LLVMFuzzerMutate(data, size, max);
}

}  // namespace tracefs::fuzz
