#include "snapshot.h"

#include <memory>

#include "natives.h"
#include "realm.h"
#include "tasks.h"

namespace engine {
namespace {

// Compiles the bundle as the body of a function of `native` and calls it; what it returns are the entry points.
v8::MaybeLocal<v8::Object> RunBundle(v8::Local<v8::Context> context, const std::string& source) {
  v8::Isolate* isolate = context->GetIsolate();
  v8::ScriptOrigin origin(ToV8(isolate, "atoll:web"));
  v8::ScriptCompiler::Source code(ToV8(isolate, source), origin);
  v8::Local<v8::String> parameter = ToV8(isolate, "native");
  v8::Local<v8::Function> function;
  if (!v8::ScriptCompiler::CompileFunction(context, &code, 1, &parameter).ToLocal(&function)) return {};
  v8::Local<v8::Object> native = NativeTemplate(isolate)->NewInstance(context).ToLocalChecked();
  v8::Local<v8::Value> argument = native;
  v8::Local<v8::Value> result;
  if (!function->Call(context, v8::Undefined(isolate), 1, &argument).ToLocal(&result)) return {};
  isolate->PerformMicrotaskCheckpoint();
  if (!result->IsObject()) {
    isolate->ThrowException(v8::Exception::TypeError(ToV8(isolate, "the web bundle returned no entry points")));
    return {};
  }
  return result.As<v8::Object>();
}

}  // namespace

v8::StartupData MakeSnapshot(node::MultiIsolatePlatform* platform, const std::string& source, std::string* error) {
  CountingAllocator allocator(size_t{1} << 30);
  TaskDelegate delegate;
  v8::Isolate* isolate = v8::Isolate::Allocate();
  platform->RegisterIsolate(isolate, &delegate);
  v8::Isolate::CreateParams params;
  params.array_buffer_allocator = &allocator;
  params.external_references = ExternalReferences();
  v8::StartupData blob{nullptr, 0};
  {
    v8::SnapshotCreator creator(isolate, params);
    {
      v8::HandleScope handles(isolate);
      v8::Local<v8::Context> context = v8::Context::New(isolate);
      v8::Context::Scope scope(context);
      v8::TryCatch caught(isolate);
      v8::Local<v8::Object> entry;
      if (RunBundle(context, source).ToLocal(&entry)) {
        creator.AddData(context, entry);
      } else {
        v8::Local<v8::Value> stack;
        if (!caught.StackTrace(context).ToLocal(&stack)) stack = caught.Exception();
        *error = FromV8(isolate, stack);
      }
      creator.SetDefaultContext(context);
    }
    // Functions the warm-up run compiled stay in the snapshot: they halve the time of a worker's first call.
    blob = creator.CreateBlob(v8::SnapshotCreator::FunctionCodeHandling::kKeep);
  }
  platform->DisposeIsolate(isolate);
  if (!error->empty()) {
    delete[] blob.data;
    blob = {nullptr, 0};
  }
  return blob;
}

}  // namespace engine
