// Starts the code of a worker: compiles it, runs its top-level code, finds its handlers. Top-level code may await, so
// this can take several turns. Touched only inside the worker's turn.
#pragma once

#include <v8.h>

#include <cstdint>
#include <optional>
#include <string>

#include "isolate/errors.h"
#include "isolate/modules.h"
#include "isolate/realm.h"
#include "worker/load_description.h"

namespace engine {

class Startup final {
 public:
  // The realm and the modules outlive this object.
  Startup(Realm& realm, Modules& modules, const LoadDescription& description);
  Startup(const Startup&) = delete;
  Startup& operator=(const Startup&) = delete;

  // Runs top-level code up to its first await. Returns the failure; nothing on success, or when V8 has ended the code.
  std::optional<Failure> Begin(const LoadDescription& description);

  enum class Progress { kRunning, kDone, kFailed };
  struct Step {
    Progress progress = Progress::kRunning;
    Failure failure;       // when it failed
    std::string handlers;  // when it is done, as JSON
  };
  // Called after every entry. `may_settle`: top-level code may be waiting for a pending timer or job.
  Step Continue(bool may_settle);

  const std::string& format() const { return format_; }  // known when it is done
  bool allow_eval() const { return allow_eval_; }

 private:
  bool Prepare(const LoadDescription& description);
  std::optional<Failure> Evaluate();
  v8::MaybeLocal<v8::Value> EvaluateMain();
  enum class Compiled { kFailed, kModule, kScript };
  Compiled CompileMain(v8::Local<v8::Module>* module);
  v8::MaybeLocal<v8::Value> EvaluateScript();
  v8::MaybeLocal<v8::Value> EvaluateScriptWithImports(v8::Local<v8::Module> module);
  Step FindHandlers();

  Realm& realm_;
  Modules& modules_;
  std::string format_;
  const bool allow_eval_;
  v8::Global<v8::Promise> promise_;  // settled when top-level code is done
};

}  // namespace engine
