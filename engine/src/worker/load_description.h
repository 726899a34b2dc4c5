// The content of a LOAD frame: limits, switches, variables and modules.
#pragma once

#include <v8.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "isolate/modules.h"

namespace engine {

struct LoadDescription {
  std::string main_path;
  std::string format;   // module, service-worker, or empty: detected from the code
  bool renews = false;  // isolation "context": each call gets its own context

  uint64_t cpu_limit_ns = 0;
  uint64_t event_limit_ns = 0;
  double longest_timer_ms = 0;
  bool refuses_long_timers = false;

  bool allow_eval = false;
  bool allow_wasm_compile = false;
  bool allow_shared_memory = false;
  bool allow_live_clock = false;

  uint64_t code_bytes = 0;  // of all ES modules

  // For the entry point `prepare`. They live as long as the caller's HandleScope.
  v8::Local<v8::Value> env;
  v8::Local<v8::Value> grants;
  v8::Local<v8::Value> compatibility_date;
  v8::Local<v8::Value> compatibility_flags;
};

// Reads the payload of a LOAD frame after its tenant and adds its modules to `modules`; nothing when it is malformed.
std::optional<LoadDescription> ReadDescription(v8::Local<v8::Context> context, std::string_view payload,
                                               Modules& modules);

}  // namespace engine
