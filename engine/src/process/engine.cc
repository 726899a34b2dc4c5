#include "process/engine.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/clock.h"
#include "base/json.h"
#include "isolate/snapshot.h"
#include "native/native.h"
#include "sandbox/sandbox.h"

namespace engine {
namespace {

// Workers that collect their garbage after one PING, because they have become quiet.
constexpr size_t kRestAtOnce = 8;

// PONG lists the memory and CPU time of this many workers, those that use most.
constexpr size_t kNamedWorkers = 1000;

std::string LargestOf(std::vector<std::pair<size_t, uint32_t>> values) {
  auto named = values.begin() + static_cast<ptrdiff_t>(std::min(values.size(), kNamedWorkers));
  if (named != values.end()) std::nth_element(values.begin(), named, values.end(), std::greater<>());
  JsonObject json;
  for (auto each = values.begin(); each != named; ++each) json.Number(std::to_string(each->second), each->first);
  return json.Done();
}

// The snapshot stays mapped for the life of the process; all isolates read from it.
v8::StartupData MapSnapshot(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0 || info.st_size == 0) return {nullptr, 0};
  void* data = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return {nullptr, 0};
  return OpenSnapshot({static_cast<const char*>(data), static_cast<size_t>(info.st_size)});
}

Failure TooMuch(const EntryAccount& account, uint64_t cost_ns) {
  return account.ran_out ? TooMuchMemory(account.memory_bytes)
                         : TooMuchCpu(account.used_ns + cost_ns, account.limit_ns);
}

}  // namespace

Engine::Engine(const EngineOptions& options)
    : options_(options),
      factory_{options.platform, MapSnapshot(options.snapshot_fd), size_t{options.heap_initial_mb} * 1024 * 1024},
      link_(options.socket_fd),
      ledger_(options.ledger_fd),
      descriptors_(options.descriptors_fd),
      watchdog_(
          ledger_, options.measures,
          [this](uint32_t slowed, uint32_t displaced) { scheduler_.Look(slowed, displaced); },
          [this](const EntryAccount& account, uint64_t cost_ns) {
            Report(wire::Frame::kFail, wire::kFlagEnd, account.worker, account.call, TooMuch(account, cost_ns));
          },
          [this](const EntryAccount& account, uint64_t cost_ns) {
            Failure failure = TooMuch(account, cost_ns);
            if (account.starting) failure.message = "top-level code " + failure.message;
            failure.message += ", in a built-in function that cannot be interrupted";
            ReportStuck(account.worker, account.call, account.used_ns + cost_ns, std::move(failure));
          }),
      spares_(factory_, options.spares, size_t{kDefaultMemoryMb} * 1024 * 1024),
      scheduler_([this] { Read(); }, [this] { link_.Wake(); }) {}

int Engine::Run() {
  if (factory_.snapshot.data == nullptr || !factory_.snapshot.IsValid()) {
    fprintf(stderr, "engine: the snapshot cannot be used by this V8\n");
    return 1;
  }
  if (!native::UrlLibraryWorks()) {
    fprintf(stderr, "engine: the URL parser of this Node is not the one the engine was built for\n");
    return 1;
  }
  if (!IcuMemory::Watch()) {
    fprintf(stderr, "engine: the memory behind Intl cannot be counted in this Node\n");
    return 1;
  }
  native::SetMostIterations(options_.pbkdf2_iterations);
  // Before HELLO, and so before any tenant's code.
  if (!Confine(options_.sandbox)) return 1;
  SendHello();
  spares_.Start();
  scheduler_.Start(options_.threads, options_.slow_threads, watchdog_);
  scheduler_.StandBy();
}

