// Which calls have begun and which workers run, written where Python can still read it after this process has died.
//
// Shared memory with one byte per call id: Python clears it when it sends the call, the engine sets it before the
// handler runs. When an engine is killed, calls whose byte is clear never began and are sent to another engine. Behind
// it, a number per thread: the worker whose JavaScript the thread is in, so that Python knows whom to suspect.
#pragma once

#include <cstdint>

#include "wire.gen.h"

namespace engine {

class Ledger final {
 public:
  // Maps `fd`; without one nothing is written.
  explicit Ledger(int fd);
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  void Begun(uint32_t call) {
    if (bytes_ != nullptr && call < wire::kLedger) bytes_[call] = 1;
  }

  // Thread number `thread` is in the JavaScript of `worker`, or of none.
  void Runs(uint32_t thread, uint32_t worker) {
    if (bytes_ != nullptr && thread < wire::kLedgerThreads) threads_[thread] = worker;
  }

 private:
  volatile uint8_t* bytes_ = nullptr;
  volatile uint32_t* threads_ = nullptr;
};

}  // namespace engine
