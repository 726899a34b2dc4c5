// Fuzzes the backlog of the socket: whatever the socket takes of each write, every frame leaves whole, once, and in the
// order of its worker.
//
//   fuzz_backlog [ROUNDS] [SEED]
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "link/backlog.h"
#include "link/wire.h"

namespace {

using engine::Backlog;
using engine::wire::Frame;
using engine::wire::FrameReader;
using engine::wire::FrameView;
using engine::wire::Writer;

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz_backlog: %s\n", what);
  std::exit(1);
}

// The socket, and what Python reads from it. Worker 0 stands for frames that go before all others.
class Socket final {
 public:
  explicit Socket(std::mt19937_64& random) : random_(random) {}

  // How many of `size` bytes it takes now.
  size_t Take(size_t size) { return random_() % 3 == 0 ? size : random_() % (size + 1); }

  void Write(std::string_view bytes) {
    while (!bytes.empty()) {
      FrameReader::Span space = reader_.Space();
      const size_t count = std::min(space.size, bytes.size());
      std::copy_n(bytes.data(), count, space.data);
      reader_.Filled(count);
      bytes.remove_prefix(count);
      while (std::optional<FrameView> frame = reader_.Next()) {
        Require(frame->header.call == ++seen_[frame->header.worker], "a frame is lost, doubled or out of order");
        const char fill = static_cast<char>(frame->header.worker + frame->header.call);
        Require(frame->payload.find_first_not_of(fill) == std::string_view::npos, "a frame was changed");
      }
      Require(!reader_.broken(), "the stream is broken");
    }
  }

  const std::map<uint32_t, uint32_t>& seen() const { return seen_; }

 private:
  std::mt19937_64& random_;
  FrameReader reader_;
  std::map<uint32_t, uint32_t> seen_;  // the last frame of each worker
};

class Round final {
 public:
  explicit Round(std::mt19937_64& random) : random_(random), socket_(random) {}

  void Run() {
    for (int i = 0; i < 60; i++) {
      if (random_() % 2 == 0) {
        Send();
      } else {
        Flush(random_() % 4);
      }
    }
    while (!backlog_.empty()) Flush(8);
    Require(backlog_.Next().empty(), "an empty backlog has bytes");
    Require(socket_.seen() == written_, "not all frames left");
  }

 private:
  // As Link does: what the socket does not take waits.
  void Send() {
    std::string announced = random_() % 4 == 0 ? Frames(0, 1 + random_() % 3) : std::string();
    std::string frames = Frames(1 + static_cast<uint32_t>(random_() % 4), 1 + random_() % 4);
    const size_t first = announced.size();
    const size_t sent = backlog_.empty() ? socket_.Take(first + frames.size()) : 0;
    socket_.Write((announced + frames).substr(0, sent));
    if (sent < first) backlog_.AddFirst(announced, sent);
    const size_t after = sent - std::min(sent, first);
    if (after < frames.size()) backlog_.Add(frames, after);
  }

  void Flush(size_t writes) {
    for (size_t i = 0; i < writes; i++) {
      const std::string_view next = backlog_.Next();
      if (next.empty()) return;
      const size_t count = socket_.Take(next.size());
      socket_.Write(next.substr(0, count));
      backlog_.Sent(count);
    }
  }

  std::string Frames(uint32_t worker, size_t count) {
    Writer writer;
    for (size_t i = 0; i < count; i++) {
      const uint32_t number = ++written_[worker];
      const size_t size = random_() % (random_() % 3 == 0 ? 70'000 : 200);
      writer.Whole(Frame::kBody, 0, worker, number, std::string(size, static_cast<char>(worker + number)));
    }
    return writer.bytes();
  }

  std::mt19937_64& random_;
  Socket socket_;
  Backlog backlog_;
  std::map<uint32_t, uint32_t> written_;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 2000;
  std::mt19937_64 random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  for (int i = 0; i < rounds; i++) Round(random).Run();
  std::printf("%d rounds survived\n", rounds);
  return 0;
}
