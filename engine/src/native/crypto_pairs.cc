// Key pairs of node:crypto: RSA, RSA-PSS, DSA, EC on all named curves, Diffie-Hellman.

#include <openssl/core_names.h>
#include <openssl/dh.h>
#include <openssl/dsa.h>
#include <openssl/obj_mac.h>
#include <openssl/objects.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#include <string>

#include "isolate/realm.h"
#include "native/crypto.h"
#include "native/native.h"

namespace engine::native {

namespace {

constexpr uint32_t kMostRsaBits = 8192;
constexpr uint32_t kMostBits = 4096;  // of a prime that must be found first
constexpr size_t kMostBytes = 1024;   // of a prime that is given

using ParamsBuilder = std::unique_ptr<OSSL_PARAM_BLD, Freed<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Freed<OSSL_PARAM_free>>;

// Stops a generation that takes too long: by the budget of the job, or without a job by the CPU limit of the entry.
struct Patience {
  const Job* job;
  v8::Isolate* isolate;
};

int KeepGenerating(EVP_PKEY_CTX* context) {
  const auto* patience = static_cast<const Patience*>(EVP_PKEY_CTX_get_app_data(context));
  return patience->job == nullptr ? !IsOutOfTime(patience->isolate) : !patience->job->MustStop();
}

std::string TextOf(const Arguments& args, int index) {
  return args[index]->IsString() ? FromV8(args.GetIsolate(), args[index]).substr(0, 64) : std::string();
}

Result Generated(EVP_PKEY_CTX* context, Patience& patience) {
  EVP_PKEY* pkey = nullptr;
  EVP_PKEY_CTX_set_app_data(context, &patience);
  EVP_PKEY_CTX_set_cb(context, KeepGenerating);
  if (EVP_PKEY_generate(context, &pkey) != 1) return Faulted();
  return Pkey(pkey);
}

// The key pair of parameters that were found, or that are given.
Result GeneratedFrom(EVP_PKEY* parameters, Patience& patience) {
  const PkeyContext context(EVP_PKEY_CTX_new_from_pkey(nullptr, parameters, nullptr));
  if (context == nullptr || EVP_PKEY_keygen_init(context.get()) != 1) return Faulted();
  return Generated(context.get(), patience);
}

// makeRsa(bits, exponent, pss, hash | undefined, hash of the mask | undefined, bytes of salt | undefined) -> handle
void MakeRsa(const Arguments& args) {
  Operation op(args);
  op.TakesLong();
  const uint32_t bits = op.Integer(0);
  const uint32_t exponent = op.Integer(1);
  const bool pss = op.Flag(2);
  const EVP_MD* md = op.IsGiven(3) ? op.Hash(3) : nullptr;
  const EVP_MD* mask = op.IsGiven(4) ? op.Hash(4) : nullptr;
  const int salt = op.IsGiven(5) ? op.Signed(5) : -1;
  if (op.Refused() || bits > kMostRsaBits) return;
  op.Finish([=, isolate = args.GetIsolate()](const Job* job) -> Result {
    const PkeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, pss ? "RSA-PSS" : "RSA", nullptr));
    const Number e(BN_new());
    EVP_PKEY_CTX* rsa = context.get();
    if (rsa == nullptr || e == nullptr || BN_set_word(e.get(), exponent) != 1 || EVP_PKEY_keygen_init(rsa) != 1 ||
        EVP_PKEY_CTX_set_rsa_keygen_bits(rsa, static_cast<int>(bits)) != 1 ||
        EVP_PKEY_CTX_set1_rsa_keygen_pubexp(rsa, e.get()) != 1) {
      return Faulted();
    }
    // OpenSSL never returns if there can be no such key.
    if (!BN_is_odd(e.get()) || BN_is_one(e.get())) {
      ERR_raise(ERR_LIB_RSA, RSA_R_PUB_EXPONENT_OUT_OF_RANGE);
      return Faulted();
    }
    if (md != nullptr && EVP_PKEY_CTX_set_rsa_pss_keygen_md(rsa, md) != 1) return Faulted();
    const EVP_MD* masked = mask == nullptr ? md : mask;
    if (masked != nullptr && EVP_PKEY_CTX_set_rsa_pss_keygen_mgf1_md(rsa, masked) != 1) return Faulted();
    const int length = salt < 0 && md != nullptr ? EVP_MD_get_size(md) : salt;
    if (length >= 0 && EVP_PKEY_CTX_set_rsa_pss_keygen_saltlen(rsa, length) != 1) return Faulted();
    Patience patience{job, isolate};
    return Generated(rsa, patience);
  });
}

