#include "isolate/realm.h"

#include <algorithm>

#include "isolate/modules.h"
#include "isolate/stacks.h"
#include "native/natives.h"
#include "worker/worker.h"

namespace engine {
namespace {

// Hidden in every new realm: with threads, shared memory makes high-resolution clocks (Spectre).
constexpr char kSharedArrayBuffer[] = "SharedArrayBuffer";

// Address space reserved for compiled code. It counts as memory of the process though little is used; V8's default is
// 128 MB.
constexpr size_t kCodeRangeBytes = size_t{16} << 20;

constexpr char kNoEval[] =
    "Code generation from strings disallowed for this context: eval() and new Function() need the worker's switch "
    "allow_eval";
constexpr char kNoWasm[] = "compiling code from bytes is not allowed: deploy the .wasm file as a module and import it";

v8::Isolate::CreateParams Params(const RealmFactory& factory, CountingAllocator& allocator, size_t memory_bytes) {
  v8::Isolate::CreateParams params;
  params.array_buffer_allocator = &allocator;
  params.snapshot_blob = &factory.snapshot;
  params.external_references = ExternalReferences();
  params.allow_atomics_wait = false;
  params.constraints.ConfigureDefaultsFromHeapSize(std::min(factory.initial_bytes, memory_bytes), memory_bytes);
  params.constraints.set_code_range_size_in_bytes(kCodeRangeBytes);
  return params;
}

bool AllowWasm(v8::Local<v8::Context> context, v8::Local<v8::String>) {
  return Realm::Of(context->GetIsolate()).wasm_allowed();
}

void OnPromiseReject(v8::PromiseRejectMessage message) {
  v8::Isolate* isolate = message.GetPromise()->GetIsolate();
  Worker* worker = Realm::Of(isolate).worker();
  if (worker != nullptr) worker->OnPromiseReject(message);
}

// Called when V8 would otherwise end the process.
void OnFatalMemory(const char*, const v8::OOMDetails&) {
  v8::Isolate* isolate = v8::Isolate::TryGetCurrent();
  Worker* worker = isolate == nullptr ? nullptr : Realm::Of(isolate).owner();
  if (worker != nullptr) worker->OnFatalMemory();
}

}  // namespace

v8::Local<v8::String> ToV8(v8::Isolate* isolate, std::string_view text) {
  return v8::String::NewFromUtf8(isolate, text.data(), v8::NewStringType::kNormal, static_cast<int>(text.size()))
      .FromMaybe(v8::String::Empty(isolate));
}

std::string FromV8(v8::Isolate* isolate, v8::Local<v8::Value> value) {
  v8::String::Utf8Value text(isolate, value);
  return *text == nullptr ? std::string() : std::string(*text, text.length());
}

std::string BeginningOf(v8::Isolate* isolate, v8::Local<v8::String> text, size_t limit) {
  if (static_cast<size_t>(text->Length()) * 3 <= limit) return FromV8(isolate, text);
  std::string bytes(limit, '\0');
  bytes.resize(text->WriteUtf8V2(isolate, bytes.data(), limit, v8::String::WriteFlags::kReplaceInvalidUtf8));
  return bytes;
}

Realm::Realm(const RealmFactory& factory, size_t memory_bytes)
    : factory_(factory),
      memory_bytes_(memory_bytes),
      allocator_(memory_bytes),
      isolate_(v8::Isolate::Allocate()),
      icu_(memory_bytes / 2, [this] { CollectSoon(); }) {
  alive_.fetch_add(1);
  made_.fetch_add(1);
  factory_.platform->RegisterIsolate(isolate_, &delegate_);
  v8::Isolate::Initialize(isolate_, Params(factory, allocator_, memory_bytes));
  isolate_->SetData(kSlot, this);
  isolate_->SetMicrotasksPolicy(v8::MicrotasksPolicy::kExplicit);
  isolate_->SetCaptureStackTraceForUncaughtExceptions(true, 10);
  isolate_->SetPrepareStackTraceCallback(PrepareStack);
  isolate_->SetAllowWasmCodeGenerationCallback(AllowWasm);
  isolate_->SetPromiseRejectCallback(engine::OnPromiseReject);
  isolate_->SetHostImportModuleDynamicallyCallback(Modules::ImportDynamically);
  isolate_->SetHostInitializeImportMetaObjectCallback(Modules::InitializeMeta);
  isolate_->AddNearHeapLimitCallback(OnNearHeapLimit, this);
  isolate_->SetOOMErrorHandler(OnFatalMemory);
  isolate_->AddGCEpilogueCallback(AfterGc, this);

  v8::Locker locker(isolate_);
  v8::Isolate::Scope entered(isolate_);
  MakeContext();
}

void Realm::MakeContext() {
  v8::HandleScope handles(isolate_);
  v8::Local<v8::Context> context = v8::Context::New(isolate_);
  context->AllowCodeGenerationFromStrings(false);
  context->SetErrorMessageForCodeGenerationFromStrings(ToV8(isolate_, kNoEval));
  context->SetErrorMessageForWasmCodeGeneration(ToV8(isolate_, kNoWasm));
  v8::Context::Scope scope(context);
  Ignore(context->Global()->Delete(context, ToV8(isolate_, kSharedArrayBuffer)));
  context_.Reset(isolate_, context);
  TakeEntryPoints(context);
}

void Realm::ShowSharedMemory() {
  v8::Local<v8::Context> context = this->context();
  v8::Local<v8::Object> global = context->Global();
  v8::Local<v8::Object> any = v8::SharedArrayBuffer::New(isolate_, 0);
  v8::Local<v8::Value> constructor;
  if (!any->Get(context, ToV8(isolate_, "constructor")).ToLocal(&constructor)) return;
  Ignore(global->DefineOwnProperty(context, ToV8(isolate_, kSharedArrayBuffer), constructor, v8::DontEnum));
}

void Realm::Renew() {
  v8::Locker locker(isolate_);
  v8::Isolate::Scope entered(isolate_);
  entry_ = EntryPoints();
  keys_.Clear();
  codecs_.Clear();
  entry_object_.Reset();
  context_.Reset();
  renewed_ = true;
  isolate_->ContextDisposedNotification(v8::ContextDependants::kNoDependants);
  MakeContext();
}

Realm::~Realm() {
  {
    v8::Locker locker(isolate_);
    v8::Isolate::Scope entered(isolate_);
    delegate_.queue().OnTask(nullptr);
    entry_ = EntryPoints();
    keys_.Clear();
    codecs_.Clear();
    weights_.LetGo();
    entry_object_.Reset();
    context_.Reset();
    isolate_->RemoveNearHeapLimitCallback(OnNearHeapLimit, 0);
    isolate_->RemoveGCEpilogueCallback(AfterGc, this);
  }
  factory_.platform->DisposeIsolate(isolate_);
  alive_.fetch_sub(1);
}

void Realm::TakeEntryPoints(v8::Local<v8::Context> context) {
  v8::Local<v8::Object> object = context->GetDataFromSnapshotOnce<v8::Object>(0).ToLocalChecked();
  entry_object_.Reset(isolate_, object);
  auto take = [&](const char* name, v8::Global<v8::Function>& into) {
    v8::Local<v8::Value> value = object->Get(context, ToV8(isolate_, name)).ToLocalChecked();
    into.Reset(isolate_, value.As<v8::Function>());
  };
  take("prepare", entry_.prepare);
  take("script", entry_.script);
  take("load", entry_.load);
  take("builtIn", entry_.built_in);
  take("rejection", entry_.rejection);
  take("fetch", entry_.fetch);
  take("event", entry_.event);
  take("body", entry_.body);
  take("credit", entry_.credit);
  take("cancel", entry_.cancel);
  take("reply", entry_.reply);
  take("timer", entry_.timer);
  take("sockets", entry_.sockets);
  take("finalize", entry_.finalize);
  take("warm", entry_.warm);
}

void Realm::WarmUp() {
  RealmScope scope(*this);
  v8::TryCatch caught(isolate_);
  Ignore(entry_.warm.Get(isolate_)->Call(context(), v8::Undefined(isolate_), 0, nullptr));
  isolate_->PerformMicrotaskCheckpoint();
  tasks().RunDue();
}

std::vector<std::string> Realm::OpNames() const {
  v8::Local<v8::Context> context = this->context();
  v8::Local<v8::Value> value =
      entry_object_.Get(isolate_)->Get(context, ToV8(isolate_, "ops")).FromMaybe(v8::Local<v8::Value>());
  std::vector<std::string> names;
  if (value.IsEmpty() || !value->IsArray()) return names;
  v8::Local<v8::Array> array = value.As<v8::Array>();
  for (uint32_t i = 0; i < array->Length(); i++) {
    names.push_back(FromV8(isolate_, array->Get(context, i).ToLocalChecked()));
  }
  return names;
}

size_t Realm::UsedBytes() const {
  v8::HeapStatistics heap;
  isolate_->GetHeapStatistics(&heap);
  return heap.used_heap_size() + allocator_.used();
}

// Resizable buffers and WebAssembly memory do not come through the allocator, and V8's own limit does not count them.
// So the memory left after a collection is compared with the limit here. Much of it may still be garbage that only a
// full collection finds and that is swept later: bodies that were read and dropped are tens of megabytes. A realm that
// seems to exceed the limit therefore gets a full collection at the next interrupt, and is checked again after it.
void Realm::AfterGc(v8::Isolate*, v8::GCType type, v8::GCCallbackFlags, void* data) {
  Realm* realm = static_cast<Realm*>(data);
  size_t used = realm->CountedBytes();
  if (realm->worker_ != nullptr) realm->worker_->set_used_bytes(used);
  if (realm->is_collecting_ || used <= realm->memory_bytes_ * (type & v8::kGCTypeMarkSweepCompact ? 1 : 2)) return;
  if (!realm->must_collect_) {
    realm->CollectSoon();
  } else if (used > realm->memory_bytes_ * 2) {  // it is in a built-in function that handles no interrupts
    realm->RunOut();
  }
}

void Realm::CollectSoon() {
  if (must_collect_ || is_collecting_) return;
  must_collect_ = true;
  isolate_->RequestInterrupt(Collect, this);
}

void Realm::Collect(v8::Isolate* isolate, void* data) {
  Realm* realm = static_cast<Realm*>(data);
  realm->is_collecting_ = true;
  isolate->LowMemoryNotification();
  realm->is_collecting_ = realm->must_collect_ = false;
  realm->icu_.set_ceiling(std::max(realm->icu_.used() + realm->memory_bytes_ / 4, realm->memory_bytes_ / 2));
  if (realm->CountedBytes() > realm->memory_bytes_) realm->RunOut();
}

size_t Realm::CountedBytes() const {
  v8::HeapStatistics heap;
  isolate_->GetHeapStatistics(&heap);
  return heap.used_heap_size() + heap.external_memory() + weights_.bytes() + icu_.used();
}

uint16_t Realm::RecentMb() {
  constexpr uint64_t kEveryNs = 100'000'000;
  uint64_t now = MonotonicNs();
  if (now - measured_ns_ > kEveryNs) {
    measured_ns_ = now;
    measured_mb_ = static_cast<uint16_t>(std::min<size_t>((CountedBytes() >> 20) + 1, UINT16_MAX));
  }
  return measured_mb_;
}

void Realm::RunOut() {
  out_of_memory_ = true;
  if (worker_ != nullptr) worker_->RanOut();
  isolate_->TerminateExecution();
}

// V8 is about to give up. Terminates the worker's code and lends it enough memory to unwind; then it is condemned.
size_t Realm::OnNearHeapLimit(void* data, size_t current, size_t initial) {
  static_cast<Realm*>(data)->RunOut();
  return current + initial;
}

}  // namespace engine
