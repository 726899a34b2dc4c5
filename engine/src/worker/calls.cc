#include "worker/calls.h"

#include <algorithm>

#include "base/clock.h"
#include "base/json.h"

namespace engine {
namespace {

uint32_t Microseconds(uint64_t ns) { return static_cast<uint32_t>(std::min<uint64_t>(ns / 1000, UINT32_MAX)); }

// The size of a whole response body in bytes.
size_t BodySize(v8::Isolate* isolate, v8::Local<v8::Value> body) {
  if (body->IsString()) {
    const size_t length = static_cast<size_t>(body.As<v8::String>()->Length());  // UTF-8 is at least as long
    return length > wire::kWindow ? length : body.As<v8::String>()->Utf8LengthV2(isolate);
  }
  if (body->IsArrayBufferView()) return body.As<v8::ArrayBufferView>()->ByteLength();
  return 0;
}

void WriteBody(v8::Isolate* isolate, v8::Local<v8::Value> body, char* into, size_t size) {
  if (body->IsString()) {
    body.As<v8::String>()->WriteUtf8V2(isolate, into, size, v8::String::WriteFlags::kReplaceInvalidUtf8);
  } else if (body->IsArrayBufferView()) {
    body.As<v8::ArrayBufferView>()->CopyContents(into, size);
  }
}

std::string Count(uint32_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

Call* Calls::Find(uint32_t serial) {
  auto found = calls_.find(serial);
  return found == calls_.end() ? nullptr : &found->second;
}

const Call* Calls::Find(uint32_t serial) const {
  auto found = calls_.find(serial);
  return found == calls_.end() ? nullptr : &found->second;
}

uint32_t Calls::SerialOf(uint32_t id) const {
  auto found = serials_.find(id);
  return found == serials_.end() ? 0 : found->second;
}

uint32_t Calls::Begin(uint32_t id) {
  const uint32_t serial = NextSerial();
  if (!serials_.try_emplace(id, serial).second) return 0;
  stray_log_room_ = {};
  calls_[serial].id = id;
  return serial;
}

// Serials wrap around after four billion calls of one worker; no old one is in use by then.
uint32_t Calls::NextSerial() {
  do last_serial_++;
  while (last_serial_ == 0 || calls_.contains(last_serial_));
  return last_serial_;
}

void Calls::Erase(std::unordered_map<uint32_t, Call>::iterator call) {
  serials_.erase(call->second.id);
  calls_.erase(call);
}

void Calls::Head(v8::Isolate* isolate, uint16_t status, const Call& call, v8::Local<v8::String> head, Used used) {
  // JavaScript has checked the length; Python ends an engine that sends more.
  uint32_t length = std::min<uint32_t>(static_cast<uint32_t>(head->Length()), wire::kMaxHead);
  out_.U16(status);
  out_.U16(used.memory_mb);
  out_.U32(Microseconds(call.cpu_ns + used.unfinished_ns));
  out_.U32(length);
  head->WriteOneByteV2(isolate, 0, length, reinterpret_cast<uint8_t*>(out_.Reserve(length)));
}

bool Calls::Respond(v8::Isolate* isolate, uint32_t serial, uint16_t status, v8::Local<v8::String> head,
                    v8::Local<v8::Value> body, Used used, bool done) {
  auto found = calls_.find(serial);
  if (found == calls_.end()) return true;
  Call& call = found->second;
  if (call.responded || call.canceled) return true;
  call.is_told = true;
  size_t size = BodySize(isolate, body);
  if (size > wire::kWindow) return false;
  // A call that still has timers is ended by Done(), so that they are dropped.
  bool over = done && call.timers == 0 && call.long_timers == 0 && call.ops == 0;
  out_.Begin(wire::Frame::kResponse, wire::kFlagEnd | (over ? wire::kFlagDone : 0), worker_id_, call.id);
  Head(isolate, status, call, head, used);
  if (size > 0) WriteBody(isolate, body, out_.Reserve(size), size);
  out_.End();
  call.responded = true;
  if (over) Erase(found);
  return true;
}

std::optional<Calls::InnerResponse> Calls::TakeInner(v8::Isolate* isolate, uint32_t serial, uint16_t status,
                                                     v8::Local<v8::String> head, v8::Local<v8::Value> body) {
  const Call* call = Find(serial);
  if (call == nullptr || call->origin == nullptr || call->responded || call->canceled) return std::nullopt;
  const size_t size = BodySize(isolate, body);
  const size_t length = static_cast<size_t>(head->Length());
  if (call->is_method && (status != 200 || length > 0)) return std::nullopt;  // an exception, or a value with streams
  if (size > wire::kInnerBody || length > wire::kInnerHead) return std::nullopt;
  InnerResponse response{status, std::string(length, '\0'), std::string(size, '\0')};
  head->WriteOneByteV2(isolate, 0, static_cast<uint32_t>(length), reinterpret_cast<uint8_t*>(response.head.data()));
  if (IsSpecialHead(response.head)) return std::nullopt;
  if (size > 0) WriteBody(isolate, body, response.body.data(), size);
  return response;
}

bool Calls::RespondInner(uint32_t serial, uint16_t status, Used used, bool done, Announcements& announcements) {
  auto found = calls_.find(serial);
  Call& call = found->second;
  const bool over = done && call.timers == 0 && call.long_timers == 0 && call.ops == 0;
  const uint32_t cpu_us = Microseconds(call.cpu_ns + used.unfinished_ns);
  call.responded = true;
  if (over && !call.is_told && announcements.Finish(call.id, {status, cpu_us, used.memory_mb, wire::Outcome::kOk})) {
    Erase(found);
    return true;
  }
  out_.Begin(wire::Frame::kResponse, wire::kFlagInner | wire::kFlagEnd | (over ? wire::kFlagDone : 0), worker_id_,
             call.id);
  out_.U16(status);
  out_.U16(used.memory_mb);
  out_.U32(cpu_us);
  out_.U32(0);
  out_.End();
  call.is_told = true;
  if (over) Erase(found);
  return false;
}

size_t Calls::CountInner() const {
  return static_cast<size_t>(
      std::count_if(calls_.begin(), calls_.end(), [](const auto& each) { return each.second.origin != nullptr; }));
}

void Calls::BeginStream(v8::Isolate* isolate, uint32_t serial, uint16_t status, v8::Local<v8::String> head, Used used) {
  Call* call = Find(serial);
  if (call == nullptr || call->responded || call->canceled) return;
  call->is_told = true;
  out_.Begin(wire::Frame::kResponse, 0, worker_id_, call->id);
  Head(isolate, status, *call, head, used);
  out_.End();
  call->responded = true;
  call->body_open = true;
  call->is_socket = status == 101;
}

size_t Calls::SendBody(uint32_t serial, std::string_view bytes, bool only_head) {
  Call* call = Find(serial);
  if (call == nullptr || !call->body_open || call->canceled || call->credit <= 0) return 0;
  size_t count = std::min<size_t>({bytes.size(), static_cast<size_t>(call->credit), wire::kChunk});
  if (only_head) {
    out_.Head(wire::Frame::kBody, worker_id_, call->id, count);
  } else {
    out_.Extend(wire::Frame::kBody, worker_id_, call->id, bytes.substr(0, count), wire::kChunk);
  }
  call->credit -= static_cast<int64_t>(count);
  return count;
}

void Calls::EndBody(uint32_t serial) {
  Call* call = Find(serial);
  if (call == nullptr || !call->body_open) return;
  call->body_open = false;
  if (!call->canceled) out_.Whole(wire::Frame::kBody, wire::kFlagEnd, worker_id_, call->id, {});
}

void Calls::AwaitCredit(uint32_t serial) {
  if (Call* call = Find(serial)) call->waits_credit = true;
}

void Calls::AwaitBody(uint32_t serial) {
  if (Call* call = Find(serial)) call->waits_body = true;
}

void Calls::TookBody(uint32_t serial, uint32_t bytes) {
  Call* call = Find(serial);
  if (call == nullptr || !call->upload_open || call->canceled) return;
  bytes = std::min(bytes, call->untaken);  // a worker that patches the platform's JavaScript can pass any number
  if (bytes == 0) return;
  call->untaken -= bytes;
  out_.Begin(wire::Frame::kCredit, 0, worker_id_, call->id);
  out_.U32(bytes);
  out_.End();
}

void Calls::StopBody(uint32_t serial) {
  Call* call = Find(serial);
  if (call == nullptr || !call->upload_open || call->canceled) return;
  call->upload_open = false;
  out_.Whole(wire::Frame::kCancel, 0, worker_id_, call->id, "{}");
}

void Calls::BeginPipe(uint32_t serial, std::string_view bytes, bool last) {
  Call* call = Find(serial);
  if (call == nullptr || !call->body_open || call->canceled) return;
  call->piped = call->waits_body = true;
  call->piped_bytes = bytes;
  call->piped_last = last;
}

bool Calls::Pipe(uint32_t serial, std::string_view bytes, bool last) {
  Call* call = Find(serial);
  if (call == nullptr || !call->body_open || call->canceled) return false;
  call->piped_last |= last;
  call->untaken += static_cast<uint32_t>(bytes.size());
  size_t sent = 0;
  // Bytes that waited for credit go first.
  for (std::string_view part : {std::string_view(call->piped_bytes), bytes}) {
    while (!part.empty()) {
      size_t count = SendBody(serial, part);
      if (count == 0) break;
      sent += count;
      part.remove_prefix(count);
    }
  }
  size_t waited = std::min(sent, call->piped_bytes.size());
  call->piped_bytes.erase(0, waited);
  call->piped_bytes.append(bytes.substr(sent - waited));
  if (sent > 0) TookBody(serial, static_cast<uint32_t>(sent));
  if (!call->piped_last || !call->piped_bytes.empty()) return false;
  call->piped = call->waits_body = false;
  EndBody(serial);
  return true;
}

void Calls::Fail(uint32_t serial, const Failure& failure) {
  Call* call = Find(serial);
  if (call == nullptr || call->canceled) return;
  bool answered = call->responded && !call->body_open;
  if (answered) return;  // after the response, an error is only logged
  call->responded = true;
  call->body_open = false;
  call->outcome = wire::OutcomeOf(failure.code);
  call->is_told = true;
  out_.Whole(wire::Frame::kFail, 0, worker_id_, call->id, failure.Json());
}

bool Calls::Done(uint32_t serial, uint64_t unfinished_ns) {
  auto found = calls_.find(serial);
  if (found == calls_.end()) return false;
  const Call& call = found->second;
  // A worker that has reached an object of the platform can end its call before the response. Python would then end the
  // engine, so the call fails instead.
  if (!call.canceled && (!call.responded || call.body_open)) {
    Fail(serial, {wire::Error::kInternal, "the call ended without a complete response", {}, {}, {}, 0, 0});
  }
  bool had_timers = call.timers > 0 || call.long_timers > 0;
  out_.Begin(wire::Frame::kDone, 0, worker_id_, call.id);
  out_.U32(Microseconds(call.cpu_ns + unfinished_ns));
  out_.U32(static_cast<uint32_t>(call.outcome));
  out_.End();
  Erase(found);
  return had_timers;
}

void Calls::Log(uint32_t serial, wire::Level level, double time_ms, std::string_view text) {
  Call* call = Find(serial);
  LogRoom& room = call == nullptr ? stray_log_room_ : call->log_room;
  LogRoom::Answer answer = room.Take(text.size());
  if (answer == LogRoom::Answer::kNo) return;
  if (answer == LogRoom::Answer::kNoMore) {
    level = wire::Level::kWarn;
    text = "more than 256 KB of log in one second: further lines of this call in it are dropped";
  }
  text = text.substr(0, kMaxLogBytes);
  if (call != nullptr) call->is_told = true;
  out_.Begin(wire::Frame::kLog, 0, worker_id_, call == nullptr ? 0 : call->id);
  out_.U32(static_cast<uint32_t>(level));
  out_.F64(time_ms);
  out_.Bytes(text);
  out_.End();
}

std::vector<Calls::Stuck> Calls::FindStuck() const {
  for (const auto& [serial, call] : calls_) {
    if (call.waits_credit || call.waits_body || call.timers > 0 || call.ops > 0 || call.is_kept) return {};
  }
  std::vector<Stuck> stuck;
  for (const auto& [serial, call] : calls_) {
    std::string why = "nothing is pending any more: no timer, no binding call, no body read";
    if (call.timers_cleared > 0)
      why += "; " + Count(call.timers_cleared, "timer") + " of this request had been cleared";
    if (call.long_timers > 0) {
      why += "; a call does not wait for timers longer than timer_ms, and " + Count(call.long_timers, "such timer") +
             " of this request was set";
    }
    if (call.ops_made > 0) why += "; " + Count(call.ops_made, "binding call") + " of this request had finished";
    if (calls_.size() > 1) why += "; it may wait for another request of this worker, which is stuck too";
    stuck.push_back({serial, call.responded, call.body_open, std::move(why)});
  }
  return stuck;
}

void Calls::FailAll(const Failure& failure) {
  while (!calls_.empty()) {
    auto& [serial, call] = *calls_.begin();
    if (call.responded && !call.body_open && !call.canceled) {  // the error can only be logged now
      call.outcome = wire::OutcomeOf(failure.code);
      Log(serial, wire::Level::kError, EpochMs(), failure.message);
    }
    Fail(serial, failure);
    Done(serial, 0);
  }
}

}  // namespace engine
