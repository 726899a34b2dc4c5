// AES in its four modes: GCM, CBC, CTR and key wrapping.

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>

#include "native/crypto.h"
#include "native/native.h"

namespace engine::native {

namespace {

constexpr size_t kBlock = 16;
using Counter = std::array<uint8_t, kBlock>;

enum class Mode { kGcm, kCbc, kCtr, kWrap };

// Fetched once; see HashOf.
const EVP_CIPHER* CipherOf(Mode mode, size_t key_bytes) {
  static const EVP_CIPHER* const ciphers[4][3] = {
      {EVP_CIPHER_fetch(nullptr, "AES-128-GCM", nullptr), EVP_CIPHER_fetch(nullptr, "AES-192-GCM", nullptr),
       EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr)},
      {EVP_CIPHER_fetch(nullptr, "AES-128-CBC", nullptr), EVP_CIPHER_fetch(nullptr, "AES-192-CBC", nullptr),
       EVP_CIPHER_fetch(nullptr, "AES-256-CBC", nullptr)},
      {EVP_CIPHER_fetch(nullptr, "AES-128-CTR", nullptr), EVP_CIPHER_fetch(nullptr, "AES-192-CTR", nullptr),
       EVP_CIPHER_fetch(nullptr, "AES-256-CTR", nullptr)},
      {EVP_CIPHER_fetch(nullptr, "AES-128-WRAP", nullptr), EVP_CIPHER_fetch(nullptr, "AES-192-WRAP", nullptr),
       EVP_CIPHER_fetch(nullptr, "AES-256-WRAP", nullptr)},
  };
  if (key_bytes != 16 && key_bytes != 24 && key_bytes != 32) return nullptr;
  return ciphers[static_cast<int>(mode)][key_bytes / 8 - 2];
}

CipherContext Begin(Mode mode, const Key& key, const uint8_t* iv, bool encrypt) {
  const EVP_CIPHER* cipher = CipherOf(mode, key.secret.size());
  CipherContext context(EVP_CIPHER_CTX_new());
  if (cipher == nullptr || context == nullptr) return nullptr;
  if (mode == Mode::kWrap) EVP_CIPHER_CTX_set_flags(context.get(), EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
  if (EVP_CipherInit_ex2(context.get(), cipher, key.secret.data(), iv, encrypt, nullptr) != 1) return nullptr;
  return context;
}

// Runs all of `in` through the cipher and advances `out`. EVP counts in int. False on failure.
bool Update(EVP_CIPHER_CTX* context, uint8_t*& out, std::span<const uint8_t> in) {
  while (!in.empty()) {
    const size_t part = std::min<size_t>(in.size(), size_t{1} << 30);
    int length = 0;
    if (EVP_CipherUpdate(context, out, &length, in.data(), static_cast<int>(part)) != 1) return false;
    out += length;
    in = in.subspan(part);
  }
  return true;
}

Result Gcm(const Key& key, bool encrypt, std::span<const uint8_t> iv, std::span<const uint8_t> data,
           std::span<const uint8_t> extra, size_t tag_bytes) {
  if (iv.size() > INT_MAX || extra.size() > INT_MAX || (!encrypt && data.size() < tag_bytes)) return Failed();
  const std::span<const uint8_t> text = encrypt ? data : data.first(data.size() - tag_bytes);
  const CipherContext context = Begin(Mode::kGcm, key, nullptr, encrypt);
  Bytes out(text.size() + (encrypt ? tag_bytes : 0));
  if (context == nullptr || !out.ok()) return Failed();
  EVP_CIPHER_CTX* gcm = context.get();
  if (EVP_CIPHER_CTX_ctrl(gcm, EVP_CTRL_AEAD_SET_IVLEN, static_cast<int>(iv.size()), nullptr) != 1) return Failed();
  if (EVP_CipherInit_ex2(gcm, nullptr, nullptr, iv.data(), encrypt, nullptr) != 1) return Failed();
  if (!encrypt) {
    uint8_t* tag = const_cast<uint8_t*>(data.data() + text.size());
    if (EVP_CIPHER_CTX_ctrl(gcm, EVP_CTRL_AEAD_SET_TAG, static_cast<int>(tag_bytes), tag) != 1) return Failed();
  }
  int length = 0;
  if (!extra.empty() && EVP_CipherUpdate(gcm, nullptr, &length, extra.data(), static_cast<int>(extra.size())) != 1) {
    return Failed();
  }
  uint8_t* at = out.data();
  if (!Update(gcm, at, text) || EVP_CipherFinal_ex(gcm, at, &length) != 1) return Failed();
  if (encrypt && EVP_CIPHER_CTX_ctrl(gcm, EVP_CTRL_AEAD_GET_TAG, static_cast<int>(tag_bytes), at) != 1) {
    return Failed();
  }
  return out;
}

// aesGcm(handle, encrypt, iv, data, additional data, bytes of the tag) -> ArrayBuffer
void AesGcm(const Arguments& args) {
  Operation op(args);
  op.TakesLongIfLarge(3);
  std::shared_ptr<Key> key = op.Secret(0);
  const bool encrypt = op.Flag(1);
  Input iv = op.View(2);
  Input data = op.View(3);
  Input extra = op.View(4);
  const size_t tag_bytes = op.Integer(5);
  if (op.Refused()) return;
  if (tag_bytes < 4 || tag_bytes > 16) return;
  op.Finish([=, key = std::move(key), iv = std::move(iv), data = std::move(data), extra = std::move(extra)](
                const Job*) -> Result { return Gcm(*key, encrypt, iv.span(), data.span(), extra.span(), tag_bytes); });
}

// aesCbc(handle, encrypt, iv of 16 bytes, data) -> ArrayBuffer
void AesCbc(const Arguments& args) {
  Operation op(args);
  op.TakesLongIfLarge(3);
  std::shared_ptr<Key> key = op.Secret(0);
  const bool encrypt = op.Flag(1);
  Input iv = op.View(2);
  Input data = op.View(3);
  if (op.Refused()) return;
  if (iv.size() != kBlock) return;
  op.Finish([=, key = std::move(key), iv = std::move(iv), data = std::move(data)](const Job*) -> Result {
    const CipherContext context = Begin(Mode::kCbc, *key, iv.data(), encrypt);
    Bytes out(data.size() + kBlock);
    if (context == nullptr || !out.ok()) return Failed();
    uint8_t* at = out.data();
    int length = 0;
    if (!Update(context.get(), at, data.span()) || EVP_CipherFinal_ex(context.get(), at, &length) != 1) return Failed();
    out.Shrink(static_cast<size_t>(at - out.data()) + static_cast<size_t>(length));
    return out;
  });
}

// The number of blocks until the last `bits` bits of the counter are all zero again; at most 2^32.
uint64_t BlocksToOverflow(const Counter& counter, uint32_t bits) {
  constexpr uint64_t kMany = uint64_t{1} << 32;
  uint64_t left = 1;  // 2^bits - counter, from the highest bit of the counter's part down
  for (uint32_t bit = bits; bit-- > 0;) {
    const size_t byte = kBlock - 1 - bit / 8;
    const bool set = counter[byte] >> (bit % 8) & 1;
    left = left * 2 - (set ? 1 : 0);
    if (left > kMany) return kMany;
  }
  return left;
}

// The counter with its last `bits` bits set to zero.
Counter Wrapped(Counter counter, uint32_t bits) {
  for (uint32_t bit = 0; bit < bits; bit++) {
    counter[kBlock - 1 - bit / 8] &= static_cast<uint8_t>(~(1u << (bit % 8)));
  }
  return counter;
}

// aesCtr(handle, counter of 16 bytes, bits of it that count, data) -> ArrayBuffer. Encrypts and decrypts.
void AesCtr(const Arguments& args) {
  Operation op(args);
  op.TakesLongIfLarge(3);
  std::shared_ptr<Key> key = op.Secret(0);
  const Input start = op.View(1);
  const uint32_t bits = op.Integer(2);
  Input data = op.View(3);
  if (op.Refused()) return;
  if (start.size() != kBlock || bits < 1 || bits > 128) return;
  Counter counter;
  std::memcpy(counter.data(), start.data(), kBlock);
  op.Finish([=, key = std::move(key), data = std::move(data)](const Job*) -> Result {
    const uint64_t blocks = (data.size() + kBlock - 1) / kBlock;
    // The counter may wrap around to its start, but no block may be used twice.
    if (bits < 33 && blocks > uint64_t{1} << bits) return Failed();
    Bytes out(data.size());
    if (!out.ok()) return Failed();
    uint8_t* at = out.data();
    const uint64_t before = BlocksToOverflow(counter, bits);
    const size_t head = before < blocks ? static_cast<size_t>(before) * kBlock : data.size();
    CipherContext context = Begin(Mode::kCtr, *key, counter.data(), true);
    if (context == nullptr || !Update(context.get(), at, data.span().first(head))) return Failed();
    if (head < data.size()) {
      context = Begin(Mode::kCtr, *key, Wrapped(counter, bits).data(), true);
      if (context == nullptr || !Update(context.get(), at, data.span().subspan(head))) return Failed();
    }
    return out;
  });
}

// aesWrap(handle, wrap, data) -> ArrayBuffer. https://www.rfc-editor.org/rfc/rfc3394
void AesWrap(const Arguments& args) {
  Operation op(args);
  std::shared_ptr<Key> key = op.Secret(0);
  const bool wrap = op.Flag(1);
  Input data = op.View(2);
  if (op.Refused()) return;
  constexpr size_t kMost = size_t{1} << 24;
  if (data.size() % 8 != 0 || data.size() < (wrap ? 16u : 24u) || data.size() > kMost) return;
  op.Finish([=, key = std::move(key), data = std::move(data)](const Job*) -> Result {
    const CipherContext context = Begin(Mode::kWrap, *key, nullptr, wrap);
    Bytes out(data.size() + kBlock);
    if (context == nullptr || !out.ok()) return Failed();
    int length = 0;
    if (EVP_CipherUpdate(context.get(), out.data(), &length, data.data(), static_cast<int>(data.size())) != 1) {
      return Failed();
    }
    if (length <= 0) return Failed();
    out.Shrink(static_cast<size_t>(length));
    return out;
  });
}

constexpr Function kFunctions[] = {{"aesGcm", AesGcm}, {"aesCbc", AesCbc}, {"aesCtr", AesCtr}, {"aesWrap", AesWrap}};

}  // namespace

std::span<const Function> AesFunctions() { return kFunctions; }

}  // namespace engine::native
