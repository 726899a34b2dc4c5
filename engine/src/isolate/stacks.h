// Stack traces without the frames of the web platform, as if it were native.
#pragma once

#include <v8.h>

#include <string_view>

namespace engine {

// The script name of the web platform's code. No module of a worker can have it: paths contain no colon.
inline constexpr std::string_view kPlatformScript = "atoll:web";

// V8's callback for the value of `stack`, called once for each error whose stack is read.
v8::MaybeLocal<v8::Value> PrepareStack(v8::Local<v8::Context> context, v8::Local<v8::Value> error,
                                       v8::Local<v8::Array> sites);

}  // namespace engine
