#include "tracefs/format/names.h"

#include <utility>

namespace tracefs::format {
namespace {

// The numbers of FieldType are part of the format (FORMAT.md section 5).
static_assert(static_cast<int>(FieldType::kUnsigned) == 0);
static_assert(static_cast<int>(FieldType::kSigned) == 1);
static_assert(static_cast<int>(FieldType::kHex) == 2);
static_assert(static_cast<int>(FieldType::kOctal) == 3);
static_assert(static_cast<int>(FieldType::kOpenFlags) == 4);
static_assert(static_cast<int>(FieldType::kTimeNs) == 5);
static_assert(static_cast<int>(FieldType::kDurationNs) == 6);
static_assert(static_cast<int>(FieldType::kErrno) == 7);
static_assert(static_cast<int>(FieldType::kUser) == 8);
static_assert(static_cast<int>(FieldType::kGroup) == 9);
static_assert(static_cast<int>(FieldType::kFileType) == 10);
static_assert(static_cast<int>(FieldType::kOp) == 11);
static_assert(static_cast<int>(FieldType::kName) == 12);
static_assert(static_cast<int>(FieldType::kText) == 13);
static_assert(static_cast<int>(FieldType::kBytes) == 14);

using T = FieldType;
using C = DataClass;
using S = DataShape;

struct Meaning {
  C data_class;
  S shape;
};
constexpr Meaning kFrame = {C::kStructure, S::kStructure};
constexpr Meaning kTotal = {C::kTotals, S::kStructure};
constexpr Meaning kMoment = {C::kTime, S::kNumber};
constexpr Meaning kNames = {C::kName, S::kPath};
constexpr Meaning kProcess = {C::kPid, S::kNumber};
constexpr Meaning kAsked = {C::kRequest, S::kNumber};
constexpr Meaning kContents = {C::kData, S::kBytes};

// The arguments that are no fields: ArgId.
constexpr struct {
  ArgId id;
  uint16_t width;
  T type;
  Meaning meaning;
  std::string_view name;
} kReserved[] = {
    {ArgId::kTimeSec, 4, T::kUnsigned, kMoment, "ARG_TIME_SEC"},
    {ArgId::kTimeUsec, 8, T::kUnsigned, kMoment, "ARG_TIME_USEC"},
    {ArgId::kPathId, 4, T::kUnsigned, kFrame, "ARG_PATH_ID"},
    {ArgId::kParentPathId, 4, T::kUnsigned, kFrame, "ARG_PARENT_PATH_ID"},
    {ArgId::kNewParentPathId, 4, T::kUnsigned, kFrame,
     "ARG_NEW_PARENT_PATH_ID"},
    {ArgId::kProcessId, 4, T::kUnsigned, kFrame, "ARG_PROCESS_ID"},
    {ArgId::kStartTime, 8, T::kUnsigned, kMoment, "ARG_START_TIME"},
    {ArgId::kClockMonotonic, 8, T::kTimeNs, kMoment, "ARG_CLOCK_MONOTONIC"},
    {ArgId::kClockReal,
     8,
     T::kUnsigned,
     {C::kClock, S::kNumber},
     "ARG_CLOCK_REAL"},
    {ArgId::kFirstTime, 8, T::kTimeNs, kMoment, "ARG_FIRST_TIME"},
    {ArgId::kLastTime, 8, T::kTimeNs, kMoment, "ARG_LAST_TIME"},
    {ArgId::kWatermark, 8, T::kTimeNs, kMoment, "ARG_WATERMARK"},
    {ArgId::kEventCount, 8, T::kUnsigned, kFrame, "ARG_EVENT_COUNT"},
    {ArgId::kLossCount, 8, T::kUnsigned, kTotal, "ARG_LOSS_COUNT"},
    {ArgId::kLossReason, 0, T::kText, kTotal, "ARG_LOSS_REASON"},
    {ArgId::kOpTotal, 0, T::kBytes, kTotal, "ARG_OP_TOTAL"},
    {ArgId::kLossTotal, 0, T::kBytes, kTotal, "ARG_LOSS_TOTAL"},
    {ArgId::kEndReason, 0, T::kText, kTotal, "ARG_END_REASON"},
    {ArgId::kTracerId, 4, T::kUnsigned, kFrame, "ARG_TRACER_ID"},
    {ArgId::kBlockCount, 8, T::kUnsigned, kFrame, "ARG_BLOCK_COUNT"},
    {ArgId::kMessageName, 0, T::kBytes, kFrame, "ARG_MESSAGE_NAME"},
    {ArgId::kArgumentName, 0, T::kBytes, kFrame, "ARG_ARGUMENT_NAME"},
    {ArgId::kProperty,
     0,
     T::kText,
     {C::kStructure, S::kProperty},
     "ARG_PROPERTY"},
    {ArgId::kAggregate, 4, T::kUnsigned, kTotal, "ARG_AGGREGATE"},
    {ArgId::kAggregateTotal, 1, T::kUnsigned, kTotal, "ARG_AGGREGATE_TOTAL"},
    {ArgId::kKeyOp, 1, T::kOp, {C::kRequest, S::kNumber}, "ARG_KEY_OP"},
    {ArgId::kDirectory, 0, T::kText, kNames, "ARG_DIRECTORY"},
    {ArgId::kOther, 1, T::kUnsigned, kTotal, "ARG_OTHER"},
    {ArgId::kCount, 8, T::kUnsigned, kTotal, "ARG_COUNT"},
    {ArgId::kCountMissed, 8, T::kUnsigned, kTotal, "ARG_COUNT_MISSED"},
    {ArgId::kErrorCount, 8, T::kUnsigned, kTotal, "ARG_ERROR_COUNT"},
    {ArgId::kByteCount, 8, T::kUnsigned, kTotal, "ARG_BYTE_COUNT"},
    {ArgId::kLatencySum, 8, T::kDurationNs, kTotal, "ARG_LATENCY_SUM"},
    {ArgId::kLatencyMax, 8, T::kDurationNs, kTotal, "ARG_LATENCY_MAX"},
    {ArgId::kLatencyHistogram, 0, T::kBytes, kTotal, "ARG_LATENCY_HISTOGRAM"},
    {ArgId::kSizeMax, 8, T::kUnsigned, kTotal, "ARG_SIZE_MAX"},
    {ArgId::kSizeHistogram, 0, T::kBytes, kTotal, "ARG_SIZE_HISTOGRAM"},
    {ArgId::kRule, 4, T::kUnsigned, kTotal, "ARG_RULE"},
    // The author of the config may have put names into titles and actions.
    {ArgId::kRuleTitle, 0, T::kText, kNames, "ARG_RULE_TITLE"},
    {ArgId::kRuleKey, 0, T::kText, kTotal, "ARG_RULE_KEY"},
    {ArgId::kRuleLimit, 8, T::kUnsigned, kTotal, "ARG_RULE_LIMIT"},
    {ArgId::kRuleWindow, 8, T::kDurationNs, kTotal, "ARG_RULE_WINDOW"},
    {ArgId::kRuleWindows, 8, T::kUnsigned, kTotal, "ARG_RULE_WINDOWS"},
    {ArgId::kRuleAction, 0, T::kText, kNames, "ARG_RULE_ACTION"},
    {ArgId::kKeyPid, 4, T::kUnsigned, kProcess, "ARG_KEY_PID"},
    {ArgId::kNsPid, 4, T::kUnsigned, kProcess, "ARG_NS_PID"},
    {ArgId::kChildPid, 4, T::kUnsigned, kProcess, "ARG_CHILD_PID"},
    {ArgId::kChildStart, 8, T::kUnsigned, kMoment, "ARG_CHILD_START_TIME"},
    {ArgId::kChildTid, 4, T::kUnsigned, kProcess, "ARG_CHILD_TID"},
    {ArgId::kChildNsPid, 4, T::kUnsigned, kProcess, "ARG_CHILD_NS_PID"},
    {ArgId::kCloneFlags, 8, T::kHex, kAsked, "ARG_CLONE_FLAGS"},
    {ArgId::kProgram, 0, T::kText, {C::kExe, S::kPath}, "ARG_PROGRAM"},
    {ArgId::kCwd, 0, T::kText, kNames, "ARG_CWD"},
    // Arguments and environments hold names, passwords, anything.
    {ArgId::kArgv, 0, T::kBytes, kContents, "ARG_ARGV"},
    {ArgId::kEnviron, 0, T::kBytes, kContents, "ARG_ENVIRON"},
    {ArgId::kExitCode,
     4,
     T::kUnsigned,
     {C::kResult, S::kNumber},
     "ARG_EXIT_CODE"},
    {ArgId::kExitSignal,
     4,
     T::kUnsigned,
     {C::kResult, S::kNumber},
     "ARG_EXIT_SIGNAL"},
    {ArgId::kCoreDumped, 1, T::kUnsigned, kTotal, "ARG_CORE_DUMPED"},
    {ArgId::kPipes, 0, T::kBytes, kFrame, "ARG_PIPES"},
    {ArgId::kCpu, 4, T::kUnsigned, kAsked, "ARG_CPU"},
    {ArgId::kProcessSource, 1, T::kUnsigned, kFrame, "ARG_PROCESS_SOURCE"},
    {ArgId::kReadLate, 1, T::kUnsigned, kFrame, "ARG_READ_LATE"},
    {ArgId::kIncomplete, 1, T::kUnsigned, kFrame, "ARG_INCOMPLETE"},
    {ArgId::kStateKind, 1, T::kUnsigned, kFrame, "ARG_STATE_KIND"},
    {ArgId::kXattrs, 0, T::kBytes, kContents, "ARG_XATTRS"},
    {ArgId::kDataRanges, 0, T::kBytes, kTotal, "ARG_DATA_RANGES"},
    {ArgId::kAncestorPid, 4, T::kUnsigned, kProcess, "ARG_ANCESTOR_PID"},
    {ArgId::kAncestorComm,
     0,
     T::kText,
     {C::kComm, S::kWord},
     "ARG_ANCESTOR_COMM"},
    {ArgId::kRecentPath, 0, T::kText, kNames, "ARG_RECENT_PATH"},
    {ArgId::kNotKnown, 0, T::kText, kTotal, "ARG_NOT_KNOWN"},
    {ArgId::kContentHash, 0, T::kBytes, kContents, "ARG_CONTENT_HASH"},
    {ArgId::kContent, 0, T::kBytes, kContents, "ARG_CONTENT"},
    {ArgId::kContentSure, 1, T::kUnsigned, kFrame, "ARG_CONTENT_SURE"},
    {ArgId::kLeftOut, 0, T::kText, kTotal, "ARG_LEFT_OUT"},
    {ArgId::kIndexOf, 0, T::kText, kTotal, "ARG_INDEX_OF"},
    {ArgId::kIndexSection, 1, T::kUnsigned, kFrame, "ARG_INDEX_SECTION"},
    {ArgId::kIndexPiece, 4, T::kUnsigned, kFrame, "ARG_INDEX_PIECE"},
    {ArgId::kIndexPieces, 4, T::kUnsigned, kFrame, "ARG_INDEX_PIECES"},
    {ArgId::kIndexBytes, 8, T::kUnsigned, kFrame, "ARG_INDEX_BYTES"},
    {ArgId::kIndexLink, 4, T::kHex, kFrame, "ARG_INDEX_LINK"},
    {ArgId::kIndexData, 0, T::kBytes, kContents, "ARG_INDEX_DATA"},
};

constexpr std::pair<MessageId, std::string_view> kReservedMessages[] = {
    {MessageId::kStart, "MSG_START"},
    {MessageId::kBlock, "MSG_BLOCK"},
    {MessageId::kLoss, "MSG_LOSS"},
    {MessageId::kFinal, "MSG_FINAL"},
    {MessageId::kDefPath, "MSG_DEF_PATH"},
    {MessageId::kDefProcess, "MSG_DEF_PROCESS"},
    {MessageId::kChange, "MSG_CHANGE"},
    {MessageId::kAggregate, "MSG_AGGREGATE"},
    {MessageId::kAlarm, "MSG_ALARM"},
    {MessageId::kProcessFork, "MSG_PROCESS_FORK"},
    {MessageId::kProcessExec, "MSG_PROCESS_EXEC"},
    {MessageId::kProcessExit, "MSG_PROCESS_EXIT"},
    {MessageId::kProcessComm, "MSG_PROCESS_COMM"},
    {MessageId::kProcessPipes, "MSG_PROCESS_PIPES"},
    {MessageId::kProcessRunning, "MSG_PROCESS_RUNNING"},
    {MessageId::kState, "MSG_STATE"},
    {MessageId::kFile, "MSG_FILE"},
    {MessageId::kIndex, "MSG_INDEX"},
};

std::string UpperCase(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

}  // namespace

const std::vector<ArgumentInfo>& BuiltInArguments() {
  static const auto* const kArguments = [] {
    auto* arguments = new std::vector<ArgumentInfo>;
    for (const FieldInfo& f : Fields()) {
      if (f.arg_id == 0) continue;  // the op is in the message id
      arguments->push_back(
          {f.arg_id, f.width, f.type, f.data_class, f.shape, f.trace_name});
    }
    for (const auto& r : kReserved) {
      arguments->push_back({static_cast<uint16_t>(r.id), r.width, r.type,
                            r.meaning.data_class, r.meaning.shape, r.name});
    }
    return arguments;
  }();
  return *kArguments;
}

const ArgumentInfo* FindArgument(uint16_t arg_id) {
  for (const ArgumentInfo& argument : BuiltInArguments()) {
    if (argument.arg_id == arg_id) return &argument;
  }
  return nullptr;
}

const std::vector<uint16_t>& BuiltInMessages() {
  static const auto* const kMessages = [] {
    auto* messages = new std::vector<uint16_t>;
    for (const auto& [id, name] : kReservedMessages) {
      messages->push_back(static_cast<uint16_t>(id));
    }
    for (const bool before : {false, true}) {
      for (size_t op = 0; op < kOpCount; ++op) {
        messages->push_back(OperationMessage(static_cast<Op>(op), before));
      }
    }
    return messages;
  }();
  return *kMessages;
}

std::string MessageName(uint16_t msg_id) {
  for (const auto& [id, name] : kReservedMessages) {
    if (static_cast<uint16_t>(id) == msg_id) return std::string(name);
  }
  bool before = false;
  if (const auto op = OperationOf(msg_id, &before)) {
    return (before ? "MSG_BEFORE_" : "MSG_") + UpperCase(OpName(*op));
  }
  return "MSG_" + std::to_string(msg_id);
}

}  // namespace tracefs::format
