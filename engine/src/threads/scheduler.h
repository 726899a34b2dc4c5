// A few threads that read the socket and run the workers that have mail, one turn at a time, first in, first out.
//
// An idle thread reads the socket itself and then runs the workers it has posted to. So no other thread is woken
// between frame and response; in a virtual machine a wake-up costs more than a small request. A long turn must not
// block the socket or other workers, so the watchdog checks progress every few milliseconds. Without progress it wakes
// a sleeping thread, or the main thread, which reads but never runs a worker.
//
// Workers of tenants with high recent CPU use (limits/appetite.h) run on low-priority ("slow") threads, which use CPU
// time that others leave idle. A turn may also become long unexpectedly: then the watchdog lowers the priority of its
// thread while it runs. Raising it again needs root, so the thread stays slow and a new one replaces it. Only as many
// slow threads run at once as there are cores for them: each has a weight in the kernel's scheduler, and together they
// would outweigh a thread that needs little. A slow thread that runs for very long is displaced by the next one and
// ends with its turn.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "limits/watchdog.h"

namespace engine {

class Worker;

class Scheduler final {
 public:
  // `read` waits for frames and posts them to their workers; `interrupt` ends its wait.
  Scheduler(std::function<void()> read, std::function<void()> interrupt);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Starts `threads` threads. At most `slow_threads` slow ones run at once.
  void Start(uint32_t threads, uint32_t slow_threads, Watchdog& watchdog);

  // A worker has mail. From any thread.
  void Push(std::shared_ptr<Worker> worker);

  // Wakes the reading thread, if there is one, because the next alarm has changed. From any thread.
  void InterruptReading();

  // On the main thread: reads while no other thread does. Never returns.
  [[noreturn]] void StandBy();

  // On the watchdog's thread, every few milliseconds while workers run. Since the last call, `slowed` threads have
  // become slow and `displaced` slow ones have been displaced.
  void Look(uint32_t slowed, uint32_t displaced);

 private:
  static constexpr uint32_t kMaxThreads = 32;  // in each lane

  // Threads of one priority and the workers that wait for them.
  struct Lane {
    std::deque<std::shared_ptr<Worker>> ready;
    std::condition_variable wake;
    uint32_t threads = 0;
    uint32_t sleeping = 0;
    // The number of turns begun, now and when the watchdog last looked.
    uint64_t turns = 0;
    uint64_t seen_turns = 0;
  };

  void StartThread(Lane& lane);
  void RunThread(Watchdog::Slot& slot);
  void RunSlowThread(Watchdog::Slot& slot);
  // Runs the next worker of a lane. Called and left with the lock held.
  void RunNext(Lane& lane, Watchdog::Slot& slot, std::unique_lock<std::mutex>& lock);
  bool MustStartQuick();
  bool MustStartSlow() const;

  const std::function<void()> read_;
  const std::function<void()> interrupt_;

  Watchdog* watchdog_ = nullptr;

  std::mutex mutex_;
  Lane quick_;
  Lane slow_;
  uint32_t slow_threads_ = 1;
  std::condition_variable standby_;
  bool reading_ = false;
  bool standby_needed_ = false;
  uint64_t reads_ = 0;  // number of reads begun, now and when the watchdog last looked
  uint64_t seen_reads_ = 0;
};

}  // namespace engine
