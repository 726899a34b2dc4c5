#include "isolate/stacks.h"

#include <string>
#include <vector>

#include "isolate/realm.h"

namespace engine {
namespace {

v8::MaybeLocal<v8::Value> Property(v8::Local<v8::Context> context, v8::Local<v8::Value> object, const char* name) {
  if (!object->IsObject()) return v8::Undefined(context->GetIsolate());
  return object.As<v8::Object>()->Get(context, ToV8(context->GetIsolate(), name));
}

// "Name: message" as in Error.prototype.toString, even when the error has a toString() of its own.
v8::MaybeLocal<v8::String> Title(v8::Local<v8::Context> context, v8::Local<v8::Value> error,
                                 v8::Local<v8::Value> error_class) {
  v8::Local<v8::Value> prototype, to_string, title;
  if (!Property(context, error_class, "prototype").ToLocal(&prototype) ||
      !Property(context, prototype, "toString").ToLocal(&to_string)) {
    return {};
  }
  if (!to_string->IsFunction()) return error->ToString(context);
  if (!to_string.As<v8::Function>()->Call(context, error, 0, nullptr).ToLocal(&title)) return {};
  return title->ToString(context);
}

bool IsPlatform(std::string_view frame) {
  size_t bracket = frame.rfind('(');
  if (frame.ends_with(')') && bracket != std::string_view::npos) frame = frame.substr(bracket + 1);
  if (frame.starts_with("async ")) frame.remove_prefix(6);
  return frame.starts_with(kPlatformScript);
}

}  // namespace

v8::MaybeLocal<v8::Value> PrepareStack(v8::Local<v8::Context> context, v8::Local<v8::Value> error,
                                       v8::Local<v8::Array> sites) {
  v8::Isolate* isolate = context->GetIsolate();
  v8::Local<v8::Value> error_class, own;
  if (!Property(context, context->Global(), "Error").ToLocal(&error_class) ||
      !Property(context, error_class, "prepareStackTrace").ToLocal(&own)) {
    return {};
  }
  std::vector<v8::Local<v8::Value>> kept;
  std::string frames;
  for (uint32_t i = 0; i < sites->Length(); i++) {
    v8::Local<v8::Value> site;
    v8::Local<v8::String> text;
    if (!sites->Get(context, i).ToLocal(&site) || !site->ToString(context).ToLocal(&text)) return {};
    std::string frame = FromV8(isolate, text);
    if (IsPlatform(frame)) continue;
    kept.push_back(site);
    frames += "\n    at " + frame;
  }
  if (own->IsFunction()) {  // https://v8.dev/docs/stack-trace-api#customizing-stack-traces
    v8::Local<v8::Value> arguments[] = {error, v8::Array::New(isolate, kept.data(), kept.size())};
    return own.As<v8::Function>()->Call(context, error_class, 2, arguments);
  }
  v8::Local<v8::String> title;
  if (!Title(context, error, error_class).ToLocal(&title)) return {};
  return v8::String::Concat(isolate, title, ToV8(isolate, frames));
}

}  // namespace engine
