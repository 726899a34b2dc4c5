// Whose CPU time it is, and how much of it there is.
// (Another part of class Worker; its turns are in worker.cc.)
#include <algorithm>

#include "clock.h"
#include "worker.h"

namespace engine {
namespace {

// For code that belongs to no call, each time it is entered (allowance.h says how often that is).
constexpr uint64_t kHousekeepingNs = 50'000'000;
// For what V8 does of its own accord. No code of the worker runs there, but garbage of a large heap is collected.
constexpr uint64_t kOfV8Ns = 2'000'000'000;
constexpr uint64_t kStartupNs = 1'000'000'000;

}  // namespace

Account Worker::AccountOf(uint32_t call_id) const {
  const Call* call = calls_.Find(call_id);
  Account account{};
  account.worker = id_;
  account.call = call == nullptr ? 0 : call->id;
  account.answered = call != nullptr && call->responded;
  account.starting = state_ == State::kNew || state_ == State::kStarting;
  account.limit_ns = cpu_limit_ns_;
  account.memory_bytes = memory_bytes_;
  if (account.starting) {
    account.limit_ns = kStartupNs;
    account.used_ns = startup_ns_;
  } else if (call_id == 0) {
    account.limit_ns = kHousekeepingNs;
  } else if (call != nullptr) {
    account.used_ns = call->is_socket ? 0 : call->cpu_ns;  // a socket lives long: each event has the whole limit
    if (call->is_event) account.limit_ns = event_limit_ns_;
  } else if (auto left = outlived_.find(call_id); left != outlived_.end()) {
    account.used_ns = left->second;
  }
  bool may_overdraw = account.limit_ns == cpu_limit_ns_ && !account.starting && call_id != 0;
  uint64_t most = account.limit_ns + (may_overdraw ? spare_ns_ : 0);
  account.budget_ns = most > account.used_ns ? most - account.used_ns : 1;
  return account;
}

// A bucket of tokens: calls below the limit fill it a little, to a quarter of the limit; what a call uses beyond the
// limit empties it. So the odd slow call passes, one in five at most, and none uses more than 1.25 times its limit.
void Worker::Settle(uint64_t used_ns) {
  if (used_ns > cpu_limit_ns_) {
    spare_ns_ -= std::min(spare_ns_, used_ns - cpu_limit_ns_);
  } else {
    spare_ns_ = std::min(cpu_limit_ns_ / 4, spare_ns_ + cpu_limit_ns_ / 20);
  }
}

uint16_t Worker::UsedMb() {
  uint64_t now = MonotonicNs();
  if (now - measured_ns_ > kMeasureEveryNs) {
    measured_ns_ = now;
    measured_mb_ = static_cast<uint16_t>(std::min<size_t>((realm_->CountedBytes() >> 20) + 1, UINT16_MAX));
  }
  return measured_mb_;
}

Account Worker::AccountOfV8() const {
  Account account = AccountOf(0);
  if (!account.starting) account.limit_ns = account.budget_ns = kOfV8Ns;
  return account;
}

}  // namespace engine
