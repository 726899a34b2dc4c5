// Brotli for node:zlib. The host binary exports the library but has no header for it, so the functions are declared
// here.

#include <algorithm>
#include <vector>

#include "native/codec.h"

extern "C" {
struct BrotliEncoderStateStruct;
struct BrotliDecoderStateStruct;
struct BrotliEncoderPreparedDictionaryStruct;
using BrotliAllocate = void* (*)(void* opaque, size_t size);
using BrotliFree = void (*)(void* opaque, void* memory);
BrotliEncoderStateStruct* BrotliEncoderCreateInstance(BrotliAllocate, BrotliFree, void* opaque);
void BrotliEncoderDestroyInstance(BrotliEncoderStateStruct*);
int BrotliEncoderSetParameter(BrotliEncoderStateStruct*, int parameter, uint32_t value);
int BrotliEncoderCompressStream(BrotliEncoderStateStruct*, int operation, size_t* available_in, const uint8_t** next_in,
                                size_t* available_out, uint8_t** next_out, size_t* total_out);
int BrotliEncoderIsFinished(BrotliEncoderStateStruct*);
BrotliEncoderPreparedDictionaryStruct* BrotliEncoderPrepareDictionary(int type, size_t size, const uint8_t* data,
                                                                      int quality, BrotliAllocate, BrotliFree,
                                                                      void* opaque);
void BrotliEncoderDestroyPreparedDictionary(BrotliEncoderPreparedDictionaryStruct*);
int BrotliEncoderAttachPreparedDictionary(BrotliEncoderStateStruct*, const BrotliEncoderPreparedDictionaryStruct*);
BrotliDecoderStateStruct* BrotliDecoderCreateInstance(BrotliAllocate, BrotliFree, void* opaque);
void BrotliDecoderDestroyInstance(BrotliDecoderStateStruct*);
int BrotliDecoderSetParameter(BrotliDecoderStateStruct*, int parameter, uint32_t value);
int BrotliDecoderAttachDictionary(BrotliDecoderStateStruct*, int type, size_t size, const uint8_t* data);
int BrotliDecoderDecompressStream(BrotliDecoderStateStruct*, size_t* available_in, const uint8_t** next_in,
                                  size_t* available_out, uint8_t** next_out, size_t* total_out);
int BrotliDecoderGetErrorCode(const BrotliDecoderStateStruct*);
const char* BrotliDecoderErrorString(int code);
}

namespace engine::native {
namespace {

// The parameters of the encoder that matter here: BROTLI_PARAM_QUALITY, LGWIN, LGBLOCK,
// LARGE_WINDOW.
constexpr int kQuality = 1;
constexpr int kWindowBits = 2;
constexpr int kBlockBits = 3;
constexpr int kLargeWindow = 6;
constexpr uint32_t kDefaultWindowBits = 22;
constexpr uint32_t kLeastWindowBits = 10;
constexpr uint32_t kMostWindowBits = 24;
constexpr uint32_t kMostLargeWindowBits = 30;
constexpr uint32_t kSlowQuality = 10;  // from here on a block takes a millisecond for each kilobyte
constexpr uint32_t kSlowBlockBits = 16;
constexpr uint32_t kMostBlockBits = 18;
constexpr int kBestQuality = 11;
constexpr int kRawDictionary = 0;  // BROTLI_SHARED_DICTIONARY_RAW
constexpr int kDecoderFailed = 0;  // BROTLI_DECODER_RESULT_ERROR
constexpr int kDecoderEnded = 1;   // BROTLI_DECODER_RESULT_SUCCESS

// What an encoder allocates at most: its window twice, a tree or table of positions, and the commands of a block.
size_t NeededBytes(uint32_t quality, uint32_t window_bits) {
  const size_t window = size_t{1} << window_bits;
  return 2 * window + (quality >= kSlowQuality ? 8 * window : std::min<size_t>(4 * window, 33 << 20)) + (6 << 20);
}

// The library ends the process when it gets no memory. So an encoder starts only if the memory is there, with a smaller
// window if need be, and one that got more than the limit allows all the same is closed at once.
class BrotliEncoder final : public Codec {
 public:
  BrotliEncoder(v8::ArrayBuffer::Allocator* allocator, std::span<const CodecParameter> parameters,
                std::span<const uint8_t> dictionary)
      : Codec(allocator),
        parameters_(parameters.begin(), parameters.end()),
        dictionary_(dictionary.begin(), dictionary.end()) {}
  ~BrotliEncoder() override {
    Close();
    if (prepared_ != nullptr) BrotliEncoderDestroyPreparedDictionary(prepared_);
  }

