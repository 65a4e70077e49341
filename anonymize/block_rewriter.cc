#include "anonymize/block_rewriter.h"

#include <algorithm>

#include "anonymize/base64url.h"
#include "anonymize/header_rewriter.h"
#include "anonymize/sizes.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/text.h"
#include "tracefs/format/names.h"
#include "tracefs/format/process_message.h"

namespace tracefs::anonymize {
namespace {

using format::ArgId;
using format::Argument;
using format::ArgumentCursor;
using format::Message;
using format::MessageCursor;
using format::MessageId;

constexpr size_t kMinCapacity = size_t{64} << 10;
constexpr std::string_view kEncryptedProperty = "enc:";
constexpr std::string_view kHashedProperty = "hmac:";
constexpr size_t kMaxReasonBytes = 64;
// A message with more sealed names is hostile: a path has at most as many
// components.
constexpr size_t kMaxSealed = 4096;

constexpr uint16_t RawId(ArgId id) { return static_cast<uint16_t>(id); }

// Bytes of an argument before its value.
size_t HeadBytes(const Argument& argument) {
  return argument.has_length ? 6 : 2;
}

void AppendText(uint16_t arg_id, std::string_view value, ByteBuffer* out) {
  std::byte* at = out->Room(6 + value.size());
  StoreLe<uint16_t>(at, static_cast<uint16_t>(arg_id | format::kHasLength));
  StoreLe<uint32_t>(at + 2, static_cast<uint32_t>(value.size()));
  if (!value.empty()) std::memcpy(at + 6, value.data(), value.size());
  out->Advance(6 + value.size());
}

// Reasons are words of the program, never of the traced system.
bool IsReason(std::string_view text) {
  return text.size() <= kMaxReasonBytes &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

}  // namespace

void ByteBuffer::Grow(size_t n) {
  const size_t wanted = std::max({kMinCapacity, 2 * capacity_, size_ + n});
  auto grown = std::make_unique_for_overwrite<std::byte[]>(wanted);
  if (size_ != 0) std::memcpy(grown.get(), data_.get(), size_);
  data_ = std::move(grown);
  capacity_ = wanted;
}

BlockRewriter::BlockRewriter(const Plan* plan, const format::Serial& serial)
    : plan_(plan), serial_(serial), kinds_(65536, Kind::kUnknown) {
  for (uint16_t id = 0; id < steps_.size(); ++id) {
    const FieldPlan& field = plan->Field(id);
    steps_[id] = {field.treatment, static_cast<int16_t>(field.slot),
                  field.width};
  }
  for (uint32_t id = 0; id < kinds_.size(); ++id) {
    const auto msg_id = static_cast<uint16_t>(id);
    bool before;
    if (format::OperationOf(msg_id, &before)) {
      kinds_[id] = Kind::kOperation;
      continue;
    }
    switch (static_cast<MessageId>(msg_id)) {
      case MessageId::kStart:
        kinds_[id] = Kind::kStart;
        break;
      case MessageId::kBlock:
        kinds_[id] = Kind::kBlock;
        break;
      case MessageId::kDefPath:
        kinds_[id] = Kind::kDefPath;
        break;
      // What files hold, and what was worked out in clear: no policy covers
      // them.
      case MessageId::kFile:
      case MessageId::kIndex:
        kinds_[id] = Kind::kDropped;
        break;
      case MessageId::kLoss:
        kinds_[id] = Kind::kReasons;
        break;
      case MessageId::kFinal:
        kinds_[id] = Kind::kFinal;
        break;
      default:
        if (!plan->KeepsMessage(msg_id)) {
          kinds_[id] = Kind::kDropped;
        } else if (plan->KnowsMessage(msg_id)) {
          kinds_[id] = Kind::kOther;
        }
        break;
    }
  }
}

Result<std::unique_ptr<BlockRewriter>> BlockRewriter::Create(
    const Plan* plan, const format::Serial& serial, size_t cache_entries,
    MapTables* maps) {
  std::unique_ptr<BlockRewriter> made(new BlockRewriter(plan, serial));
  for (const NumberSlot& slot : plan->numbers()) {
    Result<NumberMapper> mapper =
        NumberMapper::Create(&slot, cache_entries, maps);
    if (!mapper.ok()) return mapper.status();
    made->numbers_.push_back(*std::move(mapper));
  }
  made->offsets_.resize(made->numbers_.size());
  // Pointed to from tree_.
  made->texts_.reserve(plan->texts().size());
  for (const TextSlot& slot : plan->texts()) {
    Result<TextMapper> mapper = TextMapper::Create(&slot, cache_entries, maps);
    if (!mapper.ok()) return mapper.status();
    made->texts_.push_back(*std::move(mapper));
    if (slot.rule.tree && made->tree_ == nullptr) {
      made->tree_ = &made->texts_.back();
    }
  }
  SecretMemory key(Siv::kKeyBytes);
  DeriveInto(plan->property_key().get(), "siv", key.bytes());
  Result<Siv> siv = Siv::Create(key.bytes());
  if (!siv.ok()) return siv.status();
  made->property_siv_ = *std::move(siv);
  made->property_mac_key_ = DeriveKey(plan->property_key().get(), "hmac");
  made->looks_around_ = plan->quantised_time() != nullptr || plan->has_tree() ||
                        plan->options().reveal;
  return made;
}

uint64_t BlockRewriter::left_as_they_are() const {
  uint64_t left = 0;
  for (const TextMapper& mapper : texts_) left += mapper.left_as_they_are();
  return left;
}

Status BlockRewriter::Rewrite(ByteSpan block, uint64_t sequence,
                              ByteBuffer* out) {
  random_ = {.serial = serial_, .block = sequence};
  paths_.clear();
  for (auto& offsets : offsets_) offsets.clear();
  const size_t from = out->size();
  Status status = RewriteMessages(block, out);
  if (status.ok()) status = ApplyNumbers(out);
  if (status.ok() && out->size() - from > format::kMaxPayloadBytes) {
    status = Status::Invalid("it would grow beyond 64 MiB");
  }
  if (!status.ok()) out->Truncate(from);
  return status;
}

Status BlockRewriter::ApplyNumbers(ByteBuffer* out) {
  for (size_t i = 0; i < numbers_.size(); ++i) {
    if (offsets_[i].empty()) continue;
    if (Status s = numbers_[i].Apply(out->data(), offsets_[i], &random_);
        !s.ok()) {
      return s;
    }
  }
  return Status::Ok();
}

Status BlockRewriter::RewriteMessages(ByteSpan block, ByteBuffer* out) {
  MessageCursor in(block);
  Message message;
  bool first = true;
  while (in.Next(&message)) {
    const Kind kind = kinds_[message.msg_id];
    Status status;
    if (first != (kind == Kind::kStart || kind == Kind::kBlock)) {
      status = Status::Corrupt("a block starts with BLOCK or START, once");
    } else if (kind == Kind::kUnknown) {
      status = Status::Invalid(
          "the policy does not say what becomes of it; nor does the trace say "
          "what it is");
    } else if (kind == Kind::kStart) {
      format::SelfDescription description;
      status = format::ReadStart(message.arguments, &description)
                   ? WriteStart(description, out)
                   : Status::Corrupt("an argument is cut short");
    } else if (kind != Kind::kDropped) {
      status = RewriteMessage(message, kind, out);
    }
    if (!status.ok()) {
      return status.Prefixed(format::MessageName(message.msg_id) + " at byte " +
                             std::to_string(message.offset));
    }
    first = false;
    ++messages_;
    operations_ += kind == Kind::kOperation;
    saw_final_ |= kind == Kind::kFinal;
  }
  if (in.malformed() || first) {
    return Status::Corrupt("the length of the message at byte " +
                           std::to_string(in.offset()) + " is wrong");
  }
  return Status::Ok();
}

Status BlockRewriter::RewriteMessage(const Message& message, Kind kind,
                                     ByteBuffer* out) {
  if (kind == Kind::kBlock) return RewriteBlockHead(message.arguments, out);
  if (kind == Kind::kReasons || kind == Kind::kFinal) {
    if (Status s = CheckReasons(message); !s.ok()) return s;
  }
  const size_t start = out->size();
  std::byte* head =
      out->Room(format::kMessageHeaderBytes + message.arguments.size());
  StoreLe<uint16_t>(head, message.msg_id);
  out->Advance(format::kMessageHeaderBytes);
  sealed_.clear();
  Around around;
  if (looks_around_) around = LookAround(message.arguments);

  // Arguments that stay, and numbers that will be replaced where they stand,
  // are copied in runs.
  const std::byte* run = message.arguments.data();
  ArgumentCursor in(message.arguments, plan_->widths());
  Argument argument;
  while (in.Next(&argument)) {
    const Step step = StepOf(argument.id);
    if (step.treatment == Treatment::kCopy) continue;
    const std::byte* value = argument.value.data();
    if (step.treatment == Treatment::kNumber && !argument.has_length) {
      const size_t at = out->size() + static_cast<size_t>(value - run);
      offsets_[static_cast<size_t>(step.slot)].push_back(
          static_cast<uint32_t>(at));
      continue;
    }
    out->Append(run, static_cast<size_t>(value - HeadBytes(argument) - run));
    run = value + argument.value.size();
    if (Status s = RewriteArgument(argument, step, around, out); !s.ok()) {
      return s;
    }
  }
  if (in.malformed()) return Status::Corrupt("an argument is cut short");
  const std::byte* end = message.arguments.data() + message.arguments.size();
  out->Append(run, static_cast<size_t>(end - run));
  for (const std::string& sealed : sealed_) {
    if (!sealed.empty()) AppendText(kSealedName, sealed, out);
  }
  if (tree_ != nullptr && kind == Kind::kDefPath) {
    DefinePath(around, defined_before_, defined_after_);
  }
  StoreLe<uint32_t>(out->data() + start + 2,
                    static_cast<uint32_t>(out->size() - start));
  return Status::Ok();
}

Status BlockRewriter::RewriteArgument(const Argument& argument, Step step,
                                      const Around& around, ByteBuffer* out) {
  switch (step.treatment) {
    case Treatment::kUnknown:
      return Status::Invalid("the policy does not say what becomes of its " +
                             (plan_->Field(argument.id).name.empty()
                                  ? "argument " + std::to_string(argument.id)
                                  : plan_->Field(argument.id).name));
    case Treatment::kDrop:
    case Treatment::kSealed:  // taken up by LookAround
      return Status::Ok();
    case Treatment::kText:
      return RewriteText(argument, step, around, out);
    case Treatment::kOpaque:
      return RewriteOpaque(argument, step, out);
    case Treatment::kProperty:
      return RewriteProperty(argument, out);
    case Treatment::kPipes:
      return RewritePipes(argument, step, out);
    case Treatment::kHistogram:
      return RewriteHistogram(argument, step, out);
    default:
      break;
  }
  // Numbers.
  if (argument.has_length) {
    return Status::Invalid(plan_->Field(argument.id).name +
                           " is opaque already: was the trace anonymised by "
                           "another tool?");
  }
  if (step.treatment == Treatment::kKeepNumber) {
    const auto& keep = plan_->numbers()[static_cast<size_t>(step.slot)].keep;
    uint64_t value = 0;
    std::memcpy(&value, argument.value.data(), argument.value.size());
    if (std::binary_search(keep.begin(), keep.end(), value)) {
      out->Append(argument.value.data() - 2, 2 + argument.value.size());
    }
    return Status::Ok();
  }
  // kDuration: the end moves to where quantising it leads.
  uint64_t duration = argument.As<uint64_t>();
  const NumberSlot& time = *plan_->quantised_time();
  if (around.has_begin) {
    duration = ShiftAndQuantise(time, around.begin_ns + duration) -
               ShiftAndQuantise(time, around.begin_ns);
  } else {
    duration -= duration % time.step;
  }
  out->Append(argument.value.data() - 2, 2);
  StoreLe(out->Room(8), duration);
  out->Advance(8);
  return Status::Ok();
}

Status BlockRewriter::RewriteText(const Argument& argument, Step step,
                                  const Around& around, ByteBuffer* out) {
  if (!argument.has_length) return Status::Corrupt("a text has no length");
  const std::string_view value = AsText(argument.value);
  TextMapper& mapper = texts_[static_cast<size_t>(step.slot)];
  if (plan_->texts()[static_cast<size_t>(step.slot)].action ==
      Action::kKeepValues) {
    if (mapper.Keeps(value)) AppendText(argument.id, value, out);
    return Status::Ok();
  }
  TextContext context = {
      .random = &random_, .sealed = &sealed_, .directory = nullptr};
  const bool is_name = argument.id == Info(Field::kName).arg_id;
  if (tree_ != nullptr) {
    if (is_name) {
      context.directory = KeyOf(around.parent);
    } else if (argument.id == Info(Field::kNewName).arg_id) {
      context.directory = KeyOf(around.new_parent);
    } else if (argument.id == Info(Field::kTarget).arg_id) {
      context.directory = mapper.symlink_root();
    } else {
      context.directory = mapper.root();
    }
  }
  text_.clear();
  if (Status s = mapper.Map(value, context, &text_); !s.ok()) return s;
  if (tree_ != nullptr && is_name) {
    defined_before_ = value;
    defined_after_ = text_;
  }
  AppendText(argument.id, text_, out);
  return Status::Ok();
}

Status BlockRewriter::RewriteOpaque(const Argument& argument, Step step,
                                    ByteBuffer* out) {
  const bool reveal = plan_->options().reveal;
  const TextContext context = {
      .random = &random_, .sealed = &sealed_, .directory = nullptr};
  if (argument.has_length != reveal) {
    return Status::Invalid(plan_->Field(argument.id).name +
                           (reveal ? " is not encrypted"
                                   : " is opaque already: was the trace "
                                     "anonymised by another tool?"));
  }
  text_.clear();
  if (Status s = texts_[static_cast<size_t>(step.slot)].Map(
          AsText(argument.value), context, &text_);
      !s.ok()) {
    return s;
  }
  if (!reveal) {
    AppendText(argument.id, text_, out);
    return Status::Ok();
  }
  if (text_.size() != step.width) {
    return Status::Corrupt(plan_->Field(argument.id).name +
                           " cannot be decrypted");
  }
  StoreLe<uint16_t>(out->Room(2), argument.id);
  out->Advance(2);
  out->Append(AsBytes(text_).data(), text_.size());
  return Status::Ok();
}

Status BlockRewriter::RewriteProperty(const Argument& argument,
                                      ByteBuffer* out) {
  std::string_view text = AsText(argument.value);
  const std::string_view key = TakeUpTo(text, '=');
  std::string value;
  const Result<bool> kept = MapProperty(key, text, &value);
  if (!kept.ok()) return kept.status();
  if (*kept) {
    AppendText(argument.id, std::string(key) + '=' + value, out);
  }
  return Status::Ok();
}

Status BlockRewriter::RewritePipes(const Argument& argument, Step step,
                                   ByteBuffer* out) {
  const size_t size = argument.value.size();
  if (!argument.has_length || size % format::kPipeBytes != 0) {
    return Status::Corrupt("ARG_PIPES is cut short");
  }
  AppendText(argument.id, AsText(argument.value), out);
  for (size_t at = out->size() - size; at != out->size();
       at += format::kPipeBytes) {
    out->data()[at + format::kPipeAccessOffset] &= std::byte{3};
    offsets_[static_cast<size_t>(step.slot)].push_back(
        static_cast<uint32_t>(at + format::kPipeInodeOffset));
  }
  return Status::Ok();
}

Status BlockRewriter::RewriteHistogram(const Argument& argument, Step step,
                                       ByteBuffer* out) {
  NumberMapper& mapper = numbers_[static_cast<size_t>(step.slot)];
  const Result<std::string> coarse = CoarseHistogram(
      argument.value,
      [&](uint64_t* value) { return mapper.Apply(value, &random_); });
  if (!coarse.ok()) return coarse.status();
  AppendText(argument.id, *coarse, out);
  return Status::Ok();
}

Result<bool> BlockRewriter::MapProperty(std::string_view key,
                                        std::string_view value,
                                        std::string* out) {
  const Rule& rule = plan_->PropertyRule(key);
  *out = value;
  if (plan_->options().reveal) {
    std::vector<std::byte> sealed;
    if (rule.action != Action::kEncrypt || !plan_->reveals_properties() ||
        !value.starts_with(kEncryptedProperty) ||
        !FromBase64url(value.substr(kEncryptedProperty.size()), &sealed) ||
        sealed.size() <= Siv::kTagBytes) {
      return true;
    }
    std::vector<std::byte> plain(sealed.size() - Siv::kTagBytes);
    if (property_siv_->Open(sealed, plain.data())) {
      *out = AsText(ByteSpan(plain).subspan(1));
    }
    return true;
  }
  switch (rule.action) {
    case Action::kDrop:
      return false;
    case Action::kZero:
      out->clear();
      return true;
    case Action::kEncrypt: {
      const std::string plain = '\1' + std::string(value);
      std::vector<std::byte> sealed(Siv::kTagBytes + plain.size());
      if (Status s = property_siv_->Seal(AsBytes(plain), sealed.data());
          !s.ok()) {
        return s;
      }
      *out = kEncryptedProperty;
      AppendBase64url(sealed, out);
      return true;
    }
    case Action::kHmac: {
      Digest digest;
      HmacSha256(property_mac_key_.get(), AsBytes(value), digest);
      *out = kHashedProperty;
      AppendBase64url(ByteSpan(digest).first(16), out);
      return true;
    }
    default:
      return true;
  }
}

Status BlockRewriter::MapClock(ArgId id, uint64_t* value) {
  const FieldPlan& field = plan_->Field(RawId(id));
  int slot = field.clock_slot;
  if (field.treatment == Treatment::kNumber) slot = field.slot;
  if (slot >= 0) {
    return numbers_[static_cast<size_t>(slot)].Apply(value, &random_);
  }
  if (field.treatment == Treatment::kDrop) *value = 0;
  return Status::Ok();
}

Status BlockRewriter::RewriteBlockHead(ByteSpan arguments, ByteBuffer* out) {
  format::BlockHead head;
  if (arguments.size() + format::kMessageHeaderBytes !=
          format::kBlockInfoBytes ||
      !format::ReadBlockHead(arguments, &head)) {
    return Status::Corrupt("its arguments are not those of a block");
  }
  const std::pair<ArgId, uint64_t*> clocks[] = {
      {ArgId::kClockMonotonic, &head.clock.monotonic_ns},
      {ArgId::kClockReal, &head.clock.real_ns},
      {ArgId::kFirstTime, &head.first_ns},
      {ArgId::kLastTime, &head.last_ns},
      {ArgId::kWatermark, &head.watermark_ns},
  };
  for (const auto& [id, value] : clocks) {
    if (Status s = MapClock(id, value); !s.ok()) return s;
  }
  format::MessageWriter writer(
      {out->Room(format::kBlockInfoBytes), format::kBlockInfoBytes});
  format::WriteBlockHead(writer, head);
  out->Advance(writer.size());
  return Status::Ok();
}

Status BlockRewriter::WriteStart(const format::SelfDescription& description,
                                 ByteBuffer* out) {
  NewHeader header;
  header.tracer_id = description.header.tracer_id;
  header.clock = description.header.clock;
  if (Status s = MapClock(ArgId::kClockMonotonic, &header.clock.monotonic_ns);
      !s.ok()) {
    return s;
  }
  if (Status s = MapClock(ArgId::kClockReal, &header.clock.real_ns); !s.ok()) {
    return s;
  }
  for (const auto& [key, value] : description.header.properties) {
    if (IsOwnProperty(key)) {
      if (plan_->options().reveal) continue;  // written again
      return Status::Invalid(
          "the trace has been anonymised before; start from the original, or "
          "reveal first");
    }
    std::string mapped;
    const Result<bool> kept = MapProperty(key, value, &mapped);
    if (!kept.ok()) return kept.status();
    if (*kept) header.properties.emplace_back(key, std::move(mapped));
  }
  AddOwnProperties(*plan_, description, &header);
  const std::vector<std::byte> start = EncodeStart(description, header);
  out->Append(start.data(), start.size());
  return Status::Ok();
}

Status BlockRewriter::CheckReasons(const Message& message) const {
  ArgumentCursor in(message.arguments, plan_->widths());
  Argument argument;
  while (in.Next(&argument)) {
    std::string_view reason;
    switch (static_cast<ArgId>(argument.id)) {
      case ArgId::kLossReason:
      case ArgId::kEndReason:
        reason = AsText(argument.value);
        break;
      case ArgId::kLossTotal:
        reason = AsText(argument.value);
        reason.remove_prefix(std::min<size_t>(8, reason.size()));
        break;
      default:
        continue;
    }
    if (!IsReason(reason)) {
      return Status::Corrupt("the reason " + Quoted(reason) + " is no word");
    }
  }
  return Status::Ok();
}

BlockRewriter::Around BlockRewriter::LookAround(ByteSpan arguments) {
  const uint16_t time_ns = Info(Field::kTime).arg_id;
  Around around;
  ArgumentCursor in(arguments, plan_->widths());
  Argument argument;
  while (in.Next(&argument)) {
    if (argument.id == time_ns && argument.is<uint64_t>()) {
      around.begin_ns = argument.As<uint64_t>();
      around.has_begin = true;
      continue;
    }
    if (argument.id == kSealedName && plan_->options().reveal) {
      if (sealed_.size() < kMaxSealed) {
        sealed_.emplace_back(AsText(argument.value));
      }
      continue;
    }
    switch (static_cast<ArgId>(argument.id)) {
      case ArgId::kTimeUsec:
        around.begin_ns = argument.As<uint64_t>() * kNsPerUs;
        around.has_begin = true;
        break;
      case ArgId::kTimeSec:
        around.begin_ns = argument.As<uint32_t>() * kNsPerSecond;
        around.has_begin = true;
        break;
      case ArgId::kPathId:
        around.path_id = argument.As<uint32_t>();
        break;
      case ArgId::kParentPathId:
        around.parent = argument.As<uint32_t>();
        break;
      case ArgId::kNewParentPathId:
        around.new_parent = argument.As<uint32_t>();
        break;
      default:
        break;
    }
  }
  // What is defined has the name that is about to be rewritten.
  defined_before_.clear();
  defined_after_.clear();
  return around;
}

}  // namespace tracefs::anonymize
