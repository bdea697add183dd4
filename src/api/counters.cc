// SPDX-License-Identifier: Apache-2.0
#include "api/counters.h"

#include <nlohmann/json.hpp>

namespace juno::api {

using Json = nlohmann::ordered_json;

Json traffic_json(const Traffic& t) {
  return {{"launches", t.launches},
          {"launch_failures", t.failures},
          {"bytes_written", t.written},
          {"bytes_read", t.read}};
}

Json declined_json(const Snapshot& counters) {
  Json list = Json::array();
  for (const Declined& d : counters.declined)
    list.push_back({{"op", d.op},
                    {"type", d.type},
                    {"stage", d.stage},
                    {"reason", d.reason},
                    {"shape", d.shape},
                    {"count", d.count}});
  return list;
}

Json routing_json(const Snapshot& counters) {
  Json routing = {{"declined", counters.declined_count()}, {"failures", counters.failures()}};
  routing.update(traffic_json(counters.traffic));
  routing["declined_operations"] = declined_json(counters);
  Json operations = Json::array();
  for (const OpCount& op : counters.ops) {
    if (op.calls == 0 && op.failures == 0) continue;
    operations.push_back({{"op", op.name},
                          {"calls", op.calls},
                          {"failures", op.failures},
                          {"weight_bytes", op.weight_bytes},
                          {"moved_bytes", op.moved_bytes}});
  }
  routing["operations"] = std::move(operations);
  return routing;
}

}  // namespace juno::api
