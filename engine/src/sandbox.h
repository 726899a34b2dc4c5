// The engine's own part of its sandbox: the filter of system calls, and the proof that all layers hold.
//
// Everything else is taken from the process before node begins (atoll/engine/confine.py). The filter has to wait until
// node and V8 have started, because they need more to start than to run, and must be there before tenants' code.
#pragma once

#include <string>
#include <string_view>

namespace engine {

// Installs the filter for all threads, present and future, tries what must not be possible, and says on stderr what is
// wrong. `mode` is "require", "try" or "off"; false: the engine must not serve.
bool Confine(std::string_view mode);

// For tests: does one forbidden thing by its name and returns what the kernel did, a result or a negative errno.
// -ENOENT for a name that is not known.
long TryForbidden(std::string_view name);

}  // namespace engine
