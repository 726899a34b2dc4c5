#include "native/legacy_decoder.h"

#include <iterator>

namespace engine::native {

namespace {

#include "encoding_tables.inc"

enum class Kind : uint8_t { kSingleByte, kUserDefined, kGb18030, kBig5, kEucJp, kIso2022Jp, kShiftJis, kEucKr };

struct Named {
  const char* name;
  Kind kind;
};

// In the order of their numbers; the single-byte encodings follow.
constexpr Named kNamed[] = {
    {"x-user-defined", Kind::kUserDefined},
    {"gbk", Kind::kGb18030},
    {"gb18030", Kind::kGb18030},
    {"big5", Kind::kBig5},
    {"euc-jp", Kind::kEucJp},
    {"iso-2022-jp", Kind::kIso2022Jp},
    {"shift_jis", Kind::kShiftJis},
    {"euc-kr", Kind::kEucKr},
};
constexpr uint32_t kFirstSingleByte = std::size(kNamed);
constexpr uint32_t kEncodings = kFirstSingleByte + std::size(kSingleBytes);

constexpr int kEnd = -1;       // end-of-queue
constexpr int kContinue = -2;  // results of a handler other than a code point
constexpr int kError = -3;
constexpr int kFinished = -4;

bool In(int byte, int low, int high) { return byte >= low && byte <= high; }

template <typename Entry, size_t kSize>
int Lookup(const Entry (&index)[kSize], int pointer) {
  if (pointer < 0 || pointer >= static_cast<int>(kSize) || index[pointer] == 0) return kError;
  return static_cast<int>(index[pointer]);
}

class Decoder final {
 public:
  Decoder(uint32_t encoding, LegacyState& state, std::span<const uint8_t> input, uint16_t* output)
      : encoding_(encoding), state_(state), input_(input), output_(output) {}

  // False if `fatal` and the input is malformed.
  bool Run(bool fatal, bool flush) {
    for (;;) {
      const int byte = Next();
      if (byte == kEnd && !flush) return true;
      const int code = Handle(byte);
      if (code == kFinished) return true;
      if (code == kError) {
        if (fatal) return false;
        Put(0xFFFD);
      } else if (code >= 0) {
        Put(code);
      }
    }
  }
  size_t written() const { return written_; }

 private:
  int Next() {
    if (restored_ > 0) return restore_[--restored_];
    return at_ < input_.size() ? input_[at_++] : kEnd;
  }

  // "Restore" to the queue: last in, first out. The end of the queue is not restored.
  void Restore(int byte) {
    if (byte != kEnd) restore_[restored_++] = static_cast<uint8_t>(byte);
  }

  void Put(int code) {
    if (code >= 0x10000) {
      output_[written_++] = static_cast<uint16_t>(0xD800 + ((code - 0x10000) >> 10));
      output_[written_++] = static_cast<uint16_t>(0xDC00 + ((code - 0x10000) & 0x3FF));
    } else {
      output_[written_++] = static_cast<uint16_t>(code);
    }
  }

  int Handle(int byte) {
    if (encoding_ >= kFirstSingleByte) return SingleByteCode(byte);
    switch (kNamed[encoding_].kind) {
      case Kind::kGb18030:
        return Gb18030(byte);
      case Kind::kBig5:
        return Big5(byte);
      case Kind::kEucJp:
        return EucJp(byte);
      case Kind::kIso2022Jp:
        return Iso2022Jp(byte);
      case Kind::kShiftJis:
        return ShiftJis(byte);
      case Kind::kEucKr:
        return EucKr(byte);
      default:
        // https://encoding.spec.whatwg.org/#x-user-defined-decoder
        if (byte == kEnd) return kFinished;
        return byte < 0x80 ? byte : 0xF780 + byte - 0x80;
    }
  }

  // https://encoding.spec.whatwg.org/#single-byte-decoder
  int SingleByteCode(int byte) {
    if (byte == kEnd) return kFinished;
    if (byte < 0x80) return byte;
    return Lookup(kSingleBytes[encoding_ - kFirstSingleByte].upper, byte - 0x80);
  }

  // The end of the queue for decoders whose only state is a lead byte.
  int EndAfterLead() {
    if (state_.first == 0) return kFinished;
    state_.first = 0;
    return kError;
  }

  // The last step of most handlers of a second byte: unmapped bytes are an error, and an ASCII byte is read again.
  int Mapped(int code, int byte) {
    if (code == kError && byte < 0x80) Restore(byte);
    return code;
  }

  int Gb18030(int byte);
  int Gb18030Four(int byte);
  int Big5(int byte);
  int EucJp(int byte);
  int Iso2022Jp(int byte);
  int Iso2022JpEscape(int byte);
  int ShiftJis(int byte);
  int EucKr(int byte);

