// The engine's part of its sandbox: the filter of system calls, and the check that all layers hold.
//
// The other layers are in place before node starts (atoll/engine/process/confine.py). The filter is installed after
// node and V8 have started, because they need more system calls to start than to run, and before any tenant's code.
#pragma once

#include <string>
#include <string_view>

namespace engine {

// Installs the filter for all threads, present and future, attempts each forbidden operation, and reports problems on
// stderr. `mode` is "require", "try" or "off". False: the engine must not serve.
bool Confine(std::string_view mode);

// For tests: attempts one forbidden operation by its name and returns the kernel's answer, a result or a negative
// errno. -ENOENT for an unknown name.
long TryForbidden(std::string_view name);

}  // namespace engine
