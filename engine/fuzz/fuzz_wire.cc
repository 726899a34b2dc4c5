// Fuzzes the wire decoder with valid, broken and random frames, in pieces of every size.
//
//   fuzz_wire [ROUNDS] [SEED]
//
// Built with AddressSanitizer (cmake -DATOLL_SANITIZE=ON): reading past the end of a buffer ends the program. Valid
// frames must also come out exactly as they went in, regardless of how the stream is split.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "link/wire.h"

namespace {

using engine::wire::FrameReader;
using engine::wire::FrameView;
using engine::wire::Header;
using engine::wire::Writer;

std::string RandomBytes(std::mt19937_64& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

// Parses a payload in a buffer of exactly its size, so that the sanitizer detects every access beyond it.
void ParseExactly(std::string_view payload) {
  std::unique_ptr<char[]> exact(new char[payload.size()]);
  std::copy(payload.begin(), payload.end(), exact.get());
  std::string_view view(exact.get(), payload.size());
  volatile size_t used = 0;
  if (auto call = engine::wire::ParseCall(view)) used = call->head.size() + call->body.size();
  if (auto meta = engine::wire::ParseMeta(view)) used = meta->meta.size() + meta->body.size();
  if (auto load = engine::wire::ParseLoad(view)) used = load->tenant.size() + load->rest.size();
  (void)used;
}

// Splits `stream` into random pieces and returns the decoded payloads.
std::vector<std::string> Decode(std::mt19937_64& random, std::string_view stream, bool* broken) {
  FrameReader reader;
  std::vector<std::string> payloads;
  while (!stream.empty()) {
    FrameReader::Span space = reader.Space();
    size_t count = std::min<size_t>({1 + random() % 5000, stream.size(), space.size});
    std::copy_n(stream.data(), count, space.data);
    reader.Filled(count);
    stream.remove_prefix(count);
    while (std::optional<FrameView> frame = reader.Next()) {
      payloads.emplace_back(frame->payload);
      ParseExactly(frame->payload);
    }
    if (reader.broken()) break;
  }
  *broken = reader.broken();
  return payloads;
}

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz_wire: %s\n", what);
  std::exit(1);
}

void ValidFramesComeOutAsTheyWentIn(std::mt19937_64& random) {
  Writer writer;
  std::vector<std::string> sent;
  for (size_t i = 0, count = 1 + random() % 20; i < count; i++) {
    std::string payload = RandomBytes(random, random() % (random() % 8 == 0 ? 200'000 : 300));
    writer.Whole(engine::wire::Frame::kCall, 0, static_cast<uint32_t>(random()), static_cast<uint32_t>(random()),
                 payload);
    sent.push_back(std::move(payload));
  }
  bool broken = false;
  Require(Decode(random, writer.bytes(), &broken) == sent, "a valid frame was changed or lost");
  Require(!broken, "a valid stream was called broken");
}

void BrokenStreamsAreSurvived(std::mt19937_64& random) {
  bool broken = false;
  Decode(random, RandomBytes(random, random() % 4000), &broken);
  Header huge{engine::wire::kMaxPayload + 1, 6, 0, 0, 1, 1};
  Decode(random, std::string(reinterpret_cast<const char*>(&huge), sizeof(huge)), &broken);
  Require(broken, "a frame longer than the limit was accepted");
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 2000;
  uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  std::mt19937_64 random(seed);
  for (int i = 0; i < rounds; i++) {
    ValidFramesComeOutAsTheyWentIn(random);
    BrokenStreamsAreSurvived(random);
  }
  std::printf("%d rounds survived\n", rounds);
  return 0;
}
