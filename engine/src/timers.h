// setTimeout in two halves: the timers of one worker, and the alarm clock of the process.
//
// A worker keeps its own timers in order and tells the alarm clock only when its earliest one changes. The main thread
// sleeps until the earliest alarm and then posts the worker a mail; the worker finds out itself which timers are due.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace engine {

class Worker;

// The timers of one worker. Touched only inside its turn.
class Timers final {
 public:
  static constexpr size_t kMaxTimers = 100'000;
  static constexpr uint32_t kMaxOfCall = 10'000;
  static constexpr uint64_t kNever = UINT64_MAX;

  // False when there are too many.
  bool Set(uint32_t id, uint32_t call, uint64_t due_ns);
  // The call that had set it; nothing when it is not set.
  bool Clear(uint32_t id, uint32_t* call);
  // Takes the earliest timer that is due.
  bool TakeDue(uint64_t now_ns, uint32_t* id, uint32_t* call);
  // Clears all timers of a call and returns how many there were.
  size_t ClearCall(uint32_t call);

  uint64_t earliest() const { return ordered_.empty() ? kNever : ordered_.begin()->first; }
  size_t size() const { return by_id_.size(); }

 private:
  struct Entry {
    uint64_t due_ns;
    uint32_t call;
  };
  std::set<std::pair<uint64_t, uint32_t>> ordered_;  // due, id
  std::unordered_map<uint32_t, Entry> by_id_;
};

// When which worker wants to be woken. From any thread.
class Alarms final {
 public:
  // True when this is now the earliest alarm of all, so the sleeper must be woken to sleep less.
  bool Set(const std::shared_ptr<Worker>& worker, uint64_t due_ns);
  // Workers whose alarm is due; their alarms are gone.
  std::vector<std::shared_ptr<Worker>> TakeDue(uint64_t now_ns);
  // Milliseconds until the earliest alarm, rounded up; -1 without one.
  int Sleep(uint64_t now_ns);

 private:
  std::mutex mutex_;
  std::set<std::pair<uint64_t, Worker*>> ordered_;
  std::unordered_map<Worker*, std::pair<uint64_t, std::weak_ptr<Worker>>> by_worker_;
};

}  // namespace engine
