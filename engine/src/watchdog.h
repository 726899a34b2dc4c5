// CPU limits: a thread that looks at what the scheduler's threads are doing and ends what takes too long.
//
// Reading a thread's CPU clock costs about a microsecond, more than a small request. So an entry into JavaScript is
// timed with the monotonic clock, and only one that lasts a millisecond is measured with the CPU clock: against a base
// read at most every few milliseconds, less what earlier entries since that base were charged. Time in which the thread
// did not run, because others had the core, is never charged. One mutex per slot keeps a termination from landing after
// the entry it was meant for is over.
#pragma once

#include <pthread.h>
#include <v8.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace engine {

class Watchdog final {
 public:
  // What one scheduler thread is doing now.
  class Slot final {
   public:
    explicit Slot(Watchdog& watchdog) : watchdog_(watchdog) {}
    // From the thread that owns the slot, when it starts to run.
    void Adopt();

   private:
    friend class Watchdog;
    friend class Charge;
    Watchdog& watchdog_;
    std::mutex mutex_;
    clockid_t cpu_clock_ = 0;
    v8::Isolate* isolate_ = nullptr;
    uint64_t entered_ns_ = 0;
    uint64_t budget_ns_ = 0;
    uint64_t base_ns_ = 0;      // when the CPU clock was last read,
    uint64_t base_cpu_ns_ = 0;  // what it said,
    uint64_t charged_ns_ = 0;   // and what entries were charged since
    bool fired_ = false;
  };

  // One entry into JavaScript, charged to somebody. Stack only.
  class Charge final {
   public:
    Charge(Slot& slot, v8::Isolate* isolate, uint64_t budget_ns);
    ~Charge() { Stop(); }
    Charge(const Charge&) = delete;
    Charge& operator=(const Charge&) = delete;

    // CPU time used so far, roughly.
    uint64_t SoFar() const;
    // Ends the entry and returns what it cost. `fired()` is then final.
    uint64_t Stop();
    bool fired() const { return fired_; }

   private:
    Slot& slot_;
    bool stopped_ = false;
    bool fired_ = false;
    uint64_t cost_ns_ = 0;
  };

  // `also` runs at every look.
  explicit Watchdog(std::function<void()> also);
  Slot& AddSlot();

 private:
  static constexpr uint64_t kLookEveryNs = 2'000'000;
  static constexpr uint64_t kBaseEveryNs = 10'000'000;
  static constexpr uint64_t kShortNs = 1'000'000;
  static constexpr int kLooksBeforeSleep = 500;
  void Run();
  // True when the slot is in use.
  static bool Look(Slot& slot);
  static uint64_t Cost(const Slot& slot, uint64_t now_ns);
  void WakeUp();

  const std::function<void()> also_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> asleep_{false};
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace engine
