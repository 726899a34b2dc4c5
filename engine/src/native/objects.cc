// The life of objects besides their storage: hibernatable WebSockets, timers that outlive their call, abort().
// web/objects/ uses it. A slot names an object, as in storage.cc; functions for a slot that is not open do nothing.
#include <cstdint>
#include <string>
#include <string_view>

#include "isolate/realm.h"
#include "native/arguments.h"
#include "native/native.h"
#include "storage/storage.h"
#include "worker/worker.h"

namespace engine::native {
namespace {

constexpr uint8_t kJoined = 2;
constexpr uint8_t kKept = 8;

uint32_t Unsigned(const Arguments& args, int index) {
  return args[index]->IsUint32() ? args[index].As<v8::Uint32>()->Value() : 0;
}

Worker* WorkerOf(const Arguments& args) {
  void* realm = args.GetIsolate()->GetData(0);
  return realm == nullptr ? nullptr : static_cast<Realm*>(realm)->worker();
}

// The worker, if the slot in the first argument is open there.
Worker* WorkerOfSlot(const Arguments& args) {
  Worker* worker = WorkerOf(args);
  storage::Storage* storage = worker == nullptr ? nullptr : worker->storage();
  const bool is_open = storage != nullptr && storage->Find(Unsigned(args, 0)) != nullptr;
  return is_open ? worker : nullptr;
}

// sendSocket(slot, what, socket, bytes: Uint8Array)
void SendSocket(const Arguments& args) {
  Worker* worker = WorkerOfSlot(args);
  if (worker == nullptr || !args[3]->IsUint8Array()) return;
  const ReadableBytes view(args[3].As<v8::ArrayBufferView>());
  const std::string_view bytes(reinterpret_cast<const char*>(view.bytes().data()), view.bytes().size());
  if (bytes.size() > wire::kChunk) return;  // the platform sends less; Python would end the engine
  worker->SendSocket(Unsigned(args, 0), static_cast<uint8_t>(Unsigned(args, 1)), Unsigned(args, 2), bytes);
}

// joinSocket(slot, socket, call): the response of the call is this socket
void JoinSocket(const Arguments& args) {
  Worker* worker = WorkerOfSlot(args);
  const Call* call = worker == nullptr ? nullptr : worker->calls().Find(Unsigned(args, 2));
  if (call == nullptr || call->responded || call->canceled) return;
  const uint32_t id = call->id;
  worker->SendSocket(Unsigned(args, 0), kJoined, Unsigned(args, 1), {reinterpret_cast<const char*>(&id), sizeof(id)});
}

// adoptTimer(id) -> true if the timer is set; it belongs to the running call from now on
void AdoptTimer(const Arguments& args) {
  Worker* worker = WorkerOf(args);
  if (worker == nullptr) return;
  args.GetReturnValue().Set(worker->timers().Adopt(Unsigned(args, 0), worker->CurrentCall()));
}

// isBusy(call) -> true if the call waits for ops
void IsBusy(const Arguments& args) {
  Worker* worker = WorkerOf(args);
  const Call* call = worker == nullptr ? nullptr : worker->calls().Find(Unsigned(args, 0));
  args.GetReturnValue().Set(call != nullptr && call->ops > 0);
}

// hasTimers(call) -> true if timers of the call are set
void HasTimers(const Arguments& args) {
  Worker* worker = WorkerOf(args);
  const Call* call = worker == nullptr ? nullptr : worker->calls().Find(Unsigned(args, 0));
  args.GetReturnValue().Set(call != nullptr && call->timers + call->long_timers > 0);
}

// keepCall(slot, call, keeps): the call has connections and stays open after its response; or it has none any more
void KeepCall(const Arguments& args) {
  Worker* worker = WorkerOfSlot(args);
  Call* call = worker == nullptr ? nullptr : worker->calls().Find(Unsigned(args, 1));
  if (call == nullptr || call->canceled || call->is_kept == args[2]->IsTrue()) return;
  call->is_kept = args[2]->IsTrue();
  const uint32_t parts[] = {call->id, call->is_kept ? 1u : 0u};
  worker->SendSocket(Unsigned(args, 0), kKept, 0, {reinterpret_cast<const char*>(parts), sizeof(parts)});
}

// stopCode() -> true if the running code ends at its next step. Nothing can catch that.
void StopCode(const Arguments& args) {
  Worker* worker = WorkerOf(args);
  if (worker != nullptr) worker->StopCode();
  args.GetReturnValue().Set(worker != nullptr);
}

constexpr Function kFunctions[] = {
    {"sendSocket", SendSocket}, {"joinSocket", JoinSocket}, {"adoptTimer", AdoptTimer}, {"isBusy", IsBusy},
    {"hasTimers", HasTimers},   {"stopCode", StopCode},     {"keepCall", KeepCall},
};

}  // namespace

std::span<const Function> ObjectFunctions() { return kFunctions; }

}  // namespace engine::native
