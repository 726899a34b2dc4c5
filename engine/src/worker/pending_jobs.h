// The unfinished jobs (threads/jobs.h) of a worker, with the promises they resolve. Touched only inside the worker's
// turn.
#pragma once

#include <v8.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>

#include "threads/jobs.h"

namespace engine {

class PendingJobs final {
 public:
  PendingJobs() = default;
  PendingJobs(const PendingJobs&) = delete;
  PendingJobs& operator=(const PendingJobs&) = delete;

  struct Pending {
    std::shared_ptr<Job> job;
    v8::Global<v8::Promise::Resolver> resolver;
    uint32_t call;  // its serial; 0 for code of no call
  };

  // Code of no call may start kMaxJobs jobs in the life of its worker. Without a bound it could run for ever.
  bool MayStray() const { return strays_ <= kMaxJobs; }
  void CountStray() { strays_++; }

  // True if one more job that holds `bytes` of memory fits.
  bool HasRoomFor(size_t bytes) const;
  // The job waits for PushTo(). It and the others of its call may use `budget_ns` more together.
  void Add(Pending pending, size_t bytes, uint64_t budget_ns);
  // Gives waiting jobs to the pool, a few at a time, so that every worker gets its turn.
  void PushTo(Jobs& pool, const std::weak_ptr<Worker>& worker);

  // Null when the job was dropped.
  const Pending* Find(uint32_t id) const;
  // The CPU time to charge for a finished job. A job that was stopped may overrun a little; that part is free.
  static uint64_t CostOf(const Pending& pending);
  // Notes that it has been charged, and that the call now has `budget_ns` left for its jobs.
  static void Settle(const Pending& pending, uint64_t budget_ns);
  // Removes a finished job.
  std::optional<Pending> Take(uint32_t id);

  bool empty() const { return jobs_.empty(); }
  bool HasAnyOf(uint32_t call) const;
  // Cancels all jobs. Their handles are dropped, so the isolate must be locked.
  void DropAll();

 private:
  std::shared_ptr<JobFund> FundOf(uint32_t call) const;

  static constexpr size_t kInPool = 2;
  static constexpr size_t kMaxJobs = 64;
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  std::unordered_map<uint32_t, Pending> jobs_;
  std::deque<uint32_t> waiting_;  // ids of jobs that are not in the pool yet
  size_t bytes_ = 0;
  size_t strays_ = 0;
  uint32_t next_id_ = 1;
};

}  // namespace engine