// makeDsa(bits, bits of the divisor | undefined) -> handle
void MakeDsa(const Arguments& args) {
  Operation op(args);
  op.TakesLong();
  const uint32_t bits = op.Integer(0);
  const uint32_t divisor = op.IsGiven(1) ? op.Integer(1) : 0;
  if (op.Refused() || bits > kMostBits || divisor > 512) return;
  op.Finish([=, isolate = args.GetIsolate()](const Job* job) -> Result {
    const PkeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "DSA", nullptr));
    EVP_PKEY_CTX* dsa = context.get();
    Patience patience{job, isolate};
    EVP_PKEY* parameters = nullptr;
    if (dsa == nullptr || EVP_PKEY_paramgen_init(dsa) != 1 ||
        EVP_PKEY_CTX_set_dsa_paramgen_bits(dsa, static_cast<int>(bits)) != 1 ||
        (divisor > 0 && EVP_PKEY_CTX_set_dsa_paramgen_q_bits(dsa, static_cast<int>(divisor)) != 1)) {
      return Faulted();
    }
    EVP_PKEY_CTX_set_app_data(dsa, &patience);
    EVP_PKEY_CTX_set_cb(dsa, KeepGenerating);
    if (EVP_PKEY_paramgen(dsa, &parameters) != 1) return Faulted();
    const Pkey owned(parameters);
    return GeneratedFrom(parameters, patience);
  });
}

// makeEc(curve, explicit) -> handle; undefined if there is no such curve
void MakeEc(const Arguments& args) {
  Operation op(args);
  const std::string name = TextOf(args, 0);
  const bool is_explicit = op.Flag(1);
  int nid = EC_curve_nist2nid(name.c_str());
  if (nid == NID_undef) nid = OBJ_sn2nid(name.c_str());
  if (op.Refused() || nid == NID_undef) return;
  const Group group(EC_GROUP_new_by_curve_name(nid));
  if (group == nullptr) {
    ERR_clear_error();
    return;
  }
  op.Finish([&](const Job* job) -> Result {
    const PkeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
    EVP_PKEY_CTX* ec = context.get();
    if (ec == nullptr || EVP_PKEY_keygen_init(ec) != 1 || EVP_PKEY_CTX_set_ec_paramgen_curve_nid(ec, nid) != 1 ||
        EVP_PKEY_CTX_set_ec_param_enc(ec, is_explicit ? OPENSSL_EC_EXPLICIT_CURVE : OPENSSL_EC_NAMED_CURVE) != 1) {
      return Faulted();
    }
    Patience patience{job, args.GetIsolate()};
    return Generated(ec, patience);
  });
}

// The parameters of a group of Diffie-Hellman.
Pkey ParametersOf(const Input& prime, uint32_t generator) {
  const ParamsBuilder builder(OSSL_PARAM_BLD_new());
  const PkeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "DH", nullptr));
  const Number p(BN_bin2bn(prime.data(), static_cast<int>(prime.size()), nullptr));
  const Number g(BN_new());
  if (builder == nullptr || context == nullptr || p == nullptr || g == nullptr ||
      BN_set_word(g.get(), generator) != 1 || BN_num_bits(p.get()) < 2 || !BN_is_odd(p.get()) ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_FFC_P, p.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_FFC_G, g.get()) != 1) {
    return nullptr;
  }
  const Params params(OSSL_PARAM_BLD_to_param(builder.get()));
  EVP_PKEY* pkey = nullptr;
  if (params == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &pkey, EVP_PKEY_KEY_PARAMETERS, params.get()) != 1) {
    return nullptr;
  }
  return Pkey(pkey);
}

