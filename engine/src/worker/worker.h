// One loaded worker version: an actor with a mailbox. The scheduler gives it one thread at a time. In its turn it takes
// its mail, runs JavaScript, and sends the resulting frames in one write.
//
// Life: LOAD -> top-level code, possibly over several turns -> calls -> UNLOAD, or condemned by a limit -> gone.
//
// Worker connects its parts and decides which one acts next; each part has its own state. worker.cc has the turns,
// worker_calls.cc the ops and jobs of calls and their end, worker_inner.cc calls between isolates of this engine,
// worker_life.cc loading and unloading.
#pragma once

#include <v8.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isolate/modules.h"
#include "isolate/realm.h"
#include "limits/appetite.h"
#include "limits/watchdog.h"
#include "link/wire.h"
#include "storage/storage.h"
#include "worker/calls.h"
#include "worker/cpu_account.h"
#include "worker/mailbox.h"
#include "worker/outbox.h"
#include "worker/pending_jobs.h"
#include "worker/pending_ops.h"
#include "worker/rejections.h"
#include "worker/rest.h"
#include "worker/routes.h"
#include "worker/startup.h"
#include "worker/timers.h"
#include "worker/web_entry.h"

namespace engine {

class Engine;

class Worker final : public std::enable_shared_from_this<Worker> {
 public:
  Worker(Engine& engine, uint32_t id, uint32_t memory_mb, Appetite& appetite);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // --- From any thread ---

  // False when the worker is gone and will never read the mail.
  bool Post(Mail mail);
  // Posts a call of another worker of this engine; `announce` is called before it can begin. False as for Post().
  bool PostInner(Mail mail, const std::function<void()>& announce);
  Routes& routes() { return routes_; }
  Doors& doors() { return doors_; }
  const InnerCount& inner_count() const { return inner_count_; }
  uint32_t id() const { return id_; }
  size_t memory_bytes() const { return memory_bytes_; }
  // True while the recent CPU use of its tenant is so high that it runs on low-priority threads.
  bool IsHungry() const { return appetite_.is_large(); }
  // JS heap and array buffers after the last garbage collection, or at the start.
  size_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  void set_used_bytes(size_t bytes) { used_bytes_.store(bytes, std::memory_order_relaxed); }
  uint64_t spent_ns() const { return cpu_.spent_ns(); }
  Rest& rest() { return rest_; }

  // --- On a scheduler thread ---

  // Runs one turn. True when the worker needs another.
  bool Turn(Watchdog::Slot& slot);

  // --- For natives and V8's callbacks, inside a turn ---

