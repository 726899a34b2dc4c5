// V8's code caches of the modules that are read when somebody asks for them: compiled once, when the snapshot is made.
//
// They are in the snapshot's file, which no worker can write: V8 does not verify the bytecode in a cache.
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
  // Takes apart what Write() gave; the bytes must outlive this.
  void Read(std::string_view bytes);

  // The cache of a module, empty when there is none.
  std::string_view Find(std::string_view name) const;

  // From now on compiled modules are remembered, by their outer functions, until Write().
  void Record() { recording_ = true; }
  bool is_recording() const { return recording_; }
  void Compiled(v8::Isolate* isolate, std::string name, v8::Local<v8::Function> function);

  // The caches of all that were remembered, with what of them has run by now.
  std::string Write(v8::Isolate* isolate);

 private:
  std::map<std::string, std::string_view, std::less<>> caches_;
  std::vector<std::pair<std::string, v8::Global<v8::Function>>> compiled_;
  bool recording_ = false;
};

}  // namespace engine
