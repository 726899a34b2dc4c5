#include "lazy_code.h"

#include <cstring>
#include <memory>

namespace engine {
namespace {

// V8 reads code in place where it is aligned so, and copies it elsewhere.
constexpr size_t kAlignment = 8;

struct Header {
  uint32_t start;
  uint32_t size;
};

size_t Padded(size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

LazyCode& LazyCode::Get() {
  static LazyCode* code = new LazyCode();
  return *code;
}

std::string_view LazyCode::Of(uint32_t start) const {
  auto found = code_.find(start);
  return found == code_.end() ? std::string_view() : found->second;
}

bool LazyCode::Open(std::string_view section) {
  while (!section.empty()) {
    Header header;
    if (section.size() < sizeof(header)) return false;
    std::memcpy(&header, section.data(), sizeof(header));
    section.remove_prefix(sizeof(header));
    if (Padded(header.size) > section.size()) return false;
    code_[header.start] = section.substr(0, header.size);
    section.remove_prefix(Padded(header.size));
  }
  return true;
}

void LazyCode::Record(v8::Isolate* isolate, uint32_t start, v8::Local<v8::Function> function) {
  if (records_) recorded_.push_back({start, v8::Global<v8::Function>(isolate, function)});
}

std::string LazyCode::Make(v8::Isolate* isolate) {
  std::string section;
  for (const Recorded& recorded : recorded_) {
    v8::HandleScope handles(isolate);
    std::unique_ptr<v8::ScriptCompiler::CachedData> code(
        v8::ScriptCompiler::CreateCodeCacheForFunction(recorded.function.Get(isolate)));
    if (code == nullptr) continue;
    Header header{recorded.start, static_cast<uint32_t>(code->length)};
    section.append(reinterpret_cast<const char*>(&header), sizeof(header));
    section.append(reinterpret_cast<const char*>(code->data), header.size);
    section.resize(Padded(section.size()));
  }
  recorded_.clear();
  records_ = false;
  return section;
}

}  // namespace engine
