// A few threads that run whichever workers have mail, one turn at a time, in the order they asked.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "watchdog.h"

namespace engine {

class Worker;

class Scheduler final {
 public:
  Scheduler(uint32_t threads, Watchdog& watchdog);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void Push(std::shared_ptr<Worker> worker);

 private:
  void RunThread(Watchdog::Slot& slot);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Worker>> ready_;
  uint32_t sleeping_ = 0;
};

}  // namespace engine
