// Decoding of legacy encodings, for JavaScript.
//
// A decoder's state is eight bytes that JavaScript keeps between calls. JavaScript passes the input in pieces of
// bounded size, so that no call takes long.

#include <cstring>

#include "native/arguments.h"
#include "native/legacy_decoder.h"
#include "native/native.h"

namespace engine::native {

namespace {

// A one-byte string if all units are Latin-1, which halves its memory. Overwrites the units.
v8::MaybeLocal<v8::String> MakeString(v8::Isolate* isolate, uint16_t* units, size_t length) {
  if (length > static_cast<size_t>(v8::String::kMaxLength)) return {};
  uint16_t all = 0;
  for (size_t i = 0; i < length; ++i) all |= units[i];
  const int count = static_cast<int>(length);
  if (all > 0xFF) return v8::String::NewFromTwoByte(isolate, units, v8::NewStringType::kNormal, count);
  uint8_t* narrow = reinterpret_cast<uint8_t*>(units);
  for (size_t i = 0; i < length; ++i) narrow[i] = static_cast<uint8_t>(units[i]);
  return v8::String::NewFromOneByte(isolate, narrow, v8::NewStringType::kNormal, count);
}

// legacyEncoding(name) -> number, or undefined
void LegacyEncoding(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 1 || !args[0]->IsString()) return ThrowTypeError(isolate, "legacyEncoding takes a string");
  Utf8 name(isolate, args[0].As<v8::String>());
  if (!name.ok()) return;
  if (const std::optional<uint32_t> number = LegacyEncodingNumber(name.view())) args.GetReturnValue().Set(*number);
}

// decodeLegacy(number, view, state: Uint8Array(8), fatal, flush) -> string. Throws TypeError if fatal and malformed.
void DecodeLegacy(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 5 || !args[0]->IsUint32() || !IsLegacyEncoding(args[0].As<v8::Uint32>()->Value()) ||
      !args[1]->IsArrayBufferView() || !args[2]->IsUint8Array() ||
      args[2].As<v8::Uint8Array>()->ByteLength() != sizeof(LegacyState) || !args[3]->IsBoolean() ||
      !args[4]->IsBoolean()) {
    return ThrowTypeError(isolate, "decodeLegacy takes a number, a view, a state and two booleans");
  }
  const std::span<uint8_t> kept = WritableBytes(args[2].As<v8::ArrayBufferView>());
  const ReadableBytes view(args[1].As<v8::ArrayBufferView>());
  const std::span<const uint8_t> bytes = view.bytes();
  LegacyState state;
  std::memcpy(&state, kept.data(), sizeof state);
  Scratch<uint16_t> units(LegacyRoom(bytes.size()));
  if (!units.ok()) return ThrowRangeError(isolate, "There is not enough memory to decode");
  const std::optional<size_t> written = DecodeLegacyBytes(args[0].As<v8::Uint32>()->Value(), state, bytes, units.data(),
                                                          args[3]->IsTrue(), args[4]->IsTrue());
  if (!written) return ThrowTypeError(isolate, "The data is not valid in this encoding");
  std::memcpy(kept.data(), &state, sizeof state);
  const v8::MaybeLocal<v8::String> string = MakeString(isolate, units.data(), *written);
  v8::Local<v8::String> result;
  if (!string.ToLocal(&result)) return ThrowRangeError(isolate, "The text is longer than a string can be");
  args.GetReturnValue().Set(result);
}

constexpr Function kFunctions[] = {{"legacyEncoding", LegacyEncoding}, {"decodeLegacy", DecodeLegacy}};

}  // namespace

std::span<const Function> EncodingFunctions() { return kFunctions; }

}  // namespace engine::native
