// Which calls have begun, written where Python can still read it after this process has died.
//
// A page of shared memory with one byte per call id: Python clears it when it sends the call, the engine sets it before
// the handler runs. When an engine is killed, calls whose byte is clear never began and are sent to another engine.
#pragma once

#include <cstdint>

namespace engine {

class Ledger final {
 public:
  // Maps `fd`; without one nothing is written.
  explicit Ledger(int fd);
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  void Begun(uint32_t call) {
    if (call < size_) bytes_[call] = 1;
  }

 private:
  volatile uint8_t* bytes_ = nullptr;
  uint32_t size_ = 0;
};

}  // namespace engine
