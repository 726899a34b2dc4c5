// An isolate with the web platform in it, made from the startup snapshot. It may not belong to a worker yet.
//
// A Realm is all of V8 that one worker has. It is made on any thread (mostly the spares thread), used by one thread at
// a time under a v8::Locker, and disposed of on the thread that used it last.
#pragma once

#include <node.h>
#include <v8.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "isolate/tasks.h"
#include "limits/allocator.h"
#include "limits/icu_memory.h"
#include "limits/wasm_quota.h"
#include "native/handles.h"
#include "native/weights.h"

namespace engine {

namespace native {
struct Key;
class Codec;
}  // namespace native

class Worker;

// What is needed to make realms: the platform, the snapshot and the table of native functions. One per process.
struct RealmFactory {
  node::MultiIsolatePlatform* platform;
  v8::StartupData snapshot;
  size_t initial_bytes = 0;  // of heap, before V8 starts to collect; 0: V8 decides
};

// The functions of web/worker/main.js that the engine calls, in the order of kEntryNames.
struct EntryPoints {
  v8::Global<v8::Function> prepare;    // (env, grants, compatibility date): before any code of the worker
  v8::Global<v8::Function> script;     // (): the code turned out to be a service-worker script
  v8::Global<v8::Function> load;       // (namespace | undefined) -> handler names
  v8::Global<v8::Function> built_in;   // (specifier) -> exports | why there is no such module | undefined
  v8::Global<v8::Function> rejection;  // (promise, reason, handled late) -> true to log it
  v8::Global<v8::Function> fetch;      // (call, head, body, streaming)
  v8::Global<v8::Function> event;      // (call, event, head, body, streaming): all events but fetch
  v8::Global<v8::Function> body;       // (call, chunk | null)
  v8::Global<v8::Function> credit;     // (call)
  v8::Global<v8::Function> cancel;     // (call, at_once)
  v8::Global<v8::Function> reply;      // (op, failed, meta, body)
  v8::Global<v8::Function> timer;      // (id)
  v8::Global<v8::Function> sockets;    // (slot, bytes): about hibernatable WebSockets
  v8::Global<v8::Function> finalize;   // (): calls pending finalizers
  v8::Global<v8::Function> warm;       // (): makes a few calls without effect
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
  native::Handles<native::Key>& keys() { return keys_; }
  native::Handles<native::Codec>& codecs() { return codecs_; }
  native::Weights& weights() { return weights_; }
  IcuMemory& icu() { return icu_; }
  WasmQuota& wasm_quota() { return wasm_quota_; }
  size_t memory_bytes() const { return memory_bytes_; }

  // Replaces the context. Nothing may refer to the old one. The realm must not be entered.
  void Renew();

  // Does in advance what the first call would do. For a realm without a worker.
  void WarmUp();

  // The ops that the web platform defines, in the order of their numbers. Needs the realm to be entered.
  std::vector<std::string> OpNames() const;

  // JS heap and array buffers in use. Needs the realm to be locked.
  size_t UsedBytes() const;
  // Everything that counts for the memory limit: also WebAssembly memory and the memory behind Intl.
  size_t CountedBytes() const;
  // The same in megabytes, at most a tenth of a second old, because asking V8 takes half a microsecond.
  uint16_t RecentMb();

  // Null for code of a replaced context, which finalizers and finished compilations may still run.
  Worker* worker() const { return renewed_ && context_ != isolate_->GetCurrentContext() ? nullptr : worker_; }
  // The same for code of any context.
  Worker* owner() const { return worker_; }
  void set_worker(Worker* worker) { worker_ = worker; }

  // The time that the worker sees. It stands still while the worker computes, unless it has a live clock.
  double now_ms() const { return live_clock_ ? FineEpochMs() : now_ms_; }
  void set_now_ms(double now) { now_ms_ = now; }
  void set_live_clock(bool live) { live_clock_ = live; }

  // True if the worker may compile WebAssembly from bytes. Modules it imports are always compiled.
  bool wasm_allowed() const { return wasm_allowed_; }
  void set_wasm_allowed(bool allowed) { wasm_allowed_ = allowed; }

  // Adds the global SharedArrayBuffer, for a worker that may have it. Needs the realm to be entered.
  void ShowSharedMemory();

  // Allows or forbids code from strings: eval, new Function. Needs the realm to be entered.
  void AllowEval(bool allowed) { context()->AllowCodeGenerationFromStrings(allowed); }

  bool out_of_memory() const { return out_of_memory_; }

  // The number of realms in the process, for the leak checks of the tests.
  static size_t alive() { return alive_.load(); }
  // The number of realms ever made.
  static size_t made() { return made_.load(); }

 private:
  static constexpr uint32_t kSlot = 0;
  void MakeContext();
  static size_t OnNearHeapLimit(void* realm, size_t current, size_t initial);
  static void AfterGc(v8::Isolate* isolate, v8::GCType type, v8::GCCallbackFlags flags, void* realm);
  static void Collect(v8::Isolate* isolate, void* realm);
  // Requests a full garbage collection at the next interrupt, and checks the memory limit after it.
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
  native::Handles<native::Key> keys_;
  native::Handles<native::Codec> codecs_;
  native::Weights weights_;
  IcuMemory icu_;
  WasmQuota wasm_quota_;

  Worker* worker_ = nullptr;
  uint64_t measured_ns_ = 0;
  uint16_t measured_mb_ = 0;
  double now_ms_ = 0;
  bool live_clock_ = false;
  bool wasm_allowed_ = false;
  bool renewed_ = false;
  bool out_of_memory_ = false;
  bool must_collect_ = false;  // a full collection was requested because the limit seems to be exceeded
  bool is_collecting_ = false;
};

// Everything needed to touch a realm's heap, acquired top to bottom and released bottom to top. Stack only: never held
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

// For results of V8 that need no check: the operation fails only on termination, which the next one reports.
template <typename T>
void Ignore(T&&) {}

// A UTF-8 C++ string as a JavaScript string, and back.
v8::Local<v8::String> ToV8(v8::Isolate* isolate, std::string_view text);
std::string FromV8(v8::Isolate* isolate, v8::Local<v8::Value> value);
// The beginning of a string that may be hundreds of megabytes long: about `limit` bytes.
std::string BeginningOf(v8::Isolate* isolate, v8::Local<v8::String> text, size_t limit);

}  // namespace engine
