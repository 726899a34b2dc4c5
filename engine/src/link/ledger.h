// Which calls have begun and which workers run, in memory that Python can read after this process has died.
//
// Shared memory with one byte per call id: Python clears it when it sends the call, the engine sets it before the
// handler runs. When an engine is killed, calls whose byte is clear never began and are sent to another engine. After
// these bytes comes a number per thread: the worker whose JavaScript it runs, so that Python knows which to suspect.
#pragma once

#include <cstdint>

#include "link/wire.gen.h"

namespace engine {

class Ledger final {
 public:
  // Maps `fd`. Without one, nothing is written.
  explicit Ledger(int fd);
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  void Begun(uint32_t call) {
    if (bytes_ != nullptr && call < wire::kLedger) bytes_[call] = 1;
  }

  // Thread number `thread` runs JavaScript of `worker`; 0: of no worker.
  void Runs(uint32_t thread, uint32_t worker) {
    if (bytes_ != nullptr && thread < wire::kLedgerThreads) threads_[thread] = worker;
  }

 private:
  volatile uint8_t* bytes_ = nullptr;
  volatile uint32_t* threads_ = nullptr;
};

}  // namespace engine
