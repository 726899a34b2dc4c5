#include "isolate/lazy_caches.h"

#include <cstring>
#include <memory>

namespace engine {
namespace {

void AppendPart(std::string& bytes, std::string_view part) {
  const uint32_t size = static_cast<uint32_t>(part.size());
  bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
  bytes.append(part);
}

// Cuts the next part off `bytes`. False at the end, or when the bytes are malformed.
bool TakePart(std::string_view& bytes, std::string_view& part) {
  uint32_t size = 0;
  if (bytes.size() < sizeof(size)) return false;
  std::memcpy(&size, bytes.data(), sizeof(size));
  bytes.remove_prefix(sizeof(size));
  if (size > bytes.size()) return false;
  part = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return true;
}

}  // namespace

void LazyCaches::Read(std::string_view bytes) {
  caches_.clear();
  std::string_view name;
  std::string_view cache;
  while (TakePart(bytes, name) && TakePart(bytes, cache)) caches_.emplace(name, cache);
}

std::string_view LazyCaches::Find(std::string_view name) const {
  const auto found = caches_.find(name);
  return found == caches_.end() ? std::string_view() : found->second;
}

void LazyCaches::Compiled(v8::Isolate* isolate, std::string name, v8::Local<v8::Function> function) {
  if (recording_) compiled_.emplace_back(std::move(name), v8::Global<v8::Function>(isolate, function));
}

std::string LazyCaches::Write(v8::Isolate* isolate) {
  recording_ = false;
  std::string bytes;
  v8::HandleScope handles(isolate);
  for (const auto& [name, function] : compiled_) {
    const std::unique_ptr<v8::ScriptCompiler::CachedData> cache(
        v8::ScriptCompiler::CreateCodeCacheForFunction(function.Get(isolate)));
    if (cache == nullptr) continue;
    AppendPart(bytes, name);
    AppendPart(bytes, {reinterpret_cast<const char*>(cache->data), static_cast<size_t>(cache->length)});
  }
  compiled_.clear();
  return bytes;
}

}  // namespace engine
