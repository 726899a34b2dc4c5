#include "process/rehearsal.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/json.h"
#include "isolate/realm.h"
#include "isolate/snapshot.h"

namespace engine {
namespace {

constexpr size_t kMemoryBytes = size_t{128} << 20;

uint64_t CpuNs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Page faults of this thread.
uint64_t PageFaults() {
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_minflt);
}

template <typename Act>
void Measure(std::vector<uint64_t>& times, Act&& act) {
  const uint64_t began = CpuNs();
  act();
  times.push_back(CpuNs() - began);
}

// A low quantile, because other processes empty the caches and so increase CPU times.
uint64_t Tenth(std::vector<uint64_t>& values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 10];
}

uint64_t TenthUs(std::vector<uint64_t>& times) { return Tenth(times) / 1000; }

}  // namespace

std::string Rehearse(node::MultiIsolatePlatform* platform, std::string_view snapshot, uint32_t count) {
  const RealmFactory factory{platform, OpenSnapshot(snapshot), 0};
  if (factory.snapshot.data == nullptr || !factory.snapshot.IsValid()) return {};
  std::vector<uint64_t> make, warm, context, end, faults;
  std::vector<std::unique_ptr<Realm>> realms;
  auto another = [&] { realms.push_back(std::make_unique<Realm>(factory, kMemoryBytes)); };
  another();
  realms.back()->WarmUp();
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t before = PageFaults();
    Measure(make, another);
    faults.push_back(PageFaults() - before);
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
      .Number("make_faults", Tenth(faults))
      .Number("snapshot_bytes", static_cast<uint64_t>(factory.snapshot.raw_size));
  return json.Done();
}

}  // namespace engine