  const uint32_t encoding_;
  LegacyState& state_;
  const std::span<const uint8_t> input_;
  uint16_t* const output_;
  size_t at_ = 0;
  size_t written_ = 0;
  uint8_t restore_[4];
  size_t restored_ = 0;
};

// https://encoding.spec.whatwg.org/#index-gb18030-ranges-code-point
int RangesCodePoint(int pointer) {
  if ((pointer > 39419 && pointer < 189000) || pointer > 1237575) return kError;
  if (pointer == 7457) return 0xE7C7;
  size_t at = std::size(kGb18030Ranges) - 2;
  while (at > 0 && kGb18030Ranges[at] > static_cast<uint32_t>(pointer)) at -= 2;
  return static_cast<int>(kGb18030Ranges[at + 1]) + pointer - static_cast<int>(kGb18030Ranges[at]);
}

// The second, third and fourth of four bytes.
int Decoder::Gb18030Four(int byte) {
  const int first = state_.first;
  const int second = state_.second;
  const int third = state_.third;
  if (third != 0) {
    state_ = {};
    if (!In(byte, 0x30, 0x39)) {
      Restore(byte);
      Restore(third);
      Restore(second);
      return kError;
    }
    return RangesCodePoint((first - 0x81) * 12600 + (second - 0x30) * 1260 + (third - 0x81) * 10 + byte - 0x30);
  }
  if (In(byte, 0x81, 0xFE)) {
    state_.third = static_cast<uint8_t>(byte);
    return kContinue;
  }
  state_ = {};
  Restore(byte);
  Restore(second);
  return kError;
}

// https://encoding.spec.whatwg.org/#gb18030-decoder
int Decoder::Gb18030(int byte) {
  if (byte == kEnd) {
    if (state_.first == 0) return kFinished;
    state_ = {};
    return kError;
  }
  if (state_.second != 0) return Gb18030Four(byte);
  if (state_.first != 0) {
    if (In(byte, 0x30, 0x39)) {
      state_.second = static_cast<uint8_t>(byte);
      return kContinue;
    }
    const int lead = state_.first;
    state_.first = 0;
    const int offset = byte < 0x7F ? 0x40 : 0x41;
    const bool valid = In(byte, 0x40, 0x7E) || In(byte, 0x80, 0xFE);
    return Mapped(valid ? Lookup(kGb18030, (lead - 0x81) * 190 + byte - offset) : kError, byte);
  }
  if (byte < 0x80) return byte;
  if (byte == 0x80) return 0x20AC;
  if (byte == 0xFF) return kError;
  state_.first = static_cast<uint8_t>(byte);
  return kContinue;
}

// https://encoding.spec.whatwg.org/#big5-decoder
int Decoder::Big5(int byte) {
  if (byte == kEnd) return EndAfterLead();
  if (state_.first != 0) {
    const int lead = state_.first;
    state_.first = 0;
    if (!In(byte, 0x40, 0x7E) && !In(byte, 0xA1, 0xFE)) return Mapped(kError, byte);
    const int pointer = (lead - 0x81) * 157 + byte - (byte < 0x7F ? 0x40 : 0x62);
    // Four pointers map to two code points each.
    if (pointer == 1133 || pointer == 1135 || pointer == 1164 || pointer == 1166) {
      Put(pointer < 1150 ? 0x00CA : 0x00EA);
      return pointer == 1133 || pointer == 1164 ? 0x0304 : 0x030C;
    }
    return Mapped(Lookup(kBig5, pointer), byte);
  }
  if (byte < 0x80) return byte;
  if (!In(byte, 0x81, 0xFE)) return kError;
  state_.first = static_cast<uint8_t>(byte);
  return kContinue;
}

// https://encoding.spec.whatwg.org/#euc-jp-decoder
int Decoder::EucJp(int byte) {
  if (byte == kEnd) {
    state_.jis0212 = false;
    return EndAfterLead();
  }
  if (state_.first == 0x8E && In(byte, 0xA1, 0xDF)) {
    state_.first = 0;
    return 0xFF61 - 0xA1 + byte;
  }
  if (state_.first == 0x8F && In(byte, 0xA1, 0xFE)) {
    state_.jis0212 = true;
    state_.first = static_cast<uint8_t>(byte);
    return kContinue;
  }
  if (state_.first != 0) {
    const int lead = state_.first;
    const bool jis0212 = state_.jis0212;
    state_ = {};
    int code = kError;
    if (In(lead, 0xA1, 0xFE) && In(byte, 0xA1, 0xFE)) {
      const int pointer = (lead - 0xA1) * 94 + byte - 0xA1;
      code = jis0212 ? Lookup(kJis0212, pointer) : Lookup(kJis0208, pointer);
    }
    return Mapped(code, byte);
  }
  if (byte < 0x80) return byte;
  if (byte != 0x8E && byte != 0x8F && !In(byte, 0xA1, 0xFE)) return kError;
  state_.first = static_cast<uint8_t>(byte);
  return kContinue;
}

enum Mode : uint8_t { kAscii, kRoman, kKatakana, kLead, kTrail, kEscapeStart, kEscape };

// https://encoding.spec.whatwg.org/#iso-2022-jp-decoder, the states "escape start" and "escape"
int Decoder::Iso2022JpEscape(int byte) {
  if (state_.mode == kEscapeStart) {
    if (byte == 0x24 || byte == 0x28) {
      state_.first = static_cast<uint8_t>(byte);
      state_.mode = kEscape;
      return kContinue;
    }
    Restore(byte);
    state_.output = false;
    state_.mode = state_.output_mode;
    return kError;
  }
  const int lead = state_.first;
  state_.first = 0;
  int mode = -1;
  if (lead == 0x28 && byte == 0x42) mode = kAscii;
  if (lead == 0x28 && byte == 0x4A) mode = kRoman;
  if (lead == 0x28 && byte == 0x49) mode = kKatakana;
  if (lead == 0x24 && (byte == 0x40 || byte == 0x42)) mode = kLead;
  if (mode != -1) {
    state_.mode = state_.output_mode = static_cast<uint8_t>(mode);
    const bool output = state_.output;
    state_.output = true;
    return output ? kError : kContinue;
  }
  Restore(byte);
  Restore(lead);
  state_.output = false;
  state_.mode = state_.output_mode;
  return kError;
}

// https://encoding.spec.whatwg.org/#iso-2022-jp-decoder
int Decoder::Iso2022Jp(int byte) {
  if (state_.mode >= kEscapeStart) return Iso2022JpEscape(byte);
  if (byte == 0x1B) {
    const bool cut = state_.mode == kTrail;
    state_.mode = kEscapeStart;
    return cut ? kError : kContinue;
  }
  if (state_.mode == kTrail) {
    state_.mode = kLead;
    if (!In(byte, 0x21, 0x7E)) return kError;
    return Lookup(kJis0208, (state_.first - 0x21) * 94 + byte - 0x21);
  }
  if (byte == kEnd) return kFinished;
  state_.output = false;
  if (state_.mode == kKatakana) return In(byte, 0x21, 0x5F) ? 0xFF61 - 0x21 + byte : kError;
  if (state_.mode == kLead) {
    if (!In(byte, 0x21, 0x7E)) return kError;
    state_.first = static_cast<uint8_t>(byte);
    state_.mode = kTrail;
    return kContinue;
  }
  if (state_.mode == kRoman && byte == 0x5C) return 0xA5;
  if (state_.mode == kRoman && byte == 0x7E) return 0x203E;
  return byte >= 0x80 || byte == 0x0E || byte == 0x0F ? kError : byte;
}

// https://encoding.spec.whatwg.org/#shift_jis-decoder
int Decoder::ShiftJis(int byte) {
  if (byte == kEnd) return EndAfterLead();
  if (state_.first != 0) {
    const int lead = state_.first;
    state_.first = 0;
    if (!In(byte, 0x40, 0x7E) && !In(byte, 0x80, 0xFC)) return Mapped(kError, byte);
    const int pointer = (lead - (lead < 0xA0 ? 0x81 : 0xC1)) * 188 + byte - (byte < 0x7F ? 0x40 : 0x41);
    if (In(pointer, 8836, 10715)) return 0xE000 - 8836 + pointer;
    return Mapped(Lookup(kJis0208, pointer), byte);
  }
  if (byte <= 0x80) return byte;
  if (In(byte, 0xA1, 0xDF)) return 0xFF61 - 0xA1 + byte;
  if (!In(byte, 0x81, 0x9F) && !In(byte, 0xE0, 0xFC)) return kError;
  state_.first = static_cast<uint8_t>(byte);
  return kContinue;
}

// https://encoding.spec.whatwg.org/#euc-kr-decoder
int Decoder::EucKr(int byte) {
  if (byte == kEnd) return EndAfterLead();
  if (state_.first != 0) {
    const int lead = state_.first;
    state_.first = 0;
    return Mapped(In(byte, 0x41, 0xFE) ? Lookup(kEucKr, (lead - 0x81) * 190 + byte - 0x41) : kError, byte);
  }
  if (byte < 0x80) return byte;
  if (!In(byte, 0x81, 0xFE)) return kError;
  state_.first = static_cast<uint8_t>(byte);
  return kContinue;
}

}  // namespace

std::optional<uint32_t> LegacyEncodingNumber(std::string_view name) {
  for (uint32_t i = 0; i < kEncodings; ++i) {
    if (name == (i < kFirstSingleByte ? kNamed[i].name : kSingleBytes[i - kFirstSingleByte].name)) return i;
  }
  return std::nullopt;
}

bool IsLegacyEncoding(uint32_t encoding) { return encoding < kEncodings; }

// A byte produces at most two units, and so do the state and the end.
size_t LegacyRoom(size_t bytes) { return 2 * bytes + 16; }

std::optional<size_t> DecodeLegacyBytes(uint32_t encoding, LegacyState& state, std::span<const uint8_t> bytes,
                                        uint16_t* units, bool fatal, bool flush) {
  Decoder decoder(encoding, state, bytes, units);
  if (!decoder.Run(fatal, flush)) return std::nullopt;
  if (flush) state = {};
  return decoder.written();
}

}  // namespace engine::native
