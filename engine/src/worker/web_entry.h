// The functions of web/worker/main.js that the engine calls for a worker, as C++ functions. Made on the stack for one
// call, inside the worker's turn.
//
// These functions catch what the worker's code throws. An exception that leaves one of them is a bug of the platform
// and is logged as "internal error"; after a termination they return without effect.
#pragma once

#include <v8.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "isolate/realm.h"
#include "link/wire.h"
#include "worker/calls.h"

namespace engine {

class WebEntry final {
 public:
  WebEntry(Realm& realm, Calls& calls) : realm_(realm), calls_(calls) {}
  WebEntry(const WebEntry&) = delete;
  WebEntry& operator=(const WebEntry&) = delete;
  static void* operator new(size_t) = delete;

  // `streaming`: more of the request body follows.
  void Begin(uint32_t serial, const wire::CallParts& parts, bool streaming);
  // More of the request body. Ignored when the body has ended.
  void Body(uint32_t serial, std::string_view bytes, bool last);
  // The end of a request body that was sent without JavaScript.
  void PipedBodyEnd(uint32_t serial);
  void Credit(uint32_t serial);
  void Cancel(uint32_t serial, bool time_is_up);

  // An empty payload means that the reply was dropped because too many were unread.
  void Reply(uint32_t op, bool failed, std::string_view payload);
  // The answer to a call inside the engine: u16 status, u32 head length, head, body. Failed: it never began.
  void InnerReply(uint32_t op, bool failed, std::string_view payload);
  // The op gets no reply: its call is over.
  void ForgetReply(uint32_t op);
  void Timer(uint32_t id);
  // About hibernatable WebSockets of the object in a slot.
  void Sockets(uint32_t slot, std::string_view payload);
  void Finalize();

 private:
  v8::Local<v8::Value> Number(uint32_t value) const { return v8::Integer::NewFromUnsigned(realm_.isolate(), value); }
  v8::Local<v8::Value> Bool(bool value) const { return v8::Boolean::New(realm_.isolate(), value); }
  void Enter(const v8::Global<v8::Function>& function, std::initializer_list<v8::Local<v8::Value>> arguments);

  Realm& realm_;
  Calls& calls_;
};

}  // namespace engine
