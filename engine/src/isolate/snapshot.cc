#include "isolate/snapshot.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "isolate/realm.h"
#include "isolate/stacks.h"
#include "isolate/tasks.h"
#include "native/natives.h"

namespace engine {
namespace {

// Separates the bundle of the web platform from the built-in modules that are compiled on first use.
constexpr std::string_view kLazyMark = "\n//# atoll:lazy\n";

// Splits the source: the bundle is what V8 compiles now.
void TakeSource(std::string_view source, std::string_view caches) {
  const size_t at = source.find(kLazyMark);
  const size_t lazy = at == std::string_view::npos ? source.size() : at + kLazyMark.size();
  BundleText::Get().Set(source.substr(0, at), source.substr(lazy), caches);
}

// A part of the file is its bytes followed by their count.
bool TakeFromEnd(std::string_view& file, std::string_view& part) {
  uint32_t size = 0;
  if (file.size() < sizeof(size)) return false;
  std::memcpy(&size, file.data() + file.size() - sizeof(size), sizeof(size));
  file.remove_suffix(sizeof(size));
  if (size > file.size()) return false;
  part = file.substr(file.size() - size);
  file.remove_suffix(size);
  return true;
}

void AppendToEnd(std::string& file, std::string_view part) {
  const uint32_t size = static_cast<uint32_t>(part.size());
  file.append(part);
  file.append(reinterpret_cast<const char*>(&size), sizeof(size));
}

// Compiles the bundle as the body of a function of `native` and calls it. It returns the entry points.
v8::MaybeLocal<v8::Object> RunBundle(v8::Local<v8::Context> context, const std::string& source) {
  v8::Isolate* isolate = context->GetIsolate();
  v8::ScriptOrigin origin(ToV8(isolate, kPlatformScript));
  TakeSource(source, {});
  v8::Local<v8::String> text;
  if (!v8::String::NewExternalOneByte(isolate, &BundleText::Get()).ToLocal(&text)) return {};
  v8::ScriptCompiler::Source code(text, origin);
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

// Loads every lazy module in an isolate made from the snapshot, as a worker would, and returns their code caches.
std::string MakeLazyCaches(node::MultiIsolatePlatform* platform, const v8::StartupData& blob) {
  CountingAllocator allocator(size_t{1} << 30);
  TaskDelegate delegate;
  v8::Isolate* isolate = v8::Isolate::Allocate();
  platform->RegisterIsolate(isolate, &delegate);
  v8::Isolate::CreateParams params;
  params.array_buffer_allocator = &allocator;
  params.external_references = ExternalReferences();
  params.snapshot_blob = &blob;
  v8::Isolate::Initialize(isolate, params);
  std::string caches;
  {
    v8::Isolate::Scope entered(isolate);
    v8::HandleScope handles(isolate);
    v8::Local<v8::Context> context = v8::Context::New(isolate);
    v8::Context::Scope scope(context);
    v8::TryCatch caught(isolate);
    BundleText::Get().caches().Record();
    v8::Local<v8::Object> entry;
    v8::Local<v8::Value> read_all;
    if (context->GetDataFromSnapshotOnce<v8::Object>(0).ToLocal(&entry) &&
        entry->Get(context, ToV8(isolate, "readAll")).ToLocal(&read_all) && read_all->IsFunction()) {
      (void)read_all.As<v8::Function>()->Call(context, v8::Undefined(isolate), 0, nullptr).IsEmpty();
    }
    caches = BundleText::Get().caches().Write(isolate);
  }
  platform->DisposeIsolate(isolate);
  return caches;
}

}  // namespace

std::string MakeSnapshot(node::MultiIsolatePlatform* platform, const std::string& source, std::string* error) {
  // Only ASCII: V8 reads the bytes as Latin-1.
  if (std::any_of(source.begin(), source.end(), [](char byte) { return static_cast<unsigned char>(byte) > 127; })) {
    *error = "the bundle is not ASCII";
    return {};
  }
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
        // A bundle that does not parse has an exception without a stack.
        if (!caught.StackTrace(context).ToLocal(&stack) || !stack->IsString()) stack = caught.Exception();
        *error = FromV8(isolate, stack);
      }
      creator.SetDefaultContext(context);
    }
    // Functions that the warm-up has compiled stay in the snapshot: they halve the time of a worker's first call.
    blob = creator.CreateBlob(v8::SnapshotCreator::FunctionCodeHandling::kKeep);
  }
  platform->DisposeIsolate(isolate);
  std::string file;
  if (error->empty()) {
    file.append(blob.data, static_cast<size_t>(blob.raw_size));
    AppendToEnd(file, MakeLazyCaches(platform, blob));
    AppendToEnd(file, source);
  }
  delete[] blob.data;
  return file;
}

v8::StartupData OpenSnapshot(std::string_view file) {
  std::string_view source;
  std::string_view caches;
  if (!TakeFromEnd(file, source) || !TakeFromEnd(file, caches) || file.empty()) return {nullptr, 0};
  TakeSource(source, caches);
  return {file.data(), static_cast<int>(file.size())};
}

}  // namespace engine
