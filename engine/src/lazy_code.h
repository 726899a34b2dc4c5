// The bytecode of the modules that are read when they are asked for: made once with the snapshot and kept in its file,
// so that no isolate parses their text again.
#pragma once

#include <v8.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace engine {

class LazyCode final {
 public:
  static LazyCode& Get();

  // The code of the module whose text begins at `start`; empty if there is none.
  std::string_view Of(uint32_t start) const;

  // Reads what Make() wrote, which must stay in memory. False if it is something else.
  bool Open(std::string_view section);

  // While the snapshot is made: what was compiled, and then the code of all of it, with what has run of it since.
  void StartRecording() { records_ = true; }
  bool records() const { return records_; }
  void Record(v8::Isolate* isolate, uint32_t start, v8::Local<v8::Function> function);
  std::string Make(v8::Isolate* isolate);

 private:
  struct Recorded {
    uint32_t start;
    v8::Global<v8::Function> function;
  };

  bool records_ = false;
  std::vector<Recorded> recorded_;
  std::unordered_map<uint32_t, std::string_view> code_;
};

}  // namespace engine
