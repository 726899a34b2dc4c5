// The use of asymmetric keys: signatures by RSA, ECDSA and Ed25519, and RSA-OAEP.

#include <openssl/ecdsa.h>
#include <openssl/rsa.h>

#include <cstring>

#include "native/crypto.h"
#include "native/native.h"

namespace engine::native {

namespace {

using EcdsaSignature = std::unique_ptr<ECDSA_SIG, Freed<ECDSA_SIG_free>>;

// The padding of an RSA signature: PKCS #1 1.5, or PSS with this many bytes of salt.
struct Padding {
  bool pss = false;
  int salt = 0;
};

bool SetPadding(EVP_PKEY_CTX* context, const EVP_MD* md, const Padding& padding) {
  if (!padding.pss) return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1;
  return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1 &&
         EVP_PKEY_CTX_set_rsa_mgf1_md(context, md) == 1 && EVP_PKEY_CTX_set_rsa_pss_saltlen(context, padding.salt) == 1;
}

// `md` is null for Ed25519, which does its own hashing. `padding` is null for all but RSA.
Result Sign(EVP_PKEY* pkey, const EVP_MD* md, const Padding* padding, std::span<const uint8_t> data) {
  const DigestContext context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* inner = nullptr;
  const char* name = md == nullptr ? nullptr : EVP_MD_get0_name(md);
  if (context == nullptr || EVP_DigestSignInit_ex(context.get(), &inner, name, nullptr, nullptr, pkey, nullptr) != 1 ||
      (padding != nullptr && !SetPadding(inner, md, *padding))) {
    return Failed();
  }
  size_t length = 0;
  if (EVP_DigestSign(context.get(), nullptr, &length, data.data(), data.size()) != 1) return Failed();
  Bytes out(length);
  if (!out.ok() || EVP_DigestSign(context.get(), out.data(), &length, data.data(), data.size()) != 1) return Failed();
  out.Shrink(length);
  return out;
}

Result Verify(EVP_PKEY* pkey, const EVP_MD* md, const Padding* padding, std::span<const uint8_t> signature,
              std::span<const uint8_t> data) {
  const DigestContext context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* inner = nullptr;
  const char* name = md == nullptr ? nullptr : EVP_MD_get0_name(md);
  if (context == nullptr ||
      EVP_DigestVerifyInit_ex(context.get(), &inner, name, nullptr, nullptr, pkey, nullptr) != 1) {
    return Failed();
  }
  // A signature with this key cannot have a salt of this length.
  if (padding != nullptr && !SetPadding(inner, md, *padding)) return false;
  return EVP_DigestVerify(context.get(), signature.data(), signature.size(), data.data(), data.size()) == 1;
}

Padding ReadPadding(Operation& op, int index) {
  Padding padding;
  padding.pss = op.IsGiven(index);
  if (padding.pss) padding.salt = static_cast<int>(std::min<uint32_t>(op.Integer(index), 1 << 20));
  return padding;
}

// OpenSSL pads a shorter signature with zeros. https://www.rfc-editor.org/rfc/rfc8017#section-8.1.2
bool IsAsLongAsModulus(const Key& key, size_t size) {
  return size == static_cast<size_t>(EVP_PKEY_get_size(key.pkey.get()));
}

// signRsa(handle, hash, data, bytes of PSS salt | undefined) -> ArrayBuffer
void SignRsa(const Arguments& args) {
  Operation op(args);
  op.TakesLong(2);
  std::shared_ptr<Key> key = op.Asymmetric(0);
  const EVP_MD* md = op.Hash(1);
  Input data = op.View(2);
  const Padding padding = ReadPadding(op, 3);
  if (op.Refused()) return;
  op.Finish([=, key = std::move(key), data = std::move(data)](const Job*) -> Result {
    return Sign(key->pkey.get(), md, &padding, data.span());
  });
}

// verifyRsa(handle, hash, signature, data, bytes of PSS salt | undefined) -> boolean
void VerifyRsa(const Arguments& args) {
  Operation op(args);
  op.TakesLongIfLarge(3);
  std::shared_ptr<Key> key = op.Asymmetric(0);
  const EVP_MD* md = op.Hash(1);
  Input signature = op.View(2);
  Input data = op.View(3);
  const Padding padding = ReadPadding(op, 4);
  if (op.Refused()) return;
  op.Finish([=, key = std::move(key), signature = std::move(signature), data = std::move(data)](const Job*) -> Result {
    if (!IsAsLongAsModulus(*key, signature.size())) return false;
    return Verify(key->pkey.get(), md, &padding, signature.span(), data.span());
  });
}

// rsaOaep(handle, encrypt, hash, label, data) -> ArrayBuffer
void RsaOaep(const Arguments& args) {
  Operation op(args);
  const bool encrypt = op.Flag(1);
  if (!encrypt) op.TakesLong(3);
  std::shared_ptr<Key> key = op.Asymmetric(0);
  const EVP_MD* md = op.Hash(2);
  Input label = op.View(3);
  Input data = op.View(4);
  if (op.Refused()) return;
  op.Finish([=, key = std::move(key), label = std::move(label), data = std::move(data)](const Job*) -> Result {
    const PkeyContext context(EVP_PKEY_CTX_new_from_pkey(nullptr, key->pkey.get(), nullptr));
    if (context == nullptr || label.size() > INT32_MAX) return Failed();
    if (!encrypt && !IsAsLongAsModulus(*key, data.size())) return Failed();
    EVP_PKEY_CTX* oaep = context.get();
    if ((encrypt ? EVP_PKEY_encrypt_init(oaep) : EVP_PKEY_decrypt_init(oaep)) != 1 ||
        EVP_PKEY_CTX_set_rsa_padding(oaep, RSA_PKCS1_OAEP_PADDING) != 1 ||
        EVP_PKEY_CTX_set_rsa_oaep_md(oaep, md) != 1 || EVP_PKEY_CTX_set_rsa_mgf1_md(oaep, md) != 1) {
      return Failed();
    }
    if (label.size() > 0) {
      void* copy = OPENSSL_memdup(label.data(), label.size());  // the context takes ownership
      if (copy == nullptr) return Failed();
      if (EVP_PKEY_CTX_set0_rsa_oaep_label(oaep, copy, static_cast<int>(label.size())) != 1) {
        OPENSSL_free(copy);
        return Failed();
      }
    }
    const auto run = encrypt ? EVP_PKEY_encrypt : EVP_PKEY_decrypt;
    size_t length = 0;
    if (run(oaep, nullptr, &length, data.data(), data.size()) != 1) return Failed();
    Bytes out(length);
    if (!out.ok() || run(oaep, out.data(), &length, data.data(), data.size()) != 1) return Failed();
    out.Shrink(length);
    return out;
  });
}

// signEcdsa(handle, curve, hash, data) -> ArrayBuffer
void SignEcdsa(const Arguments& args) {
  Operation op(args);
  op.TakesLongIfLarge(3);
  std::shared_ptr<Key> key = op.Asymmetric(0);
  const Curve* curve = op.NamedCurve(1);
  const EVP_MD* md = op.Hash(2);
  Input data = op.View(3);
  if (op.Refused()) return;
  op.Finish([=, key = std::move(key), data = std::move(data)](const Job*) -> Result {
    const Result der = Sign(key->pkey.get(), md, nullptr, data.span());
    const Bytes* encoded = std::get_if<Bytes>(&der);
    return encoded == nullptr ? Failed() : FlattenSignature(encoded->span(), curve->bytes);
  });
}

// verifyEcdsa(handle, curve, hash, signature, data) -> boolean
void VerifyEcdsa(const Arguments& args) {
  Operation op(args);
  op.TakesLongIfLarge(4);
  std::shared_ptr<Key> key = op.Asymmetric(0);
  const Curve* curve = op.NamedCurve(1);
  const EVP_MD* md = op.Hash(2);
  Input signature = op.View(3);
  Input data = op.View(4);
  if (op.Refused()) return;
  op.Finish([=, key = std::move(key), signature = std::move(signature), data = std::move(data)](const Job*) -> Result {
    if (signature.size() != 2 * curve->bytes) return false;
    const Bytes der = EncodeSignature(signature.span());
    if (!der.ok()) return Failed();
    return Verify(key->pkey.get(), md, nullptr, der.span(), data.span());
  });
}

// signEd25519(handle, data) -> ArrayBuffer
void SignEd25519(const Arguments& args) {
  Operation op(args);
  op.TakesLongIfLarge(1);
  std::shared_ptr<Key> key = op.Asymmetric(0);
  Input data = op.View(1);
  if (op.Refused()) return;
  op.Finish([key = std::move(key), data = std::move(data)](const Job*) -> Result {
    return Sign(key->pkey.get(), nullptr, nullptr, data.span());
  });
}

// The y coordinates of points whose order divides 8, little endian, in all their encodings.
// https://www.rfc-editor.org/rfc/rfc7748#section-6.1
constexpr const char* kSmallOrder[] = {
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
};

bool IsSmallOrder(std::span<const uint8_t, 32> point) {
  constexpr char kHex[] = "0123456789abcdef";
  char text[65] = {};
  for (size_t i = 0; i < 32; i++) {
    const uint8_t byte = i == 31 ? point[i] & 0x7f : point[i];  // the top bit is the sign of x
    text[2 * i] = kHex[byte >> 4];
    text[2 * i + 1] = kHex[byte & 15];
  }
  for (const char* known : kSmallOrder) {
    if (std::strcmp(known, text) == 0) return true;
  }
  return false;
}

// verifyEd25519(handle, signature, data) -> boolean
void VerifyEd25519(const Arguments& args) {
  Operation op(args);
  op.TakesLongIfLarge(2);
  std::shared_ptr<Key> key = op.Asymmetric(0);
  Input signature = op.View(1);
  Input data = op.View(2);
  if (op.Refused()) return;
  op.Finish([key = std::move(key), signature = std::move(signature), data = std::move(data)](const Job*) -> Result {
    uint8_t point[32];
    size_t length = sizeof point;
    if (EVP_PKEY_get_raw_public_key(key->pkey.get(), point, &length) != 1 || length != sizeof point) return Failed();
    if (signature.size() != 64 || IsSmallOrder(point) || IsSmallOrder(signature.span().first<32>())) return false;
    return Verify(key->pkey.get(), nullptr, nullptr, signature.span(), data.span());
  });
}

constexpr Function kFunctions[] = {
    {"signRsa", SignRsa},
    {"verifyRsa", VerifyRsa},
    {"rsaOaep", RsaOaep},
    {"signEcdsa", SignEcdsa},
    {"verifyEcdsa", VerifyEcdsa},
    {"signEd25519", SignEd25519},
    {"verifyEd25519", VerifyEd25519},
};

}  // namespace

Result FlattenSignature(std::span<const uint8_t> der, size_t bytes) {
  const uint8_t* at = der.data();
  const EcdsaSignature signature(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())));
  Bytes out(2 * bytes);
  if (signature == nullptr || !out.ok()) return Failed();
  const int half = static_cast<int>(bytes);
  if (BN_bn2binpad(ECDSA_SIG_get0_r(signature.get()), out.data(), half) != half ||
      BN_bn2binpad(ECDSA_SIG_get0_s(signature.get()), out.data() + bytes, half) != half) {
    return Failed();
  }
  return out;
}

Bytes EncodeSignature(std::span<const uint8_t> flat) {
  const int half = static_cast<int>(flat.size() / 2);
  const EcdsaSignature signature(ECDSA_SIG_new());
  Number r(BN_bin2bn(flat.data(), half, nullptr));
  Number s(BN_bin2bn(flat.data() + half, half, nullptr));
  if (signature == nullptr || r == nullptr || s == nullptr) return {};
  if (ECDSA_SIG_set0(signature.get(), r.get(), s.get()) != 1) return {};
  // The signature owns them now.
  (void)r.release();
  (void)s.release();
  const int length = i2d_ECDSA_SIG(signature.get(), nullptr);
  if (length <= 0) return {};
  Bytes out(static_cast<size_t>(length));
  uint8_t* at = out.data();
  if (!out.ok() || i2d_ECDSA_SIG(signature.get(), &at) != length) return {};
  return out;
}

std::span<const Function> SignatureFunctions() { return kFunctions; }

}  // namespace engine::native
