// RSA keys: generation, import and export. Their use is in crypto_sign.cc.

#include <openssl/core_names.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#include "native/crypto.h"
#include "native/native.h"

namespace engine::native {

namespace {

// Bits of a modulus. Larger keys take minutes to generate and seconds to use, and their use cannot be interrupted.
constexpr uint32_t kMostBits = 8192;
constexpr size_t kParts = 8;
constexpr const char* kNames[kParts] = {OSSL_PKEY_PARAM_RSA_N,         OSSL_PKEY_PARAM_RSA_E,
                                        OSSL_PKEY_PARAM_RSA_D,         OSSL_PKEY_PARAM_RSA_FACTOR1,
                                        OSSL_PKEY_PARAM_RSA_FACTOR2,   OSSL_PKEY_PARAM_RSA_EXPONENT1,
                                        OSSL_PKEY_PARAM_RSA_EXPONENT2, OSSL_PKEY_PARAM_RSA_COEFFICIENT1};

using ParamsBuilder = std::unique_ptr<OSSL_PARAM_BLD, Freed<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Freed<OSSL_PARAM_free>>;

// The numbers of a key in the order of kNames; only the first two for a public key.
struct Parts {
  Number number[kParts];
  bool is_private = false;
};

bool ReadParts(EVP_PKEY* pkey, Parts& parts) {
  for (size_t i = 0; i < kParts; i++) {
    BIGNUM* number = nullptr;
    if (EVP_PKEY_get_bn_param(pkey, kNames[i], &number) != 1) {
      if (i == 2) return true;
      return false;
    }
    parts.number[i].reset(number);
    parts.is_private = i >= 2;
  }
  return true;
}

// True if the numbers are consistent: d·e = 1 modulo p-1 and q-1, and so on. Does not test whether p and q are prime.
// https://www.rfc-editor.org/rfc/rfc8017#section-3.2
bool Consistent(const Parts& parts) {
  const BIGNUM* n = parts.number[0].get();
  const BIGNUM* e = parts.number[1].get();
  const int bits = BN_num_bits(n);
  if (bits < 256 || static_cast<uint32_t>(bits) > kMostBits || !BN_is_odd(n)) return false;
  if (!BN_is_odd(e) || BN_is_one(e) || BN_cmp(e, n) >= 0) return false;
  if (!parts.is_private) return true;
  const NumberContext context(BN_CTX_new());
  const Number product(BN_secure_new()), less(BN_secure_new());
  if (context == nullptr || product == nullptr || less == nullptr) return false;
  const BIGNUM* d = parts.number[2].get();
  const BIGNUM* prime[] = {parts.number[3].get(), parts.number[4].get()};
  const BIGNUM* exponent[] = {parts.number[5].get(), parts.number[6].get()};
  if (BN_mul(product.get(), prime[0], prime[1], context.get()) != 1 || BN_cmp(product.get(), n) != 0) return false;
  for (int i = 0; i < 2; i++) {
    if (BN_is_zero(prime[i]) || BN_is_one(prime[i]) || BN_sub(less.get(), prime[i], BN_value_one()) != 1) return false;
    if (BN_mod_mul(product.get(), d, e, less.get(), context.get()) != 1 || !BN_is_one(product.get())) return false;
    if (BN_mod(product.get(), d, less.get(), context.get()) != 1 || BN_cmp(product.get(), exponent[i]) != 0) {
      return false;
    }
  }
  return BN_mod_mul(product.get(), parts.number[7].get(), prime[1], prime[0], context.get()) == 1 &&
         BN_is_one(product.get());
}

Pkey Build(const Parts& parts) {
  const ParamsBuilder builder(OSSL_PARAM_BLD_new());
  const PkeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr));
  if (builder == nullptr || context == nullptr) return nullptr;
  for (size_t i = 0; i < (parts.is_private ? kParts : 2); i++) {
    if (OSSL_PARAM_BLD_push_BN(builder.get(), kNames[i], parts.number[i].get()) != 1) return nullptr;
  }
  const Params params(OSSL_PARAM_BLD_to_param(builder.get()));
  EVP_PKEY* pkey = nullptr;
  const int selection = parts.is_private ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY;
  if (params == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &pkey, selection, params.get()) != 1) {
    return nullptr;
  }
  return Pkey(pkey);
}

