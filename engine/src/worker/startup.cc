#include "worker/startup.h"

#include <utility>

namespace engine {

Startup::Startup(Realm& realm, Modules& modules, const LoadDescription& description)
    : realm_(realm), modules_(modules), format_(description.format), allow_eval_(description.allow_eval) {}

std::optional<Failure> Startup::Begin(const LoadDescription& description) {
  v8::Isolate* isolate = realm_.isolate();
  v8::Local<v8::Context> context = isolate->GetCurrentContext();
  // Top-level code may always use eval(): the strings are part of the deployed code. Later they may come from outside.
  realm_.AllowEval(true);
  realm_.set_wasm_allowed(description.allow_wasm_compile);
  realm_.set_live_clock(description.allow_live_clock);
  if (description.allow_shared_memory) realm_.ShowSharedMemory();
  v8::TryCatch caught(isolate);
  if (!Prepare(description)) {
    if (caught.HasTerminated()) return std::nullopt;
    return Describe(context, wire::Error::kStartup, caught);
  }
  if (std::optional<Failure> failure = Evaluate()) return failure;
  if (caught.HasTerminated() || !caught.HasCaught()) return std::nullopt;
  return Describe(context, wire::Error::kCompile, caught);
}

// Top-level code may use its variables, and compatibility date and flags decide which globals exist.
bool Startup::Prepare(const LoadDescription& description) {
  v8::Isolate* isolate = realm_.isolate();
  v8::Local<v8::Context> context = isolate->GetCurrentContext();
  v8::Local<v8::Value> arguments[] = {description.env, description.grants, description.compatibility_date,
                                      description.compatibility_flags};
  return !realm_.entry().prepare.Get(isolate)->Call(context, v8::Undefined(isolate), 4, arguments).IsEmpty();
}

// Leaves an exception pending when the code does not compile. What a module throws rejects `promise_`; what a
// service-worker script throws is returned.
std::optional<Failure> Startup::Evaluate() {
  v8::Isolate* isolate = realm_.isolate();
  v8::Local<v8::Context> context = isolate->GetCurrentContext();
  v8::Local<v8::Value> result;
  v8::TryCatch caught(isolate);
  if (!EvaluateMain().ToLocal(&result)) {
    if (!caught.HasTerminated() && format_ == "service-worker" && !promise_.IsEmpty()) {
      return Describe(context, wire::Error::kStartup, caught);
    }
    caught.ReThrow();
    return std::nullopt;
  }
  if (result->IsPromise()) {
    promise_.Reset(isolate, result.As<v8::Promise>());
    return std::nullopt;
  }
  v8::Local<v8::Promise::Resolver> done = v8::Promise::Resolver::New(context).ToLocalChecked();
  Ignore(done->Resolve(context, v8::Undefined(isolate)));
  promise_.Reset(isolate, done->GetPromise());
  return std::nullopt;
}

// A file without exports is a service-worker script, unless the deployment says otherwise. With imports it runs as a
// module, and still sees the globals of a script.
v8::MaybeLocal<v8::Value> Startup::EvaluateMain() {
  v8::Local<v8::Context> context = realm_.isolate()->GetCurrentContext();
  v8::Local<v8::Module> module;
  Compiled compiled = format_ == "service-worker" ? Compiled::kScript : CompileMain(&module);
  if (compiled == Compiled::kFailed) return {};
  if (compiled == Compiled::kModule && format_ != "module") {
    v8::Local<v8::Object> exports = module->GetModuleNamespace().As<v8::Object>();
    v8::Local<v8::Array> names;
    if (exports->GetOwnPropertyNames(context).ToLocal(&names) && names->Length() == 0) {
      if (module->GetModuleRequests()->Length() > 0) return EvaluateScriptWithImports(module);
      compiled = Compiled::kScript;
    }
  }
  if (compiled == Compiled::kScript) return EvaluateScript();
  format_ = "module";
  return module->Evaluate(context);
}

// Code that does not parse as a module may still be a sloppy script. When it is neither, the module's error is the one
// to report; it is left pending.
Startup::Compiled Startup::CompileMain(v8::Local<v8::Module>* module) {
  v8::Isolate* isolate = realm_.isolate();
  v8::Local<v8::Context> context = isolate->GetCurrentContext();
  v8::TryCatch caught(isolate);
  const bool parsed = modules_.Compile(context, modules_.main_path()).ToLocal(module);
  if (parsed && !(*module)->InstantiateModule(context, Modules::Resolve).IsNothing()) return Compiled::kModule;
  if (parsed || format_ == "module" || caught.HasTerminated()) {
    caught.ReThrow();
    return Compiled::kFailed;
  }
  v8::TryCatch second(isolate);
  v8::Local<v8::UnboundScript> ignored;
  if (modules_.CompileScript(modules_.main_path()).ToLocal(&ignored)) return Compiled::kScript;
  second.Reset();
  caught.ReThrow();
  return Compiled::kFailed;
}

v8::MaybeLocal<v8::Value> Startup::EvaluateScript() {
  v8::Isolate* isolate = realm_.isolate();
  v8::Local<v8::Context> context = isolate->GetCurrentContext();
  format_ = "service-worker";
  v8::Local<v8::UnboundScript> script;
  if (!modules_.CompileScript(modules_.main_path()).ToLocal(&script)) return {};
  if (realm_.entry().script.Get(isolate)->Call(context, v8::Undefined(isolate), 0, nullptr).IsEmpty()) return {};
  v8::Local<v8::Promise::Resolver> marker = v8::Promise::Resolver::New(context).ToLocalChecked();
  promise_.Reset(isolate, marker->GetPromise());  // later exceptions are thrown by the script
  return script->BindToCurrentContext()->Run(context);
}

v8::MaybeLocal<v8::Value> Startup::EvaluateScriptWithImports(v8::Local<v8::Module> module) {
  v8::Isolate* isolate = realm_.isolate();
  v8::Local<v8::Context> context = isolate->GetCurrentContext();
  format_ = "service-worker";
  if (realm_.entry().script.Get(isolate)->Call(context, v8::Undefined(isolate), 0, nullptr).IsEmpty()) return {};
  return module->Evaluate(context);
}

Startup::Step Startup::Continue(bool may_settle) {
  if (promise_.IsEmpty()) return {};
  v8::Isolate* isolate = realm_.isolate();
  v8::Local<v8::Promise> promise = promise_.Get(isolate);
  switch (promise->State()) {
    case v8::Promise::kFulfilled:
      return FindHandlers();
    case v8::Promise::kRejected:
      promise->MarkAsHandled();
      return {Progress::kFailed, Describe(isolate->GetCurrentContext(), wire::Error::kStartup, promise->Result()), {}};
    case v8::Promise::kPending:
      break;
  }
  if (may_settle) return {};
  Failure failure;
  failure.code = wire::Error::kStartup;
  failure.message = "top-level await would never finish: no timer is pending, and top-level code cannot use bindings";
  return {Progress::kFailed, std::move(failure), {}};
}

Startup::Step Startup::FindHandlers() {
  v8::Isolate* isolate = realm_.isolate();
  v8::Local<v8::Context> context = isolate->GetCurrentContext();
  v8::Local<v8::Value> exports = v8::Undefined(isolate);
  v8::Local<v8::Module> module;
  if (format_ == "module" && modules_.Compile(context, modules_.main_path()).ToLocal(&module)) {
    exports = module->GetModuleNamespace();
  }
  v8::TryCatch caught(isolate);
  v8::Local<v8::Value> found;
  if (!realm_.entry().load.Get(isolate)->Call(context, v8::Undefined(isolate), 1, &exports).ToLocal(&found)) {
    if (caught.HasTerminated()) return {};
    // web/worker/main.js throws an error with a `code` when the exports are not those of a worker.
    v8::Local<v8::Value> code;
    wire::Error kind = wire::Error::kStartup;
    if (caught.Exception()->IsObject() &&
        caught.Exception().As<v8::Object>()->Get(context, ToV8(isolate, "code")).ToLocal(&code) && code->IsUint32()) {
      kind = static_cast<wire::Error>(code.As<v8::Uint32>()->Value());
    }
    Failure failure = Describe(context, kind, caught);
    failure.stack.clear();
    return {Progress::kFailed, std::move(failure), {}};
  }
  v8::Local<v8::String> handlers;
  if (!v8::JSON::Stringify(context, found).ToLocal(&handlers)) return {};
  return {Progress::kDone, {}, FromV8(isolate, handlers)};
}

}  // namespace engine
