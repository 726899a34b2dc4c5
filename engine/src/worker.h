// One loaded worker version: an actor with a mailbox. The scheduler gives it one thread at a time; in its turn it takes
// its mail, runs JavaScript, and sends what came of it in one write.
//
// Life: Load mail -> (top-level code, maybe over several turns) -> calls -> Unload mail, or condemned by a limit ->
// gone.
#pragma once

#include <v8.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "allowance.h"
#include "appetite.h"
#include "calls.h"
#include "jobs.h"
#include "modules.h"
#include "realm.h"
#include "timers.h"
#include "watchdog.h"
#include "wire.h"

namespace engine {

class Engine;

struct Mail {
  enum class Kind : uint8_t {
    kLoad,
    kUnload,
    kCall,
    kBody,
    kCredit,
    kCancel,
    kReply,
    kCode,
    kAlarm,
    kPump,
    kFinished,
    kTrim
  };
  Kind kind;
  uint8_t flags = 0;
  uint32_t id = 0;  // of the call, the op or the job it is for
  std::string payload;

  bool BelongsToCall() const {
    return kind == Kind::kCall || kind == Kind::kBody || kind == Kind::kCredit || kind == Kind::kCancel;
  }
};

class Worker final : public std::enable_shared_from_this<Worker> {
 public:
  Worker(Engine& engine, uint32_t id, uint32_t memory_mb, Appetite& appetite);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // From any thread. False when the worker is gone and will never read it.
  bool Post(Mail mail);

  // On a scheduler thread. True when there is more mail for another turn.
  bool Turn(Watchdog::Slot& slot);

  uint32_t id() const { return id_; }
  size_t memory_bytes() const { return memory_bytes_; }
  // Whether its tenant has computed so much lately that it has to let others go first. From any thread.
  bool IsHungry() const { return appetite_.is_large(); }
  // JS heap and array buffers after the last collection of garbage, or at the start. From any thread.
  size_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  void set_used_bytes(size_t bytes) { used_bytes_.store(bytes, std::memory_order_relaxed); }
  uint64_t spent_ns() const { return spent_ns_.load(std::memory_order_relaxed); }

  // --- What the natives and V8's callbacks use, inside a turn ---
  Calls& calls() { return calls_; }
  Modules& modules() { return *modules_; }
  const std::string& main_path() const { return main_path_; }
  // The serial of the call whose code runs now, carried through awaits by V8; 0 in top-level code. The call may be
  // over.
  uint32_t CurrentCall() const;
  uint64_t UnfinishedNs() const { return charge_ == nullptr ? 0 : charge_->SoFar(); }
  // What the isolate uses, garbage included, as it was a tenth of a second ago at most.
  uint16_t UsedMb();
  enum class TimerSet { kYes, kTooMany, kNever };  // never: it would ring for a call that is over
  TimerSet SetTimer(uint32_t id, double delay_ms);
  void ClearTimer(uint32_t id);
  // The id of the op; 0 when no call is running, kTooManyOps when the call has too many under way, kTooMuchOnItsWay
  // when those of the worker hold too much.
  static constexpr uint32_t kTooManyOps = UINT32_MAX;
  static constexpr uint32_t kOpTooLarge = UINT32_MAX - 1;
  static constexpr uint32_t kTooMuchOnItsWay = UINT32_MAX - 2;
  uint32_t StartOp(uint32_t op, std::string_view meta, std::string_view body);
  // Whether this worker may have one more job, which holds so much memory. If not, the work is done on the spot.
  bool MayStartJob(size_t bytes) const;
  // Empty when V8 is ending the worker's code.
  v8::MaybeLocal<v8::Promise> StartJob(std::shared_ptr<Job> job, size_t bytes);
  // True when the call had timers left; they are gone.
  bool FinishCall(uint32_t id);
  void Log(uint32_t call, wire::Level level, std::string_view text);
  void FinalizersWait() { finalizers_wait_ = true; }
  // For code of no call, which is to let others go first after a while.
  bool HasTime() const { return UnfinishedNs() < kStrayNs; }
  // V8 has been told to end the worker's code.
  bool IsEnding() const { return realm_->out_of_memory() || (charge_ != nullptr && charge_->HasFired()); }
  void OnAnswered() {
    if (charge_ != nullptr) charge_->Answered();
  }
  // V8 was told so for want of memory, from inside a turn or between two.
  void RanOut() {
    if (charge_ != nullptr) charge_->RunOut();
  }
  void OnPromiseReject(const v8::PromiseRejectMessage& message);
  bool HasRejections() const { return !rejections_.empty(); }
  // V8 has no memory left and would end the process. Never returns: the thread stays where it is until Python has
  // replaced the process, and the other workers go on.
  void OnFatalMemory();

