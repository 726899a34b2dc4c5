// CPU limits: a thread that watches the scheduler's threads and terminates entries that take too long.
//
// Reading a thread's CPU clock costs about a microsecond, more than a small request. So an entry into JavaScript is
// timed with the monotonic clock. Only an entry that lasts a millisecond is measured with the CPU clock: against a base
// that is read every few milliseconds at most, minus what earlier entries since then were charged. Time in which the
// thread did not run, because others had the core, is never charged. One mutex per slot keeps a termination from
// hitting a later entry than the one it was meant for.
//
// The CPU clock also advances while the host of a virtual machine has paused the machine or the core; on a crowded host
// that is a tenth of a second at a time. So at each look the watchdog sends the thread a signal. It counts what the
// clock has gained by the next look only if the thread has answered, which shows that it ran ("believed" time).
//
// A long entry lowers the priority of its thread (threads/scheduler.h). The signal makes the thread do that itself,
// because the sandbox lets a thread change only its own priority.
//
// Some built-in functions of V8 ignore a termination (`[].indexOf.call({length: 2 ** 53 - 1}, 1)`), or check for it too
// rarely. An entry that continues after its termination is late: the watchdog answers its call. If it continues for
// long after that it is stuck: STUCK tells Python, which replaces the process, and the entry is disowned: its worker
// sends no more frames about its calls.
#pragma once

#include <pthread.h>
#include <ucontext.h>
#include <v8.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "link/ledger.h"
#include "threads/priority.h"

namespace engine {

// The call that one entry into JavaScript is charged to, and its limits.
struct EntryAccount {
  uint32_t worker;
  uint32_t call;        // its id; 0 for code of no call
  bool answered;        // the call was answered before this entry
  bool starting;        // top-level code
  uint64_t limit_ns;    // of the call, or of startup
  uint64_t used_ns;     // by the call before this entry
  uint64_t granted_ns;  // out of the head start, before this entry
  uint64_t budget_ns;   // what this entry may use
  size_t memory_bytes;  // the memory limit of the worker
  bool ran_out;         // terminated for exceeding that limit
};

class Watchdog final {
 public:
  // What one scheduler thread is doing now.
  class Slot final {
   public:
    Slot(Watchdog& watchdog, uint32_t number) : watchdog_(watchdog), number_(number) {}
    // Called by the thread that owns the slot, when it starts to run.
    void Adopt(Pace pace);
    // Called by that thread.
    Pace pace() const { return pace_.load(std::memory_order_relaxed); }
    // Called by that thread, in a signal handler.
    void Answer();

   private:
    friend class Watchdog;
    friend class Charge;
    Watchdog& watchdog_;
    const uint32_t number_;
    std::mutex mutex_;
    pthread_t thread_{};
    clockid_t cpu_clock_ = 0;
    std::atomic<Pace> pace_{Pace::kUsual};
    bool is_lowered_ = false;            // used by its own thread only
    std::atomic<uint32_t> asked_{0};     // number of the last signal sent to the thread
    std::atomic<uint32_t> answered_{0};  // number of the last signal it has answered
    v8::Isolate* isolate_ = nullptr;
    uint64_t entered_ns_ = 0;
    EntryAccount account_{};
    uint64_t base_ns_ = 0;        // when the CPU clock was last read
    uint64_t base_cpu_ns_ = 0;    // its value then
    uint64_t charged_ns_ = 0;     // charged to entries since
    bool is_long_ = false;        // the watchdog has seen this entry
    bool is_silent_ = false;      // its thread had not answered at the last look
    uint64_t heard_ns_ = 0;       // time of the last look at which it had answered
    uint64_t heard_cost_ns_ = 0;  // cost of the entry at that time, by the clocks
    uint64_t believed_ns_ = 0;    // the believed part of it
    uint64_t first_ns_ = 0;       // the same at the first look
    bool fired_ = false;
    uint64_t fired_ns_ = 0;                   // when the entry was terminated
    uint64_t fired_cost_ns_ = 0;              // cost of the entry at that time
    std::atomic<bool> answered_call_{false};  // a call was answered in this entry
    bool late_ = false;
    bool disowned_ = false;
  };

  // One entry into JavaScript, while it runs. Stack only.
  class Charge final {
   public:
    Charge(Slot& slot, v8::Isolate* isolate, const EntryAccount& account);
    ~Charge() { Stop(); }
    Charge(const Charge&) = delete;
    Charge& operator=(const Charge&) = delete;

