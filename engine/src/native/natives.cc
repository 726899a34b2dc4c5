#include "native/natives.h"

#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "isolate/errors.h"
#include "isolate/realm.h"
#include "native/arguments.h"
#include "native/native.h"
#include "worker/worker.h"

namespace engine {
namespace {

using Info = v8::FunctionCallbackInfo<v8::Value>;

// Null while the snapshot is made and in a spare realm, which have no worker.
Worker* WorkerOf(const Info& info) {
  // The isolate that makes the snapshot has no realm.
  void* realm = info.GetIsolate()->GetData(0);
  return realm == nullptr ? nullptr : static_cast<Realm*>(realm)->worker();
}

uint32_t Unsigned(const Info& info, int index) {
  return info[index]->IsUint32() ? info[index].As<v8::Uint32>()->Value() : 0;
}

bool IsBytes(v8::Local<v8::Value> value) { return value->IsUint8Array(); }

std::string_view BytesOf(v8::Local<v8::Value> value) {
  v8::Local<v8::Uint8Array> array = value.As<v8::Uint8Array>();
  const char* data = static_cast<const char*>(array->Buffer()->Data());
  return {data + array->ByteOffset(), array->ByteLength()};
}

// Python ends an engine that sends another status. JavaScript has checked it, but a worker may have reached the
// platform's functions.
uint16_t StatusOf(const Info& info) {
  uint32_t status = Unsigned(info, 1);
  bool is_known = (status >= 200 && status <= 599) || status == 101;  // 101: a WebSocket
  return is_known ? static_cast<uint16_t>(status) : 500;
}

// respond(call, status, head, body: null | string | Uint8Array, done) -> false if the body must be streamed
void Respond(const Info& info) {
  Worker* worker = WorkerOf(info);
  if (worker == nullptr || !info[2]->IsString()) return;
  uint32_t call = Unsigned(info, 0);
  bool done = info[4]->IsTrue() && !worker->HasRejections();
  bool sent = worker->Respond(call, StatusOf(info), info[2].As<v8::String>(), info[3], done);
  if (sent) worker->OnAnswered();
  info.GetReturnValue().Set(sent);
}

// beginStream(call, status, head)
void BeginStream(const Info& info) {
  Worker* worker = WorkerOf(info);
  if (worker == nullptr || !info[2]->IsString()) return;
  worker->calls().BeginStream(info.GetIsolate(), Unsigned(info, 0), StatusOf(info), info[2].As<v8::String>(),
                              {worker->UnfinishedNs(), Realm::Of(info.GetIsolate()).RecentMb()});
  worker->OnAnswered();
}

// sendBody(call, bytes, offset) -> number of bytes sent; the rest must wait for credit
void SendBody(const Info& info) {
  Worker* worker = WorkerOf(info);
  if (worker == nullptr || !IsBytes(info[1])) return;
  std::string_view bytes = BytesOf(info[1]);
  bytes.remove_prefix(std::min<size_t>(Unsigned(info, 2), bytes.size()));
  size_t sent = 0;
  while (!bytes.empty()) {
    size_t count = worker->SendBody(Unsigned(info, 0), bytes);
    if (count == 0) break;
    sent += count;
    bytes.remove_prefix(count);
  }
  info.GetReturnValue().Set(static_cast<double>(sent));
}

// endBody(call)
void EndBody(const Info& info) {
  if (Worker* worker = WorkerOf(info)) worker->calls().EndBody(Unsigned(info, 0));
}

// awaitCredit(call)
void AwaitCredit(const Info& info) {
  if (Worker* worker = WorkerOf(info)) worker->calls().AwaitCredit(Unsigned(info, 0));
}

// awaitBody(call), tookBody(call, bytes), stopBody(call): the request body
void AwaitBody(const Info& info) {
  if (Worker* worker = WorkerOf(info)) worker->calls().AwaitBody(Unsigned(info, 0));
}

void TookBody(const Info& info) {
  if (Worker* worker = WorkerOf(info)) worker->calls().TookBody(Unsigned(info, 0), Unsigned(info, 1));
}

void StopBody(const Info& info) {
  if (Worker* worker = WorkerOf(info)) worker->calls().StopBody(Unsigned(info, 0));
}

// pipeBody(call, bytes, last) -> true if all is sent: the request body becomes the response body; `bytes` is the part
// that was received before
void PipeBody(const Info& info) {
  Worker* worker = WorkerOf(info);
  if (worker == nullptr || !IsBytes(info[1])) return;
  uint32_t call = Unsigned(info, 0);
  worker->calls().BeginPipe(call, BytesOf(info[1]), info[2]->IsTrue());
  bool over = worker->calls().Pipe(call, {}, false);
  info.GetReturnValue().Set(over);
}

// fail(call, code, error, message?): `message` replaces the error's own
void Fail(const Info& info) {
  Worker* worker = WorkerOf(info);
  if (worker == nullptr) return;
  v8::Isolate* isolate = info.GetIsolate();
  Failure failure = Describe(isolate->GetCurrentContext(), static_cast<wire::Error>(Unsigned(info, 1)), info[2]);
  if (info[3]->IsString()) failure.message = FromV8(isolate, info[3]);
  if (worker->IsEnding()) return;  // reading the error exceeded a limit, which the call reports instead
  NameMemoryLimit(&failure, worker->memory_bytes());
  worker->calls().Fail(Unsigned(info, 0), failure);
  worker->OnAnswered();
}

// done(call) -> true if the call had timers left, which are now cleared
void Done(const Info& info) {
  if (Worker* worker = WorkerOf(info)) info.GetReturnValue().Set(worker->FinishCall(Unsigned(info, 0)));
}

// op(index, meta, body: Uint8Array | null) -> op id; 0 if no call is running, 2^32-1 if too many ops are pending,
// 2^32-2 if the op is too large, 2^32-3 if the pending ops hold too much memory
void Op(const Info& info) {
  Worker* worker = WorkerOf(info);
  if (worker == nullptr) return;
  if (!info[1]->IsString()) return;
  const bool is_long = static_cast<size_t>(info[1].As<v8::String>()->Length()) > wire::kMaxMeta;
  if (is_long) return info.GetReturnValue().Set(Worker::kOpTooLarge);  // before it is copied
  std::string meta = FromV8(info.GetIsolate(), info[1]);
  std::string_view body = IsBytes(info[2]) ? BytesOf(info[2]) : std::string_view();
  bool fits = meta.size() <= wire::kMaxMeta && body.size() <= wire::kMaxPayload - wire::kMaxMeta - 64;
  info.GetReturnValue().Set(fits ? worker->StartOp(Unsigned(info, 0), meta, body) : Worker::kOpTooLarge);
}

// inside(op, meta, body: Uint8Array | null, binding, isMethod, first, lines, slot) -> op id; 0 if the call must go over
// Python. `first` is the name of a method, or METHOD SP URL; `lines` are header lines; `slot` is that of the object
// that calls, or 0.
void Inside(const Info& info) {
  Worker* worker = WorkerOf(info);
  info.GetReturnValue().Set(0u);
  if (worker == nullptr) return;
  v8::Isolate* isolate = info.GetIsolate();
  for (const int index : {1, 3, 5, 6}) {
    if (!info[index]->IsString()) return;
    if (static_cast<size_t>(info[index].As<v8::String>()->Length()) > wire::kInnerHead) return;
  }
  const auto latin1 = [&](int index) {
    const v8::Local<v8::String> text = info[index].As<v8::String>();
    std::string bytes(static_cast<size_t>(text->Length()), '\0');
    text->WriteOneByteV2(isolate, 0, static_cast<uint32_t>(bytes.size()), reinterpret_cast<uint8_t*>(bytes.data()));
    return bytes;
  };
  const std::string meta = FromV8(isolate, info[1]), binding = FromV8(isolate, info[3]);
  const std::string first = latin1(5), lines = latin1(6);
  const std::string_view body = IsBytes(info[2]) ? BytesOf(info[2]) : std::string_view();
  info.GetReturnValue().Set(
      worker->StartInner({Unsigned(info, 0), meta, binding, info[4]->IsTrue(), first, lines, body, Unsigned(info, 7)}));
}

// log(level, text)
void Log(const Info& info) {
  Worker* worker = WorkerOf(info);
  if (worker == nullptr) return;
  if (!info[1]->IsString()) return;
  const auto level = static_cast<wire::Level>(std::min(Unsigned(info, 0), 4u));
  const v8::Local<v8::String> text = info[1].As<v8::String>();
  if (native::IsBeyondMemory(info.GetIsolate(), text)) {
    worker->Log(worker->CurrentCall(), level, "(a text of " + std::to_string(text->Length()) + " characters)");
    return;
  }
  worker->Log(worker->CurrentCall(), level, BeginningOf(info.GetIsolate(), text, Calls::kMaxLogBytes));
}

// bundleFiles() -> paths of the worker's files; bundleFile(path) -> ArrayBuffer | undefined
void BundleFiles(const Info& info) {
  Worker* worker = WorkerOf(info);
  info.GetReturnValue().Set(worker == nullptr ? v8::Array::New(info.GetIsolate()) : worker->modules().Paths());
}

void BundleFile(const Info& info) {
  Worker* worker = WorkerOf(info);
  if (worker == nullptr || !info[0]->IsString()) return;
  info.GetReturnValue().Set(worker->modules().Content(FromV8(info.GetIsolate(), info[0])));
}

// setTimer(id, delay in ms) -> true; false if there are too many, null if its call is over, and the longest allowed
// delay if this one is too long
void SetTimer(const Info& info) {
  Worker* worker = WorkerOf(info);
  if (worker == nullptr || !info[1]->IsNumber()) return;
  switch (worker->timers().Start(Unsigned(info, 0), worker->CurrentCall(), info[1].As<v8::Number>()->Value())) {
    case Timers::Answer::kYes:
      return info.GetReturnValue().Set(true);
    case Timers::Answer::kTooMany:
      return info.GetReturnValue().Set(false);
    case Timers::Answer::kTooLong:
      return info.GetReturnValue().Set(worker->timers().longest_ms());
    case Timers::Answer::kCallIsOver:
      return info.GetReturnValue().SetNull();
  }
}

// clearTimer(id)
void ClearTimer(const Info& info) {
  if (Worker* worker = WorkerOf(info)) worker->timers().Stop(Unsigned(info, 0));
}

// finalizersWait(): requests a call of entry.finalize
void FinalizersWait(const Info& info) {
  if (Worker* worker = WorkerOf(info)) worker->FinalizersWait();
}

// hasTime() -> true if code of no call may continue
void HasTime(const Info& info) {
  const Worker* worker = WorkerOf(info);
  info.GetReturnValue().Set(worker != nullptr && worker->HasTime());
}

// now() -> milliseconds since the epoch; stands still while the worker computes
void Now(const Info& info) {
  void* realm = info.GetIsolate()->GetData(0);
  info.GetReturnValue().Set(realm == nullptr ? 0.0 : static_cast<Realm*>(realm)->now_ms());
}

// memoryLimit() -> bytes that the worker may use; 0 if there is no worker
void MemoryLimit(const Info& info) {
  Worker* worker = WorkerOf(info);
  info.GetReturnValue().Set(worker == nullptr ? 0.0 : static_cast<double>(worker->memory_bytes()));
}

// getAsyncContext() / setAsyncContext(value): what V8 carries through promises, see web/internal/async_context.js
void GetAsyncContext(const Info& info) {
  info.GetReturnValue().Set(info.GetIsolate()->GetContinuationPreservedEmbedderData());
}

void SetAsyncContext(const Info& info) { info.GetIsolate()->SetContinuationPreservedEmbedderData(info[0]); }

// enqueueMicrotask(function)
void EnqueueMicrotask(const Info& info) {
  if (info[0]->IsFunction()) info.GetIsolate()->EnqueueMicrotask(info[0].As<v8::Function>());
}

// A part of the text that all isolates share. V8 deletes the object with the string that refers to it.
class LazyText final : public v8::String::ExternalOneByteStringResource {
 public:
  explicit LazyText(std::string_view text) : text_(text) {}
  const char* data() const override { return text_.data(); }
  size_t length() const override { return text_.size(); }

