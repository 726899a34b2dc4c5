// Operations that an engine must never be able to do, each as one harmless attempt.
//
// An attempt has no effect even if it is allowed: a null path, an invalid number, signal 0. The kernel checks its
// filters first, so EPERM, EACCES and ENOSYS mean "refused". Any other error means that the call got through.
#pragma once

#include <span>

namespace engine {

struct Forbidden {
  const char* name;
  long (*attempt)();    // a result, or a negative errno
  bool without_filter;  // files and network: layers other than the filter refuse it too
};

std::span<const Forbidden> AllForbidden();

}  // namespace engine