    // CPU time used so far.
    uint64_t SoFar() const;
    // Ends the entry and returns its cost. `fired()` and `disowned()` are final afterwards.
    uint64_t Stop();
    bool fired() const { return fired_; }
    bool HasFired() const;  // before Stop()
    bool disowned() const { return disowned_; }
    // CPU time since the watchdog found the entry long. It is never too high, unlike the cost, which may include other
    // work of the thread: a thread or a tenant must not lose its priority by mistake.
    uint64_t surely_ns() const { return surely_ns_; }
    uint32_t call() const { return slot_.account_.call; }
    // The worker has answered a call, and the frame is sent at the end of the entry: the watchdog must not answer too.
    void Answered() { slot_.answered_call_.store(true, std::memory_order_relaxed); }
    // The entry was terminated because it ran out of memory. Called by the thread that is in it.
    void RunOut();
    // The entry can never end. Called by the thread that is in it. False when it was disowned before.
    bool Disown();

   private:
    Slot& slot_;
    bool stopped_ = false;
    bool fired_ = false;
    bool disowned_ = false;
    uint64_t cost_ns_ = 0;
    uint64_t surely_ns_ = 0;
  };

  // `also` runs at every look, with the number of threads that were slowed and of those that were displaced. `late`
  // runs for an unanswered call whose entry continues after its termination, `stuck` for an entry that never ends; both
  // get its cost. Without `measures` nothing is timed or terminated, for a benchmark of what that costs.
  using Tell = std::function<void(const EntryAccount&, uint64_t)>;
  Watchdog(Ledger& ledger, bool measures, std::function<void(uint32_t, uint32_t)> also, Tell late, Tell stuck);
  // For a thread that starts, and for one that ends.
  Slot& TakeSlot();
  void GiveBack(Slot& slot);

 private:
  // Each look wakes a thread, which costs as much as serving several small requests. So looks are frequent only for a
  // while after a look found a long entry, or a limit so low that rare looks would come too late.
  static constexpr uint64_t kLookOftenNs = 2'000'000;
  static constexpr uint64_t kLookSeldomNs = 8'000'000;
  static constexpr uint64_t kLowLimitNs = 20'000'000;
  static constexpr int kOftenLooks = 100;
  static constexpr uint64_t kBaseEveryNs = 10'000'000;
  static constexpr uint64_t kShortNs = 1'000'000;
  // How much of the clock's gain is believed: before the first look; between two looks, as the second may be late; when
  // a silent thread has answered again. After kSilenceNs of silence all of it is believed.
  static constexpr uint64_t kUnseenNs = 16'000'000;
  static constexpr uint64_t kHeardNs = 10'000'000;
  static constexpr uint64_t kSilentNs = 4'000'000;
  static constexpr uint64_t kSilenceNs = 1'000'000'000;
  static constexpr int kLooksBeforeSleep = 125;
  // An entry is late when it continues for this long after its termination, or for this part of its limit.
  static constexpr uint64_t kLateAfterNs = 20'000'000;
  static constexpr uint64_t kLatePart = 8;
  // JavaScript ends within milliseconds of its termination, a long garbage collection within a few hundred. An entry
  // that has used this much CPU time since then, or has taken this long, is stuck. On a busy machine a slow thread gets
  // little CPU time, so after a while less of it is enough, because other workers wait behind it.
  static constexpr uint64_t kStuckCpuNs = 400'000'000;
  static constexpr uint64_t kPatienceNs = 1'200'000'000;
  static constexpr uint64_t kPatienceCpuNs = 100'000'000;
  static constexpr uint64_t kStuckNs = 10'000'000'000;
  // For an entry that ran out of memory: V8 may collect the heap again and again in this time.
  static constexpr uint64_t kStuckInMemoryNs = 1'000'000'000;
  // With this many slow threads no further one is slowed, so that normal threads remain.
  static constexpr uint32_t kMaxSlow = 32;
  void Run();
  // True when the slot is in use.
  bool Look(Slot& slot);
  // For a long entry: reads the answer of its thread and sends the next signal.
  void Hear(Slot& slot, uint64_t now_ns);
  // Lowers the priority of a thread that has computed for long, and displaces a slow thread that may never end.
  void SlowDown(Slot& slot, uint64_t surely_ns);
  // For a terminated entry: the time since then, and the CPU time it has used since.
  static bool IsStuck(const EntryAccount& account, uint64_t since_ns, uint64_t cpu_ns);
  static bool IsLate(const Slot& slot, uint64_t cpu_ns);
  // The cost of an entry by the clocks, and the believed part of it.
  static uint64_t Cost(const Slot& slot, uint64_t now_ns);
  static uint64_t Believed(const Slot& slot, uint64_t cost_ns);
  void WakeUp();

  Ledger& ledger_;
  const bool measures_;
  const std::function<void(uint32_t, uint32_t)> also_;
  const Tell late_;
  const Tell stuck_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> asleep_{false};
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_slots_;
  int often_ = 0;        // remaining frequent looks
  uint32_t slowed_ = 0;  // in this look
  uint32_t displaced_ = 0;
};

}  // namespace engine
