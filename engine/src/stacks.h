// Stacks as a worker and its author see them: without the frames of the web platform's own code, as if it were native.
#pragma once

#include <v8.h>

#include <string_view>

namespace engine {

// The name under which the web platform's own code is compiled. No module of a worker can have it: paths hold no colon.
inline constexpr std::string_view kPlatformScript = "atoll:web";

// What V8 asks for the value of `stack`, once for each error whose stack is read.
v8::MaybeLocal<v8::Value> PrepareStack(v8::Local<v8::Context> context, v8::Local<v8::Value> error,
                                       v8::Local<v8::Array> sites);

}  // namespace engine
