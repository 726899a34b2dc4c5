// Reads and writes frames as bytes, with bounds checks. It does not depend on V8, so it is fuzzed alone (engine/fuzz).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "link/wire.gen.h"

namespace engine::wire {

// Reads little-endian integers and byte ranges from a payload. After a read past the end, `ok()` stays false and every
// further read returns zero or nothing, so a parser checks once at its end.
class Reader final {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  uint8_t U8() { return Integer<uint8_t>(); }
  uint16_t U16() { return Integer<uint16_t>(); }
  uint32_t U32() { return Integer<uint32_t>(); }
  uint64_t U64() { return Integer<uint64_t>(); }

  std::string_view Bytes(size_t count) {
    if (count > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::string_view Rest() { return Bytes(bytes_.size()); }

  bool ok() const { return ok_; }
  bool empty() const { return bytes_.empty(); }

 private:
  template <typename T>
  T Integer() {
    T value{};
    std::string_view taken = Bytes(sizeof(T));
    if (ok_) std::memcpy(&value, taken.data(), sizeof(T));
    return value;
  }

  std::string_view bytes_;
  bool ok_ = true;
};

// A frame whose payload is still in the buffer it was read into.
struct FrameView {
  Header header;
  std::string_view payload;

  Frame kind() const { return static_cast<Frame>(header.kind); }
};

// Splits a byte stream into frames. The caller reads the socket into Space() and reports the byte count to Filled().
class FrameReader final {
 public:
  struct Span {
    char* data;
    size_t size;
  };

  Span Space() {
    size_t wanted = std::max<size_t>(kMinimumRead, missing_);
    if (buffer_.size() - end_ < wanted) {
      if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
      if (buffer_.size() - end_ < wanted) buffer_.resize(end_ + wanted);
    }
    return {buffer_.data() + end_, buffer_.size() - end_};
  }
  void Filled(size_t count) { end_ += count; }

  // The next complete frame, valid until the next Space(); nothing when more bytes are needed or the stream is broken.
  std::optional<FrameView> Next() {
    if (broken_ || end_ - begin_ < sizeof(Header)) return std::nullopt;
    FrameView frame;
    std::memcpy(&frame.header, buffer_.data() + begin_, sizeof(Header));
    if (frame.header.length > kMaxPayload || frame.header.spare != 0) {
      broken_ = true;
      return std::nullopt;
    }
    size_t whole = sizeof(Header) + frame.header.length;
    if (end_ - begin_ < whole) {
      missing_ = whole - (end_ - begin_);
      return std::nullopt;
    }
    missing_ = 0;
    frame.payload = {buffer_.data() + begin_ + sizeof(Header), frame.header.length};
    begin_ += whole;
    if (begin_ == end_) begin_ = end_ = 0;
    return frame;
  }
  bool broken() const { return broken_; }

 private:
  static constexpr size_t kMinimumRead = 64 * 1024;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t missing_ = 0;
  bool broken_ = false;
};

// The parts of a CALL payload.
struct CallParts {
  Event event;
  uint8_t hops;
  std::string_view head;
  std::string_view body;
};

inline std::optional<CallParts> ParseCall(std::string_view payload) {
  Reader reader(payload);
  CallParts parts;
  parts.event = static_cast<Event>(reader.U8());
  parts.hops = reader.U8();
  reader.Bytes(2);
  uint32_t length = reader.U32();
  if (length > kMaxHead) return std::nullopt;
  parts.head = reader.Bytes(length);
  parts.body = reader.Rest();
  if (!reader.ok()) return std::nullopt;
  return parts;
}

// The payload of REPLY, and of LOAD after its tenant: a JSON description and the bytes it describes.
struct MetaParts {
  std::string_view meta;
  std::string_view body;
};

inline std::optional<MetaParts> ParseMeta(std::string_view payload) {
  Reader reader(payload);
  uint32_t length = reader.U32();
  MetaParts parts;
  parts.meta = reader.Bytes(length);
  parts.body = reader.Rest();
  if (!reader.ok()) return std::nullopt;
  return parts;
}

struct LoadParts {
  std::string_view tenant;
  std::string_view rest;
};

inline std::optional<LoadParts> ParseLoad(std::string_view payload) {
  std::optional<MetaParts> parts = ParseMeta(payload);  // the tenant is preceded by its length, like the description
  if (!parts) return std::nullopt;
  return LoadParts{parts->meta, parts->body};
}

// Builds frames one after the other in one buffer. Begin() writes a header, the Put functions the payload, and End()
// sets the length. A frame must be ended before the next begins.
class Writer final {
 public:
  void Begin(Frame kind, uint8_t flags, uint32_t worker, uint32_t call) {
    start_ = bytes_.size();
    Header header{0, static_cast<uint8_t>(kind), flags, 0, worker, call};
    bytes_.append(reinterpret_cast<const char*>(&header), sizeof(header));
  }
  void U16(uint16_t value) { Raw(&value, sizeof(value)); }
  void U32(uint32_t value) { Raw(&value, sizeof(value)); }
  void F64(double value) { Raw(&value, sizeof(value)); }
  void Bytes(std::string_view bytes) { bytes_.append(bytes); }
  // Room for `count` bytes, to be written in place.
  char* Reserve(size_t count) {
    bytes_.resize(bytes_.size() + count);
    return bytes_.data() + bytes_.size() - count;
  }
  void End() {
    uint32_t length = static_cast<uint32_t>(bytes_.size() - start_ - sizeof(Header));
    std::memcpy(bytes_.data() + start_ + offsetof(Header, length), &length, sizeof(length));
    end_ = bytes_.size();
  }
  void Whole(Frame kind, uint8_t flags, uint32_t worker, uint32_t call, std::string_view payload) {
    Begin(kind, flags, worker, call);
    Bytes(payload);
    End();
  }

  // The head of a frame whose payload the caller sends right behind these bytes.
  void Head(Frame kind, uint32_t worker, uint32_t call, size_t length) {
    Begin(kind, 0, worker, call);
    const uint32_t size = static_cast<uint32_t>(length);
    std::memcpy(bytes_.data() + start_ + offsetof(Header, length), &size, sizeof(size));
  }

  // Like Whole(), but appends the payload to the last frame if that has the same kind and call, no flags, and room. So
  // thousands of tiny chunks cost Python one frame.
  void Extend(Frame kind, uint32_t worker, uint32_t call, std::string_view payload, size_t most) {
    if (CanExtend(kind, worker, call, payload.size(), most)) {
      Bytes(payload);
      End();
    } else {
      Whole(kind, 0, worker, call, payload);
    }
  }

  // Puts a frame before others that were written since `at`, and returns its size.
  size_t Insert(size_t at, Frame kind, uint32_t worker, uint32_t call, std::string_view payload) {
    const Header header{static_cast<uint32_t>(payload.size()), static_cast<uint8_t>(kind), 0, 0, worker, call};
    const size_t size = sizeof(header) + payload.size();
    const size_t behind = bytes_.size() - at;
    bytes_.resize(bytes_.size() + size);
    std::memmove(bytes_.data() + at + size, bytes_.data() + at, behind);
    std::memcpy(bytes_.data() + at, &header, sizeof(header));
    std::memcpy(bytes_.data() + at + sizeof(header), payload.data(), payload.size());
    if (behind == 0) {
      start_ = at;
      end_ = bytes_.size();
    } else {
      start_ += size;
      end_ += size;
    }
    return size;
  }

  std::string& bytes() { return bytes_; }
  bool empty() const { return bytes_.empty(); }

 private:
  void Raw(const void* data, size_t size) { bytes_.append(static_cast<const char*>(data), size); }
  bool CanExtend(Frame kind, uint32_t worker, uint32_t call, size_t size, size_t most) const {
    if (bytes_.empty() || end_ != bytes_.size()) return false;
    Header last;
    std::memcpy(&last, bytes_.data() + start_, sizeof(last));
    return last.kind == static_cast<uint8_t>(kind) && last.flags == 0 && last.worker == worker && last.call == call &&
           last.length + size <= most;
  }

  std::string bytes_;
  size_t start_ = 0;
  size_t end_ = 0;  // of the last complete frame
};

}  // namespace engine::wire
