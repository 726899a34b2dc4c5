// What an engine must never be able to do, each as one harmless attempt.
//
// An attempt is made so that it has no effect even where it is allowed: a null path, an invalid number, signal 0. The
// kernel looks at its filters first, so EPERM, EACCES and ENOSYS mean "refused" and any other error means "let
// through".
#pragma once

#include <span>

namespace engine {

struct Forbidden {
  const char* name;
  long (*attempt)();    // a result, or a negative errno
  bool without_filter;  // files and network: the layers under the filter refuse it alone
};

std::span<const Forbidden> AllForbidden();

}  // namespace engine
