// The socket to Python. One thread at a time reads it (threads/scheduler.h); any thread may send.
//
// The frames of one turn are sent in one write. When the socket is full the rest waits in a backlog (link/backlog.h),
// which the reading thread sends. The backlog is bounded by the credit that Python grants for bodies, and by the memory
// that the ops of a worker may hold (worker/pending_ops.h).
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>

#include "link/announcements.h"
#include "link/backlog.h"
#include "link/wire.h"

namespace engine {

class Link final {
 public:
  explicit Link(int fd);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  enum class Reading { kMore, kClosed, kMalformed };

  // Sleeps until Python has sent something, Wake() is called or `timeout_ms` have passed. Then passes each complete
  // frame to `on_frame`, which returns true if it is well-formed. Also sends the backlog.
  Reading ReadOnce(int timeout_ms, const std::function<bool(const wire::FrameView&)>& on_frame);

  // Sends whole frames of one worker. From any thread. Takes the bytes and leaves the buffer empty for the next use.
  void Send(std::string& frames);

  // The same, then `rest`: the end of the last frame, which is copied only if the socket is full.
  void SendWith(std::string& frames, std::string_view rest);

  // Frames that go before all others. They are sent with the next frames, or by SendAnnouncements().
  Announcements& announcements() { return announcements_; }
  void SendAnnouncements();

  // Ends the sleep of ReadOnce(). From any thread.
  void Wake();

 private:
  Reading Read(const std::function<bool(const wire::FrameView&)>& on_frame);
  void FlushBacklog();
  bool HasBacklog();
  // Sends announcements, then frames, then `rest`. True if the reading thread must be woken to send what is left.
  bool SendAll(std::string& frames, std::string_view rest = {});
  // Returns how many bytes the socket took.
  size_t Write(std::initializer_list<std::string_view> parts);

  const int fd_;
  const int wake_fd_;
  wire::FrameReader reader_;

  std::mutex sending_;
  Backlog backlog_;
  Announcements announcements_;
  std::string announced_;
};

}  // namespace engine
