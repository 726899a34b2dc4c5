// How a worker is loaded and how it ends. The turns of Worker are in worker.cc.
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/json.h"
#include "process/engine.h"
#include "worker/worker.h"

namespace engine {

// --- Loading ---

void Worker::TakeNewContext() {
  {
    RealmScope scope(*realm_);
    DropHandles();
    finishing_.clear();
    ops_.Clear();
    timers_.ClearAll();
    finalizers_wait_ = false;
    realm_->isolate()->SetContinuationPreservedEmbedderData(v8::Undefined(realm_->isolate()));
  }
  realm_->Renew();
  renewed_ = true;
  served_ = false;
  cpu_.RestartStartup();
  state_ = State::kStarting;
}

void Worker::DropHandles() {
  startup_.reset();
  modules_.reset();
  rejections_.Clear();
  storage_.reset();
  DropJobs();
}

void Worker::Load(std::string_view payload) {
  v8::Local<v8::Context> context = realm_->isolate()->GetCurrentContext();
  state_ = State::kStarting;
  modules_ = std::make_unique<Modules>(realm_->isolate());
  const std::optional<LoadDescription> description = ReadDescription(context, payload, *modules_);
  if (!description) {
    LoadFailed({wire::Error::kInternal, "malformed LOAD frame", {}, {}, {}, 0, 0});
    return;
  }
  modules_->set_main_path(description->main_path);
  renews_ = description->renews;
  cpu_.SetLimits(description->cpu_limit_ns, description->event_limit_ns);
  if (!renewed_) cpu_.GrantHeadStart(HeadStartNs(description->code_bytes));
  timers_.SetLimits(description->longest_timer_ms, description->refuses_long_timers);
  startup_ = std::make_unique<Startup>(*realm_, *modules_, *description);
  if (std::optional<Failure> failure = startup_->Begin(*description)) LoadFailed(*failure);
}

void Worker::ContinueStarting() {
  if (startup_ == nullptr) return;
  Startup::Step step = startup_->Continue(timers_.awaited() > 0 || !jobs_.empty());
  if (step.progress == Startup::Progress::kFailed) LoadFailed(step.failure);
  if (step.progress == Startup::Progress::kDone) FinishStarting(step.handlers);
}

void Worker::FinishStarting(const std::string& handlers) {
  if (size_t left = timers_.ClearCall(0); left > 0) {
    Log(0, wire::Level::kWarn,
        "timers left by top-level code (" + std::to_string(left) + ") are cleared once the worker has started");
  }
  state_ = State::kReady;
  set_used_bytes(realm_->UsedBytes());  // until the first garbage collection
  modules_->ReleaseSources();
  realm_->AllowEval(startup_->allow_eval());
  const std::string format = startup_->format();
  startup_.reset();
  if (renewed_) return;
  JsonObject json;
  json.Raw("handlers", handlers)
      .Text("format", format)
      .Number("startup_us", (cpu_.startup_ns() + UnfinishedNs()) / 1000)
      .Bool("cache_rejected", modules_->cache_rejected());
  outbox_.Send(wire::Frame::kLoaded, 0, json.Done());
}

void Worker::LoadFailed(const Failure& failure) {
  if (renewed_) {  // LOADED was sent for the first context
    Leave(failure.Json());
    return;
  }
  outbox_.Send(wire::Frame::kLoaded, wire::kFlagFail, failure.Json());
  Leave("{}");
}

// --- Ending ---

void Worker::Condemn(const Failure& failure) {
  realm_->isolate()->CancelTerminateExecution();
  if (IsStarting()) {
    Failure startup = failure;
    startup.message = "top-level code " + failure.message;
    LoadFailed(startup);
    return;
  }
  calls_.FailAll(failure);
  Leave(failure.Json());
}

void Worker::Unload() {
  calls_.FailAll({wire::Error::kUnavailable, "the worker was unloaded while the request ran", {}, {}, {}, 0, 0});
  Leave("{}");
}

void Worker::Vanish() {
  calls_.Forget();
  early_.clear();
  mailbox_.Clear();
  outbox_.Clear();
  Leave("{}");
}

void Worker::OnFatalMemory() {
  if (charge_ == nullptr || charge_->Disown()) {
    engine_.ReportStuck(id_, charge_ == nullptr ? 0 : charge_->call(), UnfinishedNs(), TooMuchMemory(memory_bytes_));
  }
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void Worker::Leave(std::string_view reason) {
  state_ = State::kGone;
  doors_.ShutAll();
  const std::vector<Mail> unread = mailbox_.Close();
  for (const Mail& mail : early_) Refuse(mail);
  for (const Mail& mail : unread) Refuse(mail);
  early_.clear();
  engine_.SetAlarm(shared_from_this(), Timers::kNever);
  engine_.Remove(id_);
  outbox_.Send(wire::Frame::kUnloaded, 0, reason);
}

void Worker::Refuse(const Mail& mail) {
  if (mail.kind != Mail::Kind::kCall) return;
  if (mail.origin != nullptr) {
    RefuseInner(mail);
  } else {
    outbox_.Refuse(mail.id);
  }
}

// Calls that Python canceled before they began: the client left, or too many calls were waiting.
void Worker::DropCanceledCalls(std::vector<Mail>& unread) {
  for (uint32_t call : DropCanceled(unread)) outbox_.EndUnbegun(call, wire::Outcome::kCanceled);
}

}  // namespace engine
