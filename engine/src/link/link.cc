#include "link/link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

namespace engine {
namespace {

// The most memory a buffer keeps for its next use, so that a large op does not hold memory as long as its worker lives.
constexpr size_t kKeptBytes = size_t{1} << 20;

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

bool Link::SendAll(std::string& frames, std::string_view rest) {
  std::lock_guard<std::mutex> lock(sending_);
  announcements_.TakeTo(announced_);
  const bool was_empty = backlog_.empty();
  const size_t first = announced_.size();
  // One write for all: Python wakes up once.
  const size_t sent = was_empty ? Write({announced_, frames, rest}) : 0;
  if (sent < first) backlog_.AddFirst(announced_, sent);
  const size_t sent_after = sent - std::min(sent, first);
  if (sent_after < frames.size() + rest.size()) {
    frames.append(rest);
    backlog_.Add(frames, sent_after);
  }
  Empty(announced_);
  Empty(frames);
  return was_empty && !backlog_.empty();
}

size_t Link::Write(std::initializer_list<std::string_view> parts) {
  iovec filled[3];
  int count = 0;
  for (const std::string_view part : parts) {
    if (!part.empty()) filled[count++] = {const_cast<char*>(part.data()), part.size()};
  }
  if (count == 0) return 0;
  const ssize_t sent = count == 1 ? send(fd_, filled[0].iov_base, filled[0].iov_len, MSG_DONTWAIT | MSG_NOSIGNAL)
                                  : writev(fd_, filled, count);  // Node ignores SIGPIPE
  return sent > 0 ? static_cast<size_t>(sent) : 0;
}

void Link::Send(std::string& frames) {
  if (!frames.empty() && SendAll(frames)) Wake();
}

void Link::SendWith(std::string& frames, std::string_view rest) {
  if (SendAll(frames, rest)) Wake();
}

void Link::SendAnnouncements() {
  std::string nothing;
  if (!announcements_.empty() && SendAll(nothing)) Wake();
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
