// How a worker comes to life: read the description, compile, run the top-level code, find the handlers.
// (The other half of class Worker; its turns and calls are in worker.cc.)
#include <algorithm>
#include <utility>

#include "engine.h"
#include "json.h"
#include "worker.h"

namespace engine {
namespace {

std::string TextField(v8::Local<v8::Context> context, v8::Local<v8::Object> object, const char* name) {
  v8::Isolate* isolate = context->GetIsolate();
  v8::Local<v8::Value> value;
  if (!object->Get(context, ToV8(isolate, name)).ToLocal(&value) || !value->IsString()) return {};
  return FromV8(isolate, value);
}

v8::Local<v8::Value> Field(v8::Local<v8::Context> context, v8::Local<v8::Object> object, const char* name) {
  v8::Local<v8::Value> value;
  if (!object->Get(context, ToV8(context->GetIsolate(), name)).ToLocal(&value)) {
    return v8::Undefined(context->GetIsolate());
  }
  return value;
}

// How often what a rejection's listeners reject is reported in the same turn.
constexpr int kRejectionRounds = 8;

uint32_t NumberField(v8::Local<v8::Context> context, v8::Local<v8::Object> object, const char* name) {
  v8::Local<v8::Value> value = Field(context, object, name);
  return value->IsUint32() ? value.As<v8::Uint32>()->Value() : 0;
}

}  // namespace

void Worker::TakeNewContext() {
  {
    RealmScope scope(*realm_);
    modules_.reset();
    rejections_.clear();
    finishing_.clear();
    ops_.clear();
    op_bytes_ = 0;
    timers_ = Timers();
    finalizers_wait_ = false;
    DropJobs();
    realm_->isolate()->SetContinuationPreservedEmbedderData(v8::Undefined(realm_->isolate()));
  }
  realm_->Renew();
  renewed_ = true;
  served_ = false;
  startup_ns_ = 0;
  state_ = State::kStarting;
}

void Worker::Load(std::string_view payload) {
  v8::Local<v8::Context> context = realm_->isolate()->GetCurrentContext();
  state_ = State::kStarting;
  modules_ = std::make_unique<Modules>(realm_->isolate());
  if (!ReadMeta(payload)) {
    LoadFailed({wire::Error::kInternal, "malformed LOAD frame", {}, {}, {}, 0, 0});
    return;
  }
  // Code from strings is part of the deployed code while that starts, and nobody knows whose afterwards.
  realm_->AllowEval(true);
  realm_->set_wasm_allowed(allow_wasm_compile_);
  if (allow_shared_memory_) realm_->ShowSharedMemory();
  v8::TryCatch caught(realm_->isolate());
  if (!Prepare()) {
    if (!caught.HasTerminated()) LoadFailed(Describe(context, wire::Error::kStartup, caught));
    return;
  }
  Evaluate();
  if (caught.HasTerminated() || state_ == State::kGone) return;
  if (caught.HasCaught()) LoadFailed(Describe(context, wire::Error::kCompile, caught));
}

bool Worker::ReadMeta(std::string_view payload) {
  v8::Isolate* isolate = realm_->isolate();
  v8::Local<v8::Context> context = isolate->GetCurrentContext();
  std::optional<wire::MetaParts> parts = wire::ParseMeta(payload);
  v8::Local<v8::Value> parsed;
  if (!parts || !v8::JSON::Parse(context, ToV8(isolate, parts->meta)).ToLocal(&parsed) || !parsed->IsObject()) {
    return false;
  }
  v8::Local<v8::Object> meta = parsed.As<v8::Object>();
  meta_.Reset(isolate, meta);
  main_path_ = TextField(context, meta, "main");
  format_ = TextField(context, meta, "format");
  v8::Local<v8::Value> limits = Field(context, meta, "limits");
  if (!limits->IsObject()) return false;
  cpu_limit_ns_ = uint64_t{NumberField(context, limits.As<v8::Object>(), "cpu_ms")} * 1'000'000;
  uint64_t event_ms = NumberField(context, limits.As<v8::Object>(), "event_cpu_ms");
  event_limit_ns_ = std::max(event_ms * 1'000'000, cpu_limit_ns_);
  longest_timer_ms_ = NumberField(context, limits.As<v8::Object>(), "timer_ms");
  renews_ = TextField(context, meta, "isolation") == "context";
  v8::Local<v8::Value> switches = Field(context, meta, "switches");
  if (!switches->IsObject()) return false;
  auto is_on = [&](const char* name) { return Field(context, switches.As<v8::Object>(), name)->IsTrue(); };
  allow_eval_ = is_on("allow_eval");
  allow_wasm_compile_ = is_on("allow_wasm_compile");
  allow_shared_memory_ = is_on("allow_shared_memory");
  realm_->set_live_clock(is_on("allow_live_clock"));

  v8::Local<v8::Value> modules = Field(context, meta, "modules");
  v8::Local<v8::Value> caches = Field(context, meta, "cache");
  if (!modules->IsArray()) return false;
  uint32_t count = modules.As<v8::Array>()->Length();
  struct Description {
    std::string path;
    Modules::Kind kind;
    std::string_view source;
  };
  std::vector<Description> descriptions;
  wire::Reader blobs(parts->body);
  for (uint32_t i = 0; i < count; i++) {
    v8::Local<v8::Value> item;
    if (!modules.As<v8::Array>()->Get(context, i).ToLocal(&item) || !item->IsObject()) return false;
    Description description;
    description.path = TextField(context, item.As<v8::Object>(), "path");
    if (!Modules::ParseKind(TextField(context, item.As<v8::Object>(), "kind"), &description.kind)) return false;
    description.source = blobs.Bytes(NumberField(context, item.As<v8::Object>(), "size"));
    descriptions.push_back(std::move(description));
  }
  for (uint32_t i = 0; i < count; i++) {
    std::string_view cache;
    v8::Local<v8::Value> size;
    if (caches->IsArray() && caches.As<v8::Array>()->Get(context, i).ToLocal(&size) && size->IsUint32()) {
      cache = blobs.Bytes(size.As<v8::Uint32>()->Value());
    }
    modules_->Add(std::move(descriptions[i].path), descriptions[i].kind, descriptions[i].source, cache);
  }
  return blobs.ok() && blobs.empty() && modules_->Has(main_path_);
}

// Top-level code may use its variables, and date and flags decide on what globals there are.
bool Worker::Prepare() {
  v8::Isolate* isolate = realm_->isolate();
  v8::Local<v8::Context> context = isolate->GetCurrentContext();
  v8::Local<v8::Object> meta = meta_.Get(isolate);
  v8::Local<v8::Value> arguments[] = {Field(context, meta, "env"), Field(context, meta, "grants"),
                                      Field(context, meta, "compatibility_date"),
                                      Field(context, meta, "compatibility_flags")};
  return !realm_->entry().prepare.Get(isolate)->Call(context, v8::Undefined(isolate), 4, arguments).IsEmpty();
}

// Leaves an exception pending when the code does not compile; what it throws itself ends in `starting_`.
void Worker::Evaluate() {
  v8::Isolate* isolate = realm_->isolate();
  v8::Local<v8::Context> context = isolate->GetCurrentContext();
  v8::Local<v8::Value> result;
  v8::TryCatch caught(isolate);
  if (!EvaluateMain().ToLocal(&result)) {
    if (!caught.HasTerminated() && format_ == "service-worker" && calls_.empty() && !starting_.IsEmpty()) {
      LoadFailed(Describe(context, wire::Error::kStartup, caught));
      return;
    }
    caught.ReThrow();
    return;
  }
  if (result->IsPromise()) {
    starting_.Reset(isolate, result.As<v8::Promise>());
    return;
  }
  v8::Local<v8::Promise::Resolver> done = v8::Promise::Resolver::New(context).ToLocalChecked();
  Ignore(done->Resolve(context, v8::Undefined(isolate)));
  starting_.Reset(isolate, done->GetPromise());
}

// A file without imports and exports is a service-worker script, unless the deployment says otherwise.
v8::MaybeLocal<v8::Value> Worker::EvaluateMain() {
  v8::Isolate* isolate = realm_->isolate();
  v8::Local<v8::Context> context = isolate->GetCurrentContext();
  v8::Local<v8::Module> module;
  bool try_script = format_ == "service-worker";
  if (!try_script) {
    v8::TryCatch caught(isolate);
    if (!modules_->Compile(context, main_path_).ToLocal(&module) ||
        module->InstantiateModule(context, Modules::Resolve).IsNothing()) {
      // Sloppy code that is no module may still be a script; if it is neither, the module's error is the true one.
      bool parsed = !module.IsEmpty();
      if (parsed || format_ == "module" || caught.HasTerminated()) {
        caught.ReThrow();
        return {};
      }
      v8::TryCatch second(isolate);
      v8::Local<v8::UnboundScript> ignored;
      if (!modules_->CompileScript(main_path_).ToLocal(&ignored)) {
        second.Reset();
        caught.ReThrow();
        return {};
      }
      try_script = true;
    }
  }
  if (!try_script && format_ != "module" && module->GetModuleRequests()->Length() == 0) {
    v8::Local<v8::Object> exports = module->GetModuleNamespace().As<v8::Object>();
    v8::Local<v8::Array> names;
    if (exports->GetOwnPropertyNames(context).ToLocal(&names) && names->Length() == 0) try_script = true;
  }
  if (!try_script) {
    format_ = "module";
    return module->Evaluate(context);
  }
  format_ = "service-worker";
  v8::Local<v8::UnboundScript> script;
  if (!modules_->CompileScript(main_path_).ToLocal(&script)) return {};
  if (realm_->entry().script.Get(isolate)->Call(context, v8::Undefined(isolate), 0, nullptr).IsEmpty()) return {};
  v8::Local<v8::Promise::Resolver> marker = v8::Promise::Resolver::New(context).ToLocalChecked();
  starting_.Reset(isolate, marker->GetPromise());  // from here on a throw is the script's own
  return script->BindToCurrentContext()->Run(context);
}

// Called after every entry while top-level code is under way.
void Worker::ContinueStarting() {
  v8::Isolate* isolate = realm_->isolate();
  v8::Local<v8::Context> context = isolate->GetCurrentContext();
  if (starting_.IsEmpty()) return;
  v8::Local<v8::Promise> promise = starting_.Get(isolate);
  switch (promise->State()) {
    case v8::Promise::kFulfilled:
      FinishStarting();
      return;
    case v8::Promise::kRejected:
      promise->MarkAsHandled();
      LoadFailed(Describe(context, wire::Error::kStartup, promise->Result()));
      return;
    case v8::Promise::kPending:
      if (timers_.size() > 0 || !jobs_.empty()) return;
      LoadFailed({wire::Error::kStartup,
                  "top-level await would never finish: no timer is pending, and top-level code cannot use bindings",
                  {},
                  {},
                  {},
                  0,
                  0});
  }
}

void Worker::FinishStarting() {
  v8::Isolate* isolate = realm_->isolate();
  v8::Local<v8::Context> context = isolate->GetCurrentContext();
  v8::Local<v8::Value> exports = v8::Undefined(isolate);
  v8::Local<v8::Module> module;
  if (format_ == "module" && modules_->Compile(context, main_path_).ToLocal(&module)) {
    exports = module->GetModuleNamespace();
  }
  v8::TryCatch caught(isolate);
  v8::Local<v8::Value> found;
  if (!realm_->entry().load.Get(isolate)->Call(context, v8::Undefined(isolate), 1, &exports).ToLocal(&found)) {
    if (caught.HasTerminated()) return;
    // main.js throws an error with a `code` when the exports are not those of a worker.
    v8::Local<v8::Value> code;
    wire::Error kind = wire::Error::kStartup;
    if (caught.Exception()->IsObject() &&
        caught.Exception().As<v8::Object>()->Get(context, ToV8(isolate, "code")).ToLocal(&code) && code->IsUint32()) {
      kind = static_cast<wire::Error>(code.As<v8::Uint32>()->Value());
    }
    Failure failure = Describe(context, kind, caught);
    failure.stack.clear();
    LoadFailed(failure);
    return;
  }
  v8::Local<v8::String> handlers;
  if (!v8::JSON::Stringify(context, found).ToLocal(&handlers)) return;
  if (size_t left = timers_.ClearCall(0); left > 0) {
    Log(0, wire::Level::kWarn,
        "timers set by top-level code (" + std::to_string(left) + ") end when the worker has started");
  }
  state_ = State::kReady;
  set_used_bytes(realm_->UsedBytes());  // until garbage is collected for the first time
  starting_.Reset();
  meta_.Reset();
  modules_->ReleaseSources();
  realm_->AllowEval(allow_eval_);
  if (renewed_) return;
  JsonObject json;
  json.Raw("handlers", FromV8(isolate, handlers))
      .Text("format", format_)
      .Number("startup_us", (startup_ns_ + UnfinishedNs()) / 1000)
      .Bool("cache_rejected", modules_->cache_rejected());
  out_.Whole(wire::Frame::kLoaded, 0, id_, 0, json.Done());
}

void Worker::LoadFailed(const Failure& failure) {
  if (renewed_) {  // Python has heard that it is loaded
    Leave(failure.Json());
    return;
  }
  out_.Whole(wire::Frame::kLoaded, wire::kFlagFail, id_, 0, failure.Json());
  Leave("{}");
}

// --- Rejected promises nobody handles ---

void Worker::OnPromiseReject(const v8::PromiseRejectMessage& message) {
  if (state_ != State::kReady) return;
  v8::Isolate* isolate = realm_->isolate();
  if (message.GetEvent() == v8::kPromiseRejectWithNoHandler) {
    rejections_.push_back({v8::Global<v8::Promise>(isolate, message.GetPromise()), CurrentCall(), false});
  } else if (message.GetEvent() == v8::kPromiseHandlerAddedAfterReject) {
    for (size_t i = 0; i < rejections_.size(); i++) {
      if (rejections_[i].promise != message.GetPromise()) continue;
      rejections_.erase(rejections_.begin() + static_cast<ptrdiff_t>(i));
      return;
    }
    rejections_.push_back({v8::Global<v8::Promise>(isolate, message.GetPromise()), CurrentCall(), true});
  }
}

// https://html.spec.whatwg.org/multipage/webappapis.html#notify-about-rejected-promises: JavaScript fires the events.
void Worker::ReportRejections() {
  v8::Isolate* isolate = realm_->isolate();
  v8::Local<v8::Context> context = isolate->GetCurrentContext();
  // Listeners may reject promises in turn; those that go on for ever are left to the next turn.
  for (int round = 0; round < kRejectionRounds && !rejections_.empty(); round++) {
    for (Rejection& rejection : std::exchange(rejections_, {})) {
      v8::HandleScope handles(isolate);
      v8::Local<v8::Value> reason = rejection.promise.Get(isolate)->Result();
      isolate->SetContinuationPreservedEmbedderData(v8::Integer::NewFromUnsigned(isolate, rejection.call));
      v8::Local<v8::Value> arguments[] = {rejection.promise.Get(isolate), reason,
                                          v8::Boolean::New(isolate, rejection.handled)};
      v8::Local<v8::Value> unhandled;
      v8::TryCatch caught(isolate);
      if (!realm_->entry()
               .rejection.Get(isolate)
               ->Call(context, v8::Undefined(isolate), 3, arguments)
               .ToLocal(&unhandled)) {
        if (caught.HasTerminated()) {
          caught.ReThrow();
          return;
        }
        unhandled = v8::Boolean::New(isolate, !rejection.handled);
      }
      if (!unhandled->IsTrue()) continue;
      if (IsEnding()) return;  // the text of an error may be code that never ends
      Failure failure = Describe(context, wire::Error::kException, reason);
      Log(rejection.call, wire::Level::kError,
          "Uncaught (in promise) " + (failure.stack.empty() ? failure.message : failure.stack));
    }
    isolate->PerformMicrotaskCheckpoint();
  }
}

}  // namespace engine
