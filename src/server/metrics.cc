// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace juno::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<std::pair<std::string, std::string>>;
using Buckets = prometheus::Histogram::BucketBoundaries;

const Buckets kLong = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300};
const Buckets kShort = {0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 5};

// Figures that others count, put into families as they are found.
class Families {
 public:
  explicit Families(std::vector<MetricFamily>& to) : to_(to) {}

  void counter(const char* name, const char* help, const Labels& labels, double value) {
    add(name, help, MetricType::Counter, labels).counter.value = value;
  }
  void gauge(const char* name, const char* help, const Labels& labels, double value) {
    add(name, help, MetricType::Gauge, labels).gauge.value = value;
  }

 private:
  ClientMetric& add(const char* name, const char* help, MetricType type, const Labels& labels) {
    auto family = std::ranges::find(to_, name, &MetricFamily::name);
    if (family == to_.end()) {
      to_.push_back({name, help, type, {}});
      family = std::prev(to_.end());
    }
    ClientMetric& metric = family->metric.emplace_back();
    for (const auto& [key, value] : labels) metric.label.push_back({key, value});
    return metric;
  }

  std::vector<MetricFamily>& to_;
};

void add_load(Families& to, const std::string& model, const api::Load& load) {
  const Labels labels = {{"model", model}};
  const auto with = [&](const char* key, const char* value) {
    return Labels{{"model", model}, {key, value}};
  };
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  to.gauge("juno_requests_waiting", "Requests that wait for a place", labels, number(load.waiting));
  to.gauge("juno_requests_running", "Requests that run", labels, number(load.running));
  to.gauge("juno_sequences", "Places for sequences that run at once", labels, number(load.sequences));
  const char* pages = "Pages of 64 positions for keys and values; cached: nobody's, given up when wanted";
  to.gauge("juno_kv_pages", pages, with("state", "used"), number(load.pages_used));
  to.gauge("juno_kv_pages", pages, with("state", "cached"), number(load.pages_cached));
  to.gauge("juno_kv_pages", pages, with("state", "total"), number(load.pages_total));
  to.gauge("juno_sessions", "Sessions that are kept warm", labels, number(load.sessions));
  to.gauge("juno_stalled_seconds", "How long work has waited for a step; 0 when idle", labels,
           load.since_progress);
  const char* requests = "Requests that have ended, by how";
  to.counter("juno_requests_total", requests, with("outcome", "finished"), number(load.finished));
  to.counter("juno_requests_total", requests, with("outcome", "failed"), number(load.failed));
  to.counter("juno_requests_total", requests, with("outcome", "cancelled"), number(load.cancelled));
  to.counter("juno_prompt_tokens_total", "Tokens of prompts", labels, number(load.prompt_tokens));
  to.counter("juno_cached_tokens_total", "Tokens of prompts that the cache held", labels,
             number(load.cached_tokens));
  to.counter("juno_new_tokens_total", "Tokens that were generated", labels, number(load.new_tokens));
  to.counter("juno_preempted_total", "Sequences that had to give way for a while", labels,
             number(load.preempted));
  to.counter("juno_drafted_tokens_total", "Tokens that speculation guessed", labels, number(load.drafted));
  to.counter("juno_accepted_tokens_total", "Tokens that speculation guessed rightly", labels,
             number(load.accepted));
}

