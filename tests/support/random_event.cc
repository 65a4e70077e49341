#include "tests/support/random_event.h"

#include <algorithm>
#include <cstring>

namespace tracefs::test {

std::string RandomBytes(std::mt19937_64& random, size_t max_size, bool name) {
  std::string bytes(random() % (max_size + 1), '\0');
  const bool plain = random() % 2 == 0;
  for (char& c : bytes) {
    do {
      c = plain ? static_cast<char>('a' + random() % 26)
                : static_cast<char>(random());
    } while (c == '\0' || (name && c == '/'));
  }
  return bytes;
}

CallerInfo RandomCaller(std::mt19937_64& random) {
  CallerInfo caller;
  caller.pid = static_cast<uint32_t>(random());
  caller.ppid = static_cast<uint32_t>(random());
  caller.pgid = static_cast<uint32_t>(random());
  caller.sid = static_cast<uint32_t>(random());
  caller.start_time = random();
  const std::string comm = RandomBytes(random, 15, false);
  std::memcpy(caller.comm_bytes.data(), comm.data(), comm.size());
  caller.comm_size = static_cast<uint8_t>(comm.size());
  return caller;
}

RandomEvent::RandomEvent(std::mt19937_64& random, Op op, uint64_t time_ns) {
  event.op = op;
  event.before = random() % 4 == 0;
  for (const FieldInfo& f : Fields()) {
    if (!IsNumeric(f.field) || random() % 2 == 0) continue;
    const uint64_t bits = random() % 3 == 0 ? random() % 1000 : random();
    event.Set(f.field, f.width == 8   ? bits
                       : f.width == 4 ? bits & 0xffffffff
                                      : bits & 0xff);
  }
  event.Set(Field::kTime, time_ns);
  event.present &= ~(Bit(Field::kResult) | Bit(Field::kErrno));
  if (!event.before) {
    const int error =
        random() % 3 == 0 ? static_cast<int>(1 + random() % 133) : 0;
    event.SetResult(static_cast<int64_t>(random()), error);
  }
  name = RandomBytes(random, 30, true);
  new_name = RandomBytes(random, 30, true);
  target = RandomBytes(random, 60, false);
  xattr_name = RandomBytes(random, 20, false);
  data = RandomBytes(random, 100, false);
  event.name = name;
  event.new_name = new_name;
  event.target = target;
  event.xattr_name = xattr_name;
  event.data = AsBytes(data);
}

}  // namespace tracefs::test
