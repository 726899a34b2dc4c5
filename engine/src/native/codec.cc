#include "native/codec.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "isolate/errors.h"
#include "isolate/realm.h"
#include "native/arguments.h"
#include "native/native.h"

namespace engine::native {

namespace {

// Precedes each allocation, and keeps what follows aligned.
struct alignas(16) Prefix {
  size_t size;
  bool overdrawn;
};

constexpr size_t kMostBytes = 64 * 1024;

}  // namespace

void* CodecMemory::Allocate(size_t size) {
  const size_t bytes = size + sizeof(Prefix);
  if (bytes < size) return nullptr;
  auto* prefix = static_cast<Prefix*>(allocator_->AllocateUninitialized(bytes));
  if (prefix == nullptr) return nullptr;
  *prefix = {bytes, false};
  return prefix + 1;
}

void* CodecMemory::AllocateAlways(size_t size) {
  if (void* memory = Allocate(size)) return memory;
  auto* prefix = static_cast<Prefix*>(std::malloc(size + sizeof(Prefix)));
  if (prefix == nullptr) return nullptr;
  *prefix = {size + sizeof(Prefix), true};
  overdrawn_ += prefix->size;
  return prefix + 1;
}

bool CodecMemory::Has(size_t size) {
  void* memory = Allocate(size);
  Free(memory);
  return memory != nullptr;
}

void CodecMemory::Free(void* memory) {
  if (memory == nullptr) return;
  Prefix* prefix = static_cast<Prefix*>(memory) - 1;
  if (!prefix->overdrawn) return allocator_->Free(prefix, prefix->size);
  overdrawn_ -= prefix->size;
  std::free(prefix);
}

namespace {

Realm* RealmOf(const Arguments& args) {
  void* realm = args.GetIsolate()->GetData(0);  // null while the snapshot is made
  return static_cast<Realm*>(realm);
}

std::shared_ptr<Codec> CodecOf(const Arguments& args) {
  Realm* realm = RealmOf(args);
  return realm == nullptr || args.Length() < 1 ? nullptr : realm->codecs().Find(args[0]);
}

// codecOpen(kind, Int32Array, Uint8Array | undefined) -> handle, or undefined if the settings are refused or the memory
// does not suffice. The settings of zlib are level, window bits, memory level, strategy and one_member; of others: key,
// value, ….
void Open(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  Realm* realm = RealmOf(args);
  if (realm == nullptr || args.Length() < 3 || !args[0]->IsUint32() || !args[1]->IsInt32Array() ||
      !(args[2]->IsUint8Array() || args[2]->IsUndefined())) {
    return ThrowTypeError(isolate, "codecOpen takes a kind, an Int32Array and bytes");
  }
  const std::span<uint8_t> raw = WritableBytes(args[1].As<v8::ArrayBufferView>());
  std::vector<int32_t> numbers(std::min<size_t>(raw.size() / sizeof(int32_t), 64));
  std::memcpy(numbers.data(), raw.data(), numbers.size() * sizeof(int32_t));
  std::span<const uint8_t> dictionary;
  if (args[2]->IsUint8Array()) dictionary = WritableBytes(args[2].As<v8::ArrayBufferView>());
  std::vector<CodecParameter> parameters;
  for (size_t at = 0; at + 1 < numbers.size(); at += 2) {
    parameters.push_back({numbers[at], static_cast<uint32_t>(numbers[at + 1])});
  }

  v8::ArrayBuffer::Allocator* allocator = isolate->GetArrayBufferAllocator();
  const auto kind = static_cast<CodecKind>(args[0].As<v8::Uint32>()->Value());
  std::unique_ptr<Codec> codec;
  switch (kind) {
    case CodecKind::kBrotliEncode:
    case CodecKind::kBrotliDecode:
      codec = MakeBrotli(allocator, kind == CodecKind::kBrotliEncode, parameters, dictionary);
      break;
    case CodecKind::kZstdCompress:
    case CodecKind::kZstdDecompress:
      codec = MakeZstd(allocator, kind == CodecKind::kZstdCompress, parameters, dictionary);
      break;
    case CodecKind::kDeflate:
    case CodecKind::kInflate:
    case CodecKind::kGzip:
    case CodecKind::kGunzip:
    case CodecKind::kDeflateRaw:
    case CodecKind::kInflateRaw:
    case CodecKind::kUnzip:
      if (numbers.size() == 5) {
        codec =
            MakeZlib(allocator, kind, {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4] != 0}, dictionary);
      }
      break;
  }
  if (codec != nullptr) args.GetReturnValue().Set(realm->codecs().Add(isolate, std::move(codec)));
}

// codecStep(handle, input: Uint8Array, start, output: Uint8Array, flush, Uint32Array(3)): result[0] bytes read from
// `start` on, result[1] bytes written, result[2] a CodecStatus. Returns "code\nnumber\nmessage" if it failed. `flush`
// counts only if the step reaches the end of the input; until then it is 0, which means none in every format.
void Step(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  const std::shared_ptr<Codec> codec = CodecOf(args);
  if (codec == nullptr || args.Length() < 6 || !args[1]->IsUint8Array() || !args[2]->IsUint32() ||
      !args[3]->IsUint8Array() || !args[4]->IsInt32() || !args[5]->IsUint32Array() ||
      args[5].As<v8::Uint32Array>()->Length() < 3) {
    return ThrowTypeError(isolate, "codecStep takes a codec, bytes, a position, bytes, a number and a Uint32Array");
  }
  std::span<uint8_t> output = WritableBytes(args[3].As<v8::ArrayBufferView>());
  const std::span<uint8_t> result = WritableBytes(args[5].As<v8::ArrayBufferView>());
  const ReadableBytes view(args[1].As<v8::ArrayBufferView>());
  std::span<const uint8_t> input = view.bytes();
  input = input.subspan(std::min<size_t>(args[2].As<v8::Uint32>()->Value(), input.size()));
  int flush = args[4].As<v8::Int32>()->Value();
  if (input.size() > kMostBytes) {
    codec->Expect(input.size(), flush);
    flush = 0;
  }
  input = input.first(std::min(input.size(), kMostBytes));
  output = output.first(std::min(output.size(), kMostBytes));
  const CodecStep step = codec->Step(input, output, flush);
  const uint32_t counts[3] = {static_cast<uint32_t>(step.taken), static_cast<uint32_t>(step.given),
                              static_cast<uint32_t>(step.status)};
  std::memcpy(result.data(), counts, sizeof counts);
  if (step.status == CodecStatus::kFailed) {
    args.GetReturnValue().Set(ToV8(isolate, step.code + "\n" + std::to_string(step.number) + "\n" + step.message));
  }
}

// codecReset(handle) -> boolean
void Reset(const Arguments& args) {
  const std::shared_ptr<Codec> codec = CodecOf(args);
  if (codec == nullptr) return ThrowTypeError(args.GetIsolate(), "codecReset takes a codec");
  args.GetReturnValue().Set(codec->Reset());
}

// codecParams(handle, level, strategy) -> boolean
void Params(const Arguments& args) {
  const std::shared_ptr<Codec> codec = CodecOf(args);
  if (codec == nullptr || args.Length() < 3 || !args[1]->IsInt32() || !args[2]->IsInt32()) {
    return ThrowTypeError(args.GetIsolate(), "codecParams takes a codec and two numbers");
  }
  args.GetReturnValue().Set(codec->SetParams(args[1].As<v8::Int32>()->Value(), args[2].As<v8::Int32>()->Value()));
}

// codecClose(handle): frees its memory at once.
void Close(const Arguments& args) {
  if (Realm* realm = RealmOf(args); realm != nullptr && args.Length() > 0) realm->codecs().Remove(args[0]);
}

constexpr Function kFunctions[] = {
    {"codecOpen", Open}, {"codecStep", Step}, {"codecReset", Reset}, {"codecParams", Params}, {"codecClose", Close}};

}  // namespace

std::span<const Function> CodecFunctions() { return kFunctions; }

}  // namespace engine::native
