// The one socket to Python. One thread at a time reads it (the scheduler sees to that); any thread may send.
//
// Frames of one turn of an isolate leave in one write. When the socket is full the rest waits in a backlog that the
// main thread empties; the backlog is bounded by the credit that Python grants for bodies, and by what the ops of a
// worker may hold (worker.h).
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

  enum class Reading { kMore, kClosed, kMalformed };

  // Sleeps until Python has sent something, Wake() is called or `timeout_ms` have passed, then hands each whole frame
  // to `on_frame`, which says whether it was well-formed. Also sends what waits in the backlog.
  Reading ReadOnce(int timeout_ms, const std::function<bool(const wire::FrameView&)>& on_frame);

  // Sends whole frames. From any thread. The bytes are taken and the buffer left empty for the next use.
  void Send(std::string& frames);

  // Ends the sleep of ReadOnce(). From any thread.
  void Wake();

 private:
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
