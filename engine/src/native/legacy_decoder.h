// The legacy decoders of the Encoding standard. https://encoding.spec.whatwg.org/#legacy-single-byte-encodings
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace engine::native {

// What a decoder remembers from one byte to the next. Initially all zero.
struct LegacyState {
  uint8_t first;  // "lead" in most decoders
  uint8_t second;
  uint8_t third;
  bool jis0212;
  uint8_t mode;  // of ISO-2022-JP
  uint8_t output_mode;
  bool output;
  uint8_t spare;
};
static_assert(sizeof(LegacyState) == 8);

// The number of an encoding; nothing for UTF-8, UTF-16 and unknown names.
std::optional<uint32_t> LegacyEncodingNumber(std::string_view name);

// Decodes bytes into UTF-16, which needs room for LegacyRoom() units. Returns the number of units, or nothing if
// `fatal` and the input is malformed. `flush`: these are the last bytes; the state is reset.
size_t LegacyRoom(size_t bytes);
std::optional<size_t> DecodeLegacyBytes(uint32_t encoding, LegacyState& state, std::span<const uint8_t> bytes,
                                        uint16_t* units, bool fatal, bool flush);
bool IsLegacyEncoding(uint32_t encoding);

}  // namespace engine::native
