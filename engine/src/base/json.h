// Writes JSON objects field by field, for descriptions sent to Python. V8 parses JSON.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace engine {

class JsonObject final {
 public:
  JsonObject& Text(std::string_view key, std::string_view value) {
    Key(key);
    Quote(value);
    return *this;
  }
  JsonObject& Number(std::string_view key, uint64_t value) { return Raw(key, std::to_string(value)); }
  JsonObject& Bool(std::string_view key, bool value) { return Raw(key, value ? "true" : "false"); }
  JsonObject& Raw(std::string_view key, std::string_view json) {
    Key(key);
    text_ += json;
    return *this;
  }
  std::string Done() { return text_ + "}"; }

  // A JSON string literal of UTF-8 text.
  static std::string Quoted(std::string_view value) {
    JsonObject object;
    object.text_.clear();
    object.Quote(value);
    return object.text_;
  }

 private:
  void Key(std::string_view key) {
    if (text_.size() > 1) text_ += ',';
    Quote(key);
    text_ += ':';
  }
  void Quote(std::string_view value) {
    text_ += '"';
    for (unsigned char c : value) {
      if (c == '"' || c == '\\') {
        text_ += '\\';
        text_ += static_cast<char>(c);
      } else if (c < 0x20) {
        char escaped[8];
        std::snprintf(escaped, sizeof(escaped), "\\u%04x", c);
        text_ += escaped;
      } else {
        text_ += static_cast<char>(c);
      }
    }
    text_ += '"';
  }

  std::string text_ = "{";
};

}  // namespace engine
