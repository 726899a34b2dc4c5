// The functions the web platform's JavaScript gets from C++ as the object `native`. Workers never see it.
#pragma once

#include <v8.h>

#include <cstdint>

namespace engine {

// The object `native`, while the snapshot is made.
v8::Local<v8::ObjectTemplate> NativeTemplate(v8::Isolate* isolate);

// The addresses of all native functions, for V8 to find them again when it reads the snapshot.
const intptr_t* ExternalReferences();

}  // namespace engine
