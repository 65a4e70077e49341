// Loaded before a daemon that runs under callgrind, whose valgrind may know no
// pidfd_open: instead of failing, that gives a descriptor on which nothing ever
// happens. Nobody watches whether the daemon dies then.
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdarg>

extern "C" long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_pidfd_open) return eventfd(0, EFD_CLOEXEC);
  register long fourth asm("r10") = arguments[3];
  register long fifth asm("r8") = arguments[4];
  register long sixth asm("r9") = arguments[5];
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(arguments[0]), "S"(arguments[1]),
                 "d"(arguments[2]), "r"(fourth), "r"(fifth), "r"(sixth)
               : "rcx", "r11", "memory");
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}
