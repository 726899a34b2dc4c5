// The files of one worker as ES modules: compile, resolve, import(), import.meta. A specifier that matches no file may
// be a built-in module, which web/node/ provides.
#pragma once

#include <v8.h>

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace engine {

class Modules final {
 public:
  enum class Kind { kEsm, kJson, kText, kData, kWasm };

  explicit Modules(v8::Isolate* isolate) : isolate_(isolate) {}
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;

  static bool ParseKind(std::string_view text, Kind* kind);

  void Add(std::string path, Kind kind, std::string_view source, std::string_view cache);
  bool Has(const std::string& path) const { return index_.contains(path); }
  const std::string& main_path() const { return main_path_; }
  void set_main_path(std::string path) { main_path_ = std::move(path); }

  // Compiles the module at `path`, once. Empty with a pending exception on failure.
  v8::MaybeLocal<v8::Module> Compile(v8::Local<v8::Context> context, const std::string& path);

  // Compiles the file at `path` as a classic script, for service-worker syntax.
  v8::MaybeLocal<v8::UnboundScript> CompileScript(const std::string& path);

  // V8's callback for static imports.
  static v8::MaybeLocal<v8::Module> Resolve(v8::Local<v8::Context> context, v8::Local<v8::String> specifier,
                                            v8::Local<v8::FixedArray> attributes, v8::Local<v8::Module> referrer);
  // V8's callback for import().
  static v8::MaybeLocal<v8::Promise> ImportDynamically(v8::Local<v8::Context> context,
                                                       v8::Local<v8::Data> host_defined_options,
                                                       v8::Local<v8::Value> resource_name,
                                                       v8::Local<v8::String> specifier,
                                                       v8::Local<v8::FixedArray> attributes);
  static void InitializeMeta(v8::Local<v8::Context> context, v8::Local<v8::Module> module, v8::Local<v8::Object> meta);

  // The payload of a CODE frame: a size per file, in the order they were added, then the caches.
  std::string CodeCache() const;

  // Frees the source texts. V8's heap has its own copy of compiled files.
  void ReleaseSources();

  // The paths of all files, and the content of one. Undefined if there is no such file or not enough memory.
  v8::Local<v8::Array> Paths() const;
  v8::Local<v8::Value> Content(const std::string& path) const;

  bool cache_rejected() const { return cache_rejected_; }

 private:
  struct Entry {
    std::string path;
    Kind kind;
    std::string source;  // empty once V8 has it, except for JSON
    std::string cache;
    v8::Global<v8::String> text;  // of code: V8's own copy
    v8::Global<v8::Module> module;
    v8::Global<v8::UnboundScript> script;
    v8::Global<v8::Value> value;  // the export of a JSON, text, data or wasm module
  };

  // A module of the platform, such as node:buffer. JavaScript makes the object it exports.
  struct BuiltIn {
    v8::Global<v8::Module> module;
    v8::Global<v8::Object> exports;
  };

  static v8::MaybeLocal<v8::Value> EvaluateSynthetic(v8::Local<v8::Context> context, v8::Local<v8::Module> module);
  static v8::MaybeLocal<v8::Value> EvaluateBuiltIn(v8::Local<v8::Context> context, v8::Local<v8::Module> module);

  v8::MaybeLocal<v8::Module> CompileEsm(Entry& entry);
  v8::MaybeLocal<v8::Module> CompileSynthetic(v8::Local<v8::Context> context, Entry& entry);
  v8::MaybeLocal<v8::Value> MakeValue(v8::Local<v8::Context> context, Entry& entry);
  Entry* Find(v8::Local<v8::Module> module);
  // The module that a specifier refers to. Throws a TypeError that names specifier and referrer if there is none.
  v8::MaybeLocal<v8::Module> Load(v8::Local<v8::Context> context, std::string_view specifier,
                                  const std::string& referrer);
  // Empty without an exception when there is no such module; `hint` may then name an alternative.
  v8::MaybeLocal<v8::Module> LoadBuiltIn(v8::Local<v8::Context> context, std::string_view specifier, std::string* hint);
  void NoteCache(const v8::ScriptCompiler::Source& source, Entry& entry);

  v8::Isolate* const isolate_;
  std::string main_path_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> index_;
  std::unordered_multimap<int, size_t> by_identity_;
  std::map<std::string, BuiltIn> built_ins_;
  bool cache_rejected_ = false;
};

}  // namespace engine
