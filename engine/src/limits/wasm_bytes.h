// Checks of a WebAssembly module before V8 compiles it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace engine {

// The reason why a WebAssembly module is refused, as text to follow its name; empty when it is accepted.
//
// V8 does not count shared memory for an isolate, so a worker could have any amount of it (web/wasm.js counts what
// JavaScript makes). And V8's threads optimize hot functions, charged to no call: about a second and 160 MB per
// megabyte of code; a function of 6 MB took a gigabyte. Bytes that are not a module are left for V8 to reject.
// https://webassembly.github.io/spec/core/binary/modules.html
std::string WhyRefused(std::span<const uint8_t> module);

// True if each instance of the module makes its own memory.
bool DeclaresMemory(std::span<const uint8_t> module);

}  // namespace engine
