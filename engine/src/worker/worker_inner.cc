// Calls between isolates of this engine (worker/routes.h). The turns of Worker are in worker.cc.
#include <algorithm>
#include <utility>

#include "process/engine.h"
#include "worker/worker.h"

namespace engine {
namespace {

std::string AnswerPayload(const Calls::InnerResponse& response) {
  std::string payload;
  const uint32_t length = static_cast<uint32_t>(response.head.size());
  payload.reserve(sizeof(uint16_t) + sizeof(length) + length + response.body.size());
  payload.append(reinterpret_cast<const char*>(&response.status), sizeof(uint16_t));
  payload.append(reinterpret_cast<const char*>(&length), sizeof(length));
  return payload.append(response.head).append(response.body);
}

}  // namespace

bool Worker::PostInner(Mail mail, const std::function<void()>& announce) {
  Mailbox::Posted posted = mailbox_.PostInner(std::move(mail), announce);
  if (posted == Mailbox::Posted::kFirst) engine_.Schedule(shared_from_this());
  return posted != Mailbox::Posted::kClosed;
}

uint32_t Worker::StartInner(const InnerRequest& request) {
  const std::shared_ptr<const Route> route = routes_.Find(request.binding);
  if (route == nullptr) return 0;
  const uint32_t serial = CurrentCall();
  Call* call = calls_.Find(serial);
  if (call == nullptr || call->hops >= wire::kMaxHops || call->ops >= wire::kOpsPerCall) return 0;
  if (MustWait(call->slot != 0 ? call->slot : request.slot)) return 0;
  if (call->origin == nullptr && call->hops > 0) return 0;  // only Python knows the budget of the calls that led here
  const size_t bytes = request.meta.size() + request.body.size();
  if (!ops_.HasRoomFor(bytes)) return 0;
  if (call->chain == nullptr) {
    call->chain = std::make_shared<Chain>();
    call->chain->used.store(call->ops_made, std::memory_order_relaxed);
  }
  Chain& chain = *call->chain;
  chain.most.store(std::min(chain.most.load(std::memory_order_relaxed), route->budget), std::memory_order_relaxed);
  if (chain.used.load(std::memory_order_relaxed) >= chain.most.load(std::memory_order_relaxed)) return 0;
  const std::shared_ptr<Worker> callee = engine_.Find(route->callee);
  if (callee == nullptr || callee->inner_count()->load(std::memory_order_relaxed) >= route->room) return 0;
  const std::shared_ptr<Door>& door = route->door;
  if (door != nullptr && door->count()->load(std::memory_order_relaxed) >= wire::kObjectInner) return 0;
  std::optional<InnerPayload> payload = MakeInnerPayload(request, *route, static_cast<uint8_t>(call->hops + 1));
  if (!payload) return 0;

  const uint32_t op = engine_.NextOp();
  const uint32_t id = engine_.NextInner();
  Announcements& announcements = engine_.link().announcements();
  const auto announce = [&] {
    announcements.Add({callee->id(), id, route->number, id_, call->id, op, static_cast<uint16_t>(request.op),
                       payload->event, request.meta, payload->head()});
  };
  Mail mail{Mail::Kind::kCall, wire::kFlagEnd, id, payload->bytes};
  mail.origin = std::make_shared<InnerOrigin>(weak_from_this(), op, call->chain, callee->inner_count(), door);
  const auto post = [&] { return callee->PostInner(std::move(mail), announce); };
  if (!(door == nullptr ? post() : door->Pass(post))) return 0;
  call->chain->used.fetch_add(1, std::memory_order_relaxed);
  ops_.Add(op, serial, bytes);
  call->ops++;
  call->ops_made++;
  call->is_told = true;  // its own announcement must not say that it is over: this one, which names it, comes later
  if (announcements.AreMany()) engine_.link().SendAnnouncements();
  return op;
}

bool Worker::MustWait(uint32_t slot) const { return slot != 0 && storage_ != nullptr && storage_->HasPending(slot); }

bool Worker::Respond(uint32_t serial, uint16_t status, v8::Local<v8::String> head, v8::Local<v8::Value> body,
                     bool done) {
  v8::Isolate* isolate = realm_->isolate();
  const Calls::Used used{UnfinishedNs(), realm_->RecentMb()};
  const Call* call = calls_.Find(serial);
  if (call != nullptr && call->origin != nullptr && !MustWait(call->slot)) {
    if (std::optional<Calls::InnerResponse> response = calls_.TakeInner(isolate, serial, status, head, body)) {
      const std::shared_ptr<InnerOrigin> origin = call->origin;
      calls_.RespondInner(serial, status, used, done, engine_.link().announcements());
      Mail answer{Mail::Kind::kReply, wire::kFlagInner, origin->op(), AnswerPayload(*response)};
      answers_.push_back({origin->caller(), std::move(answer)});
      return true;
    }
  }
  return calls_.Respond(isolate, serial, status, head, body, used, done);
}

void Worker::RefuseInner(const Mail& mail) {
  outbox_.EndUnbegun(mail.id, wire::Outcome::kCanceled, wire::kFlagFail);
  Mail answer{Mail::Kind::kReply, wire::kFlagInner | wire::kFlagFail, mail.origin->op(), AnswerPayload({0, {}, {}})};
  answers_.push_back({mail.origin->caller(), std::move(answer)});
}

// Python hears of a call before its caller does: the caller may end at once.
void Worker::Flush() {
  outbox_.Flush();
  for (Answer& answer : std::exchange(answers_, {})) {
    if (std::shared_ptr<Worker> caller = answer.caller.lock()) caller->Post(std::move(answer.mail));
  }
}

}  // namespace engine
