// A few threads that read the socket and run whichever workers have mail, one turn at a time, in the order they asked.
//
// A thread that has nothing to run reads the socket itself, and then runs what came of it: from the frame to the answer
// no other thread has to be woken, which in a virtual machine costs more than a small request. So that a long turn
// never keeps the socket unread or another worker waiting, the watchdog looks every few milliseconds whether things
// move; if not it wakes a thread that sleeps, or the main thread, which reads but never runs a worker.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "watchdog.h"

namespace engine {

class Worker;

class Scheduler final {
 public:
  // `read` waits for frames and hands them to their workers; `interrupt` ends its wait.
  Scheduler(std::function<void()> read, std::function<void()> interrupt);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Starts the usual number of threads. More are started, up to kMaxThreads, when all of them are busy for long.
  void Start(uint32_t threads, Watchdog& watchdog);

  // A worker has mail. From any thread.
  void Push(std::shared_ptr<Worker> worker);

  // Ends the wait of whoever reads, if somebody does: what it waits for has changed. From any thread.
  void InterruptReading();

  // On the main thread: stands by for when nobody else reads. Never returns.
  [[noreturn]] void StandBy();

  // On the watchdog's thread, every few milliseconds while workers run.
  void Look();

 private:
  static constexpr uint32_t kMaxThreads = 32;

  void StartThread();
  void RunThread(Watchdog::Slot& slot);

  const std::function<void()> read_;
  const std::function<void()> interrupt_;

  Watchdog* watchdog_ = nullptr;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable standby_;
  std::deque<std::shared_ptr<Worker>> ready_;
  uint32_t threads_ = 0;
  uint32_t sleeping_ = 0;
  bool reading_ = false;
  bool standby_needed_ = false;
  // How often a thread began to read, and to run a worker; and how often when the watchdog last looked.
  uint64_t reads_ = 0;
  uint64_t turns_ = 0;
  uint64_t seen_reads_ = 0;
  uint64_t seen_turns_ = 0;
};

}  // namespace engine