// importRsa(n, e) or importRsa(n, e, d, p, q, dp, dq, qi) -> handle; undefined if they are not a valid key
void ImportRsa(const Arguments& args) {
  Operation op(args);
  Parts parts;
  parts.is_private = op.IsGiven(2);
  for (int i = 0; i < (parts.is_private ? 8 : 2); i++) {
    const Input bytes = op.View(i);
    if (op.Refused()) return;
    if (bytes.size() > kMostBits / 8 + 8) return;
    parts.number[i].reset(BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr));
    if (parts.number[i] == nullptr) return;
  }
  op.Finish([&](const Job*) -> Result {
    if (!Consistent(parts)) return Failed();
    return Build(parts);
  });
}

// rsaParts(handle, private) -> [n, e] or [n, e, d, p, q, dp, dq, qi]; undefined if it has none
void RsaParts(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Asymmetric(0);
  const bool all = op.Flag(1);
  if (op.Refused()) return;
  ErrorScope errors;
  Parts parts;
  if (!ReadParts(key->pkey.get(), parts) || (all && !parts.is_private)) return;
  Bytes list[kParts];
  const size_t count = all ? kParts : 2;
  for (size_t i = 0; i < count; i++) {
    list[i] = Bytes(static_cast<size_t>(BN_num_bytes(parts.number[i].get())));
    if (!list[i].ok()) return;
    BN_bn2bin(parts.number[i].get(), list[i].data());
  }
  op.FinishWithList({list, count});
}

// Stops a key generation that takes too long: by the budget of the job, or without a job by the CPU limit of the entry.
struct Patience {
  const Job* job;
  v8::Isolate* isolate;
};

int KeepGenerating(EVP_PKEY_CTX* context) {
  const Patience* patience = static_cast<const Patience*>(EVP_PKEY_CTX_get_app_data(context));
  return patience->job == nullptr ? !IsOutOfTime(patience->isolate) : !patience->job->MustStop();
}

// generateRsa(bits, public exponent) -> handle
void GenerateRsa(const Arguments& args) {
  Operation op(args);
  op.TakesLong();
  const uint32_t bits = op.Integer(0);
  const Input exponent = op.View(1);
  if (op.Refused()) return;
  if (bits < 512 || bits > kMostBits || exponent.size() > 64) return;
  Number e(BN_bin2bn(exponent.data(), static_cast<int>(exponent.size()), nullptr));
  if (e == nullptr || !BN_is_odd(e.get()) || BN_is_one(e.get()) || BN_num_bits(e.get()) > 64) return;
  op.Finish([bits, e = std::move(e), isolate = args.GetIsolate()](const Job* job) -> Result {
    const PkeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr));
    EVP_PKEY* pkey = nullptr;
    if (context == nullptr || EVP_PKEY_keygen_init(context.get()) != 1 ||
        EVP_PKEY_CTX_set_rsa_keygen_bits(context.get(), static_cast<int>(bits)) != 1 ||
        EVP_PKEY_CTX_set1_rsa_keygen_pubexp(context.get(), e.get()) != 1) {
      return Failed();
    }
    Patience patience{job, isolate};
    EVP_PKEY_CTX_set_app_data(context.get(), &patience);
    EVP_PKEY_CTX_set_cb(context.get(), KeepGenerating);
    if (EVP_PKEY_generate(context.get(), &pkey) != 1) return Failed();
    return Pkey(pkey);
  });
}

constexpr Function kFunctions[] = {{"importRsa", ImportRsa}, {"rsaParts", RsaParts}, {"generateRsa", GenerateRsa}};

}  // namespace

bool IsSoundRsa(EVP_PKEY* pkey) {
  Parts parts;
  return ReadParts(pkey, parts) && Consistent(parts);
}

std::span<const Function> RsaFunctions() { return kFunctions; }

}  // namespace engine::native
