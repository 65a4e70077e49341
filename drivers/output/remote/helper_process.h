// Helper processes: what a daemon in its sandbox has connect for it. One end of
// a socket pair asks for a connection, and the other sends it as a descriptor.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

// Runs `run` in a process of its own, apart from this one and its terminal and
// with as little power as will do, and again where that has died. Returns what
// a HelperLink takes: the socket of the keeper between them. It should end when
// its own socket is closed. Before the first thread is made. `name`: of the
// process; `what`: of what it connects to, for messages. kSystem if no process
// can be made, as in a sandbox.
Result<UniqueFd> ForkHelper(const char* name, const std::string& what,
                            const std::function<void(UniqueFd)>& run);

// What is said over the socket: a number, and the answer to that number.
struct DialAnswer {
  uint32_t request = 0;
  int32_t error = 0;
  std::array<char, 240> text{};  // ends with a zero byte
};
// In the process. Waits for a request; false: it is time to end, or what came
// is no request.
bool TakeDial(int socket, uint32_t* request);
void AnswerDial(int socket, uint32_t request, const Result<UniqueFd>& fd);

}  // namespace tracefs
