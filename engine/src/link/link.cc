#include "link/link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace engine {
namespace {

// The most memory a buffer keeps for its next use, so that a large op does not hold memory as long as its worker lives.
constexpr size_t kKeptBytes = size_t{1} << 20;

// Frames up to this size are sent in one write with announcements.
constexpr size_t kJoinedBytes = 64 * 1024;

void Empty(std::string& buffer) {
  if (buffer.capacity() > kKeptBytes) {
    std::string().swap(buffer);
  } else {
    buffer.clear();
  }
}

}  // namespace

Link::Link(int fd) : fd_(fd), wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
}

Link::~Link() {
  close(wake_fd_);
  close(fd_);
}

Link::Reading Link::ReadOnce(int timeout_ms, const std::function<bool(const wire::FrameView&)>& on_frame) {
  pollfd waits[2] = {{fd_, static_cast<short>(HasBacklog() ? POLLIN | POLLOUT : POLLIN), 0}, {wake_fd_, POLLIN, 0}};
  if (poll(waits, 2, timeout_ms) < 0) return errno == EINTR ? Reading::kMore : Reading::kClosed;
  if (waits[1].revents & POLLIN) {
    uint64_t count;
    [[maybe_unused]] ssize_t ignored = read(wake_fd_, &count, sizeof(count));
  }
  if (waits[0].revents & POLLOUT) FlushBacklog();
  if (waits[0].revents & (POLLIN | POLLHUP | POLLERR)) return Read(on_frame);
  return Reading::kMore;
}

Link::Reading Link::Read(const std::function<bool(const wire::FrameView&)>& on_frame) {
  wire::FrameReader::Span space = reader_.Space();
  ssize_t count = recv(fd_, space.data, space.size, MSG_DONTWAIT);
  if (count == 0) return Reading::kClosed;
  if (count < 0) return errno == EAGAIN || errno == EINTR ? Reading::kMore : Reading::kClosed;
  reader_.Filled(static_cast<size_t>(count));
  while (std::optional<wire::FrameView> frame = reader_.Next()) {
    if (!on_frame(*frame)) return Reading::kMalformed;
  }
  return reader_.broken() ? Reading::kMalformed : Reading::kMore;
}

bool Link::SendBoth(std::string& frames) {
  std::lock_guard<std::mutex> lock(sending_);
  announcements_.TakeTo(announced_);
  const bool was_empty = backlog_.empty();
  // One write for both: Python wakes up once.
  const bool are_joined = !announced_.empty() && was_empty && frames.size() <= kJoinedBytes;
  const size_t first = announced_.size();
  if (are_joined) announced_.append(frames);
  size_t sent = 0;
  if (was_empty) {
    const std::string_view next = announced_.empty() ? frames : announced_;
    const ssize_t count = send(fd_, next.data(), next.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count > 0) sent = static_cast<size_t>(count);
  }
  if (sent < first) backlog_.AddFirst(std::string_view(announced_).substr(0, first), sent);
  const size_t sent_after = first == 0 || are_joined ? sent - std::min(sent, first) : 0;
  if (sent_after < frames.size()) backlog_.Add(frames, sent_after);
  Empty(announced_);
  Empty(frames);
  return was_empty && !backlog_.empty();
}

void Link::Send(std::string& frames) {
  if (!frames.empty() && SendBoth(frames)) Wake();
}

void Link::SendAnnouncements() {
  std::string nothing;
  if (!announcements_.empty() && SendBoth(nothing)) Wake();
}

void Link::Wake() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t ignored = write(wake_fd_, &one, sizeof(one));
}

void Link::FlushBacklog() {
  std::lock_guard<std::mutex> lock(sending_);
  for (;;) {
    const std::string_view next = backlog_.Next();
    if (next.empty()) return;
    const ssize_t count = send(fd_, next.data(), next.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count > 0) backlog_.Sent(static_cast<size_t>(count));
    if (count < static_cast<ssize_t>(next.size())) return;  // the socket is full
  }
}

bool Link::HasBacklog() {
  std::lock_guard<std::mutex> lock(sending_);
  return !backlog_.empty();
}

}  // namespace engine
