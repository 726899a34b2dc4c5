#include <vector>

#include "native/native.h"

namespace engine::native {

std::vector<std::span<const Function>> Tables() {
  return {TextFunctions(),         Base64Functions(),  UrlFunctions(),         RandomFunctions(), CloneFunctions(),
          CompressFunctions(),     CodecFunctions(),   EncodingFunctions(),    DigestFunctions(), AesFunctions(),
          DerivationFunctions(),   RsaFunctions(),     CurveFunctions(),       DerFunctions(),    SignatureFunctions(),
          AgreementFunctions(),    CipherFunctions(),  PostQuantumFunctions(), KeyFunctions(),    KeyPartFunctions(),
          KeyPairFunctions(),      SigningFunctions(), CertificateFunctions(), LazyFunctions(),   WasmFunctions(),
          HtmlRewriterFunctions(), StorageFunctions(), ObjectFunctions()};
}

}  // namespace engine::native
