#include "worker.h"

#include <algorithm>
#include <utility>

#include "clock.h"
#include "engine.h"
#include "json.h"

namespace engine {
namespace {

// After this long in one turn the next worker gets the thread.
constexpr uint64_t kSliceNs = 5'000'000;
// A finished response waits at most this long for others to leave with it.
constexpr uint64_t kFlushNs = 200'000;

}  // namespace

Worker::Worker(Engine& engine, uint32_t id, uint32_t memory_mb, Appetite& appetite)
    : engine_(engine), id_(id), memory_bytes_(size_t{memory_mb} * 1024 * 1024), appetite_(appetite), calls_(id, out_) {}

Worker::~Worker() = default;

// --- The mailbox ---

bool Worker::Post(Mail mail) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (gone_) return false;
    if (mail.kind == Mail::Kind::kReply) MakeRoomFor(mail);
    mailbox_.push_back(std::move(mail));
    if (scheduled_) return true;
    scheduled_ = true;
  }
  engine_.Schedule(shared_from_this());
  return true;
}

// A worker that does not read what its bindings answer must not fill the memory of all with it.
void Worker::MakeRoomFor(Mail& reply) {
  size_t held = reply_bytes_.load(std::memory_order_relaxed) + reply.payload.size();
  if (reply.payload.size() > kSmallReply && held > std::max(memory_bytes_, kMaxReplyBytes)) {
    std::string().swap(reply.payload);
  }
  reply_bytes_.fetch_add(reply.payload.size(), std::memory_order_relaxed);
}

bool Worker::TakeMail(std::vector<Mail>& batch) {
  std::lock_guard<std::mutex> lock(mutex_);
  batch.swap(mailbox_);
  return !batch.empty();
}

bool Worker::Turn(Watchdog::Slot& slot) {
  std::vector<Mail> batch;
  TakeMail(batch);
  DropCancelled(batch);
  bool made = false;
  const bool is_new = realm_ == nullptr && state_ == State::kNew;
  if (is_new) {
    realm_ = engine_.spares().Take(memory_bytes_, &made);
    realm_->set_worker(this);
    realm_->tasks().OnTask([weak = weak_from_this()] {
      if (std::shared_ptr<Worker> self = weak.lock()) self->Post({Mail::Kind::kPump, 0, 0, {}});
    });
  }
  bool renew = realm_ != nullptr && IsUsedUp();
  if (renew) TakeNewContext();
  if (realm_ != nullptr) {
    RealmScope scope(*realm_);
    if (renew) {
      Run(slot, 0, [&] { Load(load_); });
      if (condemned_) Condemn(*condemned_);
    }
    RunBatch(batch, slot);
    RunTasks(slot);
    if (state_ == State::kGone) {
      // Handles must go while the isolate is locked.
      modules_.reset();
      meta_.Reset();
      starting_.Reset();
      rejections_.clear();
      DropJobs();
    } else if (const uint64_t next = NextAlarm(); next != alarm_ns_) {
      alarm_ns_ = next;
      engine_.SetAlarm(shared_from_this(), alarm_ns_);
    }
  }
  if (state_ == State::kGone) {
    realm_.reset();
    Flush();
    if (is_new) engine_.spares().Replenish(made);
    return false;
  }
  Flush();
  if (is_new) engine_.spares().Replenish(made);
  bool again = IsUsedUp();  // the answer leaves first
  again = again || (finalizers_wait_ && state_ == State::kReady && MayRunStray());
  std::lock_guard<std::mutex> lock(mutex_);
  scheduled_ = again || !mailbox_.empty();
  return scheduled_;
}

void Worker::RunBatch(std::vector<Mail>& batch, Watchdog::Slot& slot) {
  uint64_t started = MonotonicNs();
  for (size_t i = 0; i < batch.size(); i++) {
    if (state_ == State::kGone) {
      Refuse(batch[i]);
      continue;
    }
    const bool is_load = batch[i].kind == Mail::Kind::kLoad;
    Handle(batch[i], slot);
    if (condemned_) Condemn(*condemned_);
    if (state_ == State::kReady && !early_.empty()) {
      // The top-level code is done: what had to wait for it comes before what came since.
      DropCancelled(early_);
      batch.insert(batch.begin() + static_cast<ptrdiff_t>(i) + 1, std::make_move_iterator(early_.begin()),
                   std::make_move_iterator(early_.end()));
      early_.clear();
    }
    uint64_t now = MonotonicNs();
    if (out_.empty() || is_load) {  // LOADED leaves with the first answer: Python, told of it now, might take the core
      out_since_ns_ = now;
    } else if (now - out_since_ns_ > kFlushNs) {
      Flush();
      out_since_ns_ = now;
    }
    bool enough = now - started > kSliceNs || IsUsedUp();
    if (enough && i + 1 < batch.size() && state_ != State::kGone) {
      std::lock_guard<std::mutex> lock(mutex_);
      mailbox_.insert(mailbox_.begin(), std::make_move_iterator(batch.begin() + static_cast<ptrdiff_t>(i) + 1),
                      std::make_move_iterator(batch.end()));
      return;
    }
  }
}

