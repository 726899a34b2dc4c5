// The startup snapshot: the heap of an isolate in which the web platform has just been installed.
#pragma once

#include <node.h>
#include <v8.h>

#include <string>
#include <string_view>

namespace engine {

// Runs `source`, the bundle of web/, in a fresh isolate and freezes its heap. Returns the content of the snapshot file:
// V8's blob, then the code caches of lazy modules, then the source, which the blob refers to but does not contain. Each
// of the latter two is followed by its size. On failure `error` says why.
std::string MakeSnapshot(node::MultiIsolatePlatform* platform, const std::string& source, std::string* error);

// V8's blob in such a file, which must stay mapped for the life of the process. Empty when the file is not valid.
v8::StartupData OpenSnapshot(std::string_view file);

}  // namespace engine
