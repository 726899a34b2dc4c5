// What the web platform's JavaScript asks its worker for: timers, ops, the end of a call, log lines.
// (Another part of class Worker; its turns are in worker.cc.)
#include <utility>

#include "clock.h"
#include "engine.h"
#include "worker.h"

namespace engine {

Worker::TimerSet Worker::SetTimer(uint32_t id, double delay_ms) {
  uint32_t call_id = CurrentCall();
  // The timers of a call go with it. Code of it that still runs gets no new ones, or it would run for ever, at nobody's
  // cost.
  if (IsOver(call_id)) return TimerSet::kNever;
  Call* call = calls_.Find(call_id);
  if (call != nullptr && call->timers >= Timers::kMaxOfCall) return TimerSet::kTooMany;
  if (delay_ms > longest_timer_ms_) {
    delay_ms = longest_timer_ms_;
    if (call != nullptr && !std::exchange(call->told_of_timer, true)) {
      Log(call_id, wire::Level::kWarn,
          "timers last at most " + std::to_string(static_cast<uint32_t>(longest_timer_ms_)) +
              " ms here: one that was set for longer comes then");
    }
  }
  uint64_t delay_ns = delay_ms > 0 ? static_cast<uint64_t>(delay_ms * 1e6) : 0;
  if (!timers_.Set(id, call_id, MonotonicNs() + delay_ns)) return TimerSet::kTooMany;
  if (call != nullptr) call->timers++;
  return TimerSet::kYes;
}

void Worker::ClearTimer(uint32_t id) {
  uint32_t call_id;
  if (!timers_.Clear(id, &call_id)) return;
  if (Call* call = calls_.Find(call_id)) {
    call->timers--;
    call->timers_cleared++;
  }
}

uint32_t Worker::StartOp(uint32_t op, std::string_view meta, std::string_view body) {
  uint32_t call_id = CurrentCall();
  Call* call = calls_.Find(call_id);
  if (call == nullptr) return 0;
  if (call->ops >= kMaxOps) return kTooManyOps;
  size_t bytes = meta.size() + body.size();
  if (op_bytes_ > 0 && op_bytes_ + bytes > kMaxOpBytes) return kTooMuchOnItsWay;
  uint32_t id = engine_.NextOp();
  ops_.emplace(id, PendingOp{call_id, bytes});
  op_bytes_ += bytes;
  call->ops++;
  call->ops_made++;
  out_.Begin(wire::Frame::kOp, 0, id_, id);
  out_.U16(static_cast<uint16_t>(op));
  out_.U16(0);
  out_.U32(call->id);
  out_.U32(static_cast<uint32_t>(meta.size()));
  out_.Bytes(meta);
  out_.Bytes(body);
  out_.End();
  return id;
}

bool Worker::FinishCall(uint32_t id) {
  // What the rejections have to say belongs to the log of the call, so they come first.
  if (!rejections_.empty() && charge_ != nullptr) {
    finishing_.push_back(id);
    return true;
  }
  return EndCall(id);
}

bool Worker::EndCall(uint32_t id) {
  const Call* call = calls_.Find(id);
  if (call == nullptr) return false;
  bool had_ops = call->ops > 0;
  Outlive(id, call->cpu_ns);
  bool had_timers = calls_.Done(id, UnfinishedNs());
  if (had_timers) timers_.ClearCall(id);
  if (had_ops) ForgetOps(id);
  return had_timers;
}

void Worker::Log(uint32_t call, wire::Level level, std::string_view text) {
  calls_.Log(call, level, realm_->now_ms(), text);
}

}  // namespace engine
