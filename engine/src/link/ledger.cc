#include "link/ledger.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "link/wire.gen.h"

namespace engine {

Ledger::Ledger(int fd) {
  struct stat info;
  constexpr size_t kBytes = wire::kLedger + sizeof(uint32_t) * wire::kLedgerThreads;
  if (fstat(fd, &info) != 0 || info.st_size < static_cast<off_t>(kBytes)) return;
  void* data = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return;
  bytes_ = static_cast<volatile uint8_t*>(data);
  threads_ = reinterpret_cast<volatile uint32_t*>(static_cast<char*>(data) + wire::kLedger);
}

}  // namespace engine
