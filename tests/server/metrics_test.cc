// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <gtest/gtest.h>

namespace juno::server {
namespace {

ModelFigures figures(const std::string& name, int64_t waiting) {
  ModelFigures m{.model = name};
  m.load.waiting = waiting;
  m.load.pages_used = 3;
  m.load.finished = 7;
  m.counters.ops.push_back({.name = "linear", .calls = 5});
  return m;
}

TEST(Metrics, EveryFigureHasItsNameAndFamiliesStandTogether) {
  const Metrics metrics;
  const std::string text = metrics.text({figures("a", 1), figures("b", 2)});
  for (const char* line :
       {"# TYPE juno_requests_waiting gauge\njuno_requests_waiting{model=\"a\"} "
        "1\njuno_requests_waiting{model=\"b\"} 2\n",
        "juno_kv_pages{model=\"a\",state=\"used\"} 3\n",
        "juno_requests_total{model=\"b\",outcome=\"finished\"} 7\n", "# TYPE juno_operations_total counter\n",
        "juno_operations_total{model=\"a\",op=\"linear\"} 5\n",
        "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes "})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\nis not in\n" << text;
}

TEST(Metrics, CountsWhatItIsTold) {
  Metrics metrics;
  metrics.http_request("/v1/models", "GET", 200, 0.01);
  metrics.http_request("/v1/models", "GET", 200, 0.01);
  metrics.submitted("a", api::Priority::kHigh);
  metrics.first_token("a", 0.2);
  metrics.outcome("a", {.queue_seconds = 0.1});
  metrics.ignored_field();
  const std::string text = metrics.text({});
  for (const char* line : {"juno_http_requests_total{method=\"GET\",route=\"/v1/models\",status=\"200\"} 2\n",
                           "juno_submitted_total{model=\"a\",priority=\"high\"} 1\n",
                           "juno_first_token_seconds_count{model=\"a\"} 1\n",
                           "juno_queue_seconds_count{model=\"a\"} 1\n", "juno_ignored_fields_total 1\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\nis not in\n" << text;
}

}  // namespace
}  // namespace juno::server
