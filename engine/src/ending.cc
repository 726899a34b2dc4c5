// How calls and workers end: hung calls, limits, stuck code, unloading.
// (Another part of class Worker; its turns are in worker.cc.)
#include <algorithm>
#include <chrono>
#include <thread>
#include <unordered_set>

#include "engine.h"
#include "worker.h"

namespace engine {

void Worker::EndStuckCalls() {
  if (calls_.empty() || !jobs_.empty()) return;
  for (const Calls::Stuck& stuck : calls_.FindStuck()) {
    if (!stuck.responded) {
      calls_.Fail(stuck.serial, {wire::Error::kNeverResponds,
                                 "the worker's code had hung and would never generate a response: " + stuck.why,
                                 {},
                                 {},
                                 {},
                                 0,
                                 0});
    } else if (stuck.body_open) {
      calls_.Fail(stuck.serial,
                  {wire::Error::kStream, "the response body would never end: " + stuck.why, {}, {}, {}, 0, 0});
    } else {
      Log(stuck.serial, wire::Level::kWarn, "a promise given to waitUntil() would never settle: " + stuck.why);
    }
    FinishCall(stuck.serial);
  }
}

void Worker::Condemn(const Failure& failure) {
  realm_->isolate()->CancelTerminateExecution();
  if (state_ == State::kNew || state_ == State::kStarting) {
    Failure startup = failure;
    startup.message = "top-level code " + failure.message;
    LoadFailed(startup);
    return;
  }
  calls_.FailAll(failure);
  Leave(failure.Json());
}

void Worker::Vanish() {
  calls_.Forget();
  early_.clear();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    mailbox_.clear();
  }
  out_.bytes().clear();
  Leave("{}");
}

void Worker::OnFatalMemory() {
  if (charge_ == nullptr || charge_->Disown()) {
    engine_.ReportStuck(id_, charge_ == nullptr ? 0 : charge_->call(), UnfinishedNs(), TooMuchMemory(memory_bytes_));
  }
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void Worker::Leave(std::string_view reason) {
  state_ = State::kGone;
  std::vector<Mail> unread;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    gone_ = true;
    unread.swap(mailbox_);
  }
  for (const Mail& mail : early_) Refuse(mail);
  for (const Mail& mail : unread) Refuse(mail);
  early_.clear();
  engine_.SetAlarm(shared_from_this(), Timers::kNever);
  engine_.Remove(id_);
  out_.Whole(wire::Frame::kUnloaded, 0, id_, 0, reason);
}

// A call that never began may be tried elsewhere.
void Worker::Refuse(const Mail& mail) {
  if (mail.kind != Mail::Kind::kCall) return;
  Failure failure{wire::Error::kUnloaded, "the worker is no longer loaded here", {}, {}, {}, 0, 0};
  out_.Whole(wire::Frame::kFail, 0, id_, mail.id, failure.Json());
  DoneUnbegun(mail.id, wire::Outcome::kInternalError);
}

// A call whose CANCEL comes before its turn never begins: whoever asked has left, or too many wait before it. Only a
// CANCEL behind the CALL counts: one before it was for an older call with that id.
void Worker::DropCancelled(std::vector<Mail>& unread) {
  const auto is_cancel = [](const Mail& mail) { return mail.kind == Mail::Kind::kCancel; };
  if (std::none_of(unread.begin(), unread.end(), is_cancel)) return;
  std::unordered_set<uint32_t> cancelled;
  std::unordered_set<uint32_t> dropped;
  for (auto mail = unread.rbegin(); mail != unread.rend(); ++mail) {
    if (is_cancel(*mail)) {
      cancelled.insert(mail->id);
    } else if (mail->kind == Mail::Kind::kCall && cancelled.erase(mail->id) != 0) {
      dropped.insert(mail->id);
      DoneUnbegun(mail->id, wire::Outcome::kCanceled);
    }
  }
  std::erase_if(unread, [&](const Mail& mail) { return mail.BelongsToCall() && dropped.contains(mail.id); });
}

void Worker::DoneUnbegun(uint32_t call, wire::Outcome outcome) {
  out_.Begin(wire::Frame::kDone, 0, id_, call);
  out_.U32(0);
  out_.U32(static_cast<uint32_t>(outcome));
  out_.End();
}

}  // namespace engine
