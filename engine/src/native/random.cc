// Random bytes from OpenSSL's generator in the host binary, which is seeded by the kernel.

#include <openssl/rand.h>

#include <algorithm>
#include <climits>

#include "native/arguments.h"
#include "native/native.h"

namespace engine::native {

namespace {

bool Fill(std::span<uint8_t> bytes) {
  while (!bytes.empty()) {
    const size_t part = std::min(bytes.size(), static_cast<size_t>(INT_MAX));
    if (RAND_bytes(bytes.data(), static_cast<int>(part)) != 1) return false;
    bytes = bytes.subspan(part);
  }
  return true;
}

// fillRandom(view)
void FillRandom(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 1 || !args[0]->IsArrayBufferView()) return ThrowTypeError(isolate, "fillRandom takes a view");
  if (!Fill(WritableBytes(args[0].As<v8::ArrayBufferView>()))) ThrowRangeError(isolate, "No randomness available");
}

// randomUUID() -> string. https://www.rfc-editor.org/rfc/rfc9562#name-uuid-version-4
void RandomUuid(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  uint8_t bytes[16];
  if (!Fill(bytes)) return ThrowRangeError(isolate, "No randomness available");
  bytes[6] = static_cast<uint8_t>((bytes[6] & 0x0F) | 0x40);
  bytes[8] = static_cast<uint8_t>((bytes[8] & 0x3F) | 0x80);
  constexpr char kHex[] = "0123456789abcdef";
  uint8_t text[36];
  size_t at = 0;
  for (size_t i = 0; i < sizeof bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text[at++] = '-';
    text[at++] = static_cast<uint8_t>(kHex[bytes[i] >> 4]);
    text[at++] = static_cast<uint8_t>(kHex[bytes[i] & 15]);
  }
  v8::Local<v8::String> uuid;
  if (v8::String::NewFromOneByte(isolate, text, v8::NewStringType::kNormal, sizeof text).ToLocal(&uuid)) {
    args.GetReturnValue().Set(uuid);
  }
}

constexpr Function kFunctions[] = {{"fillRandom", FillRandom}, {"randomUUID", RandomUuid}};

}  // namespace

std::span<const Function> RandomFunctions() { return kFunctions; }

}  // namespace engine::native
