// Zstandard for node:zlib. The host binary exports the library but has no header for it, so the functions are declared
// here.

#include <vector>

#include "native/codec.h"

extern "C" {
struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;
struct ZSTD_customMem {
  void* (*allocate)(void* opaque, size_t size);
  void (*free)(void* opaque, void* memory);
  void* opaque;
};
struct ZSTD_inBuffer {
  const void* data;
  size_t size;
  size_t position;
};
struct ZSTD_outBuffer {
  void* data;
  size_t size;
  size_t position;
};
ZSTD_CCtx_s* ZSTD_createCCtx_advanced(ZSTD_customMem);
size_t ZSTD_freeCCtx(ZSTD_CCtx_s*);
size_t ZSTD_CCtx_setParameter(ZSTD_CCtx_s*, int parameter, int value);
size_t ZSTD_CCtx_setPledgedSrcSize(ZSTD_CCtx_s*, unsigned long long size);
size_t ZSTD_CCtx_loadDictionary(ZSTD_CCtx_s*, const void* data, size_t size);
size_t ZSTD_CCtx_reset(ZSTD_CCtx_s*, int what);
size_t ZSTD_compressStream2(ZSTD_CCtx_s*, ZSTD_outBuffer*, ZSTD_inBuffer*, int operation);
ZSTD_DCtx_s* ZSTD_createDCtx_advanced(ZSTD_customMem);
size_t ZSTD_freeDCtx(ZSTD_DCtx_s*);
size_t ZSTD_DCtx_setParameter(ZSTD_DCtx_s*, int parameter, int value);
size_t ZSTD_DCtx_loadDictionary(ZSTD_DCtx_s*, const void* data, size_t size);
size_t ZSTD_DCtx_reset(ZSTD_DCtx_s*, int what);
size_t ZSTD_decompressStream(ZSTD_DCtx_s*, ZSTD_outBuffer*, ZSTD_inBuffer*);
unsigned ZSTD_isError(size_t result);
int ZSTD_getErrorCode(size_t result);
const char* ZSTD_getErrorString(int code);
}

namespace engine::native {
namespace {

constexpr int kResetSession = 1;  // ZSTD_reset_session_only
constexpr int kEnd = 2;           // ZSTD_e_end
constexpr int kWorkers = 400;     // ZSTD_c_nbWorkers, and after it the other settings of threads
constexpr int kThreadSettings = 3;
// Ours: the two halves of the size of the input.
constexpr int kInputSizeLow = 10000;
constexpr int kInputSizeHigh = 10001;

void Fail(CodecStep* step, size_t result) {
  step->status = CodecStatus::kFailed;
  step->number = ZSTD_getErrorCode(result);
  step->message = ZSTD_getErrorString(step->number);  // JavaScript knows the name of the code
}

class ZstdCompressor final : public Codec {
 public:
  explicit ZstdCompressor(v8::ArrayBuffer::Allocator* allocator) : Codec(allocator) {}
  ~ZstdCompressor() override { ZSTD_freeCCtx(context_); }

  bool Open(std::span<const CodecParameter> parameters, std::span<const uint8_t> dictionary) {
    context_ = ZSTD_createCCtx_advanced({CodecMemory::AllocateFor, CodecMemory::FreeFor, &memory_});
    if (context_ == nullptr) return false;
    uint64_t input_size = 0;
    bool knows_size = false;
    for (const auto& [key, value] : parameters) {
      if (key == kInputSizeLow || key == kInputSizeHigh) {
        input_size |= uint64_t{value} << (key == kInputSizeHigh ? 32 : 0);
        knows_size = true;
        continue;
      }
      // An engine starts no threads for a worker. The format of the output is the same without.
      if (key >= kWorkers && key < kWorkers + kThreadSettings) continue;
      if (ZSTD_isError(ZSTD_CCtx_setParameter(context_, key, static_cast<int>(value)))) return false;
    }
    begun_ = knows_size;
    if (knows_size && ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(context_, input_size))) return false;
    return dictionary.empty() ||
           !ZSTD_isError(ZSTD_CCtx_loadDictionary(context_, dictionary.data(), dictionary.size()));
  }

  CodecStep Step(std::span<const uint8_t> input, std::span<uint8_t> output, int flush) override {
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    ZSTD_outBuffer out{output.data(), output.size(), 0};
    begun_ = true;
    const size_t left = ZSTD_compressStream2(context_, &out, &in, flush);
    CodecStep step{in.position, out.position};
    if (ZSTD_isError(left)) {
      Fail(&step, left);
    } else if (flush == kEnd && left == 0) {
      step.status = CodecStatus::kEnded;
    }
    return step;
  }

  // Given all input at once, the library does the same.
  void Expect(size_t size, int flush) override {
    if (!begun_ && flush == kEnd) ZSTD_CCtx_setPledgedSrcSize(context_, size);
  }

  bool Reset() override {
    begun_ = false;
    return !ZSTD_isError(ZSTD_CCtx_reset(context_, kResetSession));
  }

 private:
  ZSTD_CCtx_s* context_ = nullptr;
  bool begun_ = false;
};

class ZstdDecompressor final : public Codec {
 public:
  explicit ZstdDecompressor(v8::ArrayBuffer::Allocator* allocator) : Codec(allocator) {}
  ~ZstdDecompressor() override { ZSTD_freeDCtx(context_); }

  bool Open(std::span<const CodecParameter> parameters, std::span<const uint8_t> dictionary) {
    context_ = ZSTD_createDCtx_advanced({CodecMemory::AllocateFor, CodecMemory::FreeFor, &memory_});
    if (context_ == nullptr) return false;
    for (const auto& [key, value] : parameters) {
      if (ZSTD_isError(ZSTD_DCtx_setParameter(context_, key, static_cast<int>(value)))) return false;
    }
    return dictionary.empty() ||
           !ZSTD_isError(ZSTD_DCtx_loadDictionary(context_, dictionary.data(), dictionary.size()));
  }

  CodecStep Step(std::span<const uint8_t> input, std::span<uint8_t> output, int) override {
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    ZSTD_outBuffer out{output.data(), output.size(), 0};
    const size_t left = ZSTD_decompressStream(context_, &out, &in);
    CodecStep step{in.position, out.position};
    if (ZSTD_isError(left)) {
      Fail(&step, left);
    } else if (left == 0) {
      step.status = CodecStatus::kEnded;  // of a frame; another may follow
    }
    return step;
  }

  bool Reset() override { return !ZSTD_isError(ZSTD_DCtx_reset(context_, kResetSession)); }

 private:
  ZSTD_DCtx_s* context_ = nullptr;
};

}  // namespace

std::unique_ptr<Codec> MakeZstd(v8::ArrayBuffer::Allocator* allocator, bool compresses,
                                std::span<const CodecParameter> parameters, std::span<const uint8_t> dictionary) {
  if (compresses) {
    auto compressor = std::make_unique<ZstdCompressor>(allocator);
    if (compressor->Open(parameters, dictionary)) return compressor;
  } else {
    auto decompressor = std::make_unique<ZstdDecompressor>(allocator);
    if (decompressor->Open(parameters, dictionary)) return decompressor;
  }
  return nullptr;
}

}  // namespace engine::native