 private:
  std::string_view text_;
};

// lazyTable() -> string
void LazyTable(const Info& info) {
  info.GetReturnValue().Set(ToV8(info.GetIsolate(), std::string(BundleText::Get().lazy_table())));
}

// compileLazy(name, start, end) -> function of (require, module, exports)
void CompileLazy(const Info& info) {
  v8::Isolate* isolate = info.GetIsolate();
  const std::string_view texts = BundleText::Get().lazy_texts();
  const size_t start = Unsigned(info, 1);
  const size_t end = Unsigned(info, 2);
  if (!info[0]->IsString() || start >= end || end > texts.size()) return;
  auto text = std::make_unique<LazyText>(texts.substr(start, end - start));
  v8::Local<v8::String> source;
  if (!v8::String::NewExternalOneByte(isolate, text.get()).ToLocal(&source)) return;
  text.release();
  v8::ScriptOrigin origin(v8::String::Concat(isolate, ToV8(isolate, "atoll:web/"), info[0].As<v8::String>()));
  std::string name = FromV8(isolate, info[0]);
  LazyCaches& caches = BundleText::Get().caches();
  const std::string_view cache = caches.Find(name);
  using Cached = v8::ScriptCompiler::CachedData;
  Cached* cached = cache.empty() ? nullptr
                                 : new Cached(reinterpret_cast<const uint8_t*>(cache.data()),
                                              static_cast<int>(cache.size()), Cached::BufferNotOwned);
  v8::ScriptCompiler::Source code(source, origin, cached);  // takes ownership of `cached`
  auto options = v8::ScriptCompiler::kNoCompileOptions;
  if (cached != nullptr) options = v8::ScriptCompiler::kConsumeCodeCache;
  if (caches.is_recording()) options = v8::ScriptCompiler::kEagerCompile;  // so that the cache contains all functions
  v8::Local<v8::String> names[] = {ToV8(isolate, "require"), ToV8(isolate, "module"), ToV8(isolate, "exports")};
  v8::Local<v8::Function> function;
  if (!v8::ScriptCompiler::CompileFunction(isolate->GetCurrentContext(), &code, 3, names, 0, nullptr, options)
           .ToLocal(&function)) {
    return;
  }
  // Compilation works without the cache, but slower. Report it in the log.
  if (cached != nullptr && cached->rejected) std::fprintf(stderr, "the code cache of %s was refused\n", name.c_str());
  caches.Compiled(isolate, std::move(name), function);
  info.GetReturnValue().Set(function);
}

constexpr native::Function kFunctions[] = {
    {"lazyTable", LazyTable},
    {"compileLazy", CompileLazy},
    {"respond", Respond},
    {"beginStream", BeginStream},
    {"sendBody", SendBody},
    {"endBody", EndBody},
    {"awaitCredit", AwaitCredit},
    {"awaitBody", AwaitBody},
    {"tookBody", TookBody},
    {"stopBody", StopBody},
    {"pipeBody", PipeBody},
    {"fail", Fail},
    {"done", Done},
    {"op", Op},
    {"inside", Inside},
    {"log", Log},
    {"bundleFiles", BundleFiles},
    {"bundleFile", BundleFile},
    {"setTimer", SetTimer},
    {"clearTimer", ClearTimer},
    {"finalizersWait", FinalizersWait},
    {"hasTime", HasTime},
    {"now", Now},
    {"memoryLimit", MemoryLimit},
    {"getAsyncContext", GetAsyncContext},
    {"setAsyncContext", SetAsyncContext},
    {"enqueueMicrotask", EnqueueMicrotask},
};

std::vector<std::span<const native::Function>> Tables() {
  std::vector<std::span<const native::Function>> tables = native::Tables();
  tables.push_back(kFunctions);
  return tables;
}

}  // namespace

BundleText& BundleText::Get() {
  static BundleText text;
  return text;
}

v8::Local<v8::ObjectTemplate> NativeTemplate(v8::Isolate* isolate) {
  v8::Local<v8::ObjectTemplate> object = v8::ObjectTemplate::New(isolate);
  for (std::span<const native::Function> table : Tables()) {
    for (const native::Function& function : table) {
      // None is a constructor: a constructor adds a prototype and two maps to every isolate.
      object->Set(isolate, function.name,
                  v8::FunctionTemplate::New(isolate, function.callback, v8::Local<v8::Value>(),
                                            v8::Local<v8::Signature>(), 0, v8::ConstructorBehavior::kThrow));
    }
  }
  return object;
}

const intptr_t* ExternalReferences() {
  static const std::vector<intptr_t> references = [] {
    std::vector<intptr_t> addresses;
    for (std::span<const native::Function> table : Tables()) {
      for (const native::Function& function : table) {
        addresses.push_back(reinterpret_cast<intptr_t>(function.callback));
      }
    }
    addresses.push_back(reinterpret_cast<intptr_t>(native::MakeLazyGlobal));
    addresses.push_back(reinterpret_cast<intptr_t>(&BundleText::Get()));
    addresses.push_back(0);
    return addresses;
  }();
  return references.data();
}

}  // namespace engine