  Calls& calls() { return calls_; }
  Timers& timers() { return timers_; }
  // Null while no object of this worker has its storage here.
  storage::Storage* storage() { return storage_.get(); }
  // A promise of storage.sync(); empty if there is nothing to wait for.
  v8::MaybeLocal<v8::Promise> SyncStorage(uint32_t slot);
  // What the object of a slot has not committed is lost.
  void ResetStorage(uint32_t slot, const Failure& failure) {
    doors_.Shut(slot);
    storage_->Reset(slot, failure, outbox_.frames(), entry_start_);
  }
  // A frame about a hibernatable WebSocket of the object in a slot.
  void SendSocket(uint32_t slot, uint8_t what, uint32_t socket, std::string_view bytes);
  // Ends the JavaScript that runs now, and nothing else: the worker continues with the next entry.
  void StopCode() {
    is_stopped_ = true;
    realm_->isolate()->TerminateExecution();
  }
  Modules& modules() { return *modules_; }
  // The serial of the call whose code runs now, which V8 carries through awaits; 0 in top-level code. The call may be
  // over.
  uint32_t CurrentCall() const;
  // CPU time of the entry under way.
  uint64_t UnfinishedNs() const { return charge_ == nullptr ? 0 : charge_->SoFar(); }
  // The id of the op, or why there is none: 0 when no call is running, kTooManyOps when the call has too many pending,
  // kTooMuchOnItsWay when those of the worker hold too much memory.
  static constexpr uint32_t kTooManyOps = UINT32_MAX;
  static constexpr uint32_t kOpTooLarge = UINT32_MAX - 1;
  static constexpr uint32_t kTooMuchOnItsWay = UINT32_MAX - 2;
  uint32_t StartOp(uint32_t op, std::string_view meta, std::string_view body);
  // Calls another worker without Python. The id of the op, whose reply is the answer; 0 if the call must go over
  // Python.
  uint32_t StartInner(const InnerRequest& request);
  // As Calls::Respond().
  bool Respond(uint32_t serial, uint16_t status, v8::Local<v8::String> head, v8::Local<v8::Value> body, bool done);
  // As Calls::SendBody(). A long chunk leaves at once and is not copied here.
  size_t SendBody(uint32_t serial, std::string_view bytes);
  // True if this worker may start one more job that holds `bytes` of memory. If not, the caller does the work itself.
  bool MayStartJob(size_t bytes) const { return jobs_.HasRoomFor(bytes); }
  // Empty when V8 is ending the worker's code.
  v8::MaybeLocal<v8::Promise> StartJob(std::shared_ptr<Job> job, size_t bytes);
  // Ends a call. True when it had timers left, which are cleared.
  bool FinishCall(uint32_t serial);
  void Log(uint32_t call, wire::Level level, std::string_view text);
  void FinalizersWait() { finalizers_wait_ = true; }
  // For code of no call: false once it has run long enough and must let other code run.
  bool HasTime() const { return UnfinishedNs() < kStrayNs; }
  // V8 has been told to end the worker's code.
  bool IsEnding() const { return realm_->out_of_memory() || (charge_ != nullptr && charge_->HasFired()); }
  void OnAnswered() {
    if (charge_ != nullptr) charge_->Answered();
  }
  // V8 was told to end the worker's code because it is out of memory. May happen between two turns.
  void RanOut() {
    if (charge_ != nullptr) charge_->RunOut();
  }
  void OnPromiseReject(const v8::PromiseRejectMessage& message);
  bool HasRejections() const { return !rejections_.empty(); }
  // V8 has no memory left and would end the process. Never returns: the thread sleeps until Python has replaced the
  // process, while other workers continue.
  void OnFatalMemory();

 private:
  static constexpr uint64_t kStrayNs = 5'000'000;

  enum class State { kNew, kStarting, kReady, kGone };

  // --- Turns: worker.cc ---
  void TakeRealm();
  void RunBatch(std::vector<Mail>& batch, Watchdog::Slot& slot);
  void Handle(Mail& mail, Watchdog::Slot& slot);
  void HandleCall(Watchdog::Slot& slot, const Mail& mail);
  void HandleForCall(Watchdog::Slot& slot, uint32_t serial, const Mail& mail);
  void HandleReply(Watchdog::Slot& slot, Mail& mail);
  // Sends the frames of this worker, and then answers to calls from inside the engine.
  void Flush();
  void HandleFinished(Watchdog::Slot& slot, uint32_t job);
  void CommitStorage();
  void HandleStorage(Watchdog::Slot& slot, const Mail& mail);
  void Pipe(Watchdog::Slot& slot, uint32_t serial, const Mail& mail);
  void RunTimers(Watchdog::Slot& slot);
  // Runs V8's tasks and finalizers.
  void RunTasks(Watchdog::Slot& slot);
  void ResumeStopped();
  bool MayRunStray() { return !cpu_.allowance().is_used_up(MonotonicNs()); }
  uint64_t NextAlarm() const;
  // Runs `enter` and everything that follows from it, charged to the call with this serial; 0: code of no call.
  template <typename Enter>
  void Run(Watchdog::Slot& slot, uint32_t serial, Enter&& enter);
  template <typename Enter>
  uint64_t RunCharged(Watchdog::Slot& slot, uint32_t serial, const EntryAccount& account, Enter&& enter);
  WebEntry web() { return WebEntry(*realm_, calls_); }