void Engine::Read() {
  link_.SendAnnouncements();
  uint64_t now = MonotonicNs();
  std::vector<std::shared_ptr<Worker>> due = alarms_.TakeDue(now);
  for (const std::shared_ptr<Worker>& worker : due) worker->Post({Mail::Kind::kAlarm, 0, 0, {}});
  // Workers with due timers run next. The socket is read all the same: a worker whose timers are always due must not
  // keep the frames of other workers waiting.
  const int timeout_ms = due.empty() ? alarms_.Sleep(now) : 0;
  switch (link_.ReadOnce(timeout_ms, [this](const wire::FrameView& frame) { return OnFrame(frame); })) {
    case Link::Reading::kMore:
      return;
    case Link::Reading::kMalformed:
      fprintf(stderr, "engine: malformed frame\n");
      _exit(1);
    case Link::Reading::kClosed:
      // Isolates and threads are alive, so V8 would abort in an orderly exit.
      _exit(0);
  }
}

void Engine::SendHello() {
  auto realm = std::make_unique<Realm>(factory_, size_t{kDefaultMemoryMb} * 1024 * 1024);
  realm->WarmUp();
  std::string ops = "[";
  {
    RealmScope scope(*realm);
    for (const std::string& name : realm->OpNames()) {
      if (ops.size() > 1) ops += ',';
      ops += JsonObject::Quoted(name);
    }
  }
  spares_.Give(std::move(realm));
  JsonObject hello;
  hello.Text("wire", wire::kHash)
      .Text("node", options_.node_version)
      .Text("v8", options_.v8_version)
      .Raw("ops", ops + "]");
  wire::Writer out;
  out.Whole(wire::Frame::kHello, 0, 0, 0, hello.Done());
  link_.Send(out.bytes());
}

bool Engine::OnFrame(const wire::FrameView& frame) {
  if (!greeted_) return frame.kind() == wire::Frame::kHello && OnHello(frame);
  switch (frame.kind()) {
    case wire::Frame::kLoad:
      return OnLoad(frame);
    case wire::Frame::kUnload:
      Deliver(frame, Mail::Kind::kUnload);
      return true;
    case wire::Frame::kCall:
      Deliver(frame, Mail::Kind::kCall);
      return true;
    case wire::Frame::kBody:
      Deliver(frame, Mail::Kind::kBody);
      return true;
    case wire::Frame::kCredit:
      Deliver(frame, Mail::Kind::kCredit);
      return true;
    case wire::Frame::kCancel:
      Deliver(frame, Mail::Kind::kCancel);
      return true;
    case wire::Frame::kReply:
      Deliver(frame, Mail::Kind::kReply);
      return true;
    case wire::Frame::kCode:
      Deliver(frame, Mail::Kind::kCode);
      return true;
    case wire::Frame::kOpen:
      Deliver(frame, Mail::Kind::kOpen);
      return true;
    case wire::Frame::kClose:
      Deliver(frame, Mail::Kind::kClose);
      return true;
    case wire::Frame::kStored:
      Deliver(frame, Mail::Kind::kStored);
      return true;
    case wire::Frame::kRoute:
      return OnRoute(frame);
    case wire::Frame::kSockets:
      Deliver(frame, Mail::Kind::kSockets);
      return true;
    case wire::Frame::kPing:
      OnPing(frame.header.flags & wire::kFlagLow);
      return true;
    default:
      return false;
  }
}

bool Engine::OnHello(const wire::FrameView& frame) {
  if (frame.payload.find(wire::kHash) == std::string_view::npos) {
    fprintf(stderr, "engine: built for wire %s, Python says %.*s\n", wire::kHash,
            static_cast<int>(std::min<size_t>(frame.payload.size(), 200)), frame.payload.data());
    return false;
  }
  greeted_ = true;
  return true;
}

// `call` in the header is the memory limit in MB, because the isolate must exist before the description can be parsed.
// The tenant precedes the description, because it determines the threads that parse it.
bool Engine::OnLoad(const wire::FrameView& frame) {
  uint32_t memory_mb = frame.header.call == 0 ? kDefaultMemoryMb : frame.header.call;
  std::optional<wire::LoadParts> parts = wire::ParseLoad(frame.payload);
  if (!parts) return false;
  auto worker = std::make_shared<Worker>(*this, frame.header.worker, memory_mb, AppetiteOf(std::string(parts->tenant)));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!workers_.emplace(frame.header.worker, worker).second) return false;
  }
  worker->Post({Mail::Kind::kLoad, frame.header.flags, 0, std::string(parts->rest)});
  return true;
}

