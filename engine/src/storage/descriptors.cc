#include "storage/descriptors.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace engine::storage {

int Descriptors::Take(uint32_t worker, uint32_t slot) {
  std::lock_guard<std::mutex> lock(mutex_);
  Receive();
  const auto found = arrived_.find({worker, slot});
  if (found == arrived_.end()) return -1;
  const int fd = found->second;
  arrived_.erase(found);
  return fd;
}

void Descriptors::Drop(uint32_t worker) {
  std::lock_guard<std::mutex> lock(mutex_);
  Receive();
  std::erase_if(arrived_, [&](const auto& each) {
    if (each.first.first != worker) return false;
    close(each.second);
    return true;
  });
}

void Descriptors::Receive() {
  while (true) {
    uint32_t about[2] = {};
    iovec content = {about, sizeof(about)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t size = recvmsg(fd_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int))) continue;
    int fd;
    std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    if (static_cast<size_t>(size) != sizeof(about) || !arrived_.emplace(Key{about[0], about[1]}, fd).second) close(fd);
  }
}

}  // namespace engine::storage
