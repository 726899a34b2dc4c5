// The one socket to Python. The main thread reads it and nothing else ever does; any thread may send.
//
// Frames of one turn of an isolate leave in one write. When the socket is full the rest waits in a backlog that the
// main thread empties; the backlog is bounded by the credit that Python grants for bodies.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "wire.h"

namespace engine {

class Link final {
 public:
  explicit Link(int fd);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Hands each frame to `on_frame` until Python closes the socket (true) or sends something malformed (false).
  // `on_tick` runs after every wake-up and returns how many milliseconds to sleep at most.
  bool Run(const std::function<bool(const wire::FrameView&)>& on_frame, const std::function<int()>& on_tick);

  // Sends whole frames. From any thread. The bytes are taken and the buffer left empty for the next use.
  void Send(std::string& frames);

  // Ends the sleep of Run(), so that `on_tick` runs. From any thread.
  void Wake();

 private:
  enum class Reading { kMore, kClosed, kMalformed };

  Reading Read(const std::function<bool(const wire::FrameView&)>& on_frame);
  void FlushBacklog();
  bool HasBacklog();

  const int fd_;
  const int wake_fd_;
  wire::FrameReader reader_;

  std::mutex sending_;
  std::string backlog_;
  size_t backlog_sent_ = 0;
};

}  // namespace engine
