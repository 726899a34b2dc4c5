#pragma once

#include <cstdint>
#include <span>

namespace engine {

// Whether a WebAssembly module makes a memory that threads could share. V8 counts such memory for nobody, so a worker
// could have any amount of it. (web/wasm.js counts what JavaScript makes.) What is no module is V8's to refuse.
// https://webassembly.github.io/spec/core/binary/modules.html#memory-section
bool DeclaresSharedMemory(std::span<const uint8_t> module);

// Whether each instance of the module has a memory of its own.
bool DeclaresMemory(std::span<const uint8_t> module);

}  // namespace engine
