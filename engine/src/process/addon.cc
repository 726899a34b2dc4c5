// The functions main.cjs calls: snapshot(source), run(options), probe(options) for tests, rehearse(snapshot, count) for
// benchmarks; and the constant wireHash.
#include <node.h>
#include <node_buffer.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "isolate/snapshot.h"
#include "process/engine.h"
#include "process/rehearsal.h"
#include "sandbox/sandbox.h"

namespace engine {
namespace {

constexpr int kSocketFd = 3;
constexpr int kSnapshotFd = 4;
constexpr int kLedgerFd = 5;
constexpr int kDescriptorsFd = 6;

node::MultiIsolatePlatform* Platform(v8::Isolate* isolate) {
  return node::GetMultiIsolatePlatform(node::GetCurrentEnvironment(isolate->GetCurrentContext()));
}

void Snapshot(const v8::FunctionCallbackInfo<v8::Value>& info) {
  v8::Isolate* isolate = info.GetIsolate();
  std::string source = FromV8(isolate, info[0]);
  std::string error;
  std::string file;
  {
    // V8 makes a snapshot only from an isolate that no other thread has entered.
    v8::Isolate::Scope leave(isolate);
    file = MakeSnapshot(Platform(isolate), source, &error);
  }
  if (file.empty()) {
    isolate->ThrowException(v8::Exception::Error(ToV8(isolate, "the web bundle failed: " + error)));
    return;
  }
  v8::Local<v8::Object> buffer;
  if (node::Buffer::Copy(isolate, file.data(), file.size()).ToLocal(&buffer)) info.GetReturnValue().Set(buffer);
}

void Run(const v8::FunctionCallbackInfo<v8::Value>& info) {
  v8::Isolate* isolate = info.GetIsolate();
  v8::Local<v8::Context> context = isolate->GetCurrentContext();
  v8::Local<v8::Object> object = info[0].As<v8::Object>();
  auto text = [&](const char* name) {
    return FromV8(isolate, object->Get(context, ToV8(isolate, name)).ToLocalChecked());
  };
  auto number = [&](const char* name) {
    return object->Get(context, ToV8(isolate, name)).ToLocalChecked()->Uint32Value(context).FromMaybe(0);
  };
  // The engine ends when Python does. Python handles Ctrl-C.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  Engine* engine = new Engine({kSocketFd, kSnapshotFd, kLedgerFd, kDescriptorsFd, number("threads"),
                               number("slowThreads"), number("spares"), number("pbkdf2"), text("node"), text("v8"),
                               text("sandbox"), Platform(isolate), number("heapInitialMb"), number("measures") != 0});
  _exit(engine->Run());
}

// For tests: confined like an engine, attempts forbidden operations and prints the result of each. It reads no socket,
// so no frame and no worker can reach it.
void Probe(const v8::FunctionCallbackInfo<v8::Value>& info) {
  v8::Isolate* isolate = info.GetIsolate();
  std::string names = FromV8(isolate, info[0]);
  if (!Confine(FromV8(isolate, info[1]))) _exit(1);
  for (size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
    end = names.find(',', at);
    std::string line = std::to_string(TryForbidden(names.substr(at, end - at))) + "\n";
    [[maybe_unused]] ssize_t ignored = write(STDOUT_FILENO, line.data(), line.size());
  }
  _exit(0);
}

void Rehearse(const v8::FunctionCallbackInfo<v8::Value>& info) {
  v8::Isolate* isolate = info.GetIsolate();
  if (!node::Buffer::HasInstance(info[0]) || !info[1]->IsUint32()) return;
  const std::string_view file(node::Buffer::Data(info[0]), node::Buffer::Length(info[0]));
  const std::string found = engine::Rehearse(Platform(isolate), file, info[1].As<v8::Uint32>()->Value());
  info.GetReturnValue().Set(ToV8(isolate, found));
}

// V8 validates WebAssembly modules on all its threads, whose time is charged to no call. With this flag the isolate's
// own thread does it, and is charged. Set at the start of the process, the flag would also take the threads from the
// garbage collector and the compilers; set now, before any worker's isolate exists, it affects validation only.
constexpr char kCheckWasmOnTheSpot[] = "--single-threaded";

void Initialize(v8::Local<v8::Object> exports, v8::Local<v8::Value>, v8::Local<v8::Context> context, void*) {
  v8::Isolate* isolate = context->GetIsolate();
  v8::V8::SetFlagsFromString(kCheckWasmOnTheSpot);
  auto set = [&](const char* name, v8::FunctionCallback callback) {
    exports->Set(context, ToV8(isolate, name), v8::Function::New(context, callback).ToLocalChecked()).Check();
  };
  set("snapshot", Snapshot);
  set("run", Run);
  set("probe", Probe);
  set("rehearse", Rehearse);
  exports->Set(context, ToV8(isolate, "wireHash"), ToV8(isolate, wire::kHash)).Check();
}

}  // namespace
}  // namespace engine

NODE_MODULE_CONTEXT_AWARE(engine, engine::Initialize)
