// Digests, HMAC, secrets and constant-time comparison.

#include <openssl/rand.h>

#include "native/crypto.h"
#include "native/native.h"

namespace engine::native {

namespace {

// digest(hash, view) -> ArrayBuffer
void Digest(const Arguments& args) {
  Operation op(args);
  op.TakesLongIfLarge(1);
  const EVP_MD* md = op.Hash(0);
  Input data = op.View(1);
  if (op.Refused()) return;
  op.Finish([md, data = std::move(data)](const Job*) -> Result {
    Bytes out(EVP_MD_get_size(md));
    unsigned length = 0;
    if (!out.ok() || EVP_Digest(data.data(), data.size(), out.data(), &length, md, nullptr) != 1) return Failed();
    return out;
  });
}

// beginDigest(hash) -> handle
void BeginDigest(const Arguments& args) {
  Operation op(args);
  const EVP_MD* md = op.Hash(0);
  if (op.Refused()) return;
  ErrorScope errors;
  auto key = std::make_shared<Key>();
  key->digest.reset(EVP_MD_CTX_new());
  if (key->digest == nullptr || EVP_DigestInit_ex2(key->digest.get(), md, nullptr) != 1) return;
  op.FinishWithKey(std::move(key));
}

// copyDigest(handle) -> handle
void CopyDigest(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> original = op.Digest(0);
  if (op.Refused()) return;
  ErrorScope errors;
  auto key = std::make_shared<Key>();
  key->digest.reset(EVP_MD_CTX_new());
  if (key->digest == nullptr || EVP_MD_CTX_copy_ex(key->digest.get(), original->digest.get()) != 1) return;
  op.FinishWithKey(std::move(key));
}

// updateDigest(handle, view) -> boolean
void UpdateDigest(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Digest(0);
  const Input data = op.View(1);
  if (op.Refused()) return;
  op.Finish([&](const Job*) -> Result {
    return data.size() == 0 || EVP_DigestUpdate(key->digest.get(), data.data(), data.size()) == 1;
  });
}

// endDigest(handle, bytes | undefined) -> ArrayBuffer. The handle cannot be used afterwards. Only some hashes have a
// length that can be chosen.
void EndDigest(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Digest(0);
  const bool has_length = op.IsGiven(1);
  const uint32_t wanted = has_length ? op.Integer(1) : 0;
  if (op.Refused()) return;
  constexpr uint32_t kMost = 1 << 24;  // takes 50 ms
  if (wanted > kMost) return;
  op.Finish([&](const Job*) -> Result {
    if (has_length) {
      Bytes out(wanted);
      if (!out.ok() || (wanted > 0 && EVP_DigestFinalXOF(key->digest.get(), out.data(), wanted) != 1)) return Failed();
      return out;
    }
    Bytes out(EVP_MAX_MD_SIZE);
    unsigned length = 0;
    if (!out.ok() || EVP_DigestFinal_ex(key->digest.get(), out.data(), &length) != 1) return Failed();
    out.Shrink(length);
    return out;
  });
}

// signHmac(handle, hash, view) -> ArrayBuffer
void SignHmac(const Arguments& args) {
  Operation op(args);
  op.TakesLongIfLarge(2);
  std::shared_ptr<Key> key = op.Secret(0);
  const EVP_MD* md = op.Hash(1);
  Input data = op.View(2);
  if (op.Refused()) return;
  op.Finish([key = std::move(key), md, data = std::move(data)](const Job*) -> Result {
    Bytes out(EVP_MAX_MD_SIZE);
    if (!out.ok()) return Failed();
    const size_t length = Hmac(md, key->secret.span(), {data.span()}, out.data());
    if (length == 0) return Failed();
    out.Shrink(length);
    return out;
  });
}

// verifyHmac(handle, hash, signature, view) -> boolean
void VerifyHmac(const Arguments& args) {
  Operation op(args);
  op.TakesLongIfLarge(3);
  std::shared_ptr<Key> key = op.Secret(0);
  const EVP_MD* md = op.Hash(1);
  Input signature = op.View(2);
  Input data = op.View(3);
  if (op.Refused()) return;
  op.Finish([key = std::move(key), md, signature = std::move(signature), data = std::move(data)](const Job*) -> Result {
    uint8_t mac[EVP_MAX_MD_SIZE];
    const size_t length = Hmac(md, key->secret.span(), {data.span()}, mac);
    if (length == 0) return Failed();
    return signature.size() == length && CRYPTO_memcmp(mac, signature.data(), length) == 0;
  });
}

// importSecret(view) -> handle
void ImportSecret(const Arguments& args) {
  Operation op(args);
  const Input data = op.View(0);
  if (op.Refused()) return;
  auto key = std::make_shared<Key>();
  key->secret = Bytes(data.span());
  if (key->secret.ok()) op.FinishWithKey(std::move(key));
}

// generateSecret(bytes) -> handle
void GenerateSecret(const Arguments& args) {
  Operation op(args);
  const uint32_t size = op.Integer(0);
  if (op.Refused()) return;
  constexpr uint32_t kMost = 1 << 20;
  if (size > kMost) return;
  ErrorScope errors;
  auto key = std::make_shared<Key>();
  key->secret = Bytes(size);
  if (!key->secret.ok() || RAND_priv_bytes(key->secret.data(), static_cast<int>(size)) != 1) return;
  op.FinishWithKey(std::move(key));
}

// exportSecret(handle) -> ArrayBuffer
void ExportSecret(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Secret(0);
  if (op.Refused()) return;
  op.Finish([&](const Job*) -> Result { return Bytes(key->secret.span()); });
}

// equalBytes(view, view) -> boolean, in time that depends on the length only. Both lengths must be equal.
void EqualBytes(const Arguments& args) {
  Operation op(args);
  const Input a = op.View(0);
  const Input b = op.View(1);
  if (op.Refused()) return;
  args.GetReturnValue().Set(a.size() == b.size() &&
                            (a.size() == 0 || CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0));
}

// halfOfHmac(key: view, data: view) -> the first half of HMAC-SHA256, in hexadecimal. At once: for ids of objects.
void HalfOfHmac(const Arguments& args) {
  constexpr size_t kHalf = 16;
  Operation op(args);
  const Input key = op.View(0);
  const Input data = op.View(1);
  if (op.Refused()) return;
  static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA2-256", nullptr);
  uint8_t mac[EVP_MAX_MD_SIZE];
  if (sha256 == nullptr || Hmac(sha256, key.span(), {data.span()}, mac) < kHalf) {
    return ThrowTypeError(args.GetIsolate(), "HMAC is not available");
  }
  char text[2 * kHalf];
  for (size_t i = 0; i < kHalf; i++) {
    constexpr char kDigits[] = "0123456789abcdef";
    text[2 * i] = kDigits[mac[i] >> 4];
    text[2 * i + 1] = kDigits[mac[i] & 15];
  }
  v8::Local<v8::String> hex;
  if (v8::String::NewFromUtf8(args.GetIsolate(), text, v8::NewStringType::kNormal, sizeof(text)).ToLocal(&hex)) {
    args.GetReturnValue().Set(hex);
  }
}

constexpr Function kFunctions[] = {
    {"digest", Digest},
    {"halfOfHmac", HalfOfHmac},
    {"beginDigest", BeginDigest},
    {"copyDigest", CopyDigest},
    {"updateDigest", UpdateDigest},
    {"endDigest", EndDigest},
    {"signHmac", SignHmac},
    {"verifyHmac", VerifyHmac},
    {"importSecret", ImportSecret},
    {"generateSecret", GenerateSecret},
    {"exportSecret", ExportSecret},
    {"equalBytes", EqualBytes},
};

}  // namespace

std::span<const Function> DigestFunctions() { return kFunctions; }

}  // namespace engine::native
