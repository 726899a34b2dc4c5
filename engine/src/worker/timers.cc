#include "worker/timers.h"

#include <algorithm>
#include <vector>

#include "base/clock.h"

namespace engine {
namespace {

constexpr double kCenturyMs = 3.2e12;  // longer delays would overflow the nanoseconds of the clock

}  // namespace

void Timers::SetLimits(double longest_ms, bool refuses_long) {
  longest_ms_ = longest_ms;
  refuses_long_ = refuses_long;
}

Timers::Answer Timers::Start(uint32_t id, uint32_t call_serial, double delay_ms) {
  // The timers of a call end with it. Its code that still runs gets no new ones, or it could run for ever, uncharged.
  if (calls_.IsOver(call_serial)) return Answer::kCallIsOver;
  Call* call = calls_.Find(call_serial);
  if (call != nullptr && call->timers + call->long_timers >= kMaxOfCall) return Answer::kTooMany;
  // A scheduled or queue event may take as long as its wall time lasts.
  const bool is_long = delay_ms > longest_ms_ && !(call != nullptr && call->is_background);
  if (is_long && refuses_long_) return Answer::kTooLong;
  const uint64_t delay_ns = delay_ms > 0 ? static_cast<uint64_t>(std::min(delay_ms, kCenturyMs) * 1e6) : 0;
  if (!Set(id, {call_serial, is_long}, MonotonicNs() + delay_ns)) return Answer::kTooMany;
  if (call != nullptr) call->CountTimers(is_long)++;
  return Answer::kYes;
}

void Timers::Stop(uint32_t id) {
  Owner owner;
  if (!Clear(id, &owner)) return;
  if (Call* call = calls_.Find(owner.call)) {
    call->CountTimers(owner.is_long)--;
    call->timers_cleared++;
  }
}

bool Timers::Adopt(uint32_t id, uint32_t call_serial) {
  const auto found = by_id_.find(id);
  Call* heir = calls_.Find(call_serial);
  if (found == by_id_.end() || heir == nullptr) return false;
  Owner& owner = found->second.owner;
  if (Call* before = calls_.Find(owner.call)) before->CountTimers(owner.is_long)--;
  if (owner.is_long) long_--;
  owner = {call_serial, false};
  heir->CountTimers(false)++;
  return true;
}

bool Timers::Set(uint32_t id, Owner owner, uint64_t due_ns) {
  if (by_id_.size() >= kMaxTimers) return false;
  Owner ignored;
  Clear(id, &ignored);
  by_id_.emplace(id, Entry{due_ns, owner});
  ordered_.emplace(due_ns, id);
  if (owner.is_long) long_++;
  return true;
}

bool Timers::Clear(uint32_t id, Owner* owner) {
  auto found = by_id_.find(id);
  if (found == by_id_.end()) return false;
  *owner = found->second.owner;
  ordered_.erase({found->second.due_ns, id});
  by_id_.erase(found);
  if (owner->is_long) long_--;
  return true;
}

bool Timers::TakeDue(uint64_t now_ns, uint32_t* id, Owner* owner) {
  if (earliest() > now_ns) return false;
  *id = ordered_.begin()->second;
  return Clear(*id, owner);
}

size_t Timers::ClearCall(uint32_t call) {
  std::vector<uint32_t> ids;
  for (const auto& [id, entry] : by_id_) {
    if (entry.owner.call == call) ids.push_back(id);
  }
  Owner ignored;
  for (uint32_t id : ids) Clear(id, &ignored);
  return ids.size();
}

void Timers::ClearAll() {
  ordered_.clear();
  by_id_.clear();
  long_ = 0;
}

}  // namespace engine