 private:
  static constexpr uint32_t kMaxOps = 1000;
  // What ops hold until they are answered, and what answers hold until they are read, is memory that V8 does not count.
  static constexpr size_t kMaxOpBytes = size_t{64} << 20;
  static constexpr size_t kMaxReplyBytes = size_t{64} << 20;
  static constexpr size_t kSmallReply = 4096;  // always has room
  static constexpr uint64_t kStrayNs = 5'000'000;
  static constexpr uint64_t kMeasureEveryNs = 100'000'000;  // V8 takes half a microsecond to tell

  enum class State { kNew, kStarting, kReady, kGone };

  // A promise that was rejected with nobody to handle it, or that somebody handles after all.
  struct Rejection {
    v8::Global<v8::Promise> promise;
    uint32_t call;
    bool handled;
  };

  void MakeRoomFor(Mail& reply);
  bool TakeMail(std::vector<Mail>& batch);
  void RunBatch(std::vector<Mail>& batch, Watchdog::Slot& slot);
  void Handle(Mail& mail, Watchdog::Slot& slot);
  void HandleForCall(Watchdog::Slot& slot, uint32_t serial, const Mail& mail);
  void RunTimers(Watchdog::Slot& slot);
  // What V8 wants done, and finalizers.
  void RunTasks(Watchdog::Slot& slot);
  bool MayRunStray() { return !allowance_.is_used_up(MonotonicNs()); }
  uint64_t NextAlarm() const;
  // Runs `enter` charged to `call` (0: nobody in particular) and everything that follows from it.
  template <typename Enter>
  void Run(Watchdog::Slot& slot, uint32_t call, Enter&& enter);
  template <typename Enter>
  uint64_t RunCharged(Watchdog::Slot& slot, uint32_t call, const Account& account, Enter&& enter);
  Account AccountOf(uint32_t call) const;
  Account AccountOfV8() const;
  // A call is over that used so much CPU time.
  void Settle(uint64_t used_ns);
  void Spend(uint64_t cost_ns) { spent_ns_.store(spent_ns() + cost_ns, std::memory_order_relaxed); }
  void CallEntry(const v8::Global<v8::Function>& function, std::initializer_list<v8::Local<v8::Value>> arguments);

  void Load(std::string_view payload);
  // A worker whose calls share nothing (isolation "context") gets a fresh context after each.
  bool IsUsedUp() const { return renews_ && served_ && state_ == State::kReady && calls_.empty(); }
  void TakeNewContext();
  bool ReadMeta(std::string_view payload);
  bool Prepare();
  void Evaluate();
  v8::MaybeLocal<v8::Value> EvaluateMain();
  void ContinueStarting();
  void FinishStarting();
  void LoadFailed(const Failure& failure);

  // The serial of a call that comes to be, for BeginCall() to run its code; 0 when it was refused.
  uint32_t Admit(const Mail& mail);
  void BeginCall(uint32_t serial, const Mail& mail);
  void DeliverBody(uint32_t serial, const Mail& mail);
  void Pipe(Watchdog::Slot& slot, uint32_t serial, const Mail& mail);
  void DeliverReply(const Mail& mail);
  // Nobody is there any more for what the ops of a call that is over are answered.
  void ForgetOps(uint32_t call);
  // Ends a call; true if it still had timers.
  bool EndCall(uint32_t id);
  bool IsOver(uint32_t call) const { return call != 0 && calls_.Find(call) == nullptr; }
  // Remembers what a call that is over has used, if jobs of it go on.
  void Outlive(uint32_t call, uint64_t used_ns);
  void Cancel(uint32_t serial, const Mail& mail);

