// Dates and times of day, in any form.
#pragma once

#include <ctime>
#include <string>

namespace tracefs {

// What strftime(3) makes of seconds since 1970: in UTC, or in the reader's time
// zone. Empty if the year is beyond what it can say, or the text beyond 63
// bytes.
[[gnu::format(strftime, 2, 0)]] std::string UtcText(time_t seconds,
                                                    const char* format);
[[gnu::format(strftime, 2, 0)]] std::string LocalText(time_t seconds,
                                                      const char* format);

}  // namespace tracefs
