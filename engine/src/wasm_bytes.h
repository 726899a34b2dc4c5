// What has to be known of a WebAssembly module before V8 compiles it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace engine {

// Why a WebAssembly module is refused before V8 sees it, to follow its name; empty when it is not.
//
// Memory that threads could share V8 counts for nobody, so a worker could have any amount of it (web/wasm.js counts
// what JavaScript makes). And functions that run much are optimised by threads of V8, at nobody's expense, for about a
// second and 160 MB for each megabyte of them: one of 6 MB took a gigabyte. What is no module is V8's to refuse.
// https://webassembly.github.io/spec/core/binary/modules.html
std::string WhyRefused(std::span<const uint8_t> module);

// Whether each instance of the module has a memory of its own.
bool DeclaresMemory(std::span<const uint8_t> module);

}  // namespace engine
