// Key agreement and RSA encryption of node:crypto: ECDH on any named curve, Diffie-Hellman, prime numbers.

#include <openssl/dh.h>
#include <openssl/obj_mac.h>
#include <openssl/objects.h>
#include <openssl/rsa.h>

#include <algorithm>
#include <string>

#include "isolate/realm.h"
#include "native/crypto.h"
#include "native/native.h"

namespace engine::native {

namespace {

constexpr size_t kMostBytes = 1024;  // of a number: 8192 bits take a tenth of a second to raise to a power
constexpr uint32_t kMostPrimeBits = 4096;

// The text of an argument, for OpenSSL's names.
std::string TextOf(const Arguments& args, int index) {
  if (!args[index]->IsString()) return {};
  return FromV8(args.GetIsolate(), args[index]).substr(0, 64);
}

Group GroupOf(const Arguments& args, int index) {
  const int nid = OBJ_sn2nid(TextOf(args, index).c_str());
  return Group(nid == NID_undef ? nullptr : EC_GROUP_new_by_curve_name(nid));
}

Number NumberOf(const Input& bytes) { return Number(BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr)); }

Bytes BytesOf(const BIGNUM* number, size_t size) {
  Bytes out(size);
  if (!out.ok() || BN_bn2binpad(number, out.data(), static_cast<int>(size)) < 0) return {};
  return out;
}

Bytes BytesOf(const BIGNUM* number) { return BytesOf(number, static_cast<size_t>(BN_num_bytes(number))); }

size_t FieldBytes(const EC_GROUP* group) { return (static_cast<size_t>(EC_GROUP_get_degree(group)) + 7) / 8; }

Result Encoded(const EC_GROUP* group, const EC_POINT* point, uint32_t form) {
  const auto conversion = form == 2   ? POINT_CONVERSION_COMPRESSED
                          : form == 6 ? POINT_CONVERSION_HYBRID
                                      : POINT_CONVERSION_UNCOMPRESSED;
  const size_t size = EC_POINT_point2oct(group, point, conversion, nullptr, 0, nullptr);
  Bytes out(size);
  if (size == 0 || !out.ok() || EC_POINT_point2oct(group, point, conversion, out.data(), size, nullptr) != size) {
    return Failed();
  }
  return out;
}

Point Decoded(const EC_GROUP* group, const Input& bytes) {
  Point point(EC_POINT_new(group));
  if (point == nullptr || EC_POINT_oct2point(group, point.get(), bytes.data(), bytes.size(), nullptr) != 1) return {};
  return point;
}

// True for a number that is a private key: from 1 to the order of the group, exclusive.
bool IsPrivate(const EC_GROUP* group, const BIGNUM* number) {
  return number != nullptr && !BN_is_zero(number) && BN_cmp(number, EC_GROUP_get0_order(group)) < 0;
}

// curveNames() -> names of all built-in curves, as one text with spaces
void CurveNames(const Arguments& args) {
  EC_builtin_curve curves[128];
  const size_t count = std::min(EC_get_builtin_curves(curves, std::size(curves)), std::size(curves));
  std::string names;
  for (size_t i = 0; i < count; i++) names += std::string(i == 0 ? "" : " ") + OBJ_nid2sn(curves[i].nid);
  args.GetReturnValue().Set(ToV8(args.GetIsolate(), names));
}

// ecdhGenerate(curve) -> private key
void EcdhGenerate(const Arguments& args) {
  Operation op(args);
  const Group group = GroupOf(args, 0);
  if (group == nullptr) return;
  op.Finish([&](const Job*) -> Result {
    const Number number(BN_secure_new());
    if (number == nullptr) return Failed();
    do {
      if (BN_priv_rand_range(number.get(), EC_GROUP_get0_order(group.get())) != 1) return Failed();
    } while (BN_is_zero(number.get()));
    return BytesOf(number.get(), static_cast<size_t>(BN_num_bytes(EC_GROUP_get0_order(group.get()))));
  });
}

// ecdhPublic(curve, private key, form) -> point; undefined if the key is not valid
void EcdhPublic(const Arguments& args) {
  Operation op(args);
  const Group group = GroupOf(args, 0);
  const Input secret = op.View(1);
  const uint32_t form = op.Integer(2);
  if (op.Refused() || group == nullptr || secret.size() > kMostBytes) return;
  op.Finish([&](const Job*) -> Result {
    const Number number = NumberOf(secret);
    const Point point(EC_POINT_new(group.get()));
    if (!IsPrivate(group.get(), number.get()) || point == nullptr ||
        EC_POINT_mul(group.get(), point.get(), number.get(), nullptr, nullptr, nullptr) != 1) {
      return Failed();
    }
    return Encoded(group.get(), point.get(), form);
  });
}

// ecdhConvert(curve, point, form) -> point; undefined if it is not on the curve
void EcdhConvert(const Arguments& args) {
  Operation op(args);
  const Group group = GroupOf(args, 0);
  const Input bytes = op.View(1);
  const uint32_t form = op.Integer(2);
  if (op.Refused() || group == nullptr || bytes.size() > kMostBytes) return;
  op.Finish([&](const Job*) -> Result {
    const Point point = Decoded(group.get(), bytes);
    return point == nullptr ? Failed() : Encoded(group.get(), point.get(), form);
  });
}

// ecdhSecret(curve, private key, point) -> the x coordinate they agree on; undefined if one of them is not valid
void EcdhSecret(const Arguments& args) {
  Operation op(args);
  const Group group = GroupOf(args, 0);
  const Input secret = op.View(1);
  const Input other = op.View(2);
  if (op.Refused() || group == nullptr || secret.size() > kMostBytes || other.size() > kMostBytes) return;
  op.Finish([&](const Job*) -> Result {
    const Number number = NumberOf(secret);
    const Point theirs = Decoded(group.get(), other);
    const Point shared(EC_POINT_new(group.get()));
    const Number x(BN_new());
    if (!IsPrivate(group.get(), number.get()) || theirs == nullptr || shared == nullptr || x == nullptr ||
        EC_POINT_mul(group.get(), shared.get(), nullptr, theirs.get(), number.get(), nullptr) != 1 ||
        EC_POINT_is_at_infinity(group.get(), shared.get()) == 1 ||
        EC_POINT_get_affine_coordinates(group.get(), shared.get(), x.get(), nullptr, nullptr) != 1) {
      return Failed();
    }
    return BytesOf(x.get(), FieldBytes(group.get()));
  });
}

// dhPower(base, exponent, prime) -> base to the exponent, as long as the prime
void DhPower(const Arguments& args) {
  Operation op(args);
  const Input base = op.View(0);
  const Input exponent = op.View(1);
  const Input prime = op.View(2);
  if (op.Refused() || std::max({base.size(), exponent.size(), prime.size()}) > kMostBytes) return;
  op.Finish([&](const Job*) -> Result {
    const Number g = NumberOf(base);
    const Number x = NumberOf(exponent);
    const Number p = NumberOf(prime);
    const Number result(BN_new());
    const NumberContext context(BN_CTX_new());
    if (g == nullptr || x == nullptr || p == nullptr || result == nullptr || context == nullptr ||
        BN_num_bits(p.get()) < 2 || !BN_is_odd(p.get()) || BN_nnmod(g.get(), g.get(), p.get(), context.get()) != 1 ||
        BN_mod_exp_mont_consttime(result.get(), g.get(), x.get(), p.get(), context.get(), nullptr) != 1) {
      return Failed();
    }
    return BytesOf(result.get(), prime.size());
  });
}

// dhGroup(name) -> prime; undefined if there is no such group. Their generator is 2.
void DhGroup(const Arguments& args) {
  static constexpr struct {
    const char* name;
    BIGNUM* (*prime)(BIGNUM*);
  } kGroups[] = {{"modp1", BN_get_rfc2409_prime_768},   {"modp2", BN_get_rfc2409_prime_1024},
                 {"modp5", BN_get_rfc3526_prime_1536},  {"modp14", BN_get_rfc3526_prime_2048},
                 {"modp15", BN_get_rfc3526_prime_3072}, {"modp16", BN_get_rfc3526_prime_4096},
                 {"modp17", BN_get_rfc3526_prime_6144}, {"modp18", BN_get_rfc3526_prime_8192}};
  Operation op(args);
  const std::string name = TextOf(args, 0);
  for (const auto& group : kGroups) {
    if (name != group.name) continue;
    const Number prime(group.prime(nullptr));
    op.Finish([&](const Job*) -> Result { return prime == nullptr ? Failed() : Result(BytesOf(prime.get())); });
    return;
  }
}

// Stops the search for a prime that takes too long.
struct Patience {
  const Job* job;
  v8::Isolate* isolate;
};

int KeepSearching(int, int, BN_GENCB* callback) {
  const auto* patience = static_cast<const Patience*>(BN_GENCB_get_arg(callback));
  return patience->job == nullptr ? !IsOutOfTime(patience->isolate) : !patience->job->MustStop();
}

using Callback = std::unique_ptr<BN_GENCB, Freed<BN_GENCB_free>>;

// generatePrime(bits, safe, add | empty, rem | empty) -> prime
void GeneratePrime(const Arguments& args) {
  Operation op(args);
  op.TakesLong();
  const uint32_t bits = op.Integer(0);
  const bool safe = op.Flag(1);
  Input add = op.View(2);
  Input rem = op.View(3);
  if (op.Refused() || bits < 2 || bits > kMostPrimeBits || std::max(add.size(), rem.size()) > kMostBytes) return;
  op.Finish([bits, safe, add = std::move(add), rem = std::move(rem),
             isolate = args.GetIsolate()](const Job* job) -> Result {
    const Number prime(BN_new());
    const Number step = NumberOf(add);
    const Number rest = NumberOf(rem);
    const Callback callback(BN_GENCB_new());
    if (prime == nullptr || step == nullptr || rest == nullptr || callback == nullptr) return Failed();
    Patience patience{job, isolate};
    BN_GENCB_set(callback.get(), KeepSearching, &patience);
    const BIGNUM* with_step = add.size() == 0 ? nullptr : step.get();
    const BIGNUM* with_rest = rem.size() == 0 ? nullptr : rest.get();
    if (BN_generate_prime_ex(prime.get(), static_cast<int>(bits), safe, with_step, with_rest, callback.get()) != 1) {
      return Failed();
    }
    return BytesOf(prime.get(), (bits + 7) / 8);
  });
}

// checkPrime(number) -> boolean
void CheckPrime(const Arguments& args) {
  Operation op(args);
  op.TakesLong(0);
  Input candidate = op.View(0);
  if (op.Refused() || candidate.size() > kMostBytes) return;
  op.Finish([candidate = std::move(candidate), isolate = args.GetIsolate()](const Job* job) -> Result {
    const Number number = NumberOf(candidate);
    const NumberContext context(BN_CTX_new());
    const Callback callback(BN_GENCB_new());
    if (number == nullptr || context == nullptr || callback == nullptr) return Failed();
    Patience patience{job, isolate};
    BN_GENCB_set(callback.get(), KeepSearching, &patience);
    const int found = BN_check_prime(number.get(), context.get(), callback.get());
    if (found < 0) return Failed();
    return found == 1;
  });
}

using Run = int (*)(EVP_PKEY_CTX*, unsigned char*, size_t*, const unsigned char*, size_t);

// rsaCrypt(handle, what, padding, hash, label, data) -> ArrayBuffer. `what`: 0 encrypts with the public key, 1 decrypts
// with the private key, 2 encrypts with the private key, 3 decrypts with the public key.
void RsaCrypt(const Arguments& args) {
  static constexpr struct {
    int (*init)(EVP_PKEY_CTX*);
    Run run;
  } kSteps[] = {{EVP_PKEY_encrypt_init, EVP_PKEY_encrypt},
                {EVP_PKEY_decrypt_init, EVP_PKEY_decrypt},
                {EVP_PKEY_sign_init, EVP_PKEY_sign},
                {EVP_PKEY_verify_recover_init, EVP_PKEY_verify_recover}};
  Operation op(args);
  const std::shared_ptr<Key> key = op.Asymmetric(0);
  const uint32_t what = op.Integer(1);
  const int padding = static_cast<int>(op.Integer(2));
  const EVP_MD* md = op.Hash(3);
  const Input label = op.View(4);
  const Input data = op.View(5);
  if (op.Refused() || what >= std::size(kSteps) || label.size() > INT32_MAX) return;
  op.Finish([&](const Job*) -> Result {
    const PkeyContext context(EVP_PKEY_CTX_new_from_pkey(nullptr, key->pkey.get(), nullptr));
    EVP_PKEY_CTX* rsa = context.get();
    if (rsa == nullptr || kSteps[what].init(rsa) != 1 || EVP_PKEY_CTX_set_rsa_padding(rsa, padding) != 1) {
      return Failed();
    }
    if (padding == RSA_PKCS1_OAEP_PADDING) {
      if (EVP_PKEY_CTX_set_rsa_oaep_md(rsa, md) != 1) return Failed();
      void* copy = label.size() == 0 ? nullptr : OPENSSL_memdup(label.data(), label.size());
      if (label.size() > 0 &&
          (copy == nullptr || EVP_PKEY_CTX_set0_rsa_oaep_label(rsa, copy, static_cast<int>(label.size())) != 1)) {
        OPENSSL_free(copy);
        return Failed();
      }
    }
    size_t length = 0;
    if (kSteps[what].run(rsa, nullptr, &length, data.data(), data.size()) != 1) return Failed();
    Bytes out(length);
    if (!out.ok() || kSteps[what].run(rsa, out.data(), &length, data.data(), data.size()) != 1) return Failed();
    out.Shrink(length);
    return out;
  });
}

// cipherInfo(name | number, key bytes | undefined, iv bytes | undefined) -> "mode name number block iv key"; undefined
// if there is no such cipher, or it does not take these lengths
void CipherInfo(const Arguments& args) {
  Operation op(args);
  const EVP_CIPHER* cipher = args[0]->IsUint32() ? EVP_get_cipherbynid(static_cast<int>(op.Integer(0)))
                                                 : EVP_get_cipherbyname(TextOf(args, 0).c_str());
  if (cipher == nullptr) return;
  const int mode = EVP_CIPHER_get_mode(cipher);
  int iv = EVP_CIPHER_get_iv_length(cipher);
  int key = EVP_CIPHER_get_key_length(cipher);
  if (op.IsGiven(1) || op.IsGiven(2)) {
    ErrorScope errors;
    const CipherContext context(EVP_CIPHER_CTX_new());
    if (context == nullptr || EVP_CipherInit_ex(context.get(), cipher, nullptr, nullptr, nullptr, 1) != 1) return;
    if (op.IsGiven(1)) {
      key = static_cast<int>(op.Integer(1));
      if (EVP_CIPHER_CTX_set_key_length(context.get(), key) != 1) return;
    }
    if (op.IsGiven(2)) {
      const int wanted = static_cast<int>(op.Integer(2));
      const bool may_choose =
          mode == EVP_CIPH_CCM_MODE || mode == EVP_CIPH_OCB_MODE || EVP_CIPHER_get_nid(cipher) == NID_chacha20_poly1305;
      const bool fits =
          wanted == iv || mode == EVP_CIPH_GCM_MODE ||
          (may_choose && EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_IVLEN, wanted, nullptr) == 1);
      if (!fits) return;
      iv = wanted;
    }
  }
  static constexpr std::pair<int, const char*> kModes[] = {
      {EVP_CIPH_ECB_MODE, "ecb"}, {EVP_CIPH_CBC_MODE, "cbc"},        {EVP_CIPH_CFB_MODE, "cfb"},
      {EVP_CIPH_OFB_MODE, "ofb"}, {EVP_CIPH_CTR_MODE, "ctr"},        {EVP_CIPH_GCM_MODE, "gcm"},
      {EVP_CIPH_CCM_MODE, "ccm"}, {EVP_CIPH_XTS_MODE, "xts"},        {EVP_CIPH_WRAP_MODE, "wrap"},
      {EVP_CIPH_OCB_MODE, "ocb"}, {EVP_CIPH_STREAM_CIPHER, "stream"}};
  const char* mode_name = "";
  for (const auto& [number, name] : kModes) {
    if (number == mode) mode_name = name;
  }
  const int nid = EVP_CIPHER_get_nid(cipher);
  const int block = mode == EVP_CIPH_STREAM_CIPHER ? 0 : EVP_CIPHER_get_block_size(cipher);
  std::string text = std::string(mode_name) + " " + OBJ_nid2sn(nid);
  for (const int number : {nid, block, iv, key}) text += " " + std::to_string(number);
  args.GetReturnValue().Set(ToV8(args.GetIsolate(), text));
}

constexpr Function kFunctions[] = {
    {"curveNames", CurveNames},   {"ecdhGenerate", EcdhGenerate}, {"ecdhPublic", EcdhPublic},
    {"ecdhConvert", EcdhConvert}, {"ecdhSecret", EcdhSecret},     {"dhPower", DhPower},
    {"dhGroup", DhGroup},         {"findPrime", GeneratePrime},   {"isPrime", CheckPrime},
    {"rsaCrypt", RsaCrypt},       {"cipherInfo", CipherInfo},
};

}  // namespace

std::span<const Function> AgreementFunctions() { return kFunctions; }

}  // namespace engine::native