  // Charges a finished job and returns the call it was for.
  uint32_t ChargeJob(uint32_t id);
  void DeliverFinished(uint32_t id);
  void PushJobs();
  bool HasJobs(uint32_t call) const;
  void DropJobs();

  void ReportRejections();
  void EndStuckCalls();
  // The isolate cannot go on: every call in it fails for the same reason.
  void Condemn(const Failure& failure);
  // Python was told that this worker is stuck and has ended its calls: go without a word about them.
  void Vanish();
  void Leave(std::string_view reason);
  void Refuse(const Mail& mail);
  void DropCancelled(std::vector<Mail>& unread);
  void DoneUnbegun(uint32_t call, wire::Outcome outcome);
  void Flush();

  Engine& engine_;
  const uint32_t id_;
  const size_t memory_bytes_;
  Appetite& appetite_;  // its tenant's

  // Any thread.
  std::mutex mutex_;
  std::vector<Mail> mailbox_;
  bool scheduled_ = false;
  bool gone_ = false;

  std::atomic<size_t> used_bytes_{0};
  std::atomic<uint64_t> spent_ns_{0};   // all CPU time since it was loaded; written by whoever has its turn
  std::atomic<size_t> reply_bytes_{0};  // in the mailbox

  // Inside a turn only.
  State state_ = State::kNew;
  wire::Writer out_;
  uint64_t out_since_ns_ = 0;
  uint64_t measured_ns_ = 0;
  uint16_t measured_mb_ = 0;
  Calls calls_;
  Timers timers_;
  uint64_t alarm_ns_ = Timers::kNever;
  std::unique_ptr<Realm> realm_;
  std::unique_ptr<Modules> modules_;
  std::string main_path_;
  std::string format_;
  std::string load_;      // what Load() was given, kept by a worker that renews itself
  bool renews_ = false;   // one call at a time, each in a context of its own
  bool renewed_ = false;  // this is not its first context
  bool served_ = false;   // the context has had its call
  bool allow_eval_ = false;
  bool allow_wasm_compile_ = false;
  bool allow_shared_memory_ = false;
  v8::Global<v8::Object> meta_;
  v8::Global<v8::Promise> starting_;
  uint64_t cpu_limit_ns_ = 50'000'000;
  uint64_t event_limit_ns_ = 0;  // for calls that are events; never less than the limit of others
  uint64_t spare_ns_ = 0;        // what calls that stayed below the limit have earned for those that do not
  uint64_t startup_ns_ = 0;
  Allowance allowance_;
  bool finalizers_wait_ = false;
  double longest_timer_ms_ = 30'000;
  std::vector<Mail> early_;  // of calls that came before the top-level code was done
  struct PendingOp {
    uint32_t call;
    size_t bytes;
  };
  std::unordered_map<uint32_t, PendingOp> ops_;
  size_t op_bytes_ = 0;
  std::vector<Rejection> rejections_;
  std::vector<uint32_t> finishing_;  // calls that are over when the rejections have been told
  struct PendingJob {
    std::shared_ptr<Job> job;
    v8::Global<v8::Promise::Resolver> resolver;
    uint32_t call;
  };
  std::unordered_map<uint32_t, PendingJob> jobs_;
  std::deque<uint32_t> waiting_jobs_;                // of them, those the pool does not have yet
  std::unordered_map<uint32_t, uint64_t> outlived_;  // calls that are over and have jobs -> CPU time they used
  size_t stray_jobs_ = 0;  // that code of no call has started since the top-level code was done
  size_t job_bytes_ = 0;
  uint32_t next_job_ = 1;
  Watchdog::Charge* charge_ = nullptr;
  std::optional<Failure> condemned_;
};

}  // namespace engine
