// zlib, gzip and raw deflate for node:zlib.

#include <zlib.h>

#include <new>
#include <utility>
#include <vector>

#include "native/codec.h"

namespace engine::native {
namespace {

constexpr uint8_t kGzipMagic[] = {0x1f, 0x8b};

const char* CodeOf(int result) {
  switch (result) {
    case Z_NEED_DICT:
      return "Z_NEED_DICT";
    case Z_STREAM_ERROR:
      return "Z_STREAM_ERROR";
    case Z_DATA_ERROR:
      return "Z_DATA_ERROR";
    case Z_MEM_ERROR:
      return "Z_MEM_ERROR";
    case Z_BUF_ERROR:
      return "Z_BUF_ERROR";
    default:
      return "Z_ERRNO";
  }
}

class ZlibCodec final : public Codec {
 public:
  ZlibCodec(v8::ArrayBuffer::Allocator* allocator, CodecKind kind, std::span<const uint8_t> dictionary)
      : Codec(allocator), kind_(kind), dictionary_(dictionary.begin(), dictionary.end()) {
    zlib_.zalloc = [](void* opaque, uInt items, uInt size) {
      return CodecMemory::AllocateFor(opaque, size_t{items} * size);
    };
    zlib_.zfree = CodecMemory::FreeFor;
    zlib_.opaque = &memory_;
  }

  ~ZlibCodec() override {
    if (!open_) return;
    if (Deflates()) {
      deflateEnd(&zlib_);
    } else {
      inflateEnd(&zlib_);
    }
  }

  bool Open(const ZlibSettings& settings) {
    const int bits = WindowBits(settings.window_bits);
    one_member_ = settings.one_member;
    open_ =
        (Deflates() ? deflateInit2(&zlib_, settings.level, Z_DEFLATED, bits, settings.memory_level, settings.strategy)
                    : inflateInit2(&zlib_, bits)) == Z_OK;
    return open_ && UseDictionary();
  }

  CodecStep Step(std::span<const uint8_t> input, std::span<uint8_t> output, int flush) override {
    zlib_.next_in = const_cast<uint8_t*>(input.data());
    zlib_.avail_in = static_cast<uInt>(input.size());
    zlib_.next_out = output.data();
    zlib_.avail_out = static_cast<uInt>(output.size());
    zlib_.msg = nullptr;
    const int result = Deflates() ? deflate(&zlib_, flush) : Inflate(flush);
    CodecStep step{input.size() - zlib_.avail_in, output.size() - zlib_.avail_out};
    zlib_.next_in = nullptr;
    zlib_.next_out = nullptr;
    if (result == Z_STREAM_END) {
      step.status = CodecStatus::kEnded;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      step.status = CodecStatus::kFailed;
      step.code = CodeOf(result);
      step.number = result;
      step.message = MessageOf(result);
    }
    return step;
  }

  bool Reset() override {
    seen_magic_ = 0;
    return (Deflates() ? deflateReset(&zlib_) : inflateReset(&zlib_)) == Z_OK && UseDictionary();
  }

  bool SetParams(int level, int strategy) override {
    if (!Deflates()) return true;  // as in Node
    // Without room for output, zlib would change its parameters only after the data that it holds. JavaScript has
    // flushed before.
    uint8_t nothing = 0;
    zlib_.next_in = &nothing;
    zlib_.avail_in = 0;
    zlib_.next_out = &nothing;
    zlib_.avail_out = 0;
    const int result = deflateParams(&zlib_, level, strategy);
    return result == Z_OK || result == Z_BUF_ERROR;
  }

 private:
  bool Deflates() const {
    return kind_ == CodecKind::kDeflate || kind_ == CodecKind::kGzip || kind_ == CodecKind::kDeflateRaw;
  }

  int WindowBits(int bits) const {
    switch (kind_) {
      case CodecKind::kGzip:
      case CodecKind::kGunzip:
        return bits + 16;
      case CodecKind::kUnzip:
        return bits + 32;  // zlib looks at the data
      case CodecKind::kDeflateRaw:
      case CodecKind::kInflateRaw:
        return -bits;
      default:
        return bits;
    }
  }

  // A zlib stream says itself when it needs its dictionary; raw data cannot.
  bool UseDictionary() {
    if (dictionary_.empty()) return true;
    const uInt size = static_cast<uInt>(dictionary_.size());
    if (kind_ == CodecKind::kDeflate || kind_ == CodecKind::kDeflateRaw) {
      return deflateSetDictionary(&zlib_, dictionary_.data(), size) == Z_OK;
    }
    if (kind_ == CodecKind::kInflateRaw) return inflateSetDictionary(&zlib_, dictionary_.data(), size) == Z_OK;
    return true;
  }

  int Inflate(int flush) {
    LookForGzip();
    int result = inflate(&zlib_, flush);
    if (result == Z_NEED_DICT && !dictionary_.empty()) {
      const int set = inflateSetDictionary(&zlib_, dictionary_.data(), static_cast<uInt>(dictionary_.size()));
      if (set == Z_OK) result = inflate(&zlib_, flush);
    }
    // A gzip file may have several members. Zeros after one are padding.
    while (result == Z_STREAM_END && kind_ == CodecKind::kGunzip && !one_member_ && zlib_.avail_in > 0 &&
           zlib_.next_in[0] != 0) {
      if (inflateReset(&zlib_) != Z_OK) return Z_STREAM_ERROR;
      result = inflate(&zlib_, flush);
    }
    return result;
  }

  // Only gzip has members, so it matters what an unzipping codec has found.
  void LookForGzip() {
    if (kind_ != CodecKind::kUnzip) return;
    for (uInt at = 0; at < zlib_.avail_in && kind_ == CodecKind::kUnzip; at++) {
      if (zlib_.next_in[at] != kGzipMagic[seen_magic_]) {
        kind_ = CodecKind::kInflate;
      } else if (++seen_magic_ == 2) {
        kind_ = CodecKind::kGunzip;
      }
    }
  }

  const char* MessageOf(int result) const {
    if (zlib_.msg != nullptr) return zlib_.msg;
    if (result == Z_NEED_DICT) return dictionary_.empty() ? "Missing dictionary" : "Bad dictionary";
    return "Zlib error";
  }

  CodecKind kind_;
  const std::vector<uint8_t> dictionary_;
  z_stream zlib_{};
  bool open_ = false;
  bool one_member_ = false;
  int seen_magic_ = 0;  // bytes, of an unzipping codec
};

}  // namespace

std::unique_ptr<Codec> MakeZlib(v8::ArrayBuffer::Allocator* allocator, CodecKind kind, const ZlibSettings& settings,
                                std::span<const uint8_t> dictionary) {
  auto codec = std::make_unique<ZlibCodec>(allocator, kind, dictionary);
  if (!codec->Open(settings)) return nullptr;
  return codec;
}

}  // namespace engine::native
