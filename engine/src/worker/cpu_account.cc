#include "worker/cpu_account.h"

#include <algorithm>

namespace engine {
namespace {

// For one entry of code of no call; limits/allowance.h bounds how often it runs.
constexpr uint64_t kHousekeepingNs = 50'000'000;
// For tasks of V8: collecting a large heap takes long.
constexpr uint64_t kOfV8Ns = 2'000'000'000;
constexpr uint64_t kStartupNs = 1'000'000'000;

}  // namespace

CpuAccount::CpuAccount(uint32_t worker_id, size_t memory_bytes, Appetite& appetite, Calls& calls,
                       const PendingJobs& jobs)
    : worker_id_(worker_id), memory_bytes_(memory_bytes), appetite_(appetite), calls_(calls), jobs_(jobs) {}

void CpuAccount::SetLimits(uint64_t call_ns, uint64_t event_ns) {
  call_limit_ns_ = call_ns;
  event_limit_ns_ = std::max(event_ns, call_ns);
}

EntryAccount CpuAccount::Open(uint32_t serial, bool starting) const {
  const Call* call = calls_.Find(serial);
  EntryAccount account{};
  account.worker = worker_id_;
  account.call = call == nullptr ? 0 : call->id;
  account.answered = call != nullptr && call->responded;
  account.starting = starting;
  account.limit_ns = call_limit_ns_;
  account.memory_bytes = memory_bytes_;
  if (starting) {
    account.limit_ns = kStartupNs;
    account.used_ns = startup_ns_;
  } else if (serial == 0) {
    account.limit_ns = kHousekeepingNs;
  } else if (call != nullptr) {
    account.used_ns = call->IsLong() ? 0 : call->cpu_ns;  // each event of a socket has the full limit
    account.granted_ns = call->IsLong() ? 0 : call->granted_ns;
    if (call->is_background) account.limit_ns = event_limit_ns_;
  } else if (auto left = outlived_.find(serial); left != outlived_.end()) {
    account.used_ns = left->second;
  }
  bool may_overdraw = account.limit_ns == call_limit_ns_ && !starting && serial != 0;
  uint64_t most = account.limit_ns + account.granted_ns + (may_overdraw ? reserve_ns_ : 0);
  if (may_overdraw && head_start_ns_ > 0 && call != nullptr) {
    most += std::min(head_start_ns_, appetite_.fund().available());
  }
  account.budget_ns = most > account.used_ns ? most - account.used_ns : 1;
  return account;
}

EntryAccount CpuAccount::OpenForV8(bool starting) const {
  EntryAccount account = Open(0, starting);
  if (!starting) account.limit_ns = account.budget_ns = kOfV8Ns;
  return account;
}

uint64_t CpuAccount::JobBudget(uint32_t serial, bool starting) const {
  const bool is_of_no_call = serial == 0 && !starting;
  const uint64_t left = is_of_no_call ? call_limit_ns_ : Open(serial, starting).budget_ns;
  // The rest is for the code that handles the failure of a job that runs out of time.
  return left / 10 * 9;
}

bool CpuAccount::Book(const EntryAccount& account, uint32_t serial, bool was_over, uint64_t cost_ns,
                      uint64_t surely_ns) {
  bool exceeded = false;
  const uint64_t granted = account.granted_ns + TakeHeadStart(account, cost_ns);
  if (Call* call = calls_.Find(serial)) {
    call->cpu_ns += cost_ns;
    call->granted_ns = call->IsLong() ? 0 : granted;
    exceeded = cost_ns > account.budget_ns;  // the watchdog may have missed many short entries
  } else if (serial != 0) {
    if (!was_over) Outlive(serial, account.used_ns);
    if (auto left = outlived_.find(serial); left != outlived_.end()) {
      left->second += was_over ? cost_ns : cost_ns - std::min(cost_ns, granted);
    }
    if (!was_over && account.limit_ns == call_limit_ns_) Settle(account.used_ns + cost_ns - granted);
  }
  if (account.starting) startup_ns_ += cost_ns;
  Spend(cost_ns);
  appetite_.Add(surely_ns);
  return exceeded;
}

void CpuAccount::BookJob(uint32_t serial, uint64_t cost_ns) {
  Spend(cost_ns);
  if (Call* call = calls_.Find(serial)) {
    call->cpu_ns += cost_ns;
  } else if (auto left = outlived_.find(serial); left != outlived_.end()) {
    left->second += cost_ns;
  } else {
    startup_ns_ += cost_ns;
  }
}

void CpuAccount::Outlive(uint32_t serial, uint64_t used_ns) {
  if (jobs_.HasAnyOf(serial)) outlived_[serial] = used_ns;
}

uint64_t CpuAccount::TakeHeadStart(const EntryAccount& account, uint64_t cost_ns) {
  const uint64_t due = account.limit_ns + account.granted_ns;
  const uint64_t total = account.used_ns + cost_ns;
  if (head_start_ns_ == 0 || account.starting || account.call == 0 || account.limit_ns != call_limit_ns_ ||
      total <= due) {
    return 0;
  }
  const uint64_t taken = appetite_.fund().Take(std::min(total - due, head_start_ns_));
  head_start_ns_ -= taken;
  return taken;
}

// A token bucket. Each call below the limit adds a twentieth of the limit, up to a quarter of it. What a call uses
// beyond the limit is taken out. So an occasional slow call, at most one in five, succeeds, and no call uses more than
// 1.25 times its limit.
void CpuAccount::Settle(uint64_t used_ns) {
  if (used_ns > call_limit_ns_) {
    reserve_ns_ -= std::min(reserve_ns_, used_ns - call_limit_ns_);
  } else {
    reserve_ns_ = std::min(call_limit_ns_ / 4, reserve_ns_ + call_limit_ns_ / 20);
  }
}

}  // namespace engine
