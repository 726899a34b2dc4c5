#include "limits/watchdog.h"

#include <errno.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "limits/appetite.h"
#include "threads/priority.h"

namespace engine {
namespace {

constexpr int kSignal = SIGUSR2;

// The slot of a scheduler thread. Set before its first signal, so that the handler may read it.
thread_local Watchdog::Slot* own_slot = nullptr;

void OnSignal(int) {
  int error = errno;
  if (own_slot != nullptr) own_slot->Answer();
  errno = error;
}

}  // namespace

void Watchdog::Slot::Adopt(Pace pace) {
  std::lock_guard<std::mutex> lock(mutex_);
  thread_ = pthread_self();
  pthread_getcpuclockid(thread_, &cpu_clock_);
  base_ns_ = 0;
  pace_.store(pace);
  is_lowered_ = pace != Pace::kUsual;
  if (is_lowered_) LowerPriority();
  own_slot = this;
}

void Watchdog::Slot::Answer() {
  const Pace pace = pace_.load(std::memory_order_relaxed);
  if (pace != Pace::kUsual && !std::exchange(is_lowered_, true)) LowerPriority();
  answered_.store(asked_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

Watchdog::Watchdog(Ledger& ledger, bool measures, std::function<void(uint32_t, uint32_t)> also, Tell late, Tell stuck)
    : ledger_(ledger), measures_(measures), also_(std::move(also)), late_(std::move(late)), stuck_(std::move(stuck)) {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigaction(kSignal, &action, nullptr);
  std::thread([this] { Run(); }).detach();
}

Watchdog::Slot& Watchdog::TakeSlot() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!free_slots_.empty()) {
    Slot& slot = *free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }
  slots_.push_back(std::make_unique<Slot>(*this, static_cast<uint32_t>(slots_.size())));
  return *slots_.back();
}

void Watchdog::GiveBack(Slot& slot) {
  std::lock_guard<std::mutex> lock(mutex_);
  slot.pace_.store(Pace::kUsual);
  free_slots_.push_back(&slot);
}

void Watchdog::Run() {
  int idle_looks = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    bool busy = false;
    for (auto& slot : slots_) busy = Look(*slot) || busy;
    if (busy) {
      const uint32_t slowed = std::exchange(slowed_, 0);
      const uint32_t displaced = std::exchange(displaced_, 0);
      lock.unlock();
      also_(slowed, displaced);
      lock.lock();
    }
    idle_looks = busy ? 0 : idle_looks + 1;
    if (idle_looks < kLooksBeforeSleep) {
      wake_.wait_for(lock, std::chrono::nanoseconds(often_ > 0 ? kLookOftenNs : kLookSeldomNs));
      if (often_ > 0) often_--;
      continue;
    }
    asleep_.store(true);
    wake_.wait(lock, [this] { return !asleep_.load(); });
    idle_looks = 0;
  }
}

bool Watchdog::Look(Slot& slot) {
  std::lock_guard<std::mutex> lock(slot.mutex_);
  if (slot.isolate_ == nullptr) return false;
  if (slot.disowned_) {
    SlowDown(slot, UINT64_MAX);  // it may never end
    return true;
  }
  uint64_t now = MonotonicNs();
  uint64_t elapsed = now - slot.entered_ns_;
  if (elapsed > kShortNs) Hear(slot, now);
  const uint64_t surely = slot.believed_ns_ - slot.first_ns_;
  // Only an entry that computes is long. An entry that waits for a core is no reason for frequent looks.
  if (surely > kShortNs || slot.account_.limit_ns < kLowLimitNs) often_ = kOftenLooks;
  SlowDown(slot, surely);
  const uint64_t cost = slot.believed_ns_;
  if (!slot.fired_) {
    if (cost <= slot.account_.budget_ns) return true;
    slot.fired_ = true;
    slot.fired_ns_ = now;
    slot.fired_cost_ns_ = cost;
    slot.isolate_->TerminateExecution();
    return true;
  }
  // Under the lock, so that frames of the worker come after this if the entry ends now.
  if (IsLate(slot, cost - slot.fired_cost_ns_) && !std::exchange(slot.late_, true)) late_(slot.account_, cost);
  if (IsStuck(slot.account_, now - slot.fired_ns_, cost - slot.fired_cost_ns_)) {
    slot.disowned_ = true;
    stuck_(slot.account_, cost);
  } else {
    slot.isolate_->TerminateExecution();  // again: C++ code may have caught the previous one
  }
  return true;
}

bool Watchdog::IsStuck(const EntryAccount& account, uint64_t since_ns, uint64_t cpu_ns) {
  if (account.ran_out) return cpu_ns > kStuckInMemoryNs || since_ns > kStuckNs;
  return cpu_ns > kStuckCpuNs || (since_ns > kPatienceNs && cpu_ns > kPatienceCpuNs) || since_ns > kStuckNs;
}

bool Watchdog::IsLate(const Slot& slot, uint64_t cpu_ns) {
  const EntryAccount& account = slot.account_;
  return account.call != 0 && !account.answered && !slot.answered_call_.load(std::memory_order_relaxed) &&
         cpu_ns > std::min(account.limit_ns / kLatePart, kLateAfterNs);
}

