// Checks a WebAssembly module before V8 compiles it, and counts the weights of modules and memories.
#include "isolate/realm.h"
#include "limits/wasm_bytes.h"
#include "native/arguments.h"
#include "native/native.h"

namespace engine::native {
namespace {

bool HasCompiledMuch(v8::Isolate* isolate, size_t bytes) {
  return isolate->GetData(0) != nullptr && !Realm::Of(isolate).wasm_quota().Take(bytes);
}

// refusalOfWasm(view) -> the reason why the module is not compiled, or undefined
void RefusalOfWasm(const Arguments& args) {
  if (args.Length() < 1 || !args[0]->IsArrayBufferView()) {
    return ThrowTypeError(args.GetIsolate(), "refusalOfWasm takes a view");
  }
  const ReadableBytes module(args[0].As<v8::ArrayBufferView>());
  std::string why = WhyRefused(module.bytes());
  if (why.empty() && HasCompiledMuch(args.GetIsolate(), module.bytes().size())) {
    why = "is one too many: a worker may compile " + std::to_string(WasmQuota::kBytes >> 20) +
          " MB from bytes in a minute";
  }
  if (!why.empty()) args.GetReturnValue().Set(ToV8(args.GetIsolate(), why));
}

void Weigh(v8::Isolate* isolate, v8::Local<v8::Object> object, size_t bytes) {
  if (isolate->GetData(0) != nullptr) Realm::Of(isolate).weights().Add(isolate, object, bytes);
}

v8::MemorySpan<const uint8_t> BytesOf(v8::Local<v8::Value> module) {
  return module.As<v8::WasmModuleObject>()->GetCompiledModule().GetWireBytesRef();
}

// weighMemory(WebAssembly.Memory)
// weighMemory(WebAssembly.Instance, WebAssembly.Module): if the instance has its own memory
void WeighMemory(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 1 || !args[0]->IsObject()) return ThrowTypeError(isolate, "weighMemory takes an object");
  if (args[1]->IsWasmModuleObject()) {
    const v8::MemorySpan<const uint8_t> bytes = BytesOf(args[1]);
    if (!engine::DeclaresMemory({bytes.data(), bytes.size()})) return;
  }
  Weigh(isolate, args[0].As<v8::Object>(), Weights::kMemory);
}

// weighModule(WebAssembly.Module)
void WeighModule(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (!args[0]->IsWasmModuleObject()) return ThrowTypeError(isolate, "weighModule takes a module");
  Weigh(isolate, args[0].As<v8::Object>(), Weights::OfModule(BytesOf(args[0]).size()));
}

constexpr Function kFunctions[] = {
    {"refusalOfWasm", RefusalOfWasm}, {"weighMemory", WeighMemory}, {"weighModule", WeighModule}};

}  // namespace

std::span<const Function> WasmFunctions() { return kFunctions; }

}  // namespace engine::native
