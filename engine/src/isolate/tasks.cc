#include "isolate/tasks.h"

#include <algorithm>

namespace engine {

void TaskQueue::Add(std::unique_ptr<v8::Task> task, double seconds) {
  std::function<void()> wake;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    uint64_t due = seconds > 0 ? MonotonicNs() + static_cast<uint64_t>(seconds * 1e9) : 0;
    entries_.push_back({due, std::move(task)});
    // A delayed task waits for the first turn after it is due: V8 delays only housekeeping.
    if (due == 0) wake = wake_;
  }
  if (wake) wake();
}

bool TaskQueue::HasDue() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (entries_.empty()) return false;
  uint64_t now = MonotonicNs();
  return std::any_of(entries_.begin(), entries_.end(), [now](const Entry& entry) { return entry.due_ns <= now; });
}

void TaskQueue::RunDue() {
  std::vector<Entry> due;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (entries_.empty()) return;
    uint64_t now = MonotonicNs();
    auto later =
        std::stable_partition(entries_.begin(), entries_.end(), [now](const Entry& e) { return e.due_ns <= now; });
    due.assign(std::make_move_iterator(entries_.begin()), std::make_move_iterator(later));
    entries_.erase(entries_.begin(), later);
  }
  for (Entry& entry : due) entry.task->Run();
}

void TaskQueue::OnTask(std::function<void()> wake) {
  std::lock_guard<std::mutex> lock(mutex_);
  wake_ = std::move(wake);
}

}  // namespace engine
