#include "worker/worker.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "process/engine.h"

namespace engine {
namespace {

// After this long in one turn the next worker gets the thread.
constexpr uint64_t kSliceNs = 5'000'000;
// Callers in this engine wait this long for their answers while other calls of the turn run.
constexpr uint64_t kAnswerNs = 200'000;

}  // namespace

Worker::Worker(Engine& engine, uint32_t id, uint32_t memory_mb, Appetite& appetite)
    : engine_(engine),
      id_(id),
      memory_bytes_(size_t{memory_mb} * 1024 * 1024),
      appetite_(appetite),
      mailbox_(memory_bytes_),
      outbox_(engine.link(), id),
      calls_(id, outbox_.frames()),
      timers_(calls_),
      cpu_(id, memory_bytes_, appetite, calls_, jobs_) {}

Worker::~Worker() = default;

bool Worker::Post(Mail mail) {
  Mailbox::Posted posted = mailbox_.Post(std::move(mail));
  if (posted == Mailbox::Posted::kFirst) engine_.Schedule(shared_from_this());
  return posted != Mailbox::Posted::kClosed;
}

// --- Turns ---

bool Worker::Turn(Watchdog::Slot& slot) {
  std::vector<Mail> batch = mailbox_.TakeAll();
  DropCanceledCalls(batch);
  const bool is_new = realm_ == nullptr && state_ == State::kNew;
  if (is_new) TakeRealm();
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
    if (leaves_ && state_ != State::kGone && calls_.CountInner() == 0) Unload();
    if (state_ == State::kGone) {
      DropHandles();
    } else if (const uint64_t next = NextAlarm(); next != alarm_ns_) {
      alarm_ns_ = next;
      engine_.SetAlarm(shared_from_this(), alarm_ns_);
    }
  }
  if (state_ == State::kGone) realm_.reset();
  Flush();
  if (is_new) engine_.spares().Replenish();
  if (state_ == State::kGone) return false;
  bool again = IsUsedUp();  // only now, so that the response is sent before the context is replaced
  again = again || (finalizers_wait_ && state_ == State::kReady && MayRunStray());
  return mailbox_.EndTurn(again);
}

void Worker::TakeRealm() {
  realm_ = engine_.spares().Take(memory_bytes_);
  realm_->set_worker(this);
  realm_->tasks().OnTask([weak = weak_from_this()] {
    if (std::shared_ptr<Worker> self = weak.lock()) self->Post({Mail::Kind::kPump, 0, 0, {}});
  });
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
      // Top-level code is done: mail that waited for it comes before mail that arrived since.
      DropCanceledCalls(early_);
      batch.insert(batch.begin() + static_cast<ptrdiff_t>(i) + 1, std::make_move_iterator(early_.begin()),
                   std::make_move_iterator(early_.end()));
      early_.clear();
    }
    uint64_t now = MonotonicNs();
    // LOADED is sent with the first response: Python would wake up for it and might take the core.
    if (!answers_.empty() && now - started > kAnswerNs) Flush();
    outbox_.FlushIfOld(now, is_load);
    bool enough = now - started > kSliceNs || IsUsedUp();
    if (enough && i + 1 < batch.size() && state_ != State::kGone) {
      mailbox_.PutBack(batch, i + 1);
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
      // Python may not know of the latest calls from inside the engine. They may finish.
      mailbox_.RefuseInner();
      leaves_ = calls_.CountInner() > 0;
      if (!leaves_) Unload();
      return;
    case Mail::Kind::kCall:
      HandleCall(slot, mail);
      break;
    case Mail::Kind::kBody:
    case Mail::Kind::kCredit:
    case Mail::Kind::kCancel:
      if (uint32_t serial = calls_.SerialOf(mail.id); serial != 0) HandleForCall(slot, serial, mail);
      break;
    case Mail::Kind::kReply:
      HandleReply(slot, mail);
      break;
    case Mail::Kind::kAlarm:
      alarm_ns_ = Timers::kNever;
      RunTimers(slot);
      break;
    case Mail::Kind::kPump:
      // Turn() runs V8's tasks (mostly garbage collection) after the responses are sent.
      break;
    case Mail::Kind::kFinished:
      HandleFinished(slot, mail.id);
      break;
    case Mail::Kind::kTrim:
      realm_->isolate()->LowMemoryNotification();
      break;
    case Mail::Kind::kCode:
      outbox_.Send(wire::Frame::kCode, 0, modules_ == nullptr ? std::string() : modules_->CodeCache());
      break;
    case Mail::Kind::kOpen:
    case Mail::Kind::kClose:
    case Mail::Kind::kStored:
      HandleStorage(slot, mail);
      break;
    case Mail::Kind::kSockets:
      Run(slot, 0, [&] { web().Sockets(mail.id, mail.payload); });
      break;
  }
}

