// Globals that are created on first use. Until then they look like any other global but take no heap.

#include "native/arguments.h"
#include "native/native.h"

namespace engine::native {

namespace {

// The private key under which the global object keeps the function that makes the value. The function cannot be the
// data of the getter: V8 puts that into the part of a snapshot that all contexts share.
v8::Local<v8::Private> MakerOf(v8::Isolate* isolate, v8::Local<v8::Name> name) {
  return v8::Private::ForApi(isolate, name.As<v8::String>());
}

// defineLazyGlobal(name, make): make() returns the value and is called once.
void DefineLazyGlobal(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 2 || !args[0]->IsString() || !args[1]->IsFunction()) {
    return ThrowTypeError(isolate, "defineLazyGlobal takes a name and a function");
  }
  const v8::Local<v8::Context> context = isolate->GetCurrentContext();
  const v8::Local<v8::Name> name = args[0].As<v8::Name>();
  const v8::Local<v8::Object> global = context->Global();
  const bool defined =
      global->SetPrivate(context, MakerOf(isolate, name), args[1]).FromMaybe(false) &&
      global->SetLazyDataProperty(context, name, MakeLazyGlobal, v8::Local<v8::Value>(), v8::DontEnum).FromMaybe(false);
  args.GetReturnValue().Set(defined);
}

constexpr Function kFunctions[] = {{"defineLazyGlobal", DefineLazyGlobal}};

}  // namespace

void MakeLazyGlobal(v8::Local<v8::Name> name, const v8::PropertyCallbackInfo<v8::Value>& info) {
  v8::Isolate* isolate = info.GetIsolate();
  const v8::Local<v8::Context> context = isolate->GetCurrentContext();
  v8::Local<v8::Value> make;
  v8::Local<v8::Value> value;
  if (!context->Global()->GetPrivate(context, MakerOf(isolate, name)).ToLocal(&make) || !make->IsFunction()) return;
  if (make.As<v8::Function>()->Call(context, v8::Undefined(isolate), 0, nullptr).ToLocal(&value)) {
    info.GetReturnValue().Set(value);
  }
}

std::span<const Function> LazyFunctions() { return kFunctions; }

}  // namespace engine::native
