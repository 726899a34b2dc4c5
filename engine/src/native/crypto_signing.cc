// Signatures of node:crypto, by keys of every kind. Those of Web Cryptography are in crypto_sign.cc.

#include <openssl/core_names.h>
#include <openssl/rsa.h>

#include "native/crypto.h"
#include "native/native.h"

namespace engine::native {

namespace {

// How to sign. Members that are not given have OpenSSL's default.
struct Manner {
  const EVP_MD* md = nullptr;
  bool has_padding = false;
  bool has_salt = false;
  int padding = 0;
  int salt = 0;
  bool flat = false;  // two numbers of fixed length (IEEE P1363), not DER
  bool has_context = false;
  Input context;
};

bool IsRsa(EVP_PKEY* pkey) { return EVP_PKEY_is_a(pkey, "RSA") == 1 || EVP_PKEY_is_a(pkey, "RSA-PSS") == 1; }

// The bytes of one of the two numbers of a signature; 0 for kinds of key whose signatures are not two numbers.
size_t NumberBytes(EVP_PKEY* pkey) {
  int bits = 0;
  if (EVP_PKEY_is_a(pkey, "EC") == 1) bits = EVP_PKEY_get_bits(pkey);
  if (EVP_PKEY_is_a(pkey, "DSA") == 1) {
    BIGNUM* q = nullptr;
    if (EVP_PKEY_get_bn_param(pkey, OSSL_PKEY_PARAM_FFC_Q, &q) != 1) return 0;
    const Number owned(q);
    bits = BN_num_bits(q);
  }
  return (static_cast<size_t>(bits) + 7) / 8;
}

bool Begin(EVP_MD_CTX* context, EVP_PKEY* pkey, const Manner& manner, bool signs) {
  OSSL_PARAM params[3] = {OSSL_PARAM_construct_end(), OSSL_PARAM_construct_end(), OSSL_PARAM_construct_end()};
  char instance[] = "Ed25519ctx";  // Ed25519 itself takes no context
  if (manner.has_context && manner.context.size() > 0) {
    if (EVP_PKEY_is_a(pkey, "ED25519") == 1) {
      params[1] = OSSL_PARAM_construct_utf8_string(OSSL_SIGNATURE_PARAM_INSTANCE, instance, 0);
    }
    params[0] = OSSL_PARAM_construct_octet_string(OSSL_SIGNATURE_PARAM_CONTEXT_STRING,
                                                  const_cast<uint8_t*>(manner.context.data()), manner.context.size());
  }
  EVP_PKEY_CTX* inner = nullptr;
  const char* name = manner.md == nullptr ? nullptr : EVP_MD_get0_name(manner.md);
  const auto init = signs ? EVP_DigestSignInit_ex : EVP_DigestVerifyInit_ex;
  if (init(context, &inner, name, nullptr, nullptr, pkey, params) != 1) return false;
  if (!IsRsa(pkey)) return true;
  const int padding = manner.has_padding                    ? manner.padding
                      : EVP_PKEY_is_a(pkey, "RSA-PSS") == 1 ? RSA_PKCS1_PSS_PADDING
                                                            : RSA_PKCS1_PADDING;
  if (EVP_PKEY_CTX_set_rsa_padding(inner, padding) <= 0) return false;
  return padding != RSA_PKCS1_PSS_PADDING || !manner.has_salt ||
         EVP_PKEY_CTX_set_rsa_pss_saltlen(inner, manner.salt) > 0;
}

// Reads the last five arguments of both functions.
Manner ReadManner(Operation& op, int hash, int first) {
  Manner manner;
  manner.md = op.IsGiven(hash) ? op.Hash(hash) : nullptr;
  manner.has_padding = op.IsGiven(first);
  if (manner.has_padding) manner.padding = op.Signed(first);
  manner.has_salt = op.IsGiven(first + 1);
  if (manner.has_salt) manner.salt = op.Signed(first + 1);
  manner.flat = op.Flag(first + 2);
  manner.has_context = op.IsGiven(first + 3);
  if (manner.has_context) manner.context = op.View(first + 3);
  return manner;
}

// signWith(handle, hash | undefined, data, padding | undefined, salt | undefined, flat, context | undefined)
// -> ArrayBuffer; text if OpenSSL refuses
void SignWith(const Arguments& args) {
  Operation op(args);
  op.TakesLong(2);
  std::shared_ptr<Key> key = op.Asymmetric(0);
  Input data = op.View(2);
  Manner manner = ReadManner(op, 1, 3);
  if (op.Refused()) return;
  op.Finish([key = std::move(key), data = std::move(data), manner = std::move(manner)](const Job*) -> Result {
    EVP_PKEY* pkey = key->pkey.get();
    const DigestContext context(EVP_MD_CTX_new());
    size_t length = 0;
    if (context == nullptr || !Begin(context.get(), pkey, manner, true) ||
        EVP_DigestSign(context.get(), nullptr, &length, data.data(), data.size()) != 1) {
      return Faulted();
    }
    Bytes out(length);
    if (!out.ok() || EVP_DigestSign(context.get(), out.data(), &length, data.data(), data.size()) != 1)
      return Faulted();
    out.Shrink(length);
    const size_t bytes = manner.flat ? NumberBytes(pkey) : 0;
    if (bytes > 0) return FlattenSignature(out.span(), bytes);
    return out;
  });
}

// verifyWith(handle, hash | undefined, data, padding | undefined, salt | undefined, flat, context | undefined,
// signature) -> boolean; text if OpenSSL refuses; undefined if a flat signature has a wrong length
void VerifyWith(const Arguments& args) {
  Operation op(args);
  op.TakesLong(2);
  std::shared_ptr<Key> key = op.Asymmetric(0);
  Input data = op.View(2);
  Manner manner = ReadManner(op, 1, 3);
  Input signature = op.View(7);
  if (op.Refused()) return;
  op.Finish([key = std::move(key), data = std::move(data), manner = std::move(manner),
             signature = std::move(signature)](const Job*) -> Result {
    EVP_PKEY* pkey = key->pkey.get();
    const DigestContext context(EVP_MD_CTX_new());
    if (context == nullptr || !Begin(context.get(), pkey, manner, false)) return Faulted();
    std::span<const uint8_t> checked = signature.span();
    Bytes der;
    if (const size_t bytes = manner.flat ? NumberBytes(pkey) : 0; bytes > 0) {
      if (signature.size() != 2 * bytes) return Failed();
      der = EncodeSignature(checked);
      if (!der.ok()) return Failed();
      checked = der.span();
    }
    return EVP_DigestVerify(context.get(), checked.data(), checked.size(), data.data(), data.size()) == 1;
  });
}

constexpr Function kFunctions[] = {{"signWith", SignWith}, {"verifyWith", VerifyWith}};

}  // namespace

std::span<const Function> SigningFunctions() { return kFunctions; }

}  // namespace engine::native
