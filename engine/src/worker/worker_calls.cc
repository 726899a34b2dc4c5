// What calls start (ops, jobs) and how they end. The turns of Worker are in worker.cc.
#include <utility>

#include "process/engine.h"
#include "worker/worker.h"

namespace engine {
namespace {

// From this size on a copy costs more than a write of its own.
constexpr size_t kLongChunk = 16 * 1024;

}  // namespace

uint32_t Worker::Admit(const Mail& mail, const std::optional<wire::CallParts>& parts) {
  const bool is_late = mail.origin != nullptr && mail.origin->door() != nullptr && !mail.origin->door()->is_open();
  const uint32_t serial = parts && !is_late ? calls_.Begin(mail.id) : 0;
  if (serial == 0) {
    Refuse(mail);
    return 0;
  }
  if (mail.origin == nullptr) engine_.ledger().Begun(mail.id);
  Call& call = *calls_.Find(serial);
  call.origin = mail.origin;
  if (call.origin != nullptr) {
    call.chain = call.origin->chain();
    if (call.origin->door() != nullptr) call.slot = call.origin->door()->slot();
  }
  call.hops = parts->hops;
  call.is_background = parts->event == wire::Event::kBackground;
  call.is_method = parts->event == wire::Event::kRpc;
  call.upload_open = (mail.flags & wire::kFlagEnd) == 0;
  call.untaken = static_cast<uint32_t>(parts->body.size());
  return serial;
}

// V8 carries the serial of the call, or the array [serial, stores] when the worker uses AsyncLocalStorage
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

void Worker::Log(uint32_t call, wire::Level level, std::string_view text) {
  calls_.Log(call, level, realm_->now_ms(), text);
}

// --- Ops ---

uint32_t Worker::StartOp(uint32_t op, std::string_view meta, std::string_view body) {
  const uint32_t serial = CurrentCall();
  Call* call = calls_.Find(serial);
  if (call == nullptr) return 0;
  if (call->ops >= wire::kOpsPerCall) return kTooManyOps;
  const size_t bytes = meta.size() + body.size();
  if (!ops_.HasRoomFor(bytes)) return kTooMuchOnItsWay;
  const uint32_t id = engine_.NextOp();
  ops_.Add(id, serial, bytes);
  call->ops++;
  call->ops_made++;
  call->is_told = true;
  if (call->chain != nullptr) call->chain->used.fetch_add(1, std::memory_order_relaxed);
  outbox_.SendOp(id, op, call->id, meta, body);
  return id;
}

// --- Bodies ---

size_t Worker::SendBody(uint32_t serial, std::string_view bytes) {
  // Frames of objects wait until the commits of their turn are written before them.
  const bool leaves = bytes.size() >= kLongChunk && storage_ == nullptr && !IsEnding();
  const size_t count = calls_.SendBody(serial, bytes, leaves);
  if (leaves && count > 0) outbox_.FlushWith(bytes.substr(0, count));
  return count;
}

// --- Jobs ---

v8::MaybeLocal<v8::Promise> Worker::StartJob(std::shared_ptr<Job> job, size_t bytes) {
  v8::Isolate* isolate = realm_->isolate();
  v8::Local<v8::Promise::Resolver> resolver;
  if (!v8::Promise::Resolver::New(isolate->GetCurrentContext()).ToLocal(&resolver)) return {};
  const uint32_t serial = CurrentCall();
  // Code that outlives its call could continue for ever from job to job, and so could code that top-level code started.
  if (calls_.IsOver(serial) || (serial == 0 && !jobs_.MayStray())) return resolver->GetPromise();
  if (serial == 0 && state_ == State::kReady) jobs_.CountStray();
  const uint64_t budget = cpu_.JobBudget(serial, IsStarting());
  jobs_.Add({std::move(job), v8::Global<v8::Promise::Resolver>(isolate, resolver), serial}, bytes, budget);
  jobs_.PushTo(engine_.jobs(), weak_from_this());
  return resolver->GetPromise();
}

uint32_t Worker::ChargeJob(uint32_t id) {
  const PendingJobs::Pending* pending = jobs_.Find(id);
  if (pending == nullptr) return 0;
  const uint64_t cost = PendingJobs::CostOf(*pending);
  const uint32_t serial = pending->call;
  const EntryAccount account = cpu_.Open(serial, IsStarting());
  cpu_.BookJob(serial, cost);
  PendingJobs::Settle(*pending, cpu_.JobBudget(serial, IsStarting()));
  if (cost > account.budget_ns && (serial != 0 || account.starting)) {
    condemned_ = TooMuchCpu(account.used_ns + cost, account.limit_ns);
  }
  return serial;
}

void Worker::ResolveJob(uint32_t id) {
  std::optional<PendingJobs::Pending> pending = jobs_.Take(id);
  if (!pending) return;
  jobs_.PushTo(engine_.jobs(), weak_from_this());
  v8::Isolate* isolate = realm_->isolate();
  v8::Local<v8::Value> value = pending->job->Value(isolate);
  Ignore(pending->resolver.Get(isolate)->Resolve(isolate->GetCurrentContext(), value));
}

void Worker::DropJobs() {
  jobs_.DropAll();
  cpu_.ForgetAllOutlived();
}

// --- Rejected promises ---

void Worker::OnPromiseReject(const v8::PromiseRejectMessage& message) {
  if (state_ == State::kReady) rejections_.Add(realm_->isolate(), message, CurrentCall());
}

void Worker::ReportRejections() {
  rejections_.Report(
      *realm_, [this] { return IsEnding(); },
      [this](uint32_t call, const std::string& text) { Log(call, wire::Level::kError, text); });
}

// --- The end of a call ---

bool Worker::FinishCall(uint32_t serial) {
  // Rejections are logged for the call, so they are reported before it ends.
  if (!rejections_.empty() && charge_ != nullptr) {
    finishing_.push_back(serial);
    return true;
  }
  return EndCall(serial);
}

bool Worker::EndCall(uint32_t serial) {
  const Call* call = calls_.Find(serial);
  if (call == nullptr) return false;
  const bool had_ops = call->ops > 0;
  cpu_.Outlive(serial, call->cpu_ns - call->granted_ns);
  const bool had_timers = calls_.Done(serial, UnfinishedNs());
  if (had_timers) timers_.ClearCall(serial);
  if (had_ops) {
    v8::HandleScope handles(realm_->isolate());
    for (uint32_t op : ops_.TakeAllOf(serial)) web().ForgetReply(op);
  }
  return had_timers;
}

void Worker::EndStuckCalls() {
  if (calls_.empty() || !jobs_.empty()) return;
  for (const Calls::Stuck& stuck : calls_.FindStuck()) {
    if (!stuck.responded) {
      const std::string text = "the worker's code had hung and would never generate a response: " + stuck.why;
      calls_.Fail(stuck.serial, {wire::Error::kNeverResponds, text, {}, {}, {}, 0, 0});
    } else if (stuck.body_open) {
      const std::string text = "the response body would never end: " + stuck.why;
      calls_.Fail(stuck.serial, {wire::Error::kStream, text, {}, {}, {}, 0, 0});
    } else {
      Log(stuck.serial, wire::Level::kWarn, "a promise given to waitUntil() would never settle: " + stuck.why);
    }
    FinishCall(stuck.serial);
  }
}

}  // namespace engine
