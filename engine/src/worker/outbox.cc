#include "worker/outbox.h"

#include "isolate/errors.h"

namespace engine {

void Outbox::FlushIfOld(uint64_t now_ns, bool hold) {
  if (frames_.empty() || hold) {
    since_ns_ = now_ns;
  } else if (now_ns - since_ns_ > kFlushNs) {
    Flush();
    since_ns_ = now_ns;
  }
}

void Outbox::SendOp(uint32_t id, uint32_t op, uint32_t call, std::string_view meta, std::string_view body) {
  frames_.Begin(wire::Frame::kOp, 0, worker_id_, id);
  frames_.U16(static_cast<uint16_t>(op));
  frames_.U16(0);
  frames_.U32(call);
  frames_.U32(static_cast<uint32_t>(meta.size()));
  frames_.Bytes(meta);
  frames_.Bytes(body);
  frames_.End();
}

void Outbox::Refuse(uint32_t call) {
  Failure failure{wire::Error::kUnloaded, "the worker is no longer loaded here", {}, {}, {}, 0, 0};
  frames_.Whole(wire::Frame::kFail, 0, worker_id_, call, failure.Json());
  EndUnbegun(call, wire::Outcome::kInternalError);
}

void Outbox::EndUnbegun(uint32_t call, wire::Outcome outcome, uint8_t flags) {
  frames_.Begin(wire::Frame::kDone, flags, worker_id_, call);
  frames_.U32(0);
  frames_.U32(static_cast<uint32_t>(outcome));
  frames_.End();
}

}  // namespace engine
