// mount(8), "EXIT STATUS".
#pragma once

namespace tracefs {

inline constexpr int kUsage = 1;
inline constexpr int kSystemError = 2;
inline constexpr int kInterrupted = 8;
inline constexpr int kFailed = 32;

}  // namespace tracefs
