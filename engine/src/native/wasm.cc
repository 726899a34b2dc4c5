// What has to be known of a WebAssembly module before V8 compiles it, and what its memories weigh.
#include "../realm.h"
#include "../wasm_memory.h"
#include "arguments.h"
#include "native.h"

namespace engine::native {
namespace {

// declaresSharedMemory(view) -> boolean
void DeclaresSharedMemory(const Arguments& args) {
  if (args.Length() < 1 || !args[0]->IsArrayBufferView()) {
    return ThrowTypeError(args.GetIsolate(), "declaresSharedMemory takes a view");
  }
  const ReadableBytes module(args[0].As<v8::ArrayBufferView>());
  args.GetReturnValue().Set(engine::DeclaresSharedMemory(module.bytes()));
}

// weighMemory(WebAssembly.Memory)
// weighMemory(WebAssembly.Instance, WebAssembly.Module): if it has a memory of its own
void WeighMemory(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 1 || !args[0]->IsObject()) return ThrowTypeError(isolate, "weighMemory takes an object");
  if (args[1]->IsWasmModuleObject()) {
    v8::CompiledWasmModule module = args[1].As<v8::WasmModuleObject>()->GetCompiledModule();
    const v8::MemorySpan<const uint8_t> bytes = module.GetWireBytesRef();
    if (!engine::DeclaresMemory({bytes.data(), bytes.size()})) return;
  }
  if (isolate->GetData(0) != nullptr) Realm::Of(isolate).weights().Add(isolate, args[0].As<v8::Object>());
}

constexpr Function kFunctions[] = {{"declaresSharedMemory", DeclaresSharedMemory}, {"weighMemory", WeighMemory}};

}  // namespace

std::span<const Function> WasmFunctions() { return kFunctions; }

}  // namespace engine::native
