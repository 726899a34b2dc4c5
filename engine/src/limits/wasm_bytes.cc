#include "limits/wasm_bytes.h"

#include <cstddef>

namespace engine {
namespace {

constexpr size_t kHeader = 8;  // magic number and version
constexpr uint8_t kMemorySection = 5;
constexpr uint8_t kCodeSection = 10;
constexpr uint64_t kMaxFunction = 512 * 1024;

// Flags of a memory's limits
constexpr uint64_t kHasMaximum = 1;
constexpr uint64_t kIsShared = 2;
constexpr uint64_t kHasPageSize = 8;

class Reader final {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool has_more() const { return at_ < bytes_.size(); }
  bool failed() const { return failed_; }

  uint8_t Byte() {
    if (!has_more()) {
      failed_ = true;
      return 0;
    }
    return bytes_[at_++];
  }

  // https://webassembly.github.io/spec/core/binary/values.html#integers
  uint64_t Number() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = Byte();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    failed_ = true;
    return 0;
  }

  std::span<const uint8_t> Take(uint64_t size) {
    if (size > bytes_.size() - at_) {
      failed_ = true;
      return {};
    }
    const auto taken = bytes_.subspan(at_, size);
    at_ += size;
    return taken;
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

bool HasShared(std::span<const uint8_t> section) {
  Reader reader(section);
  for (uint64_t left = reader.Number(); left > 0 && !reader.failed(); left--) {
    const uint64_t flags = reader.Number();
    if ((flags & kIsShared) != 0) return true;
    reader.Number();
    if ((flags & kHasMaximum) != 0) reader.Number();
    if ((flags & kHasPageSize) != 0) reader.Number();
  }
  return false;
}

bool HasAny(std::span<const uint8_t> section) { return Reader(section).Number() > 0; }

bool HasHugeFunction(std::span<const uint8_t> section) {
  Reader reader(section);
  for (uint64_t left = reader.Number(); left > 0 && !reader.failed(); left--) {
    const uint64_t size = reader.Number();
    if (size > kMaxFunction) return true;
    reader.Take(size);
  }
  return false;
}

bool AnySection(std::span<const uint8_t> module, uint8_t kind, bool (*fits)(std::span<const uint8_t>)) {
  Reader reader(module);
  reader.Take(kHeader);
  while (reader.has_more() && !reader.failed()) {
    const uint8_t id = reader.Byte();
    const auto section = reader.Take(reader.Number());
    if (id == kind && fits(section)) return true;
  }
  return false;
}

}  // namespace

std::string WhyRefused(std::span<const uint8_t> module) {
  if (AnySection(module, kMemorySection, HasShared)) return "declares shared memory; a module may only import it";
  if (AnySection(module, kCodeSection, HasHugeFunction)) {
    return "has a function of more than " + std::to_string(kMaxFunction >> 10) + " KB";
  }
  return {};
}

bool DeclaresMemory(std::span<const uint8_t> module) { return AnySection(module, kMemorySection, HasAny); }

}  // namespace engine
