// Native functions for what the web platform cannot do in JavaScript, or not fast enough.
//
// Each file of this folder provides one table of functions. The engine puts them on the `native` object that the
// platform bundle receives, and lists the callbacks as external references of the snapshot. So a callback has no
// Data(), no static handle and nothing per isolate. Worker code never sees `native`, but every argument is checked all
// the same: a wrong one throws TypeError, and no input may crash the process.
#pragma once

#include <v8.h>

#include <span>
#include <vector>

namespace engine::native {

struct Function {
  const char* name;
  v8::FunctionCallback callback;
};

std::span<const Function> TextFunctions();
std::span<const Function> Base64Functions();
std::span<const Function> UrlFunctions();
std::span<const Function> RandomFunctions();
std::span<const Function> CloneFunctions();
std::span<const Function> CompressFunctions();
std::span<const Function> CodecFunctions();
std::span<const Function> EncodingFunctions();
std::span<const Function> DigestFunctions();
std::span<const Function> AesFunctions();
std::span<const Function> DerivationFunctions();
std::span<const Function> RsaFunctions();
std::span<const Function> CurveFunctions();
std::span<const Function> DerFunctions();
std::span<const Function> SignatureFunctions();
std::span<const Function> AgreementFunctions();
std::span<const Function> CipherFunctions();
std::span<const Function> PostQuantumFunctions();
std::span<const Function> KeyFunctions();
std::span<const Function> KeyPartFunctions();
std::span<const Function> KeyPairFunctions();
std::span<const Function> SigningFunctions();
std::span<const Function> CertificateFunctions();
std::span<const Function> LazyFunctions();
std::span<const Function> WasmFunctions();
std::span<const Function> HtmlRewriterFunctions();
std::span<const Function> StorageFunctions();
std::span<const Function> ObjectFunctions();

// All of them, of every file.
std::vector<std::span<const Function>> Tables();

// The getter behind defineLazyGlobal. Also an external reference of the snapshot.
void MakeLazyGlobal(v8::Local<v8::Name> name, const v8::PropertyCallbackInfo<v8::Value>& info);

// The most iterations of PBKDF2 that a worker may use. Set before any worker is loaded.
void SetMostIterations(uint32_t iterations);

// The host binary exports ada's C functions but has no header for them, so url.cc declares them. This function parses a
// few known URLs and returns true if declarations and binary agree. Called once when the engine starts.
bool UrlLibraryWorks();

}  // namespace engine::native
