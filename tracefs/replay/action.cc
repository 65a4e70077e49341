#include "tracefs/replay/action.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "tracefs/base/varint.h"

namespace tracefs::replay {
namespace {

// Layout: u32 size of all, u32 lane, u8 op, u8 place, u8 orders, u8 0, u64 of
// which numbers follow (a bit each, in the order of ForEachNumber), the numbers
// as LEB128, the orders, the texts with their lengths.
constexpr size_t kFixedBytes = 4 + 4 + 4 + 8;

// Calls `use(bit, member)` for each number that may be left out. `A` is Action
// or const Action.
template <typename A, typename Use>
void ForEachNumber(A& a, Use&& use) {
  use(0, a.sequence);
  use(1, a.begin_ns);
  use(2, a.duration_ns);
  use(3, a.flags);
  use(4, a.uid);
  use(5, a.gid);
  use(6, a.dir);
  use(7, a.new_dir);
  use(8, a.made_dir);
  use(9, a.handle);
  use(10, a.handle_out);
  use(11, a.offset);
  use(12, a.offset_out);
  use(13, a.length);
  use(14, a.arg_flags);
  use(15, a.mode);
  use(16, a.umask);
  use(17, a.rdev);
  use(18, a.valid);
  use(19, a.new_uid);
  use(20, a.new_gid);
  use(21, a.new_size);
  use(22, a.new_atime_ns);
  use(23, a.new_mtime_ns);
  use(24, a.lock_type);
  use(25, a.lock_owner);
  use(26, a.result);
  use(27, a.error);
  use(28, a.stat_mode);
  use(29, a.stat_nlink);
  use(30, a.stat_size);
  use(31, a.hash);
  use(32, a.file);
  use(33, a.file_out);
  use(34, a.kept);
  use(35, a.kept_at);
  use(36, a.kept_offset);
  use(37, a.kept_length);
  use(38, a.kept_check);
  use(39, a.kept_mtime_ns);
  use(40, a.not_kept);
}

// Where each of them lies: few of them are there, and only these are looked at.
struct Member {
  uint16_t offset;
  bool is_wide;
};
static_assert(std::is_trivially_copyable_v<Action> &&
              std::is_standard_layout_v<Action>);
const Action kNothing;
constexpr size_t kNumberCount = 41;
const std::array<Member, kNumberCount> kMembers = [] {
  std::array<Member, kNumberCount> members{};
  ForEachNumber(kNothing, [&](int bit, const auto& member) {
    static_assert(sizeof member == 8 || sizeof member == 4);
    const auto* const begin = reinterpret_cast<const std::byte*>(&kNothing);
    const auto* const at = reinterpret_cast<const std::byte*>(&member);
    members[static_cast<size_t>(bit)] = {static_cast<uint16_t>(at - begin),
                                         sizeof member == 8};
  });
  return members;
}();

constexpr uint64_t kNameBit = uint64_t{1} << 56;
constexpr uint64_t kNewNameBit = uint64_t{1} << 57;
constexpr uint64_t kTextBit = uint64_t{1} << 58;
constexpr uint64_t kDataBit = uint64_t{1} << 59;

// Slots are written plus one, so that none costs nothing.
constexpr bool IsSlot(int bit) { return bit >= 6 && bit <= 10; }

Status Bad(const char* what) {
  return Status::Corrupt(std::string("plan: ") + what +
                         "; make it again from its trace");
}

Status Check(const Action& a) {
  for (const uint32_t slot :
       {a.dir, a.new_dir, a.made_dir, a.handle, a.handle_out}) {
    if (slot != kNoSlot && slot >= kMaxSlots) return Bad("a slot beyond all");
  }
  if (a.lane >= kMaxLanes) return Bad("a lane beyond all");
  if (a.place == Place::kDir && a.dir == kNoSlot) return Bad("no directory");
  if (a.place == Place::kHandle && a.handle == kNoSlot) return Bad("no handle");
  if (a.place == Place::kName && (a.dir == kNoSlot || !IsSafeName(a.name))) {
    return Bad("a name that is none");
  }
  if (a.new_dir != kNoSlot && !IsSafeName(a.new_name)) {
    return Bad("a second name that is none");
  }
  if (a.text.find('\0') != a.text.npos || a.text.size() > 4096) {
    return Bad("a text that is none");
  }
  for (uint32_t i = 0; i < a.order_count; ++i) {
    if (a.orders[i].counter >= kOrderCounters) return Bad("a counter too many");
  }
  return {};
}

}  // namespace

bool IsSafeName(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find('/') == name.npos && name.find('\0') == name.npos;
}

void EncodeAction(const Action& action, std::vector<std::byte>* out) {
  const size_t begin = out->size();
  out->resize(begin + kFixedBytes);
  uint64_t present = 0;
  ForEachNumber(action, [&](int bit, const auto& member) {
    auto value = static_cast<uint64_t>(member);
    if (IsSlot(bit)) value = static_cast<uint32_t>(value + 1);
    if (value == 0) return;
    present |= uint64_t{1} << bit;
    AppendVarint(value, out);
  });
  for (uint32_t i = 0; i < action.order_count; ++i) {
    const Order& order = action.orders[i];
    AppendVarint(uint64_t{order.counter} << 1 | (order.waits ? 1 : 0), out);
    if (order.waits) AppendVarint(order.need, out);
  }
  const auto put = [&](uint64_t bit, ByteSpan bytes) {
    if (bytes.empty()) return;
    present |= bit;
    AppendVarint(bytes.size(), out);
    out->insert(out->end(), bytes.begin(), bytes.end());
  };
  put(kNameBit, AsBytes(action.name));
  put(kNewNameBit, AsBytes(action.new_name));
  put(kTextBit, AsBytes(action.text));
  put(kDataBit, action.data);
  std::byte* const at = out->data() + begin;
  StoreLe<uint32_t>(at, static_cast<uint32_t>(out->size() - begin));
  StoreLe<uint32_t>(at + 4, action.lane);
  at[8] = static_cast<std::byte>(action.op);
  at[9] = static_cast<std::byte>(action.place);
  at[10] = static_cast<std::byte>(action.order_count);
  at[11] = std::byte{0};
  StoreLe<uint64_t>(at + 12, present);
}

bool PeekAction(ByteSpan bytes, uint32_t* lane, size_t* size) {
  if (bytes.size() < kFixedBytes) return false;
  *size = LoadLe<uint32_t>(bytes.data());
  *lane = LoadLe<uint32_t>(bytes.data() + 4);
  return *size >= kFixedBytes && *size <= bytes.size();
}

Status DecodeAction(ByteSpan bytes, Action* action, size_t* size) {
  // All but the orders, of which as many hold as are counted.
  std::memcpy(static_cast<void*>(action), &kNothing, offsetof(Action, orders));
  if (!PeekAction(bytes, &action->lane, size))
    return Bad("an action cut short");
  const auto op = static_cast<uint8_t>(bytes[8]);
  const auto place = static_cast<uint8_t>(bytes[9]);
  action->order_count = static_cast<uint8_t>(bytes[10]);
  if (op >= kOpCount || place > static_cast<uint8_t>(Place::kHandle) ||
      action->order_count > Action::kMaxOrders) {
    return Bad("an action that is none");
  }
  action->op = static_cast<Op>(op);
  action->place = static_cast<Place>(place);
  const uint64_t present = LoadLe<uint64_t>(bytes.data() + 12);
  VarintCursor in(bytes.subspan(kFixedBytes, *size - kFixedBytes));
  auto* const raw = reinterpret_cast<std::byte*>(action);
  constexpr uint64_t kAllNumbers = (uint64_t{1} << kNumberCount) - 1;
  for (uint64_t left = present & kAllNumbers; left != 0; left &= left - 1) {
    const int bit = std::countr_zero(left);
    uint64_t value = in.Take();
    if (IsSlot(bit)) value = static_cast<uint32_t>(value - 1);
    const Member& member = kMembers[static_cast<size_t>(bit)];
    if (member.is_wide) {
      std::memcpy(raw + member.offset, &value, sizeof value);
    } else {
      const auto narrow = static_cast<uint32_t>(value);
      std::memcpy(raw + member.offset, &narrow, sizeof narrow);
    }
  }
  for (uint32_t i = 0; i < action->order_count; ++i) {
    const uint64_t word = in.Take();
    action->orders[i].waits = (word & 1) != 0;
    if (word >> 1 >= kOrderCounters) return Bad("a counter too many");
    action->orders[i].counter = static_cast<uint32_t>(word >> 1);
    if ((word & 1) != 0) {
      action->orders[i].need = static_cast<uint32_t>(in.Take());
    }
  }
  if ((present & kNameBit) != 0) action->name = AsText(in.TakeBytes());
  if ((present & kNewNameBit) != 0) action->new_name = AsText(in.TakeBytes());
  if ((present & kTextBit) != 0) action->text = AsText(in.TakeBytes());
  if ((present & kDataBit) != 0) action->data = in.TakeBytes();
  if (in.bad() || !in.at_end()) return Bad("an action that is none");
  return Check(*action);
}

}  // namespace tracefs::replay