  bool Reset() override {
    Close();
    uint32_t quality = kBestQuality;
    uint32_t window_bits = kDefaultWindowBits;
    uint32_t most_window_bits = kMostWindowBits;
    uint32_t block_bits = 0;
    for (const CodecParameter& parameter : parameters_) {
      if (parameter.key == kQuality) quality = parameter.value;
      if (parameter.key == kWindowBits) window_bits = parameter.value;
      if (parameter.key == kBlockBits) block_bits = parameter.value;
      if (parameter.key == kLargeWindow && parameter.value != 0) most_window_bits = kMostLargeWindowBits;
    }
    window_bits = std::clamp(window_bits, kLeastWindowBits, most_window_bits);
    while (window_bits > kLeastWindowBits && !memory_.Has(NeededBytes(quality, window_bits))) window_bits--;
    if (!memory_.Has(NeededBytes(quality, window_bits))) return false;
    state_ = BrotliEncoderCreateInstance(CodecMemory::AllocateAlwaysFor, CodecMemory::FreeFor, &memory_);
    if (state_ == nullptr) return false;
    for (const CodecParameter& parameter : parameters_) {
      if (parameter.key == kBlockBits || parameter.key == kWindowBits) continue;
      if (BrotliEncoderSetParameter(state_, parameter.key, parameter.value) == 0) return false;
    }
    if (BrotliEncoderSetParameter(state_, kWindowBits, window_bits) == 0) return false;
    // The encoder works on one block at a time and cannot be interrupted meanwhile.
    const uint32_t most = quality >= kSlowQuality ? kSlowBlockBits : kMostBlockBits;
    if (block_bits > 0 || quality >= kSlowQuality) block_bits = block_bits == 0 ? most : std::min(block_bits, most);
    return BrotliEncoderSetParameter(state_, kBlockBits, block_bits) != 0 && UseDictionary();
  }

  CodecStep Step(std::span<const uint8_t> input, std::span<uint8_t> output, int flush) override {
    size_t available_in = input.size();
    size_t available_out = output.size();
    const uint8_t* next_in = input.data();
    uint8_t* next_out = output.data();
    const bool worked =
        state_ != nullptr &&
        BrotliEncoderCompressStream(state_, flush, &available_in, &next_in, &available_out, &next_out, nullptr) != 0 &&
        !memory_.is_overdrawn();
    CodecStep step{input.size() - available_in, output.size() - available_out};
    if (!worked) {
      step.status = CodecStatus::kFailed;
      step.code = "ERR_BROTLI_COMPRESSION_FAILED";
      step.number = -1;
      step.message = "Compression failed";
      Close();
    } else if (BrotliEncoderIsFinished(state_) != 0) {
      step.status = CodecStatus::kEnded;
    }
    return step;
  }

 private:
  void Close() {
    if (state_ != nullptr) BrotliEncoderDestroyInstance(state_);
    state_ = nullptr;
  }

  bool UseDictionary() {
    if (dictionary_.empty()) return true;
    if (prepared_ == nullptr) {
      prepared_ = BrotliEncoderPrepareDictionary(kRawDictionary, dictionary_.size(), dictionary_.data(), kBestQuality,
                                                 CodecMemory::AllocateAlwaysFor, CodecMemory::FreeFor, &memory_);
    }
    return prepared_ != nullptr && BrotliEncoderAttachPreparedDictionary(state_, prepared_) != 0;
  }

  const std::vector<CodecParameter> parameters_;
  const std::vector<uint8_t> dictionary_;
  BrotliEncoderPreparedDictionaryStruct* prepared_ = nullptr;
  BrotliEncoderStateStruct* state_ = nullptr;
};

class BrotliDecoder final : public Codec {
 public:
  BrotliDecoder(v8::ArrayBuffer::Allocator* allocator, std::span<const CodecParameter> parameters,
                std::span<const uint8_t> dictionary)
      : Codec(allocator),
        parameters_(parameters.begin(), parameters.end()),
        dictionary_(dictionary.begin(), dictionary.end()) {}
  ~BrotliDecoder() override { Close(); }

  bool Reset() override {
    Close();
    state_ = BrotliDecoderCreateInstance(CodecMemory::AllocateFor, CodecMemory::FreeFor, &memory_);
    if (state_ == nullptr) return false;
    if (!dictionary_.empty() &&
        BrotliDecoderAttachDictionary(state_, kRawDictionary, dictionary_.size(), dictionary_.data()) == 0) {
      return false;
    }
    return std::ranges::all_of(parameters_, [&](const CodecParameter& parameter) {
      return BrotliDecoderSetParameter(state_, parameter.key, parameter.value) != 0;
    });
  }

  CodecStep Step(std::span<const uint8_t> input, std::span<uint8_t> output, int) override {
    size_t available_in = input.size();
    size_t available_out = output.size();
    const uint8_t* next_in = input.data();
    uint8_t* next_out = output.data();
    const int result =
        BrotliDecoderDecompressStream(state_, &available_in, &next_in, &available_out, &next_out, nullptr);
    CodecStep step{input.size() - available_in, output.size() - available_out};
    if (result == kDecoderFailed) {
      step.status = CodecStatus::kFailed;
      step.number = BrotliDecoderGetErrorCode(state_);
      step.code = std::string("ERR_") + BrotliDecoderErrorString(step.number);
      step.message = "Decompression failed";
    } else if (result == kDecoderEnded) {
      step.status = CodecStatus::kEnded;
    }
    return step;
  }

 private:
  void Close() {
    if (state_ != nullptr) BrotliDecoderDestroyInstance(state_);
    state_ = nullptr;
  }

  const std::vector<CodecParameter> parameters_;
  const std::vector<uint8_t> dictionary_;
  BrotliDecoderStateStruct* state_ = nullptr;
};

}  // namespace

std::unique_ptr<Codec> MakeBrotli(v8::ArrayBuffer::Allocator* allocator, bool encodes,
                                  std::span<const CodecParameter> parameters, std::span<const uint8_t> dictionary) {
  std::unique_ptr<Codec> codec;
  if (encodes) {
    codec = std::make_unique<BrotliEncoder>(allocator, parameters, dictionary);
  } else {
    codec = std::make_unique<BrotliDecoder>(allocator, parameters, dictionary);
  }
  if (!codec->Reset()) return nullptr;
  return codec;
}

}  // namespace engine::native