void add_recorder(Families& to, const std::string& model, const Snapshot& counters) {
  const Labels labels = {{"model", model}};
  const auto number = [](uint64_t n) { return static_cast<double>(n); };
  for (const OpCount& op : counters.ops) {
    const Labels of_op = {{"model", model}, {"op", std::string(op.name)}};
    to.counter("juno_operations_total", "Operations that devices were given", of_op, number(op.calls));
    to.counter("juno_operation_failures_total", "Operations that failed", of_op, number(op.failures));
    to.counter("juno_operation_weight_bytes_total", "Bytes of weights read", of_op, number(op.weight_bytes));
    to.counter("juno_operation_moved_bytes_total", "Bytes of activations and cache moved", of_op,
               number(op.moved_bytes));
  }
  for (const Declined& d : counters.declined)
    to.counter("juno_declined_total", "Operations that ran elsewhere than asked",
               {{"model", model},
                {"op", std::string(d.op)},
                {"type", std::string(d.type)},
                {"stage", std::string(d.stage)},
                {"reason", std::string(d.reason)},
                {"shape", fmt::format("{}", fmt::join(d.shape, "x"))}},
               number(d.count));
  to.counter("juno_declined_unlisted_total", "Such operations that no list had room for", labels,
             number(counters.declined_unlisted));
  const Traffic& traffic = counters.traffic;
  to.counter("juno_device_launches_total", "Kernels, or graphs of them, that were launched", labels,
             number(traffic.launches));
  to.counter("juno_device_launch_failures_total", "Launches that failed", labels, number(traffic.failures));
  to.counter("juno_device_written_bytes_total", "Bytes written to devices", labels, number(traffic.written));
  to.counter("juno_device_read_bytes_total", "Bytes read from devices", labels, number(traffic.read));
}

double resident_bytes() {
  double size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

struct Metrics::Parts {
  using Counters = prometheus::Family<prometheus::Counter>;
  using Histograms = prometheus::Family<prometheus::Histogram>;

  Counters& counters(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Histograms& histograms(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }

  prometheus::Registry registry;
  Counters& http = counters("juno_http_requests_total", "Replies, by route and status; 0: none");
  Counters& submitted = counters("juno_submitted_total", "Requests given to a model, by priority");
  Counters& ignored = counters("juno_ignored_fields_total", "Unknown fields, with --unknown-fields warn");
  Histograms& http_seconds =
      histograms("juno_http_request_seconds", "From a request's head to its reply's last byte");
  Histograms& first_token =
      histograms("juno_first_token_seconds", "From a request's arrival to its first token");
  Histograms& inter_token = histograms("juno_inter_token_seconds", "Between two tokens of a choice");
  Histograms& queue = histograms("juno_queue_seconds", "Until a request got its place");
  prometheus::Gauge& connections = prometheus::BuildGauge()
                                       .Name("juno_connections")
                                       .Help("Connections that are open")
                                       .Register(registry)
                                       .Add({});
};

Metrics::Metrics() : parts_(std::make_unique<Parts>()) {}
Metrics::~Metrics() = default;

void Metrics::http_request(std::string_view route, std::string_view method, int status, double seconds) {
  const std::string path(route);
  parts_->http.Add({{"route", path}, {"method", std::string(method)}, {"status", fmt::to_string(status)}})
      .Increment();
  parts_->http_seconds.Add({{"route", path}}, kLong).Observe(seconds);
}

void Metrics::connections(int64_t now) { parts_->connections.Set(static_cast<double>(now)); }

void Metrics::submitted(std::string_view model, api::Priority priority) {
  const char* name = priority == api::Priority::kHigh  ? "high"
                     : priority == api::Priority::kLow ? "low"
                                                       : "normal";
  parts_->submitted.Add({{"model", std::string(model)}, {"priority", name}}).Increment();
}

void Metrics::first_token(std::string_view model, double seconds) {
  parts_->first_token.Add({{"model", std::string(model)}}, kLong).Observe(seconds);
}

void Metrics::inter_token(std::string_view model, double seconds) {
  parts_->inter_token.Add({{"model", std::string(model)}}, kShort).Observe(seconds);
}

void Metrics::outcome(std::string_view model, const api::Outcome& outcome) {
  parts_->queue.Add({{"model", std::string(model)}}, kLong).Observe(outcome.queue_seconds);
}

void Metrics::ignored_field() { parts_->ignored.Add({}).Increment(); }

std::string Metrics::text(const std::vector<ModelFigures>& models) const {
  std::vector<MetricFamily> all = parts_->registry.Collect();
  Families families(all);
  for (const ModelFigures& m : models) {
    add_load(families, m.model, m.load);
    add_recorder(families, m.model, m.counters);
  }
  families.gauge("process_resident_memory_bytes", "Memory of this process that is resident", {},
                 resident_bytes());
  return prometheus::TextSerializer().Serialize(all);
}

}  // namespace juno::server
