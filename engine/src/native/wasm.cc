// What has to be known of a WebAssembly module before V8 compiles it.
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

constexpr Function kFunctions[] = {{"declaresSharedMemory", DeclaresSharedMemory}};

}  // namespace

std::span<const Function> WasmFunctions() { return kFunctions; }

}  // namespace engine::native
