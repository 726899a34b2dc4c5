#include "worker/pending_jobs.h"

#include <algorithm>
#include <utility>

namespace engine {

bool PendingJobs::HasRoomFor(size_t bytes) const {
  return jobs_.size() < kMaxJobs && (bytes_ == 0 || bytes_ + bytes <= kMaxBytes);
}

void PendingJobs::Add(Pending pending, size_t bytes, uint64_t budget_ns) {
  std::shared_ptr<JobFund> fund = FundOf(pending.call);
  fund->allowed_ns.store(fund->booked_ns + budget_ns, std::memory_order_relaxed);
  pending.job->fund_ = std::move(fund);
  pending.job->bytes_ = bytes;
  bytes_ += bytes;
  uint32_t id = next_id_++;
  jobs_.emplace(id, std::move(pending));
  waiting_.push_back(id);
}

std::shared_ptr<JobFund> PendingJobs::FundOf(uint32_t call) const {
  for (const auto& [id, pending] : jobs_) {
    if (pending.call == call) return pending.job->fund_;
  }
  return std::make_shared<JobFund>();
}

void PendingJobs::PushTo(Jobs& pool, const std::weak_ptr<Worker>& worker) {
  while (!waiting_.empty() && jobs_.size() - waiting_.size() < kInPool) {
    uint32_t id = waiting_.front();
    waiting_.pop_front();
    pool.Push(worker, id, jobs_.at(id).job);
  }
}

const PendingJobs::Pending* PendingJobs::Find(uint32_t id) const {
  auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

uint64_t PendingJobs::CostOf(const Pending& pending) {
  const Job& job = *pending.job;
  return job.cpu_ns() - (job.expired() ? std::min(job.cpu_ns(), job.excess_ns_) : 0);
}

void PendingJobs::Settle(const Pending& pending, uint64_t budget_ns) {
  JobFund& fund = *pending.job->fund_;
  fund.booked_ns += pending.job->cpu_ns();
  fund.allowed_ns.store(fund.booked_ns + budget_ns, std::memory_order_relaxed);
}

std::optional<PendingJobs::Pending> PendingJobs::Take(uint32_t id) {
  auto found = jobs_.find(id);
  if (found == jobs_.end()) return std::nullopt;
  Pending pending = std::move(found->second);
  jobs_.erase(found);
  bytes_ -= pending.job->bytes_;
  return pending;
}

bool PendingJobs::HasAnyOf(uint32_t call) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [call](const auto& each) { return each.second.call == call; });
}

void PendingJobs::DropAll() {
  for (auto& [id, pending] : jobs_) pending.job->canceled_.store(true, std::memory_order_relaxed);
  jobs_.clear();
  waiting_.clear();
  bytes_ = 0;
}

}  // namespace engine