void Worker::Handle(Mail& mail, Watchdog::Slot& slot) {
  if (state_ == State::kStarting && mail.BelongsToCall()) {
    early_.push_back(std::move(mail));
    return;
  }
  switch (mail.kind) {
    case Mail::Kind::kLoad:
      Run(slot, 0, [&] { Load(mail.payload); });
      if (renews_) load_ = std::move(mail.payload);
      break;
    case Mail::Kind::kUnload:
      calls_.FailAll({wire::Error::kUnavailable, "the worker was unloaded while the request ran", {}, {}, {}, 0, 0});
      Leave("{}");
      return;
    case Mail::Kind::kCall:
      if (renews_ && served_) {  // Python sends one at a time
        Refuse(mail);
        break;
      }
      served_ = true;
      if (uint32_t serial = Admit(mail); serial != 0) Run(slot, serial, [&] { BeginCall(serial, mail); });
      break;
    case Mail::Kind::kBody:
    case Mail::Kind::kCredit:
    case Mail::Kind::kCancel:
      if (uint32_t serial = calls_.SerialOf(mail.id); serial != 0) HandleForCall(slot, serial, mail);
      break;
    case Mail::Kind::kReply: {
      auto op = ops_.find(mail.id);
      if (op != ops_.end()) Run(slot, op->second.call, [&] { DeliverReply(mail); });
      reply_bytes_.fetch_sub(mail.payload.size(), std::memory_order_relaxed);
      std::string().swap(mail.payload);
      break;
    }
    case Mail::Kind::kAlarm:
      alarm_ns_ = Timers::kNever;
      RunTimers(slot);
      break;
    case Mail::Kind::kPump:
      // What V8 wants done (mostly collecting garbage) is done by Turn(), once the answers have left.
      break;
    case Mail::Kind::kFinished:
      if (uint32_t call = ChargeJob(mail.id); !condemned_) {
        Run(slot, call, [&] { DeliverFinished(mail.id); });
        if (outlived_.contains(call) && !HasJobs(call)) outlived_.erase(call);
      }
      break;
    case Mail::Kind::kTrim:
      realm_->isolate()->LowMemoryNotification();
      break;
    case Mail::Kind::kCode:
      out_.Whole(wire::Frame::kCode, 0, id_, 0, modules_ == nullptr ? std::string() : modules_->CodeCache());
      break;
  }
}

void Worker::HandleForCall(Watchdog::Slot& slot, uint32_t serial, const Mail& mail) {
  Call& call = *calls_.Find(serial);
  if (mail.kind == Mail::Kind::kCancel) {
    Run(slot, serial, [&] { Cancel(serial, mail); });
  } else if (mail.kind == Mail::Kind::kBody) {
    if (call.piped) return Pipe(slot, serial, mail);
    Run(slot, serial, [&] { DeliverBody(serial, mail); });
  } else {
    call.credit += wire::Reader(mail.payload).U32();
    const bool was_awaited = std::exchange(call.waits_credit, false);
    if (call.piped) Pipe(slot, serial, mail);
    if (!was_awaited) return;
    Run(slot, serial,
        [&] { CallEntry(realm_->entry().credit, {v8::Integer::NewFromUnsigned(realm_->isolate(), serial)}); });
  }
}

// --- Entering JavaScript ---

template <typename Enter>
void Worker::Run(Watchdog::Slot& slot, uint32_t call_id, Enter&& enter) {
  const Account account = AccountOf(call_id);
  const uint64_t cost = RunCharged(slot, call_id, account, std::forward<Enter>(enter));
  if (call_id != 0) {
    allowance_.Earn(cost);
  } else if (!account.starting) {
    allowance_.Spend(cost);
  }
}

template <typename Enter>
uint64_t Worker::RunCharged(Watchdog::Slot& slot, uint32_t call_id, const Account& account, Enter&& enter) {
  v8::Isolate* isolate = realm_->isolate();
  v8::HandleScope handles(isolate);
  v8::TryCatch caught(isolate);
  realm_->set_now_ms(EpochMs());
  if (call_id != 0) isolate->SetContinuationPreservedEmbedderData(v8::Integer::NewFromUnsigned(isolate, call_id));
  const bool was_over = outlived_.contains(call_id);
  uint64_t cost;
  uint64_t surely;
  bool too_long;
  bool disowned;
  {
    Watchdog::Charge charge(slot, isolate, account);
    charge_ = &charge;
    enter();
    isolate->PerformMicrotaskCheckpoint();
    if (state_ == State::kStarting && !IsEnding()) ContinueStarting();
    if (!rejections_.empty()) ReportRejections();
    for (uint32_t id : std::exchange(finishing_, {})) EndCall(id);
    charge_ = nullptr;
    cost = charge.Stop();
    surely = charge.surely_ns();
    too_long = charge.fired();
    disowned = charge.disowned();
  }
  if (Call* call = calls_.Find(call_id)) {
    call->cpu_ns += cost;
    too_long = too_long || cost > account.budget_ns;  // it goes on, and the watchdog may have missed many short entries
  } else if (call_id != 0) {
    if (!was_over) Outlive(call_id, account.used_ns);
    if (auto left = outlived_.find(call_id); left != outlived_.end()) left->second += cost;
    if (!was_over && account.limit_ns == cpu_limit_ns_) Settle(account.used_ns + cost);
  }
  if (account.starting) startup_ns_ += cost;
  Spend(cost);
  appetite_.Add(surely);
  if (disowned) Vanish();
  if (state_ == State::kGone) return cost;
  if (realm_->out_of_memory()) {
    condemned_ = TooMuchMemory(memory_bytes_);
  } else if (too_long) {
    condemned_ = TooMuchCpu(account.used_ns + cost, account.limit_ns);
  } else {
    isolate->SetContinuationPreservedEmbedderData(v8::Undefined(isolate));
    EndStuckCalls();
  }
  return cost;
}