void Worker::HandleCall(Watchdog::Slot& slot, const Mail& mail) {
  if (renews_ && served_) {  // Python sends one call at a time
    Refuse(mail);
    return;
  }
  served_ = true;
  const std::optional<wire::CallParts> parts = wire::ParseCall(mail.payload);
  const uint32_t serial = Admit(mail, parts);
  if (serial == 0) return;
  const bool streaming = (mail.flags & wire::kFlagEnd) == 0;
  Run(slot, serial, [&] { web().Begin(serial, *parts, streaming); });
}

void Worker::HandleForCall(Watchdog::Slot& slot, uint32_t serial, const Mail& mail) {
  Call& call = *calls_.Find(serial);
  if (mail.kind == Mail::Kind::kCancel) {
    Run(slot, serial, [&] { web().Cancel(serial, mail.flags & wire::kFlagFail); });
  } else if (mail.kind == Mail::Kind::kBody) {
    if (call.piped) return Pipe(slot, serial, mail);
    Run(slot, serial, [&] { web().Body(serial, mail.payload, mail.flags & wire::kFlagEnd); });
  } else {
    call.credit += wire::Reader(mail.payload).U32();
    const bool was_awaited = std::exchange(call.waits_credit, false);
    if (call.piped) Pipe(slot, serial, mail);
    if (was_awaited) Run(slot, serial, [&] { web().Credit(serial); });
  }
}

void Worker::HandleReply(Watchdog::Slot& slot, Mail& mail) {
  if (ops_.Has(mail.id)) {
    const uint32_t serial = ops_.CallOf(mail.id);
    Run(slot, serial, [&] {
      if (Call* call = calls_.Find(serial)) call->ops--;
      ops_.Remove(mail.id);
      if (mail.flags & wire::kFlagInner) {
        web().InnerReply(mail.id, mail.flags & wire::kFlagFail, mail.payload);
      } else {
        web().Reply(mail.id, mail.flags & wire::kFlagFail, mail.payload);
      }
    });
  }
  mailbox_.ReleaseReply(mail.payload.size());
  std::string().swap(mail.payload);
}

void Worker::HandleFinished(Watchdog::Slot& slot, uint32_t job) {
  const uint32_t serial = ChargeJob(job);
  if (condemned_) return;
  Run(slot, serial, [&] { ResolveJob(job); });
  if (cpu_.IsOutlived(serial) && !jobs_.HasAnyOf(serial)) cpu_.ForgetOutlived(serial);
}

// Sends the request body as the response body. JavaScript only sees its end, so it costs the call no CPU time.
void Worker::Pipe(Watchdog::Slot& slot, uint32_t serial, const Mail& mail) {
  bool is_body = mail.kind == Mail::Kind::kBody;
  bool last = is_body && (mail.flags & wire::kFlagEnd);
  if (Call* call = calls_.Find(serial); last && call != nullptr) call->upload_open = false;
  if (!calls_.Pipe(serial, is_body ? std::string_view(mail.payload) : std::string_view(), last)) return;
  Run(slot, serial, [&] { web().PipedBodyEnd(serial); });
}

// --- Entering JavaScript ---

template <typename Enter>
void Worker::Run(Watchdog::Slot& slot, uint32_t serial, Enter&& enter) {
  const EntryAccount account = cpu_.Open(serial, IsStarting());
  const uint64_t cost = RunCharged(slot, serial, account, std::forward<Enter>(enter));
  if (serial != 0) {
    cpu_.allowance().Earn(cost);
  } else if (!account.starting) {
    cpu_.allowance().Spend(cost);
  }
}

