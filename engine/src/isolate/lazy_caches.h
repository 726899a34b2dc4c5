// V8's code caches of built-in modules that are compiled on first use. Made once, with the snapshot.
//
// They are in the snapshot file, which no worker can write: V8 does not verify the bytecode in a cache.
#pragma once

#include <v8.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace engine {

class LazyCaches final {
 public:
  // Reads what Write() returned; the bytes must outlive this object.
  void Read(std::string_view bytes);

  // The cache of a module, empty when there is none.
  std::string_view Find(std::string_view name) const;

  // Starts to record compiled modules, by their outer functions, until Write().
  void Record() { recording_ = true; }
  bool is_recording() const { return recording_; }
  void Compiled(v8::Isolate* isolate, std::string name, v8::Local<v8::Function> function);

  // The caches of all recorded modules, including functions compiled since.
  std::string Write(v8::Isolate* isolate);

 private:
  std::map<std::string, std::string_view, std::less<>> caches_;
  std::vector<std::pair<std::string, v8::Global<v8::Function>>> compiled_;
  bool recording_ = false;
};

}  // namespace engine
