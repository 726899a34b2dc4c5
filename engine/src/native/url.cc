// URL parsing by ada, whose C functions the host binary exports. https://url.spec.whatwg.org/
//
// One call returns the whole URL and the offsets of its parts. So a URL object in JavaScript is one string and nine
// numbers, and reading a part is a substring.

#include <cstring>
#include <string_view>

#include "native/arguments.h"
#include "native/native.h"

extern "C" {

struct ada_string {
  const char* data;
  size_t length;
};

struct ada_url_components {
  uint32_t protocol_end;
  uint32_t username_end;
  uint32_t host_start;
  uint32_t host_end;
  uint32_t port;
  uint32_t pathname_start;
  uint32_t search_start;
  uint32_t hash_start;
};

using ada_url = void*;

ada_url ada_parse(const char* input, size_t length);
ada_url ada_parse_with_base(const char* input, size_t length, const char* base, size_t base_length);
bool ada_can_parse(const char* input, size_t length);
bool ada_can_parse_with_base(const char* input, size_t length, const char* base, size_t base_length);
bool ada_is_valid(ada_url url);
void ada_free(ada_url url);
ada_string ada_get_href(ada_url url);
const ada_url_components* ada_get_components(ada_url url);
uint8_t ada_get_scheme_type(ada_url url);
bool ada_set_protocol(ada_url url, const char* input, size_t length);
bool ada_set_username(ada_url url, const char* input, size_t length);
bool ada_set_password(ada_url url, const char* input, size_t length);
bool ada_set_host(ada_url url, const char* input, size_t length);
bool ada_set_hostname(ada_url url, const char* input, size_t length);
bool ada_set_port(ada_url url, const char* input, size_t length);
bool ada_set_pathname(ada_url url, const char* input, size_t length);
void ada_set_search(ada_url url, const char* input, size_t length);
void ada_set_hash(ada_url url, const char* input, size_t length);

}  // extern "C"

namespace engine::native {

namespace {

constexpr char kNoMemory[] = "Not enough memory for the URL";

// Longer inputs are rejected. Parsing takes seconds per 100 MB and cannot be interrupted.
constexpr size_t kLongest = size_t{4} << 20;

// Eight offsets of ada and the kind of scheme, in the order web/url/url.js reads them.
constexpr size_t kParts = 9;

class Url final {
 public:
  explicit Url(std::string_view input) : url_(ada_parse(input.data(), input.size())) {}
  Url(std::string_view input, std::string_view base)
      : url_(ada_parse_with_base(input.data(), input.size(), base.data(), base.size())) {}
  ~Url() {
    if (url_ != nullptr) ada_free(url_);
  }
  Url(const Url&) = delete;
  Url& operator=(const Url&) = delete;

  bool valid() const { return url_ != nullptr && ada_is_valid(url_); }
  ada_url get() const { return url_; }
  std::string_view href() const {
    const ada_string href = ada_get_href(url_);
    return {href.data, href.length};
  }
  void Describe(uint32_t (&parts)[kParts]) const {
    std::memcpy(parts, ada_get_components(url_), sizeof(ada_url_components));
    parts[kParts - 1] = ada_get_scheme_type(url_);
  }

