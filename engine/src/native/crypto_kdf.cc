// Keys from secrets: HKDF, PBKDF2, scrypt and key agreement.

#include <algorithm>
#include <cstring>

#include "native/crypto.h"
#include "native/native.h"

namespace engine::native {

namespace {

// PBKDF2 cannot be interrupted, so its work is bounded. A key may need several rounds of the allowed iterations: 64
// rounds of the default take about a second.
uint64_t most_iterations = 100'000;
constexpr uint64_t kMostRounds = 64;
// This many take about a millisecond.
constexpr uint64_t kFewIterations = 2'000;

// https://www.rfc-editor.org/rfc/rfc5869#section-2
Result Hkdf(const EVP_MD* md, std::span<const uint8_t> secret, std::span<const uint8_t> salt,
            std::span<const uint8_t> info, size_t length) {
  Bytes out(length);
  Bytes extracted(EVP_MAX_MD_SIZE);
  Bytes block(EVP_MAX_MD_SIZE);
  if (!out.ok() || !extracted.ok() || !block.ok()) return Failed();
  const uint8_t zeros[EVP_MAX_MD_SIZE] = {};
  const size_t size = static_cast<size_t>(EVP_MD_get_size(md));
  if (salt.empty()) salt = {zeros, size};
  if (Hmac(md, salt, {secret}, extracted.data()) != size) return Failed();
  size_t done = 0;
  for (uint8_t counter = 1; done < length; counter++) {
    const std::span<const uint8_t> previous(block.data(), done == 0 ? 0 : size);
    if (Hmac(md, {extracted.data(), size}, {previous, info, {&counter, 1}}, block.data()) != size) return Failed();
    const size_t part = std::min(size, length - done);
    std::memcpy(out.data() + done, block.data(), part);
    done += part;
  }
  return out;
}

// hkdf(handle, hash, salt, info, bytes) -> ArrayBuffer
void DeriveHkdf(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Secret(0);
  const EVP_MD* md = op.Hash(1);
  const Input salt = op.View(2);
  const Input info = op.View(3);
  const size_t length = op.Integer(4);
  if (op.Refused()) return;
  if (length > 255u * static_cast<size_t>(EVP_MD_get_size(md))) return;
  // The info is hashed once for each block.
  constexpr size_t kMostInfo = size_t{1} << 16;
  if (info.size() > kMostInfo) return;
  op.Finish([&](const Job*) -> Result { return Hkdf(md, key->secret.span(), salt.span(), info.span(), length); });
}

// pbkdf2(handle, hash, salt, iterations, bytes) -> ArrayBuffer
void DerivePbkdf2(const Arguments& args) {
  Operation op(args);
  const EVP_MD* md = op.Hash(1);
  const uint32_t iterations = op.Integer(3);
  const uint32_t length = op.Integer(4);
  if (op.Refused()) return;
  const uint64_t blocks = length / static_cast<uint32_t>(EVP_MD_get_size(md)) + 1;
  if (iterations == 0 || iterations > most_iterations || iterations * blocks > most_iterations * kMostRounds) return;
  if (iterations * blocks > kFewIterations) op.TakesLong(2);
  std::shared_ptr<Key> key = op.Secret(0);
  Input salt = op.View(2);
  if (op.Refused()) return;
  op.Finish([=, key = std::move(key), salt = std::move(salt)](const Job*) -> Result {
    Bytes out(length);
    if (!out.ok() || salt.size() > INT32_MAX || key->secret.size() > INT32_MAX) return Failed();
    const char* password = reinterpret_cast<const char*>(key->secret.data());
    const int made =
        PKCS5_PBKDF2_HMAC(password, static_cast<int>(key->secret.size()), salt.data(), static_cast<int>(salt.size()),
                          static_cast<int>(iterations), md, static_cast<int>(length), out.data());
    if (made != 1) return Failed();
    return out;
  });
}

// scrypt(password, salt, cost, block size, parallelization, bytes) -> ArrayBuffer; undefined if it exceeds the limit
void DeriveScrypt(const Arguments& args) {
  Operation op(args);
  const uint64_t cost = op.Integer(2);
  const uint64_t block = op.Integer(3);
  const uint64_t parallel = op.Integer(4);
  const uint32_t length = op.Integer(5);
  if (op.Refused()) return;
  // scrypt cannot be interrupted either. This limit is four times Node's default, and takes about 200 ms.
  constexpr uint64_t kMostWork = uint64_t{1} << 19;
  constexpr uint64_t kMostMemory = uint64_t{96} << 20;
  if (cost > kMostWork || block > kMostWork || parallel > kMostWork || cost * block * parallel > kMostWork) return;
  if (length > (1u << 20) || cost * block * 128 > kMostMemory) return;
  op.TakesLong(1);
  Input password = op.View(0);
  Input salt = op.View(1);
  if (op.Refused()) return;
  op.Finish([=, password = std::move(password), salt = std::move(salt)](const Job*) -> Result {
    Bytes out(length);
    const char* secret = reinterpret_cast<const char*>(password.data());
    if (!out.ok() || EVP_PBE_scrypt(secret == nullptr ? "" : secret, password.size(), salt.data(), salt.size(), cost,
                                    block, parallel, kMostMemory * 2, out.data(), length) != 1) {
      return Failed();
    }
    return out;
  });
}

// agree(private handle, public handle) -> ArrayBuffer: ECDH and X25519
void Agree(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> own = op.Asymmetric(0);
  const std::shared_ptr<Key> peer = op.Asymmetric(1);
  if (op.Refused()) return;
  op.Finish([&](const Job*) -> Result {
    const PkeyContext context(EVP_PKEY_CTX_new_from_pkey(nullptr, own->pkey.get(), nullptr));
    size_t length = 0;
    if (context == nullptr || EVP_PKEY_derive_init(context.get()) != 1 ||
        EVP_PKEY_derive_set_peer(context.get(), peer->pkey.get()) != 1 ||
        EVP_PKEY_derive(context.get(), nullptr, &length) != 1) {
      return Failed();
    }
    Bytes out(length);
    if (!out.ok() || EVP_PKEY_derive(context.get(), out.data(), &length) != 1) return Failed();
    out.Shrink(length);
    return out;
  });
}

// mostIterations() -> number
void MostIterations(const Arguments& args) { args.GetReturnValue().Set(static_cast<double>(most_iterations)); }

constexpr Function kFunctions[] = {{"mostIterations", MostIterations},
                                   {"hkdf", DeriveHkdf},
                                   {"pbkdf2", DerivePbkdf2},
                                   {"scrypt", DeriveScrypt},
                                   {"agree", Agree}};

}  // namespace

void SetMostIterations(uint32_t iterations) { most_iterations = iterations; }

std::span<const Function> DerivationFunctions() { return kFunctions; }

}  // namespace engine::native
