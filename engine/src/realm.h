// An isolate with the web platform in it, made from the startup snapshot and not yet anybody's.
//
// A Realm is all of V8 that one worker has. It is made on any thread (the spares thread makes most), used by one thread
// at a time under a v8::Locker, and disposed of on whatever thread used it last.
#pragma once

#include <node.h>
#include <v8.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "allocator.h"
#include "clock.h"
#include "icu_memory.h"
#include "native/handles.h"
#include "native/weights.h"
#include "tasks.h"
#include "wasm_quota.h"

namespace engine {

class Worker;

// What makes realms: the platform, the snapshot and the table of native functions. One per process.
struct RealmFactory {
  node::MultiIsolatePlatform* platform;
  v8::StartupData snapshot;
  size_t initial_bytes = 0;  // of heap, before V8 begins to collect; 0: V8 decides
};

// The functions of web/worker/main.js that the engine calls, in the order of kEntryNames.
struct EntryPoints {
  v8::Global<v8::Function> prepare;    // (env, grants, compatibility date): before any code of the worker
  v8::Global<v8::Function> script;     // (): the code turned out to be a service-worker script
  v8::Global<v8::Function> load;       // (namespace | undefined) -> handler names
  v8::Global<v8::Function> built_in;   // (specifier) -> exports | why there is no such module | undefined
  v8::Global<v8::Function> rejection;  // (promise, reason, handled late) -> true when it is to be logged
  v8::Global<v8::Function> fetch;      // (call, head, body, streaming)
  v8::Global<v8::Function> event;      // (call, event, head, body, streaming): whatever else a call may start
  v8::Global<v8::Function> body;       // (call, chunk | null)
  v8::Global<v8::Function> credit;     // (call)
  v8::Global<v8::Function> cancel;     // (call, at_once)
  v8::Global<v8::Function> reply;      // (op, failed, meta, body)
  v8::Global<v8::Function> timer;      // (id)
  v8::Global<v8::Function> finalize;   // (): calls finalizers that wait
  v8::Global<v8::Function> warm;       // (): makes a few calls that go nowhere
};

class Realm final {
 public:
  Realm(const RealmFactory& factory, size_t memory_bytes);
  ~Realm();
  Realm(const Realm&) = delete;
  Realm& operator=(const Realm&) = delete;

  // The realm whose isolate is entered, from inside a callback of V8.
  static Realm& Of(v8::Isolate* isolate) { return *static_cast<Realm*>(isolate->GetData(kSlot)); }

  v8::Isolate* isolate() const { return isolate_; }
  v8::Local<v8::Context> context() const { return context_.Get(isolate_); }
  const EntryPoints& entry() const { return entry_; }
  TaskQueue& tasks() { return delegate_.queue(); }
  native::Handles& handles() { return handles_; }
  native::Weights& weights() { return weights_; }
  IcuMemory& icu() { return icu_; }
  WasmQuota& wasm_quota() { return wasm_quota_; }
  size_t memory_bytes() const { return memory_bytes_; }

  // A fresh context in place of the old one, which nothing leads to any more. The realm must not be entered.
  void Renew();

  // Does what a first call would have to do first. For a realm that has no worker yet, where there is time.
  void WarmUp();

  // The ops the web platform defines, in the order of their numbers. Needs the realm to be entered.
  std::vector<std::string> OpNames() const;

  // JS heap and array buffers in use. Needs the realm to be locked.
  size_t UsedBytes() const;
  // What counts for the memory limit: WebAssembly memory and what is behind Intl, too.
  size_t CountedBytes() const;

  // Null for code of a context that is no longer this realm's: a finalizer or a finished compilation may still run
  // some.
  Worker* worker() const { return renewed_ && context_ != isolate_->GetCurrentContext() ? nullptr : worker_; }
  // Whoever's code it is.
  Worker* owner() const { return worker_; }
  void set_worker(Worker* worker) { worker_ = worker; }

  // The time the worker sees; it stands still while the worker computes, unless its clock is a live one.
  double now_ms() const { return live_clock_ ? FineEpochMs() : now_ms_; }
  void set_now_ms(double now) { now_ms_ = now; }
  void set_live_clock(bool live) { live_clock_ = live; }

  // Compiling WebAssembly from bytes is for module imports only.
  bool wasm_allowed() const { return wasm_allowed_; }
  void set_wasm_allowed(bool allowed) { wasm_allowed_ = allowed; }

  // The global SharedArrayBuffer, for a worker that may have it. Needs the realm to be entered.
  void ShowSharedMemory();

  // Code from strings: eval, new Function. Needs the realm to be entered.
  void AllowEval(bool allowed) { context()->AllowCodeGenerationFromStrings(allowed); }

  bool out_of_memory() const { return out_of_memory_; }

  // How many realms exist in the process, for the leak checks of the tests.
  static size_t alive() { return alive_.load(); }
  // How many were ever made.
  static size_t made() { return made_.load(); }

 private:
  static constexpr uint32_t kSlot = 0;
  void MakeContext();
  static size_t OnNearHeapLimit(void* realm, size_t current, size_t initial);
  static void AfterGc(v8::Isolate* isolate, v8::GCType type, v8::GCCallbackFlags flags, void* realm);
  static void Collect(v8::Isolate* isolate, void* realm);
  // Has all garbage collected at the next chance, and then judges.
  void CollectSoon();
  void RunOut();
  void TakeEntryPoints(v8::Local<v8::Context> context);

  static inline std::atomic<size_t> alive_{0};
  static inline std::atomic<size_t> made_{0};

  const RealmFactory& factory_;
  const size_t memory_bytes_;
  CountingAllocator allocator_;
  TaskDelegate delegate_;
  v8::Isolate* isolate_;
  v8::Global<v8::Context> context_;
  v8::Global<v8::Object> entry_object_;
  EntryPoints entry_;
  native::Handles handles_;
  native::Weights weights_;
  IcuMemory icu_;
  WasmQuota wasm_quota_;

  Worker* worker_ = nullptr;
  double now_ms_ = 0;
  bool live_clock_ = false;
  bool wasm_allowed_ = false;
  bool renewed_ = false;
  bool out_of_memory_ = false;
  bool must_collect_ = false;  // all garbage, at the next chance, because it seems to be out of memory
  bool is_collecting_ = false;
};

// Everything it takes to touch a realm's heap, taken top to bottom and released bottom to top. Stack only: never held
// across a return to the scheduler.
class RealmScope final {
 public:
  explicit RealmScope(Realm& realm)
      : locker_(realm.isolate()),
        icu_(realm.icu()),
        entered_(realm.isolate()),
        handles_(realm.isolate()),
        context_(realm.context()) {}
  RealmScope(const RealmScope&) = delete;
  RealmScope& operator=(const RealmScope&) = delete;
  static void* operator new(size_t) = delete;

 private:
  v8::Locker locker_;
  IcuMemory::Scope icu_;
  v8::Isolate::Scope entered_;
  v8::HandleScope handles_;
  v8::Context::Scope context_;
};

// For results of V8 that need no look: it fails only when it terminates the isolate, which the next call finds out.
template <typename T>
void Ignore(T&&) {}

// A UTF-8 C++ string as a JavaScript string, and back.
v8::Local<v8::String> ToV8(v8::Isolate* isolate, std::string_view text);
std::string FromV8(v8::Isolate* isolate, v8::Local<v8::Value> value);
// The beginning of a string that may be hundreds of megabytes long: about `limit` bytes.
std::string BeginningOf(v8::Isolate* isolate, v8::Local<v8::String> text, size_t limit);

}  // namespace engine
