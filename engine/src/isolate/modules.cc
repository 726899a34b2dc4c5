#include "isolate/modules.h"

#include <cstring>
#include <span>

#include "isolate/errors.h"
#include "isolate/realm.h"
#include "limits/wasm_bytes.h"
#include "worker/worker.h"

namespace engine {
namespace {

// "a/b.js" + "../c.js" -> "c.js". Leading "./" and "/" mean the worker's root; ".." stops there.
std::string ResolvePath(std::string_view specifier, const std::string& referrer) {
  bool relative = specifier.starts_with("./") || specifier.starts_with("../");
  std::string joined;
  size_t slash = referrer.rfind('/');
  if (relative && slash != std::string::npos) joined = referrer.substr(0, slash + 1);
  joined += specifier;
  std::vector<std::string_view> parts;
  std::string_view rest = joined;
  while (!rest.empty()) {
    size_t end = rest.find('/');
    std::string_view part = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
  }
  std::string path;
  for (std::string_view part : parts) {
    if (!path.empty()) path += '/';
    path += part;
  }
  return path;
}

v8::Local<v8::Promise> Rejected(v8::Local<v8::Context> context, v8::Local<v8::Value> reason) {
  v8::Local<v8::Promise::Resolver> resolver = v8::Promise::Resolver::New(context).ToLocalChecked();
  Ignore(resolver->Reject(context, reason));
  return resolver->GetPromise();
}

// The result of evaluating a synthetic module.
v8::MaybeLocal<v8::Value> Resolved(v8::Local<v8::Context> context) {
  v8::Local<v8::Promise::Resolver> resolver;
  if (!v8::Promise::Resolver::New(context).ToLocal(&resolver)) return {};
  if (resolver->Resolve(context, v8::Undefined(context->GetIsolate())).IsNothing()) return {};
  return resolver->GetPromise();
}

v8::ScriptOrigin Origin(v8::Isolate* isolate, const std::string& path, bool is_module) {
  return v8::ScriptOrigin(ToV8(isolate, path), 0, 0, false, -1, v8::Local<v8::Value>(), false, false, is_module);
}

// V8 does not name a module that it cannot read: throws the exception again, with the path in front.
template <typename MakeError>
void ThrowWithPath(v8::Local<v8::Context> context, v8::TryCatch& caught, const std::string& path, MakeError make) {
  v8::Isolate* isolate = context->GetIsolate();
  if (!caught.HasTerminated()) {
    const std::string why = Describe(context, wire::Error::kException, caught.Exception()).message;
    caught.Reset();
    isolate->ThrowException(make(ToV8(isolate, path + ": " + why), {}));
  }
  caught.ReThrow();
}

v8::ScriptCompiler::CachedData* Cached(const std::string& bytes) {
  if (bytes.empty()) return nullptr;
  return new v8::ScriptCompiler::CachedData(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
}

}  // namespace

bool Modules::ParseKind(std::string_view text, Kind* kind) {
  constexpr std::pair<std::string_view, Kind> kKinds[] = {
      {"esm", Kind::kEsm}, {"json", Kind::kJson}, {"text", Kind::kText}, {"data", Kind::kData}, {"wasm", Kind::kWasm}};
  for (const auto& [name, value] : kKinds) {
    if (name == text) {
      *kind = value;
      return true;
    }
  }
  return false;
}

void Modules::Add(std::string path, Kind kind, std::string_view source, std::string_view cache) {
  index_.emplace(path, entries_.size());
  Entry entry;
  entry.path = std::move(path);
  entry.kind = kind;
  entry.source = source;
  entry.cache = cache;
  entries_.push_back(std::move(entry));
}

v8::MaybeLocal<v8::Module> Modules::Compile(v8::Local<v8::Context> context, const std::string& path) {
  Entry& entry = entries_[index_.at(path)];
  if (!entry.module.IsEmpty()) return entry.module.Get(isolate_);
  v8::Local<v8::Module> module;
  v8::MaybeLocal<v8::Module> made = entry.kind == Kind::kEsm ? CompileEsm(entry) : CompileSynthetic(context, entry);
  if (!made.ToLocal(&module)) return {};
  entry.module.Reset(isolate_, module);
  by_identity_.emplace(module->GetIdentityHash(), static_cast<size_t>(&entry - entries_.data()));
  return module;
}

v8::MaybeLocal<v8::Module> Modules::CompileEsm(Entry& entry) {
  const v8::Local<v8::String> text = ToV8(isolate_, entry.source);
  v8::ScriptCompiler::Source source(text, Origin(isolate_, entry.path, true), Cached(entry.cache));
  auto options = entry.cache.empty() ? v8::ScriptCompiler::kNoCompileOptions : v8::ScriptCompiler::kConsumeCodeCache;
  v8::Local<v8::Module> module;
  if (!v8::ScriptCompiler::CompileModule(isolate_, &source, options).ToLocal(&module)) return {};
  entry.text.Reset(isolate_, text);
  NoteCache(source, entry);
  return module;
}

v8::MaybeLocal<v8::UnboundScript> Modules::CompileScript(const std::string& path) {
  Entry& entry = entries_[index_.at(path)];
  const v8::Local<v8::String> text = ToV8(isolate_, entry.source);
  v8::ScriptCompiler::Source source(text, Origin(isolate_, entry.path, false), Cached(entry.cache));
  auto options = entry.cache.empty() ? v8::ScriptCompiler::kNoCompileOptions : v8::ScriptCompiler::kConsumeCodeCache;
  v8::Local<v8::UnboundScript> script;
  if (!v8::ScriptCompiler::CompileUnboundScript(isolate_, &source, options).ToLocal(&script)) return {};
  NoteCache(source, entry);
  entry.module.Reset();
  entry.script.Reset(isolate_, script);
  entry.text.Reset(isolate_, text);
  return script;
}

void Modules::NoteCache(const v8::ScriptCompiler::Source& source, Entry& entry) {
  const v8::ScriptCompiler::CachedData* cached = source.GetCachedData();
  if (cached == nullptr) return;
  // A rejected cache is kept: code that is not a module may still be a script.
  cache_rejected_ = cached->rejected;
  if (!cached->rejected) entry.cache = std::string();
}

v8::MaybeLocal<v8::Value> Modules::MakeValue(v8::Local<v8::Context> context, Entry& entry) {
  switch (entry.kind) {
    case Kind::kJson: {
      v8::TryCatch caught(isolate_);
      v8::Local<v8::Value> value;
      if (v8::JSON::Parse(context, ToV8(isolate_, entry.source)).ToLocal(&value)) return value;
      ThrowWithPath(context, caught, entry.path, v8::Exception::SyntaxError);
      return {};
    }
    case Kind::kText:
      return ToV8(isolate_, entry.source);
    case Kind::kData: {
      v8::Local<v8::ArrayBuffer> buffer;
      if (!v8::ArrayBuffer::MaybeNew(isolate_, entry.source.size()).ToLocal(&buffer)) {
        isolate_->ThrowException(
            v8::Exception::RangeError(ToV8(isolate_, entry.path + " is larger than the memory limit")));
        return {};
      }
      std::memcpy(buffer->Data(), entry.source.data(), entry.source.size());
      return buffer;
    }
    case Kind::kWasm: {
      const std::span bytes(reinterpret_cast<const uint8_t*>(entry.source.data()), entry.source.size());
      if (const std::string why = WhyRefused(bytes); !why.empty()) {
        isolate_->ThrowException(v8::Exception::WasmCompileError(ToV8(isolate_, entry.path + " " + why)));
        return {};
      }
      Realm& realm = Realm::Of(isolate_);
      bool allowed = realm.wasm_allowed();
      realm.set_wasm_allowed(true);
      v8::TryCatch caught(isolate_);
      v8::MaybeLocal<v8::WasmModuleObject> module =
          v8::WasmModuleObject::Compile(isolate_, {bytes.data(), bytes.size()});
      realm.set_wasm_allowed(allowed);
      v8::Local<v8::WasmModuleObject> value;
      if (module.ToLocal(&value)) return value;
      ThrowWithPath(context, caught, entry.path, v8::Exception::WasmCompileError);
      return {};
    }
    case Kind::kEsm:
      break;
  }
  return {};
}

v8::MaybeLocal<v8::Module> Modules::CompileSynthetic(v8::Local<v8::Context> context, Entry& entry) {
  v8::Local<v8::Value> value;
  if (!MakeValue(context, entry).ToLocal(&value)) return {};
  entry.value.Reset(isolate_, value);
  v8::Local<v8::String> exports[] = {ToV8(isolate_, "default")};
  return v8::Module::CreateSyntheticModule(isolate_, ToV8(isolate_, entry.path), {exports, 1}, EvaluateSynthetic);
}

v8::MaybeLocal<v8::Value> Modules::EvaluateSynthetic(v8::Local<v8::Context> context, v8::Local<v8::Module> module) {
  v8::Isolate* isolate = context->GetIsolate();
  Entry* entry = Realm::Of(isolate).worker()->modules().Find(module);
  if (entry == nullptr) return {};
  v8::Local<v8::String> name = ToV8(isolate, "default");
  if (module->SetSyntheticModuleExport(isolate, name, entry->value.Get(isolate)).IsNothing()) return {};
  return Resolved(context);
}

Modules::Entry* Modules::Find(v8::Local<v8::Module> module) {
  auto [begin, end] = by_identity_.equal_range(module->GetIdentityHash());
  for (auto it = begin; it != end; ++it) {
    if (entries_[it->second].module == module) return &entries_[it->second];
  }
  return nullptr;
}

v8::MaybeLocal<v8::Module> Modules::Load(v8::Local<v8::Context> context, std::string_view specifier,
                                         const std::string& referrer) {
  auto found = index_.find(ResolvePath(specifier, referrer));
  if (found != index_.end()) return Compile(context, found->first);
  std::string message = "Cannot find module \"" + std::string(specifier) + "\" imported by \"" + referrer + "\"";
  if (specifier.starts_with(".") || specifier.starts_with("/")) {
    message += ": it is not among the deployed modules";
  } else {
    v8::TryCatch caught(isolate_);
    std::string hint;
    v8::Local<v8::Module> module;
    if (LoadBuiltIn(context, specifier, &hint).ToLocal(&module)) return module;
    if (caught.HasCaught()) {
      caught.ReThrow();
      return {};
    }
    message += hint.empty() ? ": packages must be bundled before deployment" : ": " + hint;
  }
  isolate_->ThrowException(v8::Exception::TypeError(ToV8(isolate_, message)));
  return {};
}

v8::MaybeLocal<v8::Module> Modules::LoadBuiltIn(v8::Local<v8::Context> context, std::string_view specifier,
                                                std::string* hint) {
  auto found = built_ins_.find(std::string(specifier));
  if (found != built_ins_.end()) return found->second.module.Get(isolate_);
  v8::Local<v8::Value> name = ToV8(isolate_, specifier);
  v8::Local<v8::Value> made;
  const v8::Global<v8::Function>& make = Realm::Of(isolate_).entry().built_in;
  if (!make.Get(isolate_)->Call(context, v8::Undefined(isolate_), 1, &name).ToLocal(&made)) return {};
  if (made->IsString()) *hint = FromV8(isolate_, made);
  if (!made->IsObject()) return {};
  v8::Local<v8::Object> exports = made.As<v8::Object>();
  v8::Local<v8::Array> keys;
  if (!exports->GetOwnPropertyNames(context).ToLocal(&keys)) return {};
  v8::LocalVector<v8::String> names(isolate_);
  for (uint32_t i = 0; i < keys->Length(); i++) {
    v8::Local<v8::Value> key;
    if (!keys->Get(context, i).ToLocal(&key) || !key->IsString()) return {};
    names.push_back(key.As<v8::String>());
  }
  v8::Local<v8::Module> module =
      v8::Module::CreateSyntheticModule(isolate_, name.As<v8::String>(), {names.data(), names.size()}, EvaluateBuiltIn);
  BuiltIn& built_in = built_ins_[std::string(specifier)];
  built_in.module.Reset(isolate_, module);
  built_in.exports.Reset(isolate_, exports);
  return module;
}

v8::MaybeLocal<v8::Value> Modules::EvaluateBuiltIn(v8::Local<v8::Context> context, v8::Local<v8::Module> module) {
  v8::Isolate* isolate = context->GetIsolate();
  for (const auto& [name, built_in] : Realm::Of(isolate).worker()->modules().built_ins_) {
    if (built_in.module != module) continue;
    v8::Local<v8::Object> exports = built_in.exports.Get(isolate);
    v8::Local<v8::Array> keys;
    if (!exports->GetOwnPropertyNames(context).ToLocal(&keys)) return {};
    for (uint32_t i = 0; i < keys->Length(); i++) {
      v8::Local<v8::Value> key;
      v8::Local<v8::Value> value;
      if (!keys->Get(context, i).ToLocal(&key) || !exports->Get(context, key).ToLocal(&value)) return {};
      if (module->SetSyntheticModuleExport(isolate, key.As<v8::String>(), value).IsNothing()) return {};
    }
    return Resolved(context);
  }
  return {};
}

v8::MaybeLocal<v8::Module> Modules::Resolve(v8::Local<v8::Context> context, v8::Local<v8::String> specifier,
                                            v8::Local<v8::FixedArray>, v8::Local<v8::Module> referrer) {
  v8::Isolate* isolate = context->GetIsolate();
  Modules& modules = Realm::Of(isolate).worker()->modules();
  Entry* from = modules.Find(referrer);
  if (from == nullptr) return {};
  return modules.Load(context, FromV8(isolate, specifier), from->path);
}

v8::MaybeLocal<v8::Promise> Modules::ImportDynamically(v8::Local<v8::Context> context, v8::Local<v8::Data>,
                                                       v8::Local<v8::Value> resource_name,
                                                       v8::Local<v8::String> specifier, v8::Local<v8::FixedArray>) {
  v8::Isolate* isolate = context->GetIsolate();
  v8::EscapableHandleScope handles(isolate);
  v8::TryCatch caught(isolate);
  auto fail = [&]() -> v8::MaybeLocal<v8::Promise> {
    if (caught.HasTerminated()) {
      caught.ReThrow();
      return {};
    }
    return handles.Escape(Rejected(context, caught.Exception()));
  };
  Worker* worker = Realm::Of(isolate).worker();
  if (worker == nullptr) return {};
  v8::Local<v8::Module> module;
  if (!worker->modules().Load(context, FromV8(isolate, specifier), FromV8(isolate, resource_name)).ToLocal(&module)) {
    return fail();
  }
  if (module->InstantiateModule(context, Resolve).IsNothing()) return fail();
  v8::Local<v8::Value> evaluated;
  if (!module->Evaluate(context).ToLocal(&evaluated)) return fail();
  // The caller's promise is the module's evaluation, with the namespace as its value.
  auto give_namespace = [](const v8::FunctionCallbackInfo<v8::Value>& info) { info.GetReturnValue().Set(info.Data()); };
  v8::Local<v8::Function> then;
  v8::Local<v8::Promise> result;
  if (!v8::Function::New(context, give_namespace, module->GetModuleNamespace()).ToLocal(&then)) return fail();
  if (!evaluated.As<v8::Promise>()->Then(context, then).ToLocal(&result)) return fail();
  return handles.Escape(result);
}

void Modules::InitializeMeta(v8::Local<v8::Context> context, v8::Local<v8::Module> module, v8::Local<v8::Object> meta) {
  v8::Isolate* isolate = context->GetIsolate();
  Worker* worker = Realm::Of(isolate).worker();
  Entry* entry = worker == nullptr ? nullptr : worker->modules().Find(module);
  if (entry == nullptr) return;
  Ignore(meta->CreateDataProperty(context, ToV8(isolate, "url"), ToV8(isolate, "file:///" + entry->path)));
  bool main = entry->path == worker->modules().main_path();
  Ignore(meta->CreateDataProperty(context, ToV8(isolate, "main"), v8::Boolean::New(isolate, main)));
}

void Modules::ReleaseSources() {
  for (Entry& entry : entries_) {
    if (entry.module.IsEmpty() && entry.script.IsEmpty()) continue;
    if (entry.kind != Kind::kJson) entry.source = std::string();
    entry.cache = std::string();
  }
}

v8::Local<v8::Array> Modules::Paths() const {
  v8::LocalVector<v8::Value> paths(isolate_);
  for (const Entry& entry : entries_) paths.push_back(ToV8(isolate_, entry.path));
  return v8::Array::New(isolate_, paths.data(), paths.size());
}

v8::Local<v8::Value> Modules::Content(const std::string& path) const {
  const auto found = index_.find(path);
  if (found == index_.end()) return v8::Undefined(isolate_);
  const Entry& entry = entries_[found->second];
  std::string copy;
  std::string_view bytes = entry.source;
  if (bytes.empty() && !entry.text.IsEmpty()) {
    bytes = copy = FromV8(isolate_, entry.text.Get(isolate_));
  } else if (bytes.empty() && !entry.value.IsEmpty()) {
    const v8::Local<v8::Value> value = entry.value.Get(isolate_);
    if (value->IsString()) {
      bytes = copy = FromV8(isolate_, value);
    } else if (value->IsArrayBuffer()) {
      const v8::Local<v8::ArrayBuffer> buffer = value.As<v8::ArrayBuffer>();
      bytes = {static_cast<const char*>(buffer->Data()), buffer->ByteLength()};
    } else if (value->IsWasmModuleObject()) {
      const auto wire = value.As<v8::WasmModuleObject>()->GetCompiledModule().GetWireBytesRef();
      bytes = copy = std::string(reinterpret_cast<const char*>(wire.data()), wire.size());
    }
  }
  v8::Local<v8::ArrayBuffer> buffer;
  if (!v8::ArrayBuffer::MaybeNew(isolate_, bytes.size()).ToLocal(&buffer)) return v8::Undefined(isolate_);
  if (!bytes.empty()) std::memcpy(buffer->Data(), bytes.data(), bytes.size());
  return buffer;
}

std::string Modules::CodeCache() const {
  std::string sizes;
  std::string blobs;
  for (const Entry& entry : entries_) {
    std::unique_ptr<v8::ScriptCompiler::CachedData> data;
    if (!entry.script.IsEmpty()) {
      data.reset(v8::ScriptCompiler::CreateCodeCache(entry.script.Get(isolate_)));
    } else if (entry.kind == Kind::kEsm && !entry.module.IsEmpty()) {
      data.reset(v8::ScriptCompiler::CreateCodeCache(entry.module.Get(isolate_)->GetUnboundModuleScript()));
    }
    uint32_t size = data == nullptr ? 0 : static_cast<uint32_t>(data->length);
    sizes.append(reinterpret_cast<const char*>(&size), sizeof(size));
    if (size != 0) blobs.append(reinterpret_cast<const char*>(data->data), size);
  }
  return sizes + blobs;
}

}  // namespace engine
