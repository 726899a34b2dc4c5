// Files that Python has handed over, read-only, on a socket of their own (fd 6).
//
// Each message is a descriptor with the worker and the slot it is for. It arrives before the OPEN frame of that slot.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace engine::storage {

class Descriptors final {
 public:
  explicit Descriptors(int fd) : fd_(fd) {}
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  // From any thread. The descriptor now belongs to the caller; -1 if none has arrived.
  int Take(uint32_t worker, uint32_t slot);
  // Closes those that nobody has taken.
  void Drop(uint32_t worker);

 private:
  using Key = std::pair<uint32_t, uint32_t>;

  void Receive();

  const int fd_;
  std::mutex mutex_;
  std::map<Key, int> arrived_;
};

}  // namespace engine::storage
