// CPU limits: a thread that looks at what the scheduler's threads are doing and ends what takes too long.
//
// Reading a thread's CPU clock costs about a microsecond, more than a small request. So an entry into JavaScript is
// timed with the monotonic clock, and only one that lasts a millisecond is measured with the CPU clock: against a base
// read at most every few milliseconds, less what earlier entries since that base were charged. Time in which the thread
// did not run, because others had the core, is never charged. One mutex per slot keeps a termination from landing after
// the entry it was meant for is over.
//
// That clock also goes on while a virtual machine, or the core the thread is on, stands still because its host has
// other things to do; on a crowded host that is a tenth of a second at a time. So at each look the thread is sent a
// signal, and what its clock has gained by the next look is believed only if it has answered: it ran.
//
// An entry that takes long lowers the priority of its thread (scheduler.h): the signal makes the thread do that itself,
// because its own priority is the only one that the sandbox lets it change.
//
// Some built-in functions of V8 ignore a termination (`[].indexOf.call({length: 2 ** 53 - 1}, 1)`), or look up too
// seldom. So a call whose entry goes on although its end was ordered is answered for it. An entry that goes on for long
// after that is told to Python, which replaces the process, and is disowned: what its worker may still have to say is
// no longer said.
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

#include "ledger.h"
#include "priority.h"

namespace engine {

// Whose time an entry into JavaScript takes.
struct Account {
  uint32_t worker;
  uint32_t call;        // 0: nobody's in particular
  bool answered;        // or was answered before this entry
  bool starting;        // top-level code
  uint64_t limit_ns;    // what may be used in all
  uint64_t used_ns;     // what was used before this entry
  uint64_t budget_ns;   // when this entry is ended
  size_t memory_bytes;  // what the worker may use,
  bool ran_out;         // and whether it was told to end for using more
};

class Watchdog final {
 public:
  // What one scheduler thread is doing now.
  class Slot final {
   public:
    Slot(Watchdog& watchdog, uint32_t number) : watchdog_(watchdog), number_(number) {}
    // From the thread that owns the slot, when it starts to run.
    void Adopt(Pace pace);
    // From that thread.
    Pace pace() const { return pace_.load(std::memory_order_relaxed); }
    // From that thread, in a signal handler.
    void Answer(const ucontext_t& interrupted);

   private:
    friend class Watchdog;
    friend class Charge;
    Watchdog& watchdog_;
    const uint32_t number_;
    std::mutex mutex_;
    pthread_t thread_{};
    clockid_t cpu_clock_ = 0;
    std::atomic<Pace> pace_{Pace::kUsual};
    bool is_lowered_ = false;            // only its own thread looks at it
    std::atomic<uint32_t> asked_{0};     // how often the thread was sent a signal,
    std::atomic<uint32_t> answered_{0};  // and which of them it has answered last
    v8::Isolate* isolate_ = nullptr;
    uint64_t entered_ns_ = 0;
    Account account_{};
    uint64_t base_ns_ = 0;        // when the CPU clock was last read,
    uint64_t base_cpu_ns_ = 0;    // what it said,
    uint64_t charged_ns_ = 0;     // and what entries were charged since
    bool is_long_ = false;        // the watchdog has looked at this entry,
    bool is_silent_ = false;      // and its thread had not answered by the last look,
    uint64_t heard_ns_ = 0;       // but had at the look then.
    uint64_t heard_cost_ns_ = 0;  // What the entry had cost by then, as the clocks say,
    uint64_t believed_ns_ = 0;    // what of that is believed,
    uint64_t first_ns_ = 0;       // and what was at the first look
    bool fired_ = false;
    uint64_t fired_ns_ = 0;                      // when,
    uint64_t fired_cost_ns_ = 0;                 // and what the entry had cost by then
    std::atomic<v8::Isolate*> ending_{nullptr};  // what it has been told to end, for its signal handler
    std::atomic<bool> answered_call_{false};     // some call has been answered in this entry
    bool late_ = false;
    bool disowned_ = false;
  };

  // One entry into JavaScript, charged to somebody. Stack only.
  class Charge final {
   public:
    Charge(Slot& slot, v8::Isolate* isolate, const Account& account);
    ~Charge() { Stop(); }
    Charge(const Charge&) = delete;
    Charge& operator=(const Charge&) = delete;

