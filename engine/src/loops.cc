#include "loops.h"

#include <dlfcn.h>
#include <v8-unwinder.h>

#include <cstdint>
#include <initializer_list>

namespace engine {
namespace {

using v8::internal::Address;
using v8::internal::Internals;

constexpr int kMostFrames = 16;  // a function that is called again looks up by itself

// Where things are, as the binary of Node says.
struct Layout {
  int mark_in_frame, function_in_frame;
  int entry_mark, construct_mark;
  int first_function, last_function, cell, vector, cells;  // types of objects
  int cell_in_function, value_in_cell;
  int budget_in_cell;  // found by looking
};

Layout layout;

bool Read(std::initializer_list<std::pair<const char*, int*>> facts) {
  for (const auto& [name, value] : facts) {
    const int* found = static_cast<const int*>(dlsym(RTLD_DEFAULT, name));
    if (found == nullptr) return false;
    *value = *found;
  }
  return true;
}

bool ReadLayout() {
  return Read({{"v8dbg_off_fp_context_or_frame_type", &layout.mark_in_frame},
               {"v8dbg_off_fp_function", &layout.function_in_frame},
               {"v8dbg_frametype_EntryFrame", &layout.entry_mark},
               {"v8dbg_frametype_ConstructEntryFrame", &layout.construct_mark},
               {"v8dbg_FirstJSFunctionType", &layout.first_function},
               {"v8dbg_LastJSFunctionType", &layout.last_function},
               {"v8dbg_type_FeedbackCell__FEEDBACK_CELL_TYPE", &layout.cell},
               {"v8dbg_type_FeedbackVector__FEEDBACK_VECTOR_TYPE", &layout.vector},
               {"v8dbg_type_ClosureFeedbackCellArray__CLOSURE_FEEDBACK_CELL_ARRAY_TYPE", &layout.cells},
               {"v8dbg_class_JSFunction__raw_feedback_cell__Tagged_FeedbackCell_", &layout.cell_in_function},
               {"v8dbg_class_FeedbackCell__value__Tagged_HeapObject_", &layout.value_in_cell}});
}

Address Word(Address at) { return *reinterpret_cast<const Address*>(at); }

int TypeOf(Address object) { return Internals::HasHeapObjectTag(object) ? Internals::GetInstanceType(object) : -1; }

// The cell that holds the budget of a function, or 0. Functions that never ran JavaScript share a cell which nobody may
// write to: it has no value.
Address CellOf(Address function) {
  const int type = TypeOf(function);
  if (type < layout.first_function || type > layout.last_function) return 0;
  const Address cell = Internals::ReadRawField<Address>(function, layout.cell_in_function);
  if (TypeOf(cell) != layout.cell) return 0;
  const int value = TypeOf(Internals::ReadRawField<Address>(cell, layout.value_in_cell));
  return value == layout.vector || value == layout.cells ? cell : 0;
}

int32_t* Budget(Address cell, int offset) {
  return reinterpret_cast<int32_t*>(cell - v8::internal::kHeapObjectTag + offset);
}

// Where JavaScript called the C++ that runs now: V8 notes it at each such call, and takes it back at its end.
Address FrameOf(v8::Isolate* isolate) {
  const Address data = reinterpret_cast<Address>(isolate);
  const Address quick = Word(data + Internals::kIsolateFastCCallCallerFpOffset);
  return quick != 0 ? quick : Word(data + Internals::kIsolateThreadLocalTopOffset);
}

// The functions on the stack, from `frame` to where C++ entered JavaScript, are shown to `see` until it says no.
template <typename See>
void Walk(Address frame, Address stack, See&& see) {
  for (int i = 0; i < kMostFrames && frame > stack && frame % sizeof(Address) == 0; i++) {
    const Address mark = Word(frame + layout.mark_in_frame);
    if (Internals::HasHeapObjectTag(mark)) {
      if (!see(Word(frame + layout.function_in_frame))) return;
    } else if (const Address type = mark >> 1;
               type == static_cast<Address>(layout.entry_mark) || type == static_cast<Address>(layout.construct_mark)) {
      return;
    }
    stack = frame;
    frame = Word(frame);
  }
}

Address StackPointer(const ucontext_t& interrupted) {
#if defined(__x86_64__)
  return static_cast<Address>(interrupted.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return interrupted.uc_mcontext.sp;
#endif
}

}  // namespace

bool Loops::can_end_ = false;

// The first three rounds show which number becomes smaller by the same amount in each; it is set to nothing, and V8
// must have set another one by the next round.
void Loops::Look(const v8::FunctionCallbackInfo<v8::Value>& info) {
  static constexpr int kPlaces[] = {16, 20};
  static int round = 0;
  static int32_t seen[2][3];
  const Address loop = v8::internal::ValueHelper::ValueAsAddress(*info[0]);
  if (round == 0 && !ReadLayout()) return;
  Address cell = 0;
  Walk(FrameOf(info.GetIsolate()), reinterpret_cast<Address>(&cell), [&](Address function) {
    if (function == loop) cell = CellOf(function);
    return false;
  });
  if (cell == 0) return;
  if (round < 3) {
    for (int place = 0; place < 2; place++) seen[place][round] = *Budget(cell, kPlaces[place]);
  }
  if (round == 2) {
    for (int place = 0; place < 2; place++) {
      const int32_t each = seen[place][0] - seen[place][1];
      if (each > 0 && each < 1000 && seen[place][1] - seen[place][2] == each) layout.budget_in_cell = kPlaces[place];
    }
    if (layout.budget_in_cell != 0) *Budget(cell, layout.budget_in_cell) = 0;
  }
  if (round == 3 && layout.budget_in_cell != 0) can_end_ = *Budget(cell, layout.budget_in_cell) > 0;
  round++;
}

void Loops::End(v8::Isolate* isolate, const ucontext_t& interrupted) {
  if (!can_end_) return;
  const Address stack = StackPointer(interrupted);
  v8::RegisterState state;
  state.sp = reinterpret_cast<void*>(stack);
  v8::SampleInfo sample;
  void* ignored;
  isolate->GetStackSample(state, &ignored, 1, &sample);
  if (sample.vm_state == v8::GC) return;  // objects are not where the stack says
  Walk(FrameOf(isolate), stack, [](Address function) {
    if (const Address cell = CellOf(function)) *Budget(cell, layout.budget_in_cell) = 0;
    return true;
  });
}

}  // namespace engine
