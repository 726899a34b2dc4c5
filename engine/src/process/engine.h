// The process: makes every part once, connects them, and passes each frame to its worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "isolate/realm.h"
#include "isolate/spares.h"
#include "limits/appetite.h"
#include "limits/watchdog.h"
#include "link/ledger.h"
#include "link/link.h"
#include "storage/descriptors.h"
#include "threads/alarms.h"
#include "threads/jobs.h"
#include "threads/scheduler.h"
#include "worker/worker.h"

namespace engine {

struct EngineOptions {
  int socket_fd;
  int snapshot_fd;
  int ledger_fd;
  int descriptors_fd;
  uint32_t threads;
  uint32_t slow_threads;
  uint32_t spares;
  uint32_t pbkdf2_iterations;  // the limit for one derivation
  std::string node_version;
  std::string v8_version;
  std::string sandbox;  // require, try or off
  node::MultiIsolatePlatform* platform;
  uint32_t heap_initial_mb;  // 0: V8 decides
  bool measures;             // CPU time; false only in a benchmark
};

class Engine final {
 public:
  static constexpr uint32_t kDefaultMemoryMb = 128;

  explicit Engine(const EngineOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Serves until Python closes the socket, which ends the process. Returns only if it cannot start.
  int Run();

  // --- For workers, from any thread ---
  Link& link() { return link_; }
  Ledger& ledger() { return ledger_; }
  storage::Descriptors& descriptors() { return descriptors_; }
  Spares& spares() { return spares_; }
  Jobs& jobs() { return jobs_; }
  void Schedule(std::shared_ptr<Worker> worker) { scheduler_.Push(std::move(worker)); }
  // One per tenant, for the life of the process.
  Appetite& AppetiteOf(const std::string& tenant);
  void SetAlarm(const std::shared_ptr<Worker>& worker, uint64_t due_ns);
  // Never 0, and never a value by which Worker::StartOp refuses.
  uint32_t NextOp() { return 1 + next_op_.fetch_add(1, std::memory_order_relaxed) % kMaxOp; }
  // The id of a call inside the engine.
  uint32_t NextInner() {
    return wire::kInnerCalls + next_inner_.fetch_add(1, std::memory_order_relaxed) % wire::kInnerCalls;
  }
  // Null if the worker is not loaded.
  std::shared_ptr<Worker> Find(uint32_t id);
  void Remove(uint32_t worker_id);
  // Asks Python to replace this process: code of the worker can neither continue nor be ended. `used_ns` is the CPU
  // time of the call.
  void ReportStuck(uint32_t worker, uint32_t call, uint64_t used_ns, Failure failure);

 private:
  static constexpr uint32_t kMaxOp = UINT32_MAX - 8;
  void Report(wire::Frame kind, uint8_t flags, uint32_t worker, uint32_t call, const Failure& failure);
  bool OnFrame(const wire::FrameView& frame);
  bool OnHello(const wire::FrameView& frame);
  bool OnLoad(const wire::FrameView& frame);
  bool OnRoute(const wire::FrameView& frame);
  void Deliver(const wire::FrameView& frame, Mail::Kind kind);
  void OnPing(bool low_memory);
  // Wakes the workers whose timers are due, waits for frames, and delivers them.
  void Read();
  void SendHello();

  const EngineOptions options_;
  RealmFactory factory_;
  Link link_;
  Ledger ledger_;
  storage::Descriptors descriptors_;
  Alarms alarms_;
  Watchdog watchdog_;
  Spares spares_;
  Jobs jobs_;
  Scheduler scheduler_;
  bool greeted_ = false;
  bool has_rested_ = false;  // workers were told to collect garbage after the last PING

  std::mutex mutex_;
  std::unordered_map<uint32_t, std::shared_ptr<Worker>> workers_;
  std::unordered_map<std::string, Appetite> appetites_;
  std::atomic<uint32_t> next_op_{1};
  std::atomic<uint32_t> next_inner_{0};
};

}  // namespace engine