void Worker::CallEntry(const v8::Global<v8::Function>& function,
                       std::initializer_list<v8::Local<v8::Value>> arguments) {
  v8::Isolate* isolate = realm_->isolate();
  v8::TryCatch caught(isolate);
  v8::Local<v8::Value> values[8];
  size_t count = 0;
  for (v8::Local<v8::Value> value : arguments) values[count++] = value;
  // Entry points catch what the worker throws; what comes out here is a bug of ours or a termination.
  Ignore(function.Get(isolate)->Call(isolate->GetCurrentContext(), v8::Undefined(isolate), static_cast<int>(count),
                                     values));
  if (caught.HasCaught() && !caught.HasTerminated()) {
    Failure failure = Describe(isolate->GetCurrentContext(), wire::Error::kInternal, caught);
    Log(0, wire::Level::kError, "internal error: " + (failure.stack.empty() ? failure.message : failure.stack));
  }
}

// The value V8 carries is the serial of the call, or the array [serial, stores] when the worker uses AsyncLocalStorage
// (web/internal/async_context.js).
uint32_t Worker::CurrentCall() const {
  v8::Isolate* isolate = realm_->isolate();
  v8::Local<v8::Value> data = isolate->GetContinuationPreservedEmbedderData();
  if (data.IsEmpty()) return 0;
  if (data->IsUint32()) return data.As<v8::Uint32>()->Value();
  if (!data->IsArray()) return 0;
  v8::Local<v8::Value> call;
  if (!data.As<v8::Array>()->Get(isolate->GetCurrentContext(), 0).ToLocal(&call) || !call->IsUint32()) return 0;
  return call.As<v8::Uint32>()->Value();
}

// A body that JavaScript only hears the end of, so it costs the call no CPU time.
void Worker::Pipe(Watchdog::Slot& slot, uint32_t serial, const Mail& mail) {
  bool is_body = mail.kind == Mail::Kind::kBody;
  bool last = is_body && (mail.flags & wire::kFlagEnd);
  if (Call* call = calls_.Find(serial); last && call != nullptr) call->upload_open = false;
  if (!calls_.Pipe(serial, is_body ? std::string_view(mail.payload) : std::string_view(), last)) return;
  v8::Isolate* isolate = realm_->isolate();
  Run(slot, serial,
      [&] { CallEntry(realm_->entry().body, {v8::Integer::NewFromUnsigned(isolate, serial), v8::Null(isolate)}); });
}

void Worker::RunTimers(Watchdog::Slot& slot) {
  uint64_t now = MonotonicNs();
  uint32_t id;
  uint32_t call_id;
  while (!condemned_ && state_ != State::kGone && timers_.TakeDue(now, &id, &call_id)) {
    if (call_id == 0 && state_ == State::kReady && !MayRunStray()) {
      timers_.Set(id, 0, allowance_.Again());
      continue;
    }
    if (Call* call = calls_.Find(call_id)) call->timers--;
    Run(slot, call_id,
        [&] { CallEntry(realm_->entry().timer, {v8::Integer::NewFromUnsigned(realm_->isolate(), id)}); });
  }
}

void Worker::RunTasks(Watchdog::Slot& slot) {
  if (state_ != State::kGone && realm_->tasks().HasDue()) {
    Flush();
    RunCharged(slot, 0, AccountOfV8(), [&] { realm_->tasks().RunDue(); });
    if (condemned_) Condemn(*condemned_);
  }
  if (state_ == State::kReady && finalizers_wait_ && MayRunStray()) {
    Flush();
    finalizers_wait_ = false;
    Run(slot, 0, [&] { CallEntry(realm_->entry().finalize, {}); });
    if (condemned_) Condemn(*condemned_);
  }
}

// Finalizers that may not run yet wait for it too.
uint64_t Worker::NextAlarm() const {
  if (!finalizers_wait_ || state_ != State::kReady) return timers_.earliest();
  return std::min(timers_.earliest(), allowance_.Again());
}

void Worker::Flush() { engine_.link().Send(out_.bytes()); }

}  // namespace engine
