// Compression and decompression in small steps, on the zlib of the host binary. https://compression.spec.whatwg.org/
//
// The whole state of a stream is in one ArrayBuffer, including zlib's own memory. So it counts against the isolate's
// limit, is garbage collected, and nothing is kept per isolate. One step reads and writes at most 64 KB, so that a
// termination takes effect soon and a zip bomb expands only as fast as its output is read.

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "native/arguments.h"
#include "native/native.h"

namespace engine::native {

namespace {

constexpr uint32_t kMagic = 0x7a6c6962;
constexpr size_t kDeflateBytes = 320 * 1024;
constexpr size_t kInflateBytes = 64 * 1024;
constexpr size_t kMostInput = 64 * 1024;
constexpr size_t kAlignment = 64;

enum Kind : uint32_t { kDeflate, kDeflateRaw, kGzip, kKinds };
enum Status : uint32_t { kMore, kEnded, kBroken, kNoMemory };

// The beginning of the buffer. The memory that zlib allocates follows.
struct Stream {
  uint32_t magic;
  bool inflates;
  size_t size;
  size_t used;
  z_stream zlib;
};

void* Allocate(void* opaque, uInt items, uInt size) {
  Stream* stream = static_cast<Stream*>(opaque);
  const size_t bytes = (size_t{items} * size + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes > stream->size - stream->used) return nullptr;
  void* memory = reinterpret_cast<char*>(stream) + stream->used;
  stream->used += bytes;
  return memory;
}

void Free(void*, void*) {}

int WindowBits(uint32_t kind) {
  if (kind == kGzip) return 16 + MAX_WBITS;
  return kind == kDeflateRaw ? -MAX_WBITS : MAX_WBITS;
}

// zlibOpen(kind, inflates) -> ArrayBuffer
void Open(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 2 || !args[0]->IsUint32() || args[0].As<v8::Uint32>()->Value() >= kKinds ||
      !args[1]->IsBoolean()) {
    return ThrowTypeError(isolate, "zlibOpen takes a kind and a boolean");
  }
  const bool inflates = args[1]->IsTrue();
  const size_t size = inflates ? kInflateBytes : kDeflateBytes;
  v8::Local<v8::ArrayBuffer> buffer;
  if (!v8::ArrayBuffer::MaybeNew(isolate, size).ToLocal(&buffer)) {
    return ThrowRangeError(isolate, "There is not enough memory to compress or decompress");
  }
  Stream* stream = new (buffer->Data()) Stream{kMagic, inflates, size, 0, {}};
  stream->used = (sizeof(Stream) + kAlignment - 1) / kAlignment * kAlignment;
  stream->zlib.zalloc = Allocate;
  stream->zlib.zfree = Free;
  stream->zlib.opaque = stream;
  const int bits = WindowBits(args[0].As<v8::Uint32>()->Value());
  const int result = inflates
                         ? inflateInit2(&stream->zlib, bits)
                         : deflateInit2(&stream->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY);
  if (result != Z_OK) return ThrowRangeError(isolate, "There is not enough memory to compress or decompress");
  args.GetReturnValue().Set(buffer);
}

Stream* StreamOf(v8::Local<v8::Value> value) {
  if (!value->IsArrayBuffer()) return nullptr;
  const v8::Local<v8::ArrayBuffer> buffer = value.As<v8::ArrayBuffer>();
  if (buffer->ByteLength() != kInflateBytes && buffer->ByteLength() != kDeflateBytes) return nullptr;
  Stream* stream = static_cast<Stream*>(buffer->Data());
  return stream->magic == kMagic && stream->size == buffer->ByteLength() ? stream : nullptr;
}

Status StatusOf(int result) {
  if (result == Z_STREAM_END) return kEnded;
  if (result == Z_MEM_ERROR) return kNoMemory;
  return result == Z_OK || result == Z_BUF_ERROR ? kMore : kBroken;
}

// zlibReset(stream): resets an inflating stream, for the next member of a gzip file.
void Reset(const Arguments& args) {
  Stream* stream = args.Length() < 1 ? nullptr : StreamOf(args[0]);
  if (stream == nullptr || !stream->inflates) return ThrowTypeError(args.GetIsolate(), "zlibReset takes a stream");
  inflateReset(&stream->zlib);
}

// zlibStep(stream, input: Uint8Array, start, output: Uint8Array, finish, Uint32Array(3)): result[0] bytes read from
// `start` on, result[1] bytes written, result[2] a Status. Returns zlib's message about invalid data, if there is one.
void Step(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  Stream* stream = args.Length() < 6 ? nullptr : StreamOf(args[0]);
  if (stream == nullptr || !args[1]->IsUint8Array() || !args[2]->IsUint32() || !args[3]->IsUint8Array() ||
      !args[4]->IsBoolean() || !args[5]->IsUint32Array() || args[5].As<v8::Uint32Array>()->Length() < 3) {
    return ThrowTypeError(isolate, "zlibStep takes a stream, bytes, a position, bytes, a boolean and a Uint32Array");
  }
  std::span<uint8_t> output = WritableBytes(args[3].As<v8::ArrayBufferView>());
  const std::span<uint8_t> result = WritableBytes(args[5].As<v8::ArrayBufferView>());
  const ReadableBytes view(args[1].As<v8::ArrayBufferView>());
  std::span<const uint8_t> input = view.bytes();
  input = input.subspan(std::min<size_t>(args[2].As<v8::Uint32>()->Value(), input.size()));
  const bool last = args[4]->IsTrue() && input.size() <= kMostInput;
  input = input.first(std::min(input.size(), kMostInput));
  output = output.first(std::min(output.size(), kMostInput));
  z_stream& zlib = stream->zlib;
  zlib.next_in = const_cast<uint8_t*>(input.data());
  zlib.avail_in = static_cast<uInt>(input.size());
  zlib.next_out = output.data();
  zlib.avail_out = static_cast<uInt>(output.size());
  const int flush = last ? Z_FINISH : Z_NO_FLUSH;
  const int code = stream->inflates ? inflate(&zlib, Z_NO_FLUSH) : deflate(&zlib, flush);
  const uint32_t counts[3] = {static_cast<uint32_t>(input.size()) - zlib.avail_in,
                              static_cast<uint32_t>(output.size()) - zlib.avail_out, StatusOf(code)};
  zlib.next_in = nullptr;
  zlib.next_out = nullptr;
  std::memcpy(result.data(), counts, sizeof counts);
  v8::Local<v8::String> message;
  if (counts[2] == kBroken && zlib.msg != nullptr && v8::String::NewFromUtf8(isolate, zlib.msg).ToLocal(&message)) {
    args.GetReturnValue().Set(message);
  }
}

constexpr Function kFunctions[] = {{"zlibOpen", Open}, {"zlibReset", Reset}, {"zlibStep", Step}};

}  // namespace

std::span<const Function> CompressFunctions() { return kFunctions; }

}  // namespace engine::native
