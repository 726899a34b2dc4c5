// A loop that is told to end ends with the round it is in.
//
// At the end of a round V8 looks up only when the function has used up a budget of bytecode: after some thousand
// rounds, whatever each of them takes. Rounds of nothing but `JSON.parse` take long. So a thread that was told to end,
// and is in a built-in function written in C++, sets the budgets of the functions on its stack to nothing.
//
// No interface of V8 leads to a budget. The way is the one that V8 shows to debuggers of dead processes (v8dbg_…), from
// a frame that it keeps in order at that moment, since it may have to walk from there itself. The types of all objects
// on the way are checked. And nothing is done unless it was seen to work, in this process, on a loop of our own.
#pragma once

#include <ucontext.h>
#include <v8.h>

namespace engine {

class Loops final {
 public:
  // look(loop): from each round of the function `loop`, at least four times, before there are other isolates.
  static void Look(const v8::FunctionCallbackInfo<v8::Value>& info);
  static bool CanEnd() { return can_end_; }
  // In a signal handler, on a thread that is in `isolate` and was told to end.
  static void End(v8::Isolate* isolate, const ucontext_t& interrupted);

 private:
  static bool can_end_;
};

}  // namespace engine
