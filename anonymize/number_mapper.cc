#include "anonymize/number_mapper.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tracefs::anonymize {
namespace {

uint64_t Load(const std::byte* at, uint16_t width) {
  uint64_t value = 0;
  std::memcpy(&value, at, width);
  return value;
}

// Fibonacci hashing: neighbouring numbers are common.
size_t CacheIndex(uint64_t value, size_t size) {
  return static_cast<size_t>(value * 0x9E3779B97F4A7C15 >> 32) & (size - 1);
}

}  // namespace

std::array<std::byte, 16> NextRandom(Mac& mac, KeySpan key,
                                     RandomPlace* place) {
  std::byte message[16 + 8 + 8];
  std::memcpy(message, place->serial.data(), 16);
  StoreLe<uint64_t>(message + 16, place->block);
  StoreLe<uint64_t>(message + 24, place->count++);
  std::byte digest[Mac::kMaxBytes];
  mac.Start(key);
  mac.Update(message);
  mac.Finish(digest);
  std::array<std::byte, 16> out;
  std::memcpy(out.data(), digest, out.size());
  return out;
}

uint64_t ShiftAndQuantise(const NumberSlot& slot, uint64_t value) {
  // Zero means "none" in most fields; shifted it would tell the shift.
  if (value == 0) return 0;
  value += slot.shift;
  if (slot.action == Action::kQuantise) value -= value % slot.step;
  return value;
}

Result<NumberMapper> NumberMapper::Create(const NumberSlot* slot,
                                          size_t cache_entries,
                                          MapTables* maps) {
  NumberMapper mapper(slot);
  mapper.maps_ = maps;
  if (slot->action == Action::kFpe) {
    mapper.key_ = DeriveKey(slot->key.get(), "ff1");
    Result<Ff1> ff1 = Ff1::Create(mapper.key_.get(), slot->width * 8);
    if (!ff1.ok()) return ff1.status();
    mapper.ff1_ = *std::move(ff1);
  }
  if (slot->action == Action::kHmac || slot->action == Action::kRandom) {
    mapper.key_ = DeriveKey(slot->key.get(), ActionName(slot->action));
    mapper.mac_ = MakeHmacSha256();
  }
  const bool keyed =
      slot->action == Action::kFpe || slot->action == Action::kHmac;
  if (keyed && cache_entries != 0) {
    mapper.cache_.resize(std::bit_ceil(cache_entries));
  }
  return mapper;
}

bool NumberMapper::Keeps(uint64_t value) const {
  return !slot_->keep.empty() &&
         std::binary_search(slot_->keep.begin(), slot_->keep.end(), value);
}

uint64_t NumberMapper::MapPlainly(uint64_t value) const {
  if (Keeps(value)) return value;
  const bool negative =
      slot_->is_signed && (value >> (8 * slot_->width - 1) & 1) != 0;
  switch (slot_->action) {
    case Action::kZero:
      return 0;
    case Action::kShift:
    case Action::kQuantise:
      return negative ? value : ShiftAndQuantise(*slot_, value);
    case Action::kBucket:
      // A seek back from the end of a file is negative.
      return slot_->width == 8 && value >> 63 != 0 ? -std::bit_floor(-value)
                                                   : std::bit_floor(value);
    default:
      return value;
  }
}

// A permutation of the numbers that are not kept: where it leads to a kept one,
// it is walked on until it does not.
Status NumberMapper::Permute(std::span<uint64_t> values) {
  const auto step = [this](std::span<uint64_t> some) {
    return slot_->reveal ? ff1_->Decrypt(some) : ff1_->Encrypt(some);
  };
  if (Status s = step(values); !s.ok()) return s;
  if (slot_->keep.empty()) return Status::Ok();
  for (uint64_t& value : values) {
    while (Keeps(value)) {
      if (Status s = step({&value, 1}); !s.ok()) return s;
    }
  }
  return Status::Ok();
}

Status NumberMapper::MapKeyed() {
  misses_.clear();
  missed_at_.clear();
  for (size_t i = 0; i < values_.size(); ++i) {
    if (Keeps(values_[i])) continue;
    if (!cache_.empty()) {
      const Entry& entry = cache_[CacheIndex(values_[i], cache_.size())];
      if (entry.used && entry.value == values_[i]) {
        values_[i] = entry.mapped;
        continue;
      }
    }
    misses_.push_back(values_[i]);
    missed_at_.push_back(static_cast<uint32_t>(i));
  }
  if (misses_.empty()) return Status::Ok();
  if (slot_->action == Action::kFpe) {
    if (Status s = Permute(misses_); !s.ok()) return s;
  } else {
    for (uint64_t& value : misses_) {
      std::byte digest[Mac::kMaxBytes];
      std::byte bytes[8];
      StoreLe(bytes, value);
      mac_->Start(key_.get());
      mac_->Update(bytes);
      mac_->Finish(digest);
      value = LoadLe<uint64_t>(digest) & Mask();
    }
  }
  for (size_t i = 0; i < misses_.size(); ++i) {
    uint64_t& value = values_[missed_at_[i]];
    if (!cache_.empty()) {
      cache_[CacheIndex(value, cache_.size())] = {value, misses_[i], true};
    }
    value = misses_[i];
  }
  return Status::Ok();
}

Status NumberMapper::MapAll(RandomPlace* place) {
  switch (slot_->action) {
    case Action::kFpe:
    case Action::kHmac:
      return MapKeyed();
    case Action::kRandom:
      for (uint64_t& value : values_) {
        if (Keeps(value)) continue;
        const auto random = NextRandom(*mac_, key_.get(), place);
        value = LoadLe<uint64_t>(random.data());
      }
      return Status::Ok();
    case Action::kMap:
      for (uint64_t& value : values_) {
        if (Keeps(value)) continue;
        char bytes[8];
        StoreLe(bytes, value);
        const Result<uint64_t> number =
            maps_->NumberOf(slot_->domain, {bytes, sizeof bytes});
        if (!number.ok()) return number.status();
        value = *number;
        // A kept number stands for itself only: the count goes around it.
        for (const uint64_t kept : slot_->keep)
          value += kept != 0 && kept <= value;
      }
      return Status::Ok();
    default:
      for (uint64_t& value : values_) value = MapPlainly(value);
      return Status::Ok();
  }
}

Status NumberMapper::Apply(std::byte* block, std::span<const uint32_t> offsets,
                           RandomPlace* place) {
  const uint16_t width = slot_->width;
  values_.resize(offsets.size());
  for (size_t i = 0; i < offsets.size(); ++i) {
    values_[i] = Load(block + offsets[i], width);
  }
  if (Status s = MapAll(place); !s.ok()) return s;
  for (size_t i = 0; i < offsets.size(); ++i) {
    std::memcpy(block + offsets[i], &values_[i], width);
  }
  return Status::Ok();
}

Status NumberMapper::Apply(uint64_t* value, RandomPlace* place) {
  const uint32_t offset = 0;
  return Apply(reinterpret_cast<std::byte*>(value), {&offset, 1}, place);
}

}  // namespace tracefs::anonymize
