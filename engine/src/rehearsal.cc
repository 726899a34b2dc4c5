#include "rehearsal.h"

#include <time.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "json.h"
#include "realm.h"
#include "snapshot.h"

namespace engine {
namespace {

constexpr size_t kMemoryBytes = size_t{128} << 20;

uint64_t CpuNs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

template <typename Act>
void Measure(std::vector<uint64_t>& times, Act&& act) {
  const uint64_t began = CpuNs();
  act();
  times.push_back(CpuNs() - began);
}

// What it takes when little disturbs it: others on the machine make CPU time longer too, by emptying the caches.
uint64_t TenthUs(std::vector<uint64_t>& times) {
  if (times.empty()) return 0;
  std::sort(times.begin(), times.end());
  return times[times.size() / 10] / 1000;
}

}  // namespace

std::string Rehearse(node::MultiIsolatePlatform* platform, std::string_view snapshot, uint32_t count) {
  const RealmFactory factory{platform, OpenSnapshot(snapshot), 0};
  if (factory.snapshot.data == nullptr || !factory.snapshot.IsValid()) return {};
  std::vector<uint64_t> make, warm, context, end;
  std::vector<std::unique_ptr<Realm>> realms;
  for (uint32_t i = 0; i < count; i++) {
    Measure(make, [&] { realms.push_back(std::make_unique<Realm>(factory, kMemoryBytes)); });
    Measure(warm, [&] { realms.back()->WarmUp(); });
  }
  for (std::unique_ptr<Realm>& realm : realms) {
    Measure(context, [&] { realm->Renew(); });
    Measure(end, [&] { realm.reset(); });
  }
  JsonObject json;
  json.Number("make_us", TenthUs(make))
      .Number("context_us", TenthUs(context))
      .Number("warm_us", TenthUs(warm))
      .Number("end_us", TenthUs(end))
      .Number("snapshot_bytes", static_cast<uint64_t>(factory.snapshot.raw_size));
  return json.Done();
}

}  // namespace engine
