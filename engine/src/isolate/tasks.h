// The foreground tasks V8 posts for one isolate (finished WebAssembly compilations, finalizers, ...).
//
// Node's platform needs a delegate per isolate. This one only keeps the tasks; the isolate's worker runs them in its
// next turn, locked and entered. Tasks arrive from any thread.
#pragma once

#include <node.h>
#include <v8-platform.h>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace engine {

class TaskQueue final : public v8::TaskRunner {
 public:
  // True if a task is due.
  bool HasDue();

  // Runs the tasks that are due. The isolate must be locked and entered.
  void RunDue();

  // Called from any thread when a task arrives. Empty while the isolate has no worker.
  void OnTask(std::function<void()> wake);

  bool IdleTasksEnabled() override { return false; }
  bool NonNestableTasksEnabled() const override { return true; }
  bool NonNestableDelayedTasksEnabled() const override { return true; }

 protected:
  void PostTaskImpl(std::unique_ptr<v8::Task> task, const v8::SourceLocation&) override { Add(std::move(task), 0); }
  void PostNonNestableTaskImpl(std::unique_ptr<v8::Task> task, const v8::SourceLocation&) override {
    Add(std::move(task), 0);
  }
  void PostDelayedTaskImpl(std::unique_ptr<v8::Task> task, double seconds, const v8::SourceLocation&) override {
    Add(std::move(task), seconds);
  }
  void PostNonNestableDelayedTaskImpl(std::unique_ptr<v8::Task> task, double seconds,
                                      const v8::SourceLocation&) override {
    Add(std::move(task), seconds);
  }

 private:
  struct Entry {
    uint64_t due_ns;
    std::unique_ptr<v8::Task> task;
  };
  void Add(std::unique_ptr<v8::Task> task, double seconds);

  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::function<void()> wake_;
};

class TaskDelegate final : public node::IsolatePlatformDelegate {
 public:
  std::shared_ptr<v8::TaskRunner> GetForegroundTaskRunner() override { return queue_; }
  bool IdleTasksEnabled() override { return false; }
  TaskQueue& queue() { return *queue_; }

 private:
  std::shared_ptr<TaskQueue> queue_ = std::make_shared<TaskQueue>();
};

}  // namespace engine