void Watchdog::Hear(Slot& slot, uint64_t now_ns) {
  const uint64_t cost = Cost(slot, now_ns);
  const bool answered = slot.answered_.load(std::memory_order_relaxed) == slot.asked_.load(std::memory_order_relaxed);
  if (slot.is_long_ && !answered && now_ns - slot.heard_ns_ < kSilenceNs) {
    slot.is_silent_ = true;
    return;
  }
  slot.believed_ns_ = answered || !slot.is_long_ ? Believed(slot, cost) : cost;
  slot.heard_cost_ns_ = cost;
  slot.heard_ns_ = now_ns;
  slot.is_silent_ = false;
  if (!std::exchange(slot.is_long_, true)) slot.first_ns_ = slot.believed_ns_;
  slot.asked_.fetch_add(1, std::memory_order_relaxed);
  pthread_kill(slot.thread_, kSignal);
}

// The signal is sent under the slot's lock, so it arrives before the thread begins another entry.
void Watchdog::SlowDown(Slot& slot, uint64_t surely_ns) {
  if (slot.pace() == Pace::kUsual && surely_ns > Appetite::kLongNs) {
    auto is_slow = [](const std::unique_ptr<Slot>& each) { return each->pace() != Pace::kUsual; };
    if (std::count_if(slots_.begin(), slots_.end(), is_slow) >= kMaxSlow) return;
    slot.pace_.store(Pace::kSlow);
    slowed_++;
  } else if (slot.pace() == Pace::kSlow && surely_ns > Appetite::kVeryLongNs) {
    slot.pace_.store(Pace::kDisplaced);
    displaced_++;
  } else {
    return;
  }
  pthread_kill(slot.thread_, kSignal);
}

uint64_t Watchdog::Believed(const Slot& slot, uint64_t cost_ns) {
  if (!slot.is_long_) return std::min(cost_ns, kUnseenNs);
  const uint64_t since = cost_ns - std::min(cost_ns, slot.heard_cost_ns_);
  return slot.believed_ns_ + std::min(since, slot.is_silent_ ? kSilentNs : kHeardNs);
}

uint64_t Watchdog::Cost(const Slot& slot, uint64_t now_ns) {
  uint64_t elapsed = now_ns - slot.entered_ns_;
  if (elapsed < kShortNs) return elapsed;
  uint64_t cpu = Nanoseconds(slot.cpu_clock_) - slot.base_cpu_ns_;
  return std::min(elapsed, cpu - std::min(cpu, slot.charged_ns_));
}

void Watchdog::WakeUp() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    asleep_.store(false);
  }
  wake_.notify_one();
}

Watchdog::Charge::Charge(Slot& slot, v8::Isolate* isolate, const EntryAccount& account) : slot_(slot) {
  if (!slot_.watchdog_.measures_) return;
  {
    std::lock_guard<std::mutex> lock(slot_.mutex_);
    slot_.isolate_ = isolate;
    slot_.entered_ns_ = MonotonicNs();
    slot_.account_ = account;
    slot_.fired_ = slot_.late_ = slot_.disowned_ = slot_.is_long_ = slot_.is_silent_ = false;
    slot_.answered_call_.store(false, std::memory_order_relaxed);
    slot_.heard_cost_ns_ = slot_.believed_ns_ = slot_.first_ns_ = 0;
    if (slot_.entered_ns_ - slot_.base_ns_ > kBaseEveryNs) {
      slot_.base_ns_ = slot_.entered_ns_;
      slot_.base_cpu_ns_ = Nanoseconds(slot_.cpu_clock_);
      slot_.charged_ns_ = 0;
    }
  }
  slot_.watchdog_.ledger_.Runs(slot_.number_, account.worker);
  if (slot_.watchdog_.asleep_.load()) slot_.watchdog_.WakeUp();
}

uint64_t Watchdog::Charge::SoFar() const {
  return slot_.watchdog_.measures_ ? Believed(slot_, Cost(slot_, MonotonicNs())) : 0;
}

uint64_t Watchdog::Charge::Stop() {
  if (stopped_ || !slot_.watchdog_.measures_) return cost_ns_;
  stopped_ = true;
  std::lock_guard<std::mutex> lock(slot_.mutex_);
  const uint64_t cost = Cost(slot_, MonotonicNs());
  slot_.charged_ns_ += cost;
  cost_ns_ = Believed(slot_, cost);
  surely_ns_ = slot_.is_long_ ? cost_ns_ - slot_.first_ns_ : 0;
  fired_ = slot_.fired_;
  disowned_ = slot_.disowned_;
  slot_.isolate_ = nullptr;
  slot_.watchdog_.ledger_.Runs(slot_.number_, 0);
  return cost_ns_;
}

bool Watchdog::Charge::HasFired() const {
  std::lock_guard<std::mutex> lock(slot_.mutex_);
  return slot_.fired_;
}

void Watchdog::Charge::RunOut() {
  if (!slot_.watchdog_.measures_) return;
  std::lock_guard<std::mutex> lock(slot_.mutex_);
  slot_.account_.ran_out = true;
  if (std::exchange(slot_.fired_, true)) return;
  slot_.fired_ns_ = MonotonicNs();
  slot_.fired_cost_ns_ = slot_.believed_ns_;
}

bool Watchdog::Charge::Disown() {
  std::lock_guard<std::mutex> lock(slot_.mutex_);
  return !std::exchange(slot_.disowned_, true);
}

}  // namespace engine
