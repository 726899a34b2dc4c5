// The HTML parser behind HTMLRewriter: a WebAssembly module inside the addon. It is compiled when the first worker of
// the process needs it, and all isolates share its code. Workers never see the module.
#include <mutex>
#include <optional>

#include "isolate/realm.h"
#include "native/arguments.h"
#include "native/native.h"

// tools/gen_html_rewriter.mjs writes the file. Its pages are read from disk only if they are used.
asm(".pushsection .rodata\n"
    ".balign 16\n"
    "html_rewriter_begin:\n"
    ".incbin \"" ATOLL_HTML_REWRITER
    "\"\n"
    "html_rewriter_end:\n"
    ".popsection\n");
extern "C" const uint8_t html_rewriter_begin[] __attribute__((visibility("hidden")));
extern "C" const uint8_t html_rewriter_end[] __attribute__((visibility("hidden")));

namespace engine::native {
namespace {

class SharedModule final {
 public:
  static SharedModule& Get() {
    static SharedModule module;
    return module;
  }

  v8::MaybeLocal<v8::WasmModuleObject> In(v8::Isolate* isolate) {
    // Compiling may run for milliseconds and cannot be terminated: a second isolate waits for the first.
    const std::lock_guard lock(mutex_);
    if (compiled_) return v8::WasmModuleObject::FromCompiledModule(isolate, *compiled_);
    Realm& realm = Realm::Of(isolate);
    const bool allowed = realm.wasm_allowed();
    realm.set_wasm_allowed(true);
    v8::Local<v8::WasmModuleObject> module;
    const bool done = v8::WasmModuleObject::Compile(
                          isolate, {html_rewriter_begin, static_cast<size_t>(html_rewriter_end - html_rewriter_begin)})
                          .ToLocal(&module);
    realm.set_wasm_allowed(allowed);
    if (!done) return {};
    compiled_.emplace(module->GetCompiledModule());
    return module;
  }

 private:
  std::mutex mutex_;
  std::optional<v8::CompiledWasmModule> compiled_;
};

// htmlRewriterModule() -> WebAssembly.Module
void HtmlRewriterModule(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (isolate->GetData(0) == nullptr) return ThrowTypeError(isolate, "htmlRewriterModule needs a worker");
  v8::Local<v8::WasmModuleObject> module;
  if (SharedModule::Get().In(isolate).ToLocal(&module)) args.GetReturnValue().Set(module);
}

// An instance takes 8 GB of address space, as every WebAssembly memory does (weights.h). A worker that serves many
// requests at once has an instance for each, so it counts less than a memory of the worker's own.
constexpr size_t kParserWeight = size_t{1} << 20;

// weighParser(WebAssembly.Instance)
void WeighParser(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 1 || !args[0]->IsObject()) return ThrowTypeError(isolate, "weighParser takes an object");
  if (isolate->GetData(0) != nullptr)
    Realm::Of(isolate).weights().Add(isolate, args[0].As<v8::Object>(), kParserWeight);
}

constexpr Function kFunctions[] = {{"htmlRewriterModule", HtmlRewriterModule}, {"weighParser", WeighParser}};

}  // namespace

std::span<const Function> HtmlRewriterFunctions() { return kFunctions; }

}  // namespace engine::native