 private:
  ada_url url_;
};

static_assert(sizeof(ada_url_components) == 8 * sizeof(uint32_t));

bool IsOut(v8::Local<v8::Value> value) {
  return value->IsUint32Array() && value.As<v8::Uint32Array>()->Length() >= kParts;
}

void Return(const Arguments& args, const Url& url, v8::Local<v8::Value> out) {
  const std::string_view href = url.href();
  v8::Local<v8::String> result;
  if (href.size() > static_cast<size_t>(v8::String::kMaxLength) ||
      !v8::String::NewFromOneByte(args.GetIsolate(), reinterpret_cast<const uint8_t*>(href.data()),
                                  v8::NewStringType::kNormal, static_cast<int>(href.size()))
           .ToLocal(&result)) {
    return ThrowRangeError(args.GetIsolate(), "The URL would be too long");
  }
  uint32_t parts[kParts];
  url.Describe(parts);
  std::memcpy(WritableBytes(out.As<v8::ArrayBufferView>()).data(), parts, sizeof parts);
  args.GetReturnValue().Set(result);
}

bool IsTooLong(v8::Local<v8::Value> string) {
  return string->IsString() && static_cast<size_t>(string.As<v8::String>()->Length()) > kLongest;
}

// parseUrl(input, base | undefined, out) -> href, or undefined if it is not a URL.
void ParseUrl(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 3 || !args[0]->IsString() || !(args[1]->IsString() || args[1]->IsUndefined()) ||
      !IsOut(args[2])) {
    return ThrowTypeError(isolate, "parseUrl takes a string, a string or undefined, and a Uint32Array of nine");
  }
  if (IsTooLong(args[0]) || IsTooLong(args[1])) return;
  Utf8 input(isolate, args[0].As<v8::String>());
  if (!input.ok()) return ThrowRangeError(isolate, kNoMemory);
  if (args[1]->IsUndefined()) {
    const Url url(input.view());
    if (url.valid()) Return(args, url, args[2]);
    return;
  }
  Utf8 base(isolate, args[1].As<v8::String>());
  if (!base.ok()) return ThrowRangeError(isolate, kNoMemory);
  const Url url(input.view(), base.view());
  if (url.valid()) Return(args, url, args[2]);
}

// canParseUrl(input, base | undefined) -> boolean
void CanParseUrl(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 2 || !args[0]->IsString() || !(args[1]->IsString() || args[1]->IsUndefined())) {
    return ThrowTypeError(isolate, "canParseUrl takes a string, and a string or undefined");
  }
  if (IsTooLong(args[0]) || IsTooLong(args[1])) return args.GetReturnValue().Set(false);
  Utf8 input(isolate, args[0].As<v8::String>());
  if (!input.ok()) return ThrowRangeError(isolate, kNoMemory);
  const std::string_view text = input.view();
  if (args[1]->IsUndefined()) return args.GetReturnValue().Set(ada_can_parse(text.data(), text.size()));
  Utf8 base(isolate, args[1].As<v8::String>());
  if (!base.ok()) return ThrowRangeError(isolate, kNoMemory);
  const std::string_view from = base.view();
  args.GetReturnValue().Set(ada_can_parse_with_base(text.data(), text.size(), from.data(), from.size()));
}

// In the order of PART in web/url/url.js. A setter that rejects its value leaves the URL unchanged, as the standard
// requires.
void SetPart(ada_url url, uint32_t part, std::string_view value) {
  const char* data = value.data();
  const size_t length = value.size();
  switch (part) {
    case 0:
      return void(ada_set_protocol(url, data, length));
    case 1:
      return void(ada_set_username(url, data, length));
    case 2:
      return void(ada_set_password(url, data, length));
    case 3:
      return void(ada_set_host(url, data, length));
    case 4:
      return void(ada_set_hostname(url, data, length));
    case 5:
      return void(ada_set_port(url, data, length));
    case 6:
      return void(ada_set_pathname(url, data, length));
    case 7:
      return ada_set_search(url, data, length);
    case 8:
      return ada_set_hash(url, data, length);
  }
}

// setUrlPart(href, part, value, out) -> new href, or undefined if it would be too long.
void SetUrlPart(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 4 || !args[0]->IsString() || !args[1]->IsUint32() || !args[2]->IsString() || !IsOut(args[3])) {
    return ThrowTypeError(isolate, "setUrlPart takes a string, a number, a string and a Uint32Array of nine");
  }
  if (IsTooLong(args[0]) || IsTooLong(args[2])) return;
  Utf8 href(isolate, args[0].As<v8::String>());
  Utf8 value(isolate, args[2].As<v8::String>());
  if (!href.ok() || !value.ok()) return ThrowRangeError(isolate, kNoMemory);
  const Url url(href.view());
  if (!url.valid()) return;
  SetPart(url.get(), args[1].As<v8::Uint32>()->Value(), value.view());
  Return(args, url, args[3]);
}

constexpr Function kFunctions[] = {{"parseUrl", ParseUrl}, {"canParseUrl", CanParseUrl}, {"setUrlPart", SetUrlPart}};

}  // namespace

std::span<const Function> UrlFunctions() { return kFunctions; }

bool UrlLibraryWorks() {
  constexpr uint32_t kOmitted = 0xFFFFFFFF;
  const Url url("HTTPS://me:pw@Example.com:8443/a/../b?q=1#f");
  if (!url.valid() || url.href() != "https://me:pw@example.com:8443/b?q=1#f") return false;
  uint32_t parts[kParts];
  url.Describe(parts);
  constexpr uint32_t kExpected[kParts] = {6, 10, 13, 25, 8443, 30, 32, 36, 2};
  if (std::memcmp(parts, kExpected, sizeof parts) != 0) return false;
  const Url relative("../x", "http://a/b/c/d");
  if (!relative.valid() || relative.href() != "http://a/b/x") return false;
  relative.Describe(parts);
  if (parts[4] != kOmitted || parts[6] != kOmitted || parts[7] != kOmitted || parts[8] != 0) return false;
  SetPart(relative.get(), 7, "k=v");
  return relative.href() == "http://a/b/x?k=v" && !Url("nowhere").valid() && !ada_can_parse("//", 2);
}

}  // namespace engine::native
