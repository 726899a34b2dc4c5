#include "ledger.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "wire.gen.h"

namespace engine {

Ledger::Ledger(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0 || info.st_size < static_cast<off_t>(wire::kLedger)) return;
  void* data = mmap(nullptr, wire::kLedger, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return;
  bytes_ = static_cast<volatile uint8_t*>(data);
  size_ = wire::kLedger;
}

}  // namespace engine
