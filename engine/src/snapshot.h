// The startup snapshot: the heap of an isolate in which the web platform has just been installed.
#pragma once

#include <node.h>
#include <v8.h>

#include <string>

namespace engine {

// Runs `source`, the bundle of web/, in a fresh isolate and freezes its heap. On failure the blob is empty and `error`
// says why.
v8::StartupData MakeSnapshot(node::MultiIsolatePlatform* platform, const std::string& source, std::string* error);

}  // namespace engine
