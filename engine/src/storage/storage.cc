#include "storage/storage.h"

#include <unistd.h>

#include <string>
#include <utility>

namespace engine::storage {
namespace {

constexpr uint8_t kHasFile = 1;

Failure Broken(const std::string& message) { return {wire::Error::kStorage, message, "Error", {}, {}, 0, 0}; }

}  // namespace

Storage::Storage(v8::Isolate* isolate, uint32_t worker, size_t memory_bytes, Descriptors& descriptors,
                 std::function<bool()> must_stop)
    : isolate_(isolate),
      worker_(worker),
      account_(memory_bytes / 2),
      descriptors_(descriptors),
      must_stop_(std::move(must_stop)) {}

Storage::~Storage() {
  {
    const AccountScope scope(account_);
    slots_.clear();
  }
  Report();
  descriptors_.Drop(worker_);
}

void Storage::Report() {
  // Small changes are not worth V8's attention.
  constexpr size_t kStep = 65'536;
  const size_t used = account_.used();
  if (used < reported_ + kStep && reported_ < used + kStep && used != 0) return;
  isolate_->AdjustAmountOfExternalAllocatedMemory(static_cast<int64_t>(used) - static_cast<int64_t>(reported_));
  reported_ = used;
}

bool Storage::Open(uint32_t slot, std::string_view payload, wire::Writer& frames) {
  wire::Reader reader(payload);
  const uint8_t flags = reader.U8();
  reader.Bytes(3);
  const uint32_t pages = reader.U32();
  const uint64_t sequence = reader.U64();
  const uint64_t most_pages = reader.U64();
  const auto alarm_ms = static_cast<int64_t>(reader.U64());
  if (!reader.ok() || !reader.empty() || slot == 0 || slots_.contains(slot)) return false;
  const bool has_file = (flags & kHasFile) != 0;
  const int fd = has_file ? descriptors_.Take(worker_, slot) : -1;
  const AccountScope scope(account_);
  auto database = std::make_unique<Database>(account_, fd, pages, sequence, most_pages, alarm_ms, must_stop_);
  if (has_file && fd < 0) {
    Reset(slot, Broken("the file of this object did not arrive in the engine: too many files are open"), frames,
          frames.bytes().size());
  } else if (!database->Open()) {
    Reset(slot, Broken("the database of this object cannot be opened: " + database->error()), frames,
          frames.bytes().size());
  } else {
    slots_.emplace(slot, Slot{std::move(database), sequence, {}});
  }
  Report();
  return true;
}

std::vector<uint32_t> Storage::Close(uint32_t slot) {
  std::vector<uint32_t> calls;
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return calls;
  for (const Waiting& each : found->second.waiting) calls.push_back(each.call);
  {
    const AccountScope scope(account_);
    slots_.erase(found);
  }
  Report();
  return calls;
}

std::vector<Waiting> Storage::Stored(uint32_t slot, std::string_view payload) {
  std::vector<Waiting> now;
  wire::Reader reader(payload);
  const uint64_t durable = reader.U64();
  const uint64_t merged = reader.U64();
  const auto found = slots_.find(slot);
  if (!reader.ok() || found == slots_.end()) return now;
  Slot& open = found->second;
  open.durable = std::max(open.durable, durable);
  open.database->pages().Merged(merged);
  std::vector<Waiting> later;
  for (Waiting& each : open.waiting) (each.sequence <= open.durable ? now : later).push_back(std::move(each));
  open.waiting = std::move(later);
  Report();
  return now;
}

Database* Storage::Find(uint32_t slot) {
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return nullptr;
  if (!std::exchange(found->second.is_touched, true)) touched_.push_back(slot);
  return found->second.database.get();
}

bool Storage::HasPending(uint32_t slot) const {
  const auto found = slots_.find(slot);
  return found == slots_.end() || found->second.database->CommitOfNow() > found->second.durable;
}

v8::MaybeLocal<v8::Promise> Storage::Sync(uint32_t slot, uint32_t call) {
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return {};
  const uint64_t sequence = found->second.database->CommitOfNow();
  if (sequence <= found->second.durable) return {};
  v8::Local<v8::Promise::Resolver> resolver;
  if (!v8::Promise::Resolver::New(isolate_->GetCurrentContext()).ToLocal(&resolver)) return {};
  found->second.waiting.push_back({sequence, call, v8::Global<v8::Promise::Resolver>(isolate_, resolver)});
  return resolver->GetPromise();
}

Entry Storage::EndEntry(wire::Writer& frames, size_t start) {
  Entry entry;
  if (touched_.empty()) return entry;
  const AccountScope scope(account_);
  std::vector<std::pair<uint32_t, std::string>> broken;
  for (const uint32_t slot : std::exchange(touched_, {})) {
    const auto found = slots_.find(slot);
    if (found == slots_.end()) continue;
    Slot& open = found->second;
    open.is_touched = false;
    std::string payload;
    switch (open.database->EndEntry(payload)) {
      case Database::Ended::kUnchanged:
        // A transaction that changed nothing is no commit, and its sync() waits for the one before.
        for (Waiting& each : open.waiting) {
          const uint64_t last = open.database->CommitOfNow();
          if (each.sequence > last) each.sequence = last;
          if (each.sequence <= open.durable) entry.settled.push_back(slot);
        }
        break;
      case Database::Ended::kCommitted:
        start += frames.Insert(start, wire::Frame::kCommit, worker_, slot, payload);
        break;
      case Database::Ended::kBroken:
        broken.emplace_back(slot, open.database->error());
        break;
    }
  }
  for (const auto& [slot, why] : broken) {
    start += frames.Insert(start, wire::Frame::kReset, worker_, slot, Broken(why).Json());
    slots_.erase(slot);
    entry.broken.push_back(slot);
  }
  Report();
  return entry;
}

void Storage::Reset(uint32_t slot, const Failure& failure, wire::Writer& frames, size_t start) {
  frames.Insert(start, wire::Frame::kReset, worker_, slot, failure.Json());
  const AccountScope scope(account_);
  slots_.erase(slot);
}

}  // namespace engine::storage
