// Compression in small steps, for node:zlib: zlib, Brotli and Zstandard of the host binary.
//
// One step reads and writes at most 64 KB, so that a termination takes effect soon and a zip bomb expands only as fast
// as its output is read. The memory of a codec comes from the isolate's allocator of array buffers and counts against
// its limit. Codecs belong to a realm, which frees them when JavaScript closes or forgets them.
#pragma once

#include <v8.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace engine::native {

// The numbers that Node gives to the directions and formats (`zlib.constants`).
enum class CodecKind : uint32_t {
  kDeflate = 1,
  kInflate,
  kGzip,
  kGunzip,
  kDeflateRaw,
  kInflateRaw,
  kUnzip,
  kBrotliDecode,
  kBrotliEncode,
  kZstdCompress,
  kZstdDecompress,
};

// Memory of one codec, counted against the limit of its isolate.
class CodecMemory final {
 public:
  explicit CodecMemory(v8::ArrayBuffer::Allocator* allocator) : allocator_(allocator) {}
  CodecMemory(const CodecMemory&) = delete;
  CodecMemory& operator=(const CodecMemory&) = delete;

  // Null if the limit does not allow it.
  void* Allocate(size_t size);
  // Allocates beyond the limit too, for a library that ends the process when it gets no memory.
  void* AllocateAlways(size_t size);
  void Free(void* memory);
  // True if so much memory is there now.
  bool Has(size_t size);
  bool is_overdrawn() const { return overdrawn_ > 0; }

  // For the libraries; `opaque` is a CodecMemory.
  static void* AllocateFor(void* opaque, size_t size) { return static_cast<CodecMemory*>(opaque)->Allocate(size); }
  static void FreeFor(void* opaque, void* memory) { static_cast<CodecMemory*>(opaque)->Free(memory); }
  static void* AllocateAlwaysFor(void* opaque, size_t size) {
    return static_cast<CodecMemory*>(opaque)->AllocateAlways(size);
  }

 private:
  v8::ArrayBuffer::Allocator* const allocator_;
  size_t overdrawn_ = 0;  // bytes that the limit did not allow
};

enum class CodecStatus : uint32_t { kMore, kEnded, kFailed };

struct CodecStep {
  size_t taken = 0;
  size_t given = 0;
  CodecStatus status = CodecStatus::kMore;
  // If it failed: Node's code, its number and a message.
  std::string code = {};
  int number = 0;
  std::string message = {};
};

class Codec {
 public:
  virtual ~Codec() = default;
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  // `flush` is a number of the format's library: Z_FINISH, BROTLI_OPERATION_FLUSH, ZSTD_e_end.
  virtual CodecStep Step(std::span<const uint8_t> input, std::span<uint8_t> output, int flush) = 0;
  // The next steps read `size` bytes, and the last of them has this flush. Lets a format write its size into its head.
  virtual void Expect(size_t, int) {}
  // Starts over, with the same settings. False if that is impossible.
  virtual bool Reset() = 0;
  // Changes level and strategy, which only zlib can.
  virtual bool SetParams(int, int) { return false; }

  // What V8 should assume that it holds, to decide when to collect garbage.
  size_t cost() const { return 128 * 1024; }

 protected:
  explicit Codec(v8::ArrayBuffer::Allocator* allocator) : memory_(allocator) {}

  CodecMemory memory_;
};

struct ZlibSettings {
  int level, window_bits, memory_level, strategy;
  bool one_member;  // what follows the first member of a gzip file does not belong to it
};

// A parameter of Brotli or Zstandard.
struct CodecParameter {
  int key;
  uint32_t value;
};

// Null if the settings are refused or the memory does not suffice.
std::unique_ptr<Codec> MakeZlib(v8::ArrayBuffer::Allocator* allocator, CodecKind kind, const ZlibSettings& settings,
                                std::span<const uint8_t> dictionary);
std::unique_ptr<Codec> MakeBrotli(v8::ArrayBuffer::Allocator* allocator, bool encodes,
                                  std::span<const CodecParameter> parameters, std::span<const uint8_t> dictionary);
std::unique_ptr<Codec> MakeZstd(v8::ArrayBuffer::Allocator* allocator, bool compresses,
                                std::span<const CodecParameter> parameters, std::span<const uint8_t> dictionary);

}  // namespace engine::native