  // --- Calls: worker_calls.cc ---
  // The serial of the new call; 0 when it was refused.
  uint32_t Admit(const Mail& mail, const std::optional<wire::CallParts>& parts);
  bool EndCall(uint32_t serial);
  void EndStuckCalls();
  void ReportRejections();
  // Charges a finished job and returns the serial of its call.
  uint32_t ChargeJob(uint32_t id);
  void ResolveJob(uint32_t id);
  void DropJobs();

  // --- Calls inside the engine: worker_inner.cc ---
  // Whether what the object of a slot sends now has to wait in Python: it has commits that are not durable.
  bool MustWait(uint32_t slot) const;
  // Tells the caller of a call that never began to make it over Python.
  void RefuseInner(const Mail& mail);

  // --- Loading and ending: worker_life.cc ---
  bool IsStarting() const { return state_ == State::kNew || state_ == State::kStarting; }
  // With isolation "context", a context that has served its call is replaced.
  bool IsUsedUp() const { return renews_ && served_ && state_ == State::kReady && calls_.empty(); }
  void TakeNewContext();
  void Load(std::string_view payload);
  void ContinueStarting();
  void FinishStarting(const std::string& handlers);
  void LoadFailed(const Failure& failure);
  // The isolate cannot continue: every call in it fails for the same reason.
  void Condemn(const Failure& failure);
  // Python knows that this worker is stuck and has ended its calls: ends without a frame about them.
  void Vanish();
  void Unload();
  void Leave(std::string_view reason);
  void Refuse(const Mail& mail);
  void DropCanceledCalls(std::vector<Mail>& unread);
  // Needs the isolate to be locked.
  void DropHandles();

  Engine& engine_;
  const uint32_t id_;
  const size_t memory_bytes_;
  Appetite& appetite_;  // of the tenant

  // Any thread.
  Mailbox mailbox_;
  Routes routes_;
  Doors doors_;  // of the objects that live here
  const InnerCount inner_count_ = std::make_shared<std::atomic<uint32_t>>(0);
  std::atomic<size_t> used_bytes_{0};
  Rest rest_;

  // Inside a turn only. The order matters: later parts refer to earlier ones.
  State state_ = State::kNew;
  Outbox outbox_;
  Calls calls_;
  Timers timers_;
  PendingOps ops_;
  std::unique_ptr<Realm> realm_;  // before everything that holds handles of its isolate
  std::unique_ptr<Modules> modules_;
  std::unique_ptr<Startup> startup_;  // while top-level code runs
  PendingJobs jobs_;
  CpuAccount cpu_;
  Rejections rejections_;
  std::unique_ptr<storage::Storage> storage_;  // from the first OPEN on
  struct Answer {
    std::weak_ptr<Worker> caller;
    Mail mail;
  };
  std::vector<Answer> answers_;      // to calls from inside the engine, until the next Flush()
  bool leaves_ = false;              // unloaded once calls from inside the engine are over
  std::vector<uint32_t> finishing_;  // calls to end once their rejections are reported
  std::vector<Mail> early_;          // mail of calls that arrived before top-level code was done
  uint64_t alarm_ns_ = Timers::kNever;
  bool finalizers_wait_ = false;
  bool is_stopped_ = false;             // StopCode() ends the code of the entry under way
  size_t entry_start_ = 0;              // where in the outbox the frames of the entry under way begin
  Watchdog::Charge* charge_ = nullptr;  // the entry under way
  std::optional<Failure> condemned_;

  // Isolation "context": one call at a time, each in its own context.
  bool renews_ = false;
  bool renewed_ = false;  // this is not the first context
  bool served_ = false;   // the context has served its call
  std::string load_;      // the payload of LOAD, kept for new contexts
};

}  // namespace engine
