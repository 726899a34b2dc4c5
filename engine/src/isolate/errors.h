// Descriptions of failures, as Python reads them.
#pragma once

#include <v8.h>

#include <cstdint>
#include <string>

#include "link/wire.gen.h"

namespace engine {

struct Failure {
  wire::Error code = wire::Error::kInternal;
  std::string message;
  std::string name;
  std::string stack;
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;
  uint64_t cpu_us = 0;  // of the call, if no other frame reports it

  std::string Json() const;
};

// Describes a thrown value. Reading `name`, `message` and `stack` may run the worker's code (getters, proxies), so this
// must happen inside the worker's turn, under its limits.
Failure Describe(v8::Local<v8::Context> context, wire::Error code, v8::Local<v8::Value> thrown);

// The same for the exception of a TryCatch; only that has the position of a syntax error.
Failure Describe(v8::Local<v8::Context> context, wire::Error code, const v8::TryCatch& caught);

// A call, or top-level code, that exceeded its CPU limit.
Failure TooMuchCpu(uint64_t used_ns, uint64_t limit_ns);
Failure TooMuchMemory(size_t limit_bytes);

// Adds the memory limit to an error that V8 threw because a buffer or WebAssembly got no memory.
void NameMemoryLimit(Failure* failure, size_t limit_bytes);

}  // namespace engine
