// The CPU time of one worker: what each entry into its JavaScript may use, and what its calls, jobs and startup have
// used. Everything but spent_ns() happens inside the worker's turn.
//
// Calls below their limit fill a small reserve, which a slower call may draw on. The first calls of a large bundle may
// use the head start of their isolate (limits/head_start.h). Code of no call has an allowance (limits/allowance.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "limits/allowance.h"
#include "limits/appetite.h"
#include "limits/watchdog.h"
#include "worker/calls.h"
#include "worker/pending_jobs.h"

namespace engine {

class CpuAccount final {
 public:
  CpuAccount(uint32_t worker_id, size_t memory_bytes, Appetite& appetite, Calls& calls, const PendingJobs& jobs);
  CpuAccount(const CpuAccount&) = delete;
  CpuAccount& operator=(const CpuAccount&) = delete;

  // `event_ns` is the limit of scheduled and queue events.
  void SetLimits(uint64_t call_ns, uint64_t event_ns);
  void GrantHeadStart(uint64_t ns) { head_start_ns_ = ns; }
  // The worker starts again, in a new context.
  void RestartStartup() { startup_ns_ = 0; }

  // What an entry for the call with this serial may use; 0: code of no call. `starting`: top-level code runs.
  EntryAccount Open(uint32_t serial, bool starting) const;
  // The same for tasks of V8, such as garbage collection. No code of the worker runs in them.
  EntryAccount OpenForV8(bool starting) const;
  // What a job of the call may use.
  uint64_t JobBudget(uint32_t serial, bool starting) const;

  // Charges the cost of an entry, after it. `was_over`: the call had ended before the entry. `surely_ns` as in
  // Watchdog::Charge. True when the call is still open and has exceeded its budget.
  bool Book(const EntryAccount& account, uint32_t serial, bool was_over, uint64_t cost_ns, uint64_t surely_ns);
  // Charges a finished job.
  void BookJob(uint32_t serial, uint64_t cost_ns);

  // A call that ends while its jobs run is remembered until the last job is charged.
  void Outlive(uint32_t serial, uint64_t used_ns);
  bool IsOutlived(uint32_t serial) const { return outlived_.contains(serial); }
  void ForgetOutlived(uint32_t serial) { outlived_.erase(serial); }
  void ForgetAllOutlived() { outlived_.clear(); }

  uint64_t startup_ns() const { return startup_ns_; }
  Allowance& allowance() { return allowance_; }
  const Allowance& allowance() const { return allowance_; }
  // All CPU time since the worker was loaded. From any thread.
  uint64_t spent_ns() const { return spent_ns_.load(std::memory_order_relaxed); }

 private:
  // The part of an entry's cost that comes out of the head start, in addition to what earlier entries of its call took.
  uint64_t TakeHeadStart(const EntryAccount& account, uint64_t cost_ns);
  // A call that used `used_ns` is over.
  void Settle(uint64_t used_ns);
  void Spend(uint64_t cost_ns) { spent_ns_.store(spent_ns() + cost_ns, std::memory_order_relaxed); }

  const uint32_t worker_id_;
  const size_t memory_bytes_;
  Appetite& appetite_;  // of the tenant
  Calls& calls_;
  const PendingJobs& jobs_;

  uint64_t call_limit_ns_ = 50'000'000;
  uint64_t event_limit_ns_ = 0;  // never below the limit of other calls
  uint64_t reserve_ns_ = 0;      // earned by calls that stayed below the limit
  uint64_t head_start_ns_ = 0;   // the part that is left
  uint64_t startup_ns_ = 0;
  Allowance allowance_;
  std::unordered_map<uint32_t, uint64_t> outlived_;  // ended calls with running jobs -> CPU time used
  std::atomic<uint64_t> spent_ns_{0};                // written only inside the worker's turn
};

}  // namespace engine