void Engine::Deliver(const wire::FrameView& frame, Mail::Kind kind) {
  std::shared_ptr<Worker> worker = Find(frame.header.worker);
  if (worker != nullptr && worker->Post({kind, frame.header.flags, frame.header.call, std::string(frame.payload)})) {
    return;
  }
  if (kind == Mail::Kind::kOpen) descriptors_.Drop(frame.header.worker);
  if (kind != Mail::Kind::kCall) return;
  // The call never began, so Python may try another engine.
  Failure failure{wire::Error::kUnloaded, "the worker is no longer loaded here", {}, {}, {}, 0, 0};
  wire::Writer out;
  out.Whole(wire::Frame::kFail, 0, frame.header.worker, frame.header.call, failure.Json());
  out.Begin(wire::Frame::kDone, 0, frame.header.worker, frame.header.call);
  out.U32(0);
  out.U32(static_cast<uint32_t>(wire::Outcome::kInternalError));
  out.End();
  link_.Send(out.bytes());
}

bool Engine::OnRoute(const wire::FrameView& frame) {
  const std::shared_ptr<Worker> worker = Find(frame.header.worker);
  return worker == nullptr || worker->routes().Set(frame.payload);
}

void Engine::OnPing(bool low_memory) {
  std::vector<std::shared_ptr<Worker>> workers;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [id, worker] : workers_) workers.push_back(worker);
  }
  size_t heap_bytes = 0;
  size_t resting = 0;
  std::vector<std::pair<size_t, uint32_t>> sizes;
  std::vector<std::pair<size_t, uint32_t>> times;
  for (const std::shared_ptr<Worker>& worker : workers) {
    sizes.emplace_back(worker->used_bytes(), worker->id());
    times.emplace_back(worker->spent_ns() / 1000, worker->id());
    heap_bytes += worker->used_bytes();
    const bool rests = worker->rest().IsDue(worker->spent_ns()) && resting++ < kRestAtOnce;
    if (rests) worker->rest().Begin();
    if (low_memory || rests) worker->Post({Mail::Kind::kTrim, 0, 0, {}});
  }
  if (low_memory) spares_.Trim();
  if (std::exchange(has_rested_, resting > 0) && resting == 0) spares_.ReturnMemory();
  JsonObject pong;
  pong.Number("workers", workers.size())
      .Number("spares", spares_.count())
      .Number("isolates", Realm::alive())
      .Number("heap_bytes", heap_bytes)
      .Raw("memory", LargestOf(std::move(sizes)))
      .Raw("cpu_us", LargestOf(std::move(times)));
  wire::Writer out;
  out.Whole(wire::Frame::kPong, 0, 0, 0, pong.Done());
  link_.Send(out.bytes());
}

void Engine::ReportStuck(uint32_t worker, uint32_t call, uint64_t used_ns, Failure failure) {
  failure.cpu_us = used_ns / 1000;
  Report(wire::Frame::kStuck, 0, worker, call, failure);
}

void Engine::Report(wire::Frame kind, uint8_t flags, uint32_t worker, uint32_t call, const Failure& failure) {
  wire::Writer out;
  out.Whole(kind, flags, worker, call, failure.Json());
  link_.Send(out.bytes());
}

Appetite& Engine::AppetiteOf(const std::string& tenant) {
  std::lock_guard<std::mutex> lock(mutex_);
  return appetites_[tenant];
}

void Engine::SetAlarm(const std::shared_ptr<Worker>& worker, uint64_t due_ns) {
  if (alarms_.Set(worker, due_ns)) scheduler_.InterruptReading();
}

std::shared_ptr<Worker> Engine::Find(uint32_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = workers_.find(id);
  return found == workers_.end() ? nullptr : found->second;
}

void Engine::Remove(uint32_t worker_id) {
  std::lock_guard<std::mutex> lock(mutex_);
  workers_.erase(worker_id);
}

}  // namespace engine