template <typename Enter>
uint64_t Worker::RunCharged(Watchdog::Slot& slot, uint32_t serial, const EntryAccount& account, Enter&& enter) {
  v8::Isolate* isolate = realm_->isolate();
  v8::HandleScope handles(isolate);
  v8::TryCatch caught(isolate);
  realm_->set_now_ms(EpochMs());
  entry_start_ = outbox_.frames().bytes().size();
  if (serial != 0) isolate->SetContinuationPreservedEmbedderData(v8::Integer::NewFromUnsigned(isolate, serial));
  const bool was_over = cpu_.IsOutlived(serial);
  uint64_t cost;
  uint64_t surely;
  bool too_long;
  bool disowned;
  {
    Watchdog::Charge charge(slot, isolate, account);
    charge_ = &charge;
    enter();
    ResumeStopped();
    isolate->PerformMicrotaskCheckpoint();
    ResumeStopped();
    if (state_ == State::kStarting && !IsEnding()) ContinueStarting();
    if (!rejections_.empty()) ReportRejections();
    for (uint32_t id : std::exchange(finishing_, {})) EndCall(id);
    if (storage_ != nullptr && !IsEnding()) CommitStorage();
    charge_ = nullptr;
    cost = charge.Stop();
    surely = charge.surely_ns();
    too_long = charge.fired();
    disowned = charge.disowned();
  }
  if (cpu_.Book(account, serial, was_over, cost, surely)) too_long = true;
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

// After StopCode(). If a limit has ended the code as well, that is final.
void Worker::ResumeStopped() {
  if (std::exchange(is_stopped_, false) && !IsEnding()) realm_->isolate()->CancelTerminateExecution();
}

// --- Storage of objects ---

void Worker::HandleStorage(Watchdog::Slot& slot, const Mail& mail) {
  if (mail.kind == Mail::Kind::kOpen) {
    if (storage_ == nullptr) {
      storage_ = std::make_unique<storage::Storage>(realm_->isolate(), id_, memory_bytes_, engine_.descriptors(),
                                                    [this] { return IsEnding(); });
    }
    if (!storage_->Open(mail.id, mail.payload, outbox_.frames())) {
      fprintf(stderr, "engine: malformed OPEN\n");
    }
    return;
  }
  if (storage_ == nullptr) return;
  const auto came = [this](uint32_t call) {
    if (Call* waiting = calls_.Find(call); waiting != nullptr && waiting->ops > 0) waiting->ops--;
  };
  if (mail.kind == Mail::Kind::kClose) {
    for (const uint32_t call : storage_->Close(mail.id)) came(call);
    return;
  }
  for (storage::Waiting& each : storage_->Stored(mail.id, mail.payload)) {
    Run(slot, each.call, [&] {
      came(each.call);
      v8::Isolate* isolate = realm_->isolate();
      Ignore(each.resolver.Get(isolate)->Resolve(isolate->GetCurrentContext(), v8::Undefined(isolate)));
    });
    if (condemned_ || state_ == State::kGone) return;
  }
}

void Worker::CommitStorage() {
  const storage::Entry entry = storage_->EndEntry(outbox_.frames(), entry_start_);
  for (const uint32_t slot : entry.settled) {
    Post({Mail::Kind::kStored, 0, slot, std::string(2 * sizeof(uint64_t), '\0')});
  }
  for (const uint32_t slot : entry.broken) doors_.Shut(slot);
}

v8::MaybeLocal<v8::Promise> Worker::SyncStorage(uint32_t slot) {
  const uint32_t serial = CurrentCall();
  v8::MaybeLocal<v8::Promise> promise = storage_->Sync(slot, serial);
  // The call waits for Python, as it does for an op.
  if (Call* call = calls_.Find(serial); call != nullptr && !promise.IsEmpty()) call->ops++;
  return promise;
}

void Worker::SendSocket(uint32_t slot, uint8_t what, uint32_t socket, std::string_view bytes) {
  wire::Writer& frames = outbox_.frames();
  frames.Begin(wire::Frame::kSocket, 0, id_, slot);
  frames.U32(what);
  frames.U32(socket);
  frames.Bytes(bytes);
  frames.End();
}

void Worker::RunTimers(Watchdog::Slot& slot) {
  uint64_t now = MonotonicNs();
  uint32_t id;
  Timers::Owner owner;
  while (!condemned_ && state_ != State::kGone && timers_.TakeDue(now, &id, &owner)) {
    if (owner.call == 0 && state_ == State::kReady && !MayRunStray()) {
      timers_.Postpone(id, owner, cpu_.allowance().Again());
      continue;
    }
    if (Call* call = calls_.Find(owner.call)) call->CountTimers(owner.is_long)--;
    Run(slot, owner.call, [&] { web().Timer(id); });
  }
}

void Worker::RunTasks(Watchdog::Slot& slot) {
  if (state_ != State::kGone && realm_->tasks().HasDue()) {
    outbox_.Flush();
    RunCharged(slot, 0, cpu_.OpenForV8(IsStarting()), [&] { realm_->tasks().RunDue(); });
    if (condemned_) Condemn(*condemned_);
  }
  if (state_ == State::kReady && finalizers_wait_ && MayRunStray()) {
    outbox_.Flush();
    finalizers_wait_ = false;
    Run(slot, 0, [&] { web().Finalize(); });
    if (condemned_) Condemn(*condemned_);
  }
}

// The earliest timer, or when waiting finalizers may run.
uint64_t Worker::NextAlarm() const {
  if (!finalizers_wait_ || state_ != State::kReady) return timers_.earliest();
  return std::min(timers_.earliest(), cpu_.allowance().Again());
}

}  // namespace engine
