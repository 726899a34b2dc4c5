// The legacy decoders of the Encoding standard. https://encoding.spec.whatwg.org/#legacy-single-byte-encodings and on
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace engine::native {

// What a decoder remembers from one byte to the next; all zero in the beginning.
struct LegacyState {
  uint8_t first;  // "lead" of most
  uint8_t second;
  uint8_t third;
  bool jis0212;
  uint8_t mode;  // of ISO-2022-JP
  uint8_t output_mode;
  bool output;
  uint8_t spare;
};
static_assert(sizeof(LegacyState) == 8);

// The number an encoding is known by here; none for UTF-8, UTF-16 and what does not exist.
std::optional<uint32_t> LegacyEncodingNumber(std::string_view name);

// Decodes bytes into UTF-16, which needs room for LegacyRoom() units; tells how many there are. None when `fatal` and
// something was malformed. With `flush` the bytes are the last and the state is as in the beginning.
size_t LegacyRoom(size_t bytes);
std::optional<size_t> DecodeLegacyBytes(uint32_t encoding, LegacyState& state, std::span<const uint8_t> bytes,
                                        uint16_t* units, bool fatal, bool flush);
bool IsLegacyEncoding(uint32_t encoding);

}  // namespace engine::native
