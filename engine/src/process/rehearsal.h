// For benchmarks: measures what making a realm costs. No frame and no worker can reach this code.
#pragma once

#include <node.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace engine {

// Makes `count` realms from the content of a snapshot file and returns CPU times (the 10th percentile) as JSON: for a
// realm, a realm whose memory was prepared, its first calls (WarmUp), another context in it, its disposal; and the page
// faults of the first two. Empty when the snapshot cannot be used.
std::string Rehearse(node::MultiIsolatePlatform* platform, std::string_view snapshot, uint32_t count);

}  // namespace engine
