// The process: makes every part once and joins them; hands each frame to the worker it is for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "appetite.h"
#include "jobs.h"
#include "ledger.h"
#include "link.h"
#include "realm.h"
#include "scheduler.h"
#include "spares.h"
#include "timers.h"
#include "watchdog.h"
#include "worker.h"

namespace engine {

struct EngineOptions {
  int socket_fd;
  int snapshot_fd;
  int ledger_fd;
  uint32_t threads;
  uint32_t slow_threads;
  uint32_t spares;
  uint32_t pbkdf2_iterations;  // the most a worker may ask for
  std::string node_version;
  std::string v8_version;
  std::string sandbox;  // require, try or off
  node::MultiIsolatePlatform* platform;
  uint32_t heap_initial_mb;  // 0: V8 decides
  bool measures;             // CPU time; always, but for a benchmark
};

class Engine final {
 public:
  static constexpr uint32_t kDefaultMemoryMb = 128;

  explicit Engine(const EngineOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Serves until Python closes the socket, which ends the process. Returns only when it cannot start.
  int Run();

  // --- For workers, from any thread ---
  Link& link() { return link_; }
  Ledger& ledger() { return ledger_; }
  Spares& spares() { return spares_; }
  Jobs& jobs() { return jobs_; }
  void Schedule(std::shared_ptr<Worker> worker) { scheduler_.Push(std::move(worker)); }
  // Lives as long as the process: there are not more of them than tenants.
  Appetite& AppetiteOf(const std::string& tenant);
  void SetAlarm(const std::shared_ptr<Worker>& worker, uint64_t due_ns);
  // Never 0, nor one of the numbers by which a worker is told that it gets none.
  uint32_t NextOp() { return 1 + next_op_.fetch_add(1, std::memory_order_relaxed) % kMaxOp; }
  void Remove(uint32_t worker_id);
  // Python is to replace this process: code of the worker can neither go on nor be ended. The call has used so much.
  void ReportStuck(uint32_t worker, uint32_t call, uint64_t used_ns, Failure failure);

 private:
  static constexpr uint32_t kMaxOp = UINT32_MAX - 8;
  void Report(wire::Frame kind, uint8_t flags, uint32_t worker, uint32_t call, const Failure& failure);
  bool OnFrame(const wire::FrameView& frame);
  bool OnHello(const wire::FrameView& frame);
  bool OnLoad(const wire::FrameView& frame);
  void Deliver(const wire::FrameView& frame, Mail::Kind kind);
  void OnPing(bool low_memory);
  // Wakes the workers whose timers are due, waits for frames, and delivers them.
  void Read();
  void SendHello();
  std::shared_ptr<Worker> Find(uint32_t id);

  const EngineOptions options_;
  RealmFactory factory_;
  Link link_;
  Ledger ledger_;
  Alarms alarms_;
  Watchdog watchdog_;
  Spares spares_;
  Jobs jobs_;
  Scheduler scheduler_;
  bool greeted_ = false;

  std::mutex mutex_;
  std::unordered_map<uint32_t, std::shared_ptr<Worker>> workers_;
  std::unordered_map<std::string, Appetite> appetites_;
  std::atomic<uint32_t> next_op_{1};
};

}  // namespace engine
