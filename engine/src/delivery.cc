// What a worker does with mail of a call: start it, feed it, cancel it; and with jobs it gave away.
// (Another part of class Worker; its turns are in worker.cc, its start in startup.cc.)
#include <algorithm>
#include <cstring>

#include "engine.h"
#include "worker.h"

namespace engine {
namespace {

// How many jobs of one worker the pool holds at a time, and how many may wait; and the memory they may hold.
constexpr size_t kJobsAtOnce = 2;
constexpr size_t kMaxJobs = 64;
constexpr size_t kMaxJobBytes = size_t{64} << 20;
constexpr uint64_t kStartupJobNs = 1'000'000'000;

v8::Local<v8::Value> Bytes(v8::Isolate* isolate, std::string_view bytes) {
  v8::Local<v8::ArrayBuffer> buffer;
  auto uninitialized = v8::BackingStoreInitializationMode::kUninitialized;
  if (!v8::ArrayBuffer::MaybeNew(isolate, bytes.size(), uninitialized).ToLocal(&buffer)) return v8::Null(isolate);
  if (!bytes.empty()) std::memcpy(buffer->Data(), bytes.data(), bytes.size());
  return v8::Uint8Array::New(buffer, 0, bytes.size());
}

v8::Local<v8::Value> Latin1(v8::Isolate* isolate, std::string_view bytes) {
  return v8::String::NewFromOneByte(isolate, reinterpret_cast<const uint8_t*>(bytes.data()), v8::NewStringType::kNormal,
                                    static_cast<int>(bytes.size()))
      .FromMaybe(v8::String::Empty(isolate));
}

}  // namespace

uint32_t Worker::Admit(const Mail& mail) {
  std::optional<wire::CallParts> parts = wire::ParseCall(mail.payload);
  const uint32_t serial = parts ? calls_.Begin(mail.id) : 0;
  if (serial == 0) {
    Refuse(mail);
    return 0;
  }
  engine_.ledger().Begun(mail.id);
  Call& call = *calls_.Find(serial);
  call.is_event = wire::IsLongEvent(mail.payload);
  call.upload_open = (mail.flags & wire::kFlagEnd) == 0;
  call.untaken = static_cast<uint32_t>(parts->body.size());
  return serial;
}

void Worker::BeginCall(uint32_t serial, const Mail& mail) {
  std::optional<wire::CallParts> parts = wire::ParseCall(mail.payload);
  if (!parts) return;
  v8::Isolate* isolate = realm_->isolate();
  bool streaming = (mail.flags & wire::kFlagEnd) == 0;
  v8::Local<v8::Value> body = v8::Null(isolate);
  if (!parts->body.empty()) body = Bytes(isolate, parts->body);
  if (parts->event != wire::Event::kFetch) {
    v8::Local<v8::Integer> event = v8::Integer::NewFromUnsigned(isolate, static_cast<uint32_t>(parts->event));
    CallEntry(realm_->entry().event, {v8::Integer::NewFromUnsigned(isolate, serial), event,
                                      Latin1(isolate, parts->head), body, v8::Boolean::New(isolate, streaming)});
    return;
  }
  CallEntry(realm_->entry().fetch, {v8::Integer::NewFromUnsigned(isolate, serial), Latin1(isolate, parts->head), body,
                                    v8::Boolean::New(isolate, streaming)});
}

void Worker::DeliverBody(uint32_t serial, const Mail& mail) {
  Call* call = calls_.Find(serial);
  if (call == nullptr || !call->upload_open) return;
  v8::Isolate* isolate = realm_->isolate();
  v8::Local<v8::Value> id = v8::Integer::NewFromUnsigned(isolate, serial);
  call->waits_body = false;
  call->untaken += static_cast<uint32_t>(mail.payload.size());
  bool last = mail.flags & wire::kFlagEnd;
  if (last) call->upload_open = false;
  if (!mail.payload.empty()) CallEntry(realm_->entry().body, {id, Bytes(isolate, mail.payload)});
  if (last) CallEntry(realm_->entry().body, {id, v8::Null(isolate)});
}

void Worker::DeliverReply(const Mail& mail) {
  uint32_t op = mail.id;
  auto found = ops_.find(op);
  if (Call* call = calls_.Find(found->second.call)) call->ops--;
  op_bytes_ -= found->second.bytes;
  ops_.erase(found);
  std::optional<wire::MetaParts> parts = wire::ParseMeta(mail.payload);
  v8::Isolate* isolate = realm_->isolate();
  v8::Local<v8::Value> body = v8::Null(isolate);  // without anything in it there was no room for it
  if (parts) body = Bytes(isolate, parts->body);
  CallEntry(realm_->entry().reply,
            {v8::Integer::NewFromUnsigned(isolate, op), v8::Boolean::New(isolate, mail.flags & wire::kFlagFail),
             ToV8(isolate, parts ? parts->meta : std::string_view("{}")), body});
}

void Worker::ForgetOps(uint32_t call) {
  std::vector<uint32_t> forgotten;
  for (const auto& [id, op] : ops_) {
    if (op.call == call) forgotten.push_back(id);
  }
  v8::Isolate* isolate = realm_->isolate();
  v8::HandleScope handles(isolate);
  for (uint32_t id : forgotten) {
    op_bytes_ -= ops_.at(id).bytes;
    ops_.erase(id);
    CallEntry(realm_->entry().reply, {v8::Integer::NewFromUnsigned(isolate, id), v8::Null(isolate)});
  }
}

void Worker::Cancel(uint32_t serial, const Mail& mail) {
  Call* call = calls_.Find(serial);
  bool time_is_up = mail.flags & wire::kFlagFail;
  if (call == nullptr || (call->canceled && !time_is_up)) return;
  call->canceled = true;
  call->waits_credit = call->waits_body = false;
  call->upload_open = call->body_open = call->piped = false;
  call->outcome = time_is_up ? wire::Outcome::kExceededWallTime : wire::Outcome::kCanceled;
  v8::Isolate* isolate = realm_->isolate();
  CallEntry(realm_->entry().cancel,
            {v8::Integer::NewFromUnsigned(isolate, serial), v8::Boolean::New(isolate, time_is_up)});
}

// --- Jobs ---

bool Worker::MayStartJob(size_t bytes) const {
  return jobs_.size() < kMaxJobs && (job_bytes_ == 0 || job_bytes_ + bytes <= kMaxJobBytes);
}

v8::MaybeLocal<v8::Promise> Worker::StartJob(std::shared_ptr<Job> job, size_t bytes) {
  v8::Isolate* isolate = realm_->isolate();
  v8::Local<v8::Promise::Resolver> resolver;
  if (!v8::Promise::Resolver::New(isolate->GetCurrentContext()).ToLocal(&resolver)) return {};
  uint32_t call = CurrentCall();
  // Code that outlived its call could go on for ever from job to job, and so could what top-level code has begun.
  if (IsOver(call) || (call == 0 && stray_jobs_ > kMaxJobs)) return resolver->GetPromise();
  if (call == 0 && state_ == State::kReady) stray_jobs_++;
  uint64_t left = state_ == State::kStarting ? kStartupJobNs : cpu_limit_ns_;
  if (calls_.Find(call) != nullptr) left = AccountOf(call).budget_ns;
  // A tenth is kept back for the code that handles the failure.
  job->budget_ns_ = left / 10 * 9;
  job->bytes_ = bytes;
  job_bytes_ += bytes;
  uint32_t id = next_job_++;
  jobs_.emplace(id, PendingJob{std::move(job), v8::Global<v8::Promise::Resolver>(isolate, resolver), call});
  waiting_jobs_.push_back(id);
  PushJobs();
  return resolver->GetPromise();
}

void Worker::PushJobs() {
  while (!waiting_jobs_.empty() && jobs_.size() - waiting_jobs_.size() < kJobsAtOnce) {
    uint32_t id = waiting_jobs_.front();
    waiting_jobs_.pop_front();
    engine_.jobs().Push(weak_from_this(), id, jobs_.at(id).job);
  }
}

uint32_t Worker::ChargeJob(uint32_t id) {
  auto found = jobs_.find(id);
  if (found == jobs_.end()) return 0;
  const Job& job = *found->second.job;
  // One that was stopped may have gone on a little too long, which is not the worker's fault.
  uint64_t cost = job.expired() ? std::min(job.cpu_ns(), job.budget_ns_) : job.cpu_ns();
  uint32_t call_id = found->second.call;
  const Account account = AccountOf(call_id);
  Spend(cost);
  if (Call* call = calls_.Find(call_id)) {
    call->cpu_ns += cost;
  } else if (auto left = outlived_.find(call_id); left != outlived_.end()) {
    left->second += cost;
  } else {
    startup_ns_ += cost;
  }
  if (cost > account.budget_ns && (call_id != 0 || account.starting)) {
    condemned_ = TooMuchCpu(account.used_ns + cost, account.limit_ns);
  }
  return call_id;
}

bool Worker::HasJobs(uint32_t call) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [call](const auto& each) { return each.second.call == call; });
}

void Worker::Outlive(uint32_t call, uint64_t used_ns) {
  if (!jobs_.empty() && HasJobs(call)) outlived_[call] = used_ns;
}

void Worker::DeliverFinished(uint32_t id) {
  auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  PendingJob pending = std::move(found->second);
  jobs_.erase(found);
  job_bytes_ -= pending.job->bytes_;
  PushJobs();
  v8::Isolate* isolate = realm_->isolate();
  v8::Local<v8::Value> value = pending.job->Value(isolate);
  Ignore(pending.resolver.Get(isolate)->Resolve(isolate->GetCurrentContext(), value));
}

void Worker::DropJobs() {
  for (auto& [id, pending] : jobs_) pending.job->canceled_.store(true, std::memory_order_relaxed);
  jobs_.clear();
  waiting_jobs_.clear();
  outlived_.clear();
  job_bytes_ = 0;
}

}  // namespace engine
