// A few threads that read the socket and run whichever workers have mail, one turn at a time, in the order they asked.
//
// A thread that has nothing to run reads the socket itself, and then runs what came of it: from the frame to the answer
// no other thread has to be woken, which in a virtual machine costs more than a small request. So that a long turn
// never keeps the socket unread or another worker waiting, the watchdog looks every few milliseconds whether things
// move; if not it wakes a thread that sleeps, or the main thread, which reads but never runs a worker.
//
// Workers of tenants that compute much (appetite.h) have threads of their own, to which the kernel gives what all
// others leave. Nobody knows beforehand who will compute: when a turn on a usual thread takes long, the watchdog lowers
// the thread's priority while it runs. It cannot be raised again without the rights of root, so from then on it is one
// of the slow ones, and a fresh thread takes its place. Of the slow ones no more run at once than there are cores for:
// each counts when the kernel shares a core, and together they would outweigh a thread that has little to do. One that
// goes on for very long loses its place to the next, and ends with its turn.
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

  // Starts the usual number of threads, and lets so many slow ones run at once.
  void Start(uint32_t threads, uint32_t slow_threads, Watchdog& watchdog);

  // A worker has mail. From any thread.
  void Push(std::shared_ptr<Worker> worker);

  // Ends the wait of whoever reads, if somebody does: what it waits for has changed. From any thread.
  void InterruptReading();

  // On the main thread: stands by for when nobody else reads. Never returns.
  [[noreturn]] void StandBy();

  // On the watchdog's thread, every few milliseconds while workers run. So many threads have been slowed since, and so
  // many slow ones have lost their place.
  void Look(uint32_t slowed, uint32_t displaced);

 private:
  static constexpr uint32_t kMaxThreads = 32;  // in each lane

  // Threads of one priority and the workers that wait for them.
  struct Lane {
    std::deque<std::shared_ptr<Worker>> ready;
    std::condition_variable wake;
    uint32_t threads = 0;
    uint32_t sleeping = 0;
    // How often a thread began to run a worker, and how often when the watchdog last looked.
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
  uint64_t reads_ = 0;  // how often a thread began to read, and how often when the watchdog last looked
  uint64_t seen_reads_ = 0;
};

}  // namespace engine
