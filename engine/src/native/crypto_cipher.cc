// Ciphers in steps, for node:crypto, and onTheSpot(), which keeps operations on the current thread.

#include <openssl/evp.h>

#include <iterator>

#include "native/crypto.h"
#include "native/native.h"

namespace engine::native {

namespace {

constexpr int kTagBytes = 16;  // the longest tag

struct Known {
  const char* name;
  bool authenticates;
};

// In the order of the numbers in JavaScript.
constexpr Known kCiphers[] = {
    {"AES-128-CBC", false}, {"AES-192-CBC", false},  {"AES-256-CBC", false},      {"AES-128-CTR", false},
    {"AES-192-CTR", false}, {"AES-256-CTR", false},  {"AES-128-GCM", true},       {"AES-192-GCM", true},
    {"AES-256-GCM", true},  {"AES-128-ECB", false},  {"AES-192-ECB", false},      {"AES-256-ECB", false},
    {"ChaCha20", false},    {"DES-EDE3-CBC", false}, {"ChaCha20-Poly1305", true}, {"AES-128-OCB", true},
    {"AES-192-OCB", true},  {"AES-256-OCB", true},
};

constexpr uint32_t kFirstOcb = 15;

struct FreeCipher {
  void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
};

// beginCipher(number, key, iv, encrypts, pads, bytes of the tag | undefined) -> handle; undefined if key or iv have a
// wrong length
void BeginCipher(const Arguments& args) {
  Operation op(args);
  const uint32_t number = op.Integer(0);
  const Input secret = op.View(1);
  const Input iv = op.View(2);
  const bool encrypts = op.Flag(3);
  const bool pads = op.Flag(4);
  const int tag_bytes = op.IsGiven(5) ? static_cast<int>(op.Integer(5)) : kTagBytes;
  if (op.Refused() || number >= std::size(kCiphers)) return;
  ErrorScope errors;
  const Known& known = kCiphers[number];
  const std::unique_ptr<EVP_CIPHER, FreeCipher> cipher(EVP_CIPHER_fetch(nullptr, known.name, nullptr));
  auto key = std::make_shared<Key>();
  key->cipher.reset(EVP_CIPHER_CTX_new());
  if (cipher == nullptr || key->cipher == nullptr) return;
  if (secret.size() != static_cast<size_t>(EVP_CIPHER_get_key_length(cipher.get()))) return;
  EVP_CIPHER_CTX* context = key->cipher.get();
  constexpr size_t kMostIv = 128;
  if (iv.size() > kMostIv || EVP_CipherInit_ex2(context, cipher.get(), nullptr, nullptr, encrypts, nullptr) != 1)
    return;
  if (known.authenticates) {
    if (iv.size() == 0) return;
    if (EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, static_cast<int>(iv.size()), nullptr) != 1) return;
    // OCB alone must know the length of its tag in advance.
    if (number >= kFirstOcb && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, tag_bytes, nullptr) != 1) return;
  } else if (iv.size() != static_cast<size_t>(EVP_CIPHER_get_iv_length(cipher.get()))) {
    return;
  }
  if (EVP_CipherInit_ex2(context, nullptr, secret.data(), iv.data(), encrypts, nullptr) != 1) return;
  EVP_CIPHER_CTX_set_padding(context, pads ? 1 : 0);
  op.FinishWithKey(std::move(key));
}

// updateCipher(handle, view, only authenticated) -> ArrayBuffer
void UpdateCipher(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Cipher(0);
  const Input data = op.View(1);
  const bool is_aad = op.Flag(2);
  if (op.Refused() || data.size() > (size_t{1} << 30)) return;
  op.Finish([&](const Job*) -> Result {
    int length = 0;
    EVP_CIPHER_CTX* context = key->cipher.get();
    if (is_aad) {
      if (EVP_CipherUpdate(context, nullptr, &length, data.data(), static_cast<int>(data.size())) != 1) return Failed();
      return Bytes(size_t{0});
    }
    Bytes out(data.size() + EVP_MAX_BLOCK_LENGTH);
    if (!out.ok()) return Failed();
    if (data.size() > 0 &&
        EVP_CipherUpdate(context, out.data(), &length, data.data(), static_cast<int>(data.size())) != 1) {
      return Failed();
    }
    out.Shrink(static_cast<size_t>(length));
    return out;
  });
}

// endCipher(handle) -> ArrayBuffer: the last block; undefined if the padding or the tag is wrong
void EndCipher(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Cipher(0);
  if (op.Refused()) return;
  op.Finish([&](const Job*) -> Result {
    Bytes out(EVP_MAX_BLOCK_LENGTH);
    int length = 0;
    if (!out.ok() || EVP_CipherFinal_ex(key->cipher.get(), out.data(), &length) != 1) return Failed();
    out.Shrink(static_cast<size_t>(length));
    return out;
  });
}

// cipherTag(handle, bytes) -> ArrayBuffer: the tag, after the end. cipherTag(handle, view) -> boolean: sets the
// expected tag.
void CipherTag(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Cipher(0);
  const bool sets = args[1]->IsArrayBufferView();
  const Input tag = sets ? op.View(1) : Input();
  const uint32_t size = sets ? static_cast<uint32_t>(tag.size()) : op.Integer(1);
  if (op.Refused() || size == 0 || size > kTagBytes) return;
  op.Finish([&](const Job*) -> Result {
    EVP_CIPHER_CTX* context = key->cipher.get();
    if (sets) {
      uint8_t* data = const_cast<uint8_t*>(tag.data());
      return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, static_cast<int>(size), data) == 1;
    }
    Bytes out(size);
    if (!out.ok() || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, static_cast<int>(size), out.data()) != 1) {
      return Failed();
    }
    return out;
  });
}

// onTheSpot(function) -> its result; no operation in it goes to another thread, however long it takes
void OnTheSpot(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 1 || !args[0]->IsFunction()) return ThrowTypeError(isolate, "onTheSpot takes a function");
  const Operation::OnTheSpot scope;
  v8::Local<v8::Value> result;
  if (args[0]
          .As<v8::Function>()
          ->Call(isolate->GetCurrentContext(), v8::Undefined(isolate), 0, nullptr)
          .ToLocal(&result)) {
    args.GetReturnValue().Set(result);
  }
}

constexpr Function kFunctions[] = {
    {"beginCipher", BeginCipher}, {"updateCipher", UpdateCipher}, {"endCipher", EndCipher},
    {"cipherTag", CipherTag},     {"onTheSpot", OnTheSpot},
};

}  // namespace

std::span<const Function> CipherFunctions() { return kFunctions; }

}  // namespace engine::native