// makeDh(prime | bits, generator) -> handle
void MakeDh(const Arguments& args) {
  Operation op(args);
  op.TakesLong();
  const bool is_given = args[0]->IsArrayBufferView();
  Input prime = is_given ? op.View(0) : Input();
  const uint32_t bits = is_given ? 0 : op.Integer(0);
  const uint32_t generator = op.Integer(1);
  if (op.Refused() || bits > kMostBits || prime.size() > kMostBytes) return;
  op.Finish([=, prime = std::move(prime), isolate = args.GetIsolate()](const Job* job) -> Result {
    Patience patience{job, isolate};
    if (is_given) {
      const Pkey parameters = ParametersOf(prime, generator);
      return parameters == nullptr ? Faulted() : GeneratedFrom(parameters.get(), patience);
    }
    const PkeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "DH", nullptr));
    EVP_PKEY_CTX* dh = context.get();
    EVP_PKEY* parameters = nullptr;
    if (dh == nullptr || EVP_PKEY_paramgen_init(dh) != 1 ||
        EVP_PKEY_CTX_set_dh_paramgen_prime_len(dh, static_cast<int>(bits)) != 1 ||
        EVP_PKEY_CTX_set_dh_paramgen_generator(dh, static_cast<int>(generator)) != 1) {
      return Faulted();
    }
    EVP_PKEY_CTX_set_app_data(dh, &patience);
    EVP_PKEY_CTX_set_cb(dh, KeepGenerating);
    if (EVP_PKEY_paramgen(dh, &parameters) != 1) return Faulted();
    const Pkey owned(parameters);
    return GeneratedFrom(parameters, patience);
  });
}

// deriveShared(handle, handle) -> ArrayBuffer: the secret that a private and a public key agree on
void DeriveShared(const Arguments& args) {
  Operation op(args);
  op.TakesLong();
  std::shared_ptr<Key> ours = op.Asymmetric(0);
  std::shared_ptr<Key> theirs = op.Asymmetric(1);
  if (op.Refused()) return;
  op.Finish([ours = std::move(ours), theirs = std::move(theirs)](const Job*) -> Result {
    const PkeyContext context(EVP_PKEY_CTX_new_from_pkey(nullptr, ours->pkey.get(), nullptr));
    size_t length = 0;
    if (context == nullptr || EVP_PKEY_derive_init(context.get()) != 1 ||
        EVP_PKEY_derive_set_peer(context.get(), theirs->pkey.get()) != 1 ||
        EVP_PKEY_derive(context.get(), nullptr, &length) != 1) {
      return Faulted();
    }
    // Diffie-Hellman omits leading zeros; the secret has the length of the prime.
    Bytes found(length);
    const size_t full = length;
    if (!found.ok() || EVP_PKEY_derive(context.get(), found.data(), &length) != 1) return Faulted();
    if (length == full) return found;
    Bytes padded(full);
    if (!padded.ok()) return Failed();
    std::fill_n(padded.data(), full - length, uint8_t{0});
    std::copy_n(found.data(), length, padded.data() + (full - length));
    return padded;
  });
}

constexpr Function kFunctions[] = {
    {"makeRsa", MakeRsa}, {"makeDsa", MakeDsa}, {"makeEc", MakeEc}, {"makeDh", MakeDh}, {"deriveShared", DeriveShared}};

}  // namespace

std::span<const Function> KeyPairFunctions() { return kFunctions; }

}  // namespace engine::native
