// The timers of one worker (setTimeout, setInterval), each owned by a call. Touched only inside the worker's turn. The
// scheduler wakes the worker when the earliest is due (threads/alarms.h).
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>

#include "worker/calls.h"

namespace engine {

class Timers final {
 public:
  static constexpr uint64_t kNever = UINT64_MAX;

  struct Owner {
    uint32_t call = 0;     // its serial; 0 for code of no call
    bool is_long = false;  // longer than the limit: its call does not wait for it
  };

  explicit Timers(Calls& calls) : calls_(calls) {}
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;

  // Longer delays are refused, or a call ends without waiting for them.
  void SetLimits(double longest_ms, bool refuses_long);
  double longest_ms() const { return longest_ms_; }

  // kCallIsOver: the timer is not set, because its call has ended.
  enum class Answer { kYes, kTooMany, kTooLong, kCallIsOver };
  Answer Start(uint32_t id, uint32_t call, double delay_ms);
  void Stop(uint32_t id);
  // Gives a timer to another call, which waits for it however long it is. False if there is no such timer.
  bool Adopt(uint32_t id, uint32_t call);

  // Takes the earliest timer that is due.
  bool TakeDue(uint64_t now_ns, uint32_t* id, Owner* owner);
  // Puts back a timer that was taken, with a later due time.
  void Postpone(uint32_t id, Owner owner, uint64_t due_ns) { Set(id, owner, due_ns); }
  // Clears all timers of a call and returns how many there were.
  size_t ClearCall(uint32_t call);
  void ClearAll();

  uint64_t earliest() const { return ordered_.empty() ? kNever : ordered_.begin()->first; }
  // The number of timers, without those that are longer than the limit.
  size_t awaited() const { return by_id_.size() - long_; }

 private:
  static constexpr size_t kMaxTimers = 100'000;
  static constexpr uint32_t kMaxOfCall = 10'000;

  struct Entry {
    uint64_t due_ns;
    Owner owner;
  };
  // False when there are too many.
  bool Set(uint32_t id, Owner owner, uint64_t due_ns);
  bool Clear(uint32_t id, Owner* owner);

  Calls& calls_;
  double longest_ms_ = 30'000;
  bool refuses_long_ = false;
  std::set<std::pair<uint64_t, uint32_t>> ordered_;  // due, id
  std::unordered_map<uint32_t, Entry> by_id_;
  size_t long_ = 0;
};

}  // namespace engine
