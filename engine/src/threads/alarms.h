// When each worker must be woken for its timers. One per process. From any thread.
//
// A worker keeps its own timers in order (worker/timers.h) and sets its alarm only when the earliest one changes. The
// thread that reads the socket sleeps until the earliest alarm at most, and then posts a mail to its worker.
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

class Alarms final {
 public:
  static constexpr uint64_t kNever = UINT64_MAX;

  Alarms() = default;
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

  // True when this is now the earliest alarm, so that the sleeping reader must be woken to shorten its sleep.
  bool Set(const std::shared_ptr<Worker>& worker, uint64_t due_ns);
  // Removes the alarms that are due and returns their workers.
  std::vector<std::shared_ptr<Worker>> TakeDue(uint64_t now_ns);
  // Milliseconds until the earliest alarm, rounded up; -1 when there is none.
  int Sleep(uint64_t now_ns);

 private:
  std::mutex mutex_;
  std::set<std::pair<uint64_t, Worker*>> ordered_;
  std::unordered_map<Worker*, std::pair<uint64_t, std::weak_ptr<Worker>>> by_worker_;
};

}  // namespace engine
