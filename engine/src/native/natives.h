// The functions that the web platform's JavaScript gets from C++ as the object `native`. Workers never see it.
#pragma once

#include <v8.h>

#include <cstdint>
#include <string_view>

#include "isolate/lazy_caches.h"

namespace engine {

// The source of the web platform's bundle. All isolates share this text: the snapshot refers to it by one of the
// external references below instead of containing a copy. It outlives all isolates.
class BundleText final : public v8::String::ExternalOneByteStringResource {
 public:
  static BundleText& Get();

  // `lazy` follows the bundle: a table in the first line, then the sources of the modules. `caches` are their V8 code
  // caches, as LazyCaches::Write returned them.
  void Set(std::string_view text, std::string_view lazy, std::string_view caches) {
    text_ = text;
    caches_.Read(caches);
    const size_t line = lazy.find('\n');
    lazy_table_ = lazy.substr(0, line);
    lazy_texts_ = line == std::string_view::npos ? std::string_view() : lazy.substr(line + 1);
  }
  std::string_view lazy_table() const { return lazy_table_; }
  std::string_view lazy_texts() const { return lazy_texts_; }
  LazyCaches& caches() { return caches_; }
  const char* data() const override { return text_.data(); }
  size_t length() const override { return text_.size(); }
  void Dispose() override {}

 private:
  std::string_view text_;
  std::string_view lazy_table_;
  std::string_view lazy_texts_;
  LazyCaches caches_;
};

// The template of the object `native`, used while the snapshot is made.
v8::Local<v8::ObjectTemplate> NativeTemplate(v8::Isolate* isolate);

// The addresses of all native functions and of the bundle's text, by which V8 resolves references in the snapshot.
const intptr_t* ExternalReferences();

}  // namespace engine