    // CPU time used so far.
    uint64_t SoFar() const;
    // Ends the entry and returns what it cost. `fired()` and `disowned()` are then final.
    uint64_t Stop();
    bool fired() const { return fired_; }
    bool HasFired() const;  // before Stop()
    bool disowned() const { return disowned_; }
    // CPU time since the watchdog found the entry long. Never too much, unlike what it costs, which may hold some of
    // what the thread did besides: a thread or a tenant must not lose its priority by mistake.
    uint64_t surely_ns() const { return surely_ns_; }
    uint32_t call() const { return slot_.account_.call; }
    // What the worker said of a call waits for the end of the entry: nobody else is to answer any.
    void Answered() { slot_.answered_call_.store(true, std::memory_order_relaxed); }
    // The entry has been told to end for want of memory: from the thread that is in it.
    void RunOut();
    // The entry can never end: from the thread that is in it. False when it was disowned before.
    bool Disown();

   private:
    Slot& slot_;
    bool stopped_ = false;
    bool fired_ = false;
    bool disowned_ = false;
    uint64_t cost_ns_ = 0;
    uint64_t surely_ns_ = 0;
  };

  // `also` runs at every look and is told how many threads were slowed in it, and how many lost their place. `late` is
  // told of an unanswered call whose entry has not ended when told to, `stuck` of an entry that never will, and both
  // what it has cost. Without `measures` nothing is timed and nothing ended: to find out what that costs.
  using Tell = std::function<void(const Account&, uint64_t)>;
  Watchdog(Ledger& ledger, bool measures, std::function<void(uint32_t, uint32_t)> also, Tell late, Tell stuck);
  // For a thread that starts, and from one that ends.
  Slot& TakeSlot();
  void GiveBack(Slot& slot);

 private:
  // Each look wakes a thread, which costs as much as serving several small requests. So looks are frequent only for a
  // while after one found that something takes long, or that a limit is so low that a rare look would come too late.
  static constexpr uint64_t kLookOftenNs = 2'000'000;
  static constexpr uint64_t kLookSeldomNs = 8'000'000;
  static constexpr uint64_t kLowLimitNs = 20'000'000;
  static constexpr int kOftenLooks = 100;
  static constexpr uint64_t kBaseEveryNs = 10'000'000;
  static constexpr uint64_t kShortNs = 1'000'000;
  // What is believed of the clock's word: before the first look and from one look to the next, which may be late; when
  // the thread was silent for a while and has answered now; and all of it after so long a silence.
  static constexpr uint64_t kUnseenNs = 16'000'000;
  static constexpr uint64_t kHeardNs = 10'000'000;
  static constexpr uint64_t kSilentNs = 4'000'000;
  static constexpr uint64_t kSilenceNs = 1'000'000'000;
  static constexpr int kLooksBeforeSleep = 125;
  // What goes on for so long after it was told to end, or for this part of its limit, is late.
  static constexpr uint64_t kLateAfterNs = 20'000'000;
  static constexpr uint64_t kLatePart = 8;
  // JavaScript ends within some milliseconds of being told to, a long collection of garbage within a few hundred. What
  // has had so much CPU time since, or so much time at all, never will. On a busy machine, where a slow thread gets
  // little CPU time, somewhat less of it is enough after a while: whoever waits behind it has waited long.
  static constexpr uint64_t kStuckCpuNs = 400'000'000;
  static constexpr uint64_t kPatienceNs = 1'200'000'000;
  static constexpr uint64_t kPatienceCpuNs = 100'000'000;
  static constexpr uint64_t kStuckNs = 10'000'000'000;
  // For want of memory: what is left of the heap is collected again and again until then.
  static constexpr uint64_t kStuckInMemoryNs = 1'000'000'000;
  // Beyond so many slow threads none is slowed: the usual ones must not run out.
  static constexpr uint32_t kMaxSlow = 32;
  void Run();
  // True when the slot is in use.
  bool Look(Slot& slot);
  // Of an entry that takes long: what its thread says, and another question.
  void Hear(Slot& slot, uint64_t now_ns);
  // Threads that have computed for long have a lower priority, and those that may never end no place.
  void SlowDown(Slot& slot, uint64_t surely_ns);
  // Of an entry that has been told to end: so long ago, and what it has used since.
  static bool IsStuck(const Account& account, uint64_t since_ns, uint64_t cpu_ns);
  static bool IsLate(const Slot& slot, uint64_t cpu_ns);
  // What an entry has cost as the clocks say, and what of it is believed.
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
  int often_ = 0;        // looks that still follow each other quickly
  uint32_t slowed_ = 0;  // in this look,
  uint32_t displaced_ = 0;
};

}  // namespace engine
