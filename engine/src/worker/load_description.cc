#include "worker/load_description.h"

#include <utility>
#include <vector>

#include "isolate/realm.h"
#include "link/wire.h"

namespace engine {
namespace {

// A JSON object. A missing field reads as undefined, empty, 0 or false.
class Fields final {
 public:
  Fields(v8::Local<v8::Context> context, v8::Local<v8::Object> object) : context_(context), object_(object) {}

  v8::Local<v8::Value> Get(const char* name) const {
    v8::Isolate* isolate = context_->GetIsolate();
    v8::Local<v8::Value> value;
    if (!object_->Get(context_, ToV8(isolate, name)).ToLocal(&value)) return v8::Undefined(isolate);
    return value;
  }
  std::string Text(const char* name) const {
    v8::Local<v8::Value> value = Get(name);
    return value->IsString() ? FromV8(context_->GetIsolate(), value) : std::string();
  }
  uint32_t Number(const char* name) const {
    v8::Local<v8::Value> value = Get(name);
    return value->IsUint32() ? value.As<v8::Uint32>()->Value() : 0;
  }
  bool IsTrue(const char* name) const { return Get(name)->IsTrue(); }
  std::optional<Fields> Object(const char* name) const {
    v8::Local<v8::Value> value = Get(name);
    if (!value->IsObject()) return std::nullopt;
    return Fields(context_, value.As<v8::Object>());
  }

 private:
  v8::Local<v8::Context> context_;
  v8::Local<v8::Object> object_;
};

struct ModuleDescription {
  std::string path;
  Modules::Kind kind;
  std::string_view source;
};

// The blobs are the sources of all modules, then their code caches.
bool ReadModules(v8::Local<v8::Context> context, const Fields& meta, std::string_view bytes, Modules& modules,
                 uint64_t* code_bytes) {
  v8::Local<v8::Value> listed = meta.Get("modules");
  v8::Local<v8::Value> caches = meta.Get("cache");
  if (!listed->IsArray()) return false;
  uint32_t count = listed.As<v8::Array>()->Length();
  std::vector<ModuleDescription> descriptions;
  wire::Reader blobs(bytes);
  for (uint32_t i = 0; i < count; i++) {
    v8::Local<v8::Value> item;
    if (!listed.As<v8::Array>()->Get(context, i).ToLocal(&item) || !item->IsObject()) return false;
    Fields fields(context, item.As<v8::Object>());
    ModuleDescription description;
    description.path = fields.Text("path");
    if (!Modules::ParseKind(fields.Text("kind"), &description.kind)) return false;
    description.source = blobs.Bytes(fields.Number("size"));
    if (description.kind == Modules::Kind::kEsm) *code_bytes += description.source.size();
    descriptions.push_back(std::move(description));
  }
  for (uint32_t i = 0; i < count; i++) {
    std::string_view cache;
    v8::Local<v8::Value> size;
    if (caches->IsArray() && caches.As<v8::Array>()->Get(context, i).ToLocal(&size) && size->IsUint32()) {
      cache = blobs.Bytes(size.As<v8::Uint32>()->Value());
    }
    modules.Add(std::move(descriptions[i].path), descriptions[i].kind, descriptions[i].source, cache);
  }
  return blobs.ok() && blobs.empty();
}

}  // namespace

std::optional<LoadDescription> ReadDescription(v8::Local<v8::Context> context, std::string_view payload,
                                               Modules& modules) {
  std::optional<wire::MetaParts> parts = wire::ParseMeta(payload);
  v8::Local<v8::Value> parsed;
  if (!parts || !v8::JSON::Parse(context, ToV8(context->GetIsolate(), parts->meta)).ToLocal(&parsed) ||
      !parsed->IsObject()) {
    return std::nullopt;
  }
  Fields meta(context, parsed.As<v8::Object>());
  std::optional<Fields> limits = meta.Object("limits");
  std::optional<Fields> switches = meta.Object("switches");
  if (!limits || !switches) return std::nullopt;

  LoadDescription description;
  description.main_path = meta.Text("main");
  description.format = meta.Text("format");
  description.renews = meta.Text("isolation") == "context";
  description.cpu_limit_ns = uint64_t{limits->Number("cpu_ms")} * 1'000'000;
  description.event_limit_ns = uint64_t{limits->Number("event_cpu_ms")} * 1'000'000;
  description.longest_timer_ms = limits->Number("timer_ms");
  description.refuses_long_timers = limits->IsTrue("refuse_long_timers");
  description.allow_eval = switches->IsTrue("allow_eval");
  description.allow_wasm_compile = switches->IsTrue("allow_wasm_compile");
  description.allow_shared_memory = switches->IsTrue("allow_shared_memory");
  description.allow_live_clock = switches->IsTrue("allow_live_clock");
  description.env = meta.Get("env");
  description.grants = meta.Get("grants");
  description.compatibility_date = meta.Get("compatibility_date");
  description.compatibility_flags = meta.Get("compatibility_flags");
  if (!ReadModules(context, meta, parts->body, modules, &description.code_bytes)) return std::nullopt;
  if (!modules.Has(description.main_path)) return std::nullopt;
  return description;
}

}  // namespace engine
