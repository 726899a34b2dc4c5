// Conversions between strings and UTF-8 or UTF-16. https://encoding.spec.whatwg.org/
//
// V8's decoder replaces malformed input as the standard requires (one U+FFFD per maximal subpart), so only the option
// "fatal" is added here.

#include <cstring>
#include <memory>

#include "native/arguments.h"
#include "native/native.h"

namespace engine::native {

namespace {

constexpr char kTooLong[] = "The decoded string would be too long";
constexpr char kNoMemory[] = "Not enough memory for the encoded string";
constexpr int kReplace = v8::String::WriteFlags::kReplaceInvalidUtf8;

// The length of the well-formed sequence at `at`; 0 if there is none.
size_t SequenceLength(std::span<const uint8_t> bytes, size_t at) {
  const uint8_t lead = bytes[at];
  if (lead < 0x80) return 1;
  const size_t left = bytes.size() - at;
  const auto continues = [&](size_t offset, uint8_t low, uint8_t high) {
    return offset < left && bytes[at + offset] >= low && bytes[at + offset] <= high;
  };
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1, 0x80, 0xBF) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const uint8_t low = lead == 0xE0 ? 0xA0 : 0x80;   // below: overlong
    const uint8_t high = lead == 0xED ? 0x9F : 0xBF;  // above: surrogates
    return continues(1, low, high) && continues(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const uint8_t low = lead == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xF4 ? 0x8F : 0xBF;  // above: beyond U+10FFFF
    return continues(1, low, high) && continues(2, 0x80, 0xBF) && continues(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

bool IsWellFormed(std::span<const uint8_t> bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    uint64_t eight;
    if (bytes.size() - at >= sizeof eight) {
      std::memcpy(&eight, bytes.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const size_t length = SequenceLength(bytes, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

// encodeUtf8(string) -> Uint8Array
void EncodeUtf8(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 1 || !args[0]->IsString()) return ThrowTypeError(isolate, "encodeUtf8 takes a string");
  const v8::Local<v8::String> string = args[0].As<v8::String>();
  if (IsBeyondMemory(isolate, string)) return ThrowRangeError(isolate, kNoMemory);
  const size_t length = string->Utf8LengthV2(isolate);
  v8::Local<v8::ArrayBuffer> buffer;
  if (!v8::ArrayBuffer::MaybeNew(isolate, length, v8::BackingStoreInitializationMode::kUninitialized)
           .ToLocal(&buffer)) {
    return ThrowRangeError(isolate, kNoMemory);
  }
  if (length > 0) string->WriteUtf8V2(isolate, static_cast<char*>(buffer->Data()), length, kReplace);
  args.GetReturnValue().Set(v8::Uint8Array::New(buffer, 0, length));
}

// encodeInto(string, Uint8Array, Uint32Array(2)): result[0] UTF-16 units read, result[1] bytes written.
void EncodeInto(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 3 || !args[0]->IsString() || !args[1]->IsUint8Array() || !args[2]->IsUint32Array() ||
      args[2].As<v8::Uint32Array>()->Length() < 2) {
    return ThrowTypeError(isolate, "encodeInto takes a string, a Uint8Array and a Uint32Array of two");
  }
  const std::span<uint8_t> target = WritableBytes(args[1].As<v8::ArrayBufferView>());
  size_t read = 0;
  size_t written = 0;
  if (!target.empty()) {
    written = args[0].As<v8::String>()->WriteUtf8V2(isolate, reinterpret_cast<char*>(target.data()), target.size(),
                                                    kReplace, &read);
  }
  const uint32_t result[2] = {static_cast<uint32_t>(read), static_cast<uint32_t>(written)};
  std::memcpy(WritableBytes(args[2].As<v8::ArrayBufferView>()).data(), result, sizeof result);
}

// utf8Length(string) -> number
void Utf8Length(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 1 || !args[0]->IsString()) return ThrowTypeError(isolate, "utf8Length takes a string");
  args.GetReturnValue().Set(static_cast<double>(args[0].As<v8::String>()->Utf8LengthV2(isolate)));
}

// decodeUtf8(view, fatal, ignoreBOM) -> string. Throws TypeError if fatal and malformed.
void DecodeUtf8(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 3 || !args[0]->IsArrayBufferView() || !args[1]->IsBoolean() || !args[2]->IsBoolean()) {
    return ThrowTypeError(isolate, "decodeUtf8 takes a view and two booleans");
  }
  const ReadableBytes view(args[0].As<v8::ArrayBufferView>());
  std::span<const uint8_t> bytes = view.bytes();
  if (args[1]->IsTrue() && !IsWellFormed(bytes)) return ThrowTypeError(isolate, "Failed to decode input.");
  constexpr uint8_t kByteOrderMark[] = {0xEF, 0xBB, 0xBF};
  if (args[2]->IsFalse() && bytes.size() >= 3 && std::memcmp(bytes.data(), kByteOrderMark, 3) == 0) {
    bytes = bytes.subspan(3);
  }
  if (bytes.empty()) return args.GetReturnValue().SetEmptyString();
  if (bytes.size() > static_cast<size_t>(v8::String::kMaxLength)) return ThrowRangeError(isolate, kTooLong);
  v8::Local<v8::String> string;
  if (!v8::String::NewFromUtf8(isolate, reinterpret_cast<const char*>(bytes.data()), v8::NewStringType::kNormal,
                               static_cast<int>(bytes.size()))
           .ToLocal(&string)) {
    return ThrowRangeError(isolate, kTooLong);
  }
  args.GetReturnValue().Set(string);
}

// decodeLatin1(view) -> string: each byte is a code point.
void DecodeLatin1(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 1 || !args[0]->IsArrayBufferView()) return ThrowTypeError(isolate, "decodeLatin1 takes a view");
  const ReadableBytes view(args[0].As<v8::ArrayBufferView>());
  const std::span<const uint8_t> bytes = view.bytes();
  if (bytes.empty()) return args.GetReturnValue().SetEmptyString();
  if (bytes.size() > static_cast<size_t>(v8::String::kMaxLength)) return ThrowRangeError(isolate, kTooLong);
  v8::Local<v8::String> string;
  if (!v8::String::NewFromOneByte(isolate, bytes.data(), v8::NewStringType::kNormal, static_cast<int>(bytes.size()))
           .ToLocal(&string)) {
    return ThrowRangeError(isolate, kTooLong);
  }
  args.GetReturnValue().Set(string);
}

// decodeUtf16(view, bigEndian) -> string of the code units unchanged, without an odd last byte.
void DecodeUtf16(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 2 || !args[0]->IsArrayBufferView() || !args[1]->IsBoolean()) {
    return ThrowTypeError(isolate, "decodeUtf16 takes a view and a boolean");
  }
  const ReadableBytes view(args[0].As<v8::ArrayBufferView>());
  const std::span<const uint8_t> bytes = view.bytes();
  const size_t length = bytes.size() / 2;
  if (length == 0) return args.GetReturnValue().SetEmptyString();
  if (length > static_cast<size_t>(v8::String::kMaxLength)) return ThrowRangeError(isolate, kTooLong);
  Scratch<uint16_t> units(length);
  if (!units.ok()) return ThrowRangeError(isolate, kTooLong);
  const size_t high = args[1]->IsTrue() ? 0 : 1;
  for (size_t i = 0; i < length; ++i) {
    units.data()[i] = static_cast<uint16_t>(bytes[2 * i + high] << 8 | bytes[2 * i + 1 - high]);
  }
  v8::Local<v8::String> string;
  if (!v8::String::NewFromTwoByte(isolate, units.data(), v8::NewStringType::kNormal, static_cast<int>(length))
           .ToLocal(&string)) {
    return ThrowRangeError(isolate, kTooLong);
  }
  args.GetReturnValue().Set(string);
}

constexpr Function kFunctions[] = {
    {"encodeUtf8", EncodeUtf8}, {"encodeInto", EncodeInto},     {"utf8Length", Utf8Length},
    {"decodeUtf8", DecodeUtf8}, {"decodeLatin1", DecodeLatin1}, {"decodeUtf16", DecodeUtf16},
};

}  // namespace

std::span<const Function> TextFunctions() { return kFunctions; }

}  // namespace engine::native
