// Base64 between one-byte strings. https://infra.spec.whatwg.org/#forgiving-base64

#include <array>

#include "native/arguments.h"
#include "native/native.h"

namespace engine::native {

namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kInvalid = 0xFF;
constexpr uint8_t kSpace = 0xFE;
constexpr uint8_t kPadding = 0xFD;

constexpr std::array<uint8_t, 256> kValues = [] {
  std::array<uint8_t, 256> values{};
  values.fill(kInvalid);
  for (uint8_t i = 0; i < 64; ++i) values[static_cast<uint8_t>(kAlphabet[i])] = i;
  for (const char space : {'\t', '\n', '\f', '\r', ' '}) values[static_cast<uint8_t>(space)] = kSpace;
  values['='] = kPadding;
  return values;
}();

constexpr ptrdiff_t kMalformed = -1;

// Writes the decoded bytes over the start of the input and returns their number, or kMalformed. Decoding never writes
// past what it has read, so one buffer is enough.
ptrdiff_t DecodeInPlace(uint8_t* data, size_t length) {
  uint32_t bits = 0;
  size_t digits = 0;
  size_t padding = 0;
  size_t written = 0;
  for (size_t i = 0; i < length; ++i) {
    const uint8_t value = kValues[data[i]];
    if (value == kSpace) continue;
    if (value == kPadding) {
      ++padding;
      continue;
    }
    if (value == kInvalid || padding > 0) return kMalformed;
    bits = bits << 6 | value;
    if (++digits % 4 == 0) {
      data[written++] = static_cast<uint8_t>(bits >> 16);
      data[written++] = static_cast<uint8_t>(bits >> 8);
      data[written++] = static_cast<uint8_t>(bits);
    }
  }
  const size_t rest = digits % 4;
  if (rest == 1) return kMalformed;
  if (padding > 0 && (padding > 2 || (digits + padding) % 4 != 0)) return kMalformed;
  if (rest == 2) data[written++] = static_cast<uint8_t>(bits >> 4);
  if (rest == 3) {
    data[written++] = static_cast<uint8_t>(bits >> 10);
    data[written++] = static_cast<uint8_t>(bits >> 2);
  }
  return static_cast<ptrdiff_t>(written);
}

void EncodeTo(const uint8_t* from, size_t length, uint8_t* to) {
  size_t i = 0;
  for (; i + 3 <= length; i += 3) {
    const uint32_t bits = static_cast<uint32_t>(from[i]) << 16 | from[i + 1] << 8 | from[i + 2];
    *to++ = kAlphabet[bits >> 18];
    *to++ = kAlphabet[bits >> 12 & 63];
    *to++ = kAlphabet[bits >> 6 & 63];
    *to++ = kAlphabet[bits & 63];
  }
  if (length - i == 1) {
    *to++ = kAlphabet[from[i] >> 2];
    *to++ = kAlphabet[from[i] << 4 & 63];
    *to++ = '=';
    *to++ = '=';
  } else if (length - i == 2) {
    const uint32_t bits = from[i] << 8 | from[i + 1];
    *to++ = kAlphabet[bits >> 10];
    *to++ = kAlphabet[bits >> 4 & 63];
    *to++ = kAlphabet[bits << 2 & 63];
    *to++ = '=';
  }
}

void ReturnOneByte(const Arguments& args, const uint8_t* data, size_t length) {
  if (length == 0) return args.GetReturnValue().SetEmptyString();
  v8::Local<v8::String> result;
  if (!v8::String::NewFromOneByte(args.GetIsolate(), data, v8::NewStringType::kNormal, static_cast<int>(length))
           .ToLocal(&result)) {
    return ThrowRangeError(args.GetIsolate(), "The string would be too long");
  }
  args.GetReturnValue().Set(result);
}

constexpr char kNoMemoryToDecode[] = "Not enough memory to decode the string";
constexpr char kNoMemoryToEncode[] = "Not enough memory to encode the string";

// atob(string) -> string, or undefined if it is not base64.
void Atob(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 1 || !args[0]->IsString()) return ThrowTypeError(isolate, "atob takes a string");
  const v8::Local<v8::String> string = args[0].As<v8::String>();
  if (IsBeyondMemory(isolate, string)) return ThrowRangeError(isolate, kNoMemoryToDecode);
  if (!string->ContainsOnlyOneByte()) return;
  const size_t length = static_cast<size_t>(string->Length());
  Scratch<uint8_t> data(length);
  if (!data.ok()) return ThrowRangeError(isolate, kNoMemoryToDecode);
  string->WriteOneByteV2(isolate, 0, static_cast<uint32_t>(length), data.data());
  const ptrdiff_t decoded = DecodeInPlace(data.data(), length);
  if (decoded != kMalformed) ReturnOneByte(args, data.data(), static_cast<size_t>(decoded));
}

// btoa(string) -> string, or undefined if a character is above U+00FF.
void Btoa(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 1 || !args[0]->IsString()) return ThrowTypeError(isolate, "btoa takes a string");
  const v8::Local<v8::String> string = args[0].As<v8::String>();
  if (IsBeyondMemory(isolate, string)) return ThrowRangeError(isolate, kNoMemoryToEncode);
  if (!string->ContainsOnlyOneByte()) return;
  const size_t length = static_cast<size_t>(string->Length());
  const size_t encoded = (length + 2) / 3 * 4;
  if (encoded > static_cast<size_t>(v8::String::kMaxLength)) {
    return ThrowRangeError(isolate, "The string would be too long");
  }
  Scratch<uint8_t> from(length);
  Scratch<uint8_t> to(encoded);
  if (!from.ok() || !to.ok()) return ThrowRangeError(isolate, kNoMemoryToEncode);
  string->WriteOneByteV2(isolate, 0, static_cast<uint32_t>(length), from.data());
  EncodeTo(from.data(), length, to.data());
  ReturnOneByte(args, to.data(), encoded);
}

constexpr Function kFunctions[] = {{"atob", Atob}, {"btoa", Btoa}};

}  // namespace

std::span<const Function> Base64Functions() { return kFunctions; }

}  // namespace engine::native
