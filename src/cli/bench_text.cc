// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/format.h"

namespace juno::cli {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

std::string text(const Json& value) { return printable(value.get<std::string>()); }
double number(const Json& value) { return value.get<double>(); }

// Four digits, more before the point where there are more.
std::string figure(double value) {
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}
std::string spread(const Json& series) {
  return fmt::format("{} ({}–{})", figure(number(series.at("median"))), figure(number(series.at("min"))),
                     figure(number(series.at("max"))));
}
std::string share(const Json& value) {
  return value.is_null() ? "–" : fmt::format("{:.1f} %", 100 * number(value));
}

// Columns as wide as their widest cell; counted in characters, for a dash has three bytes.
size_t width(const std::string& cell) {
  return static_cast<size_t>(
      std::count_if(cell.begin(), cell.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}
std::string table(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows.front().size(), 3);
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  std::string out;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t i = 0; i < widths.size(); ++i)
      out += fmt::format("| {}{} ", rows[r][i], std::string(widths[i] - width(rows[r][i]), ' '));
    out += "|\n";
    if (r > 0) continue;
    for (size_t w : widths) out += fmt::format("|{}", std::string(w + 2, '-'));
    out += "|\n";
  }
  return out;
}

std::string test_name(const Json& test) {
  return fmt::format("{} {}", text(test.at("test")), test.at("tokens").get<int64_t>());
}
std::string whole(const Json& value) { return fmt::format("{}", value.get<int64_t>()); }

std::string load_averages(const Json& machine) {
  const Json& load = machine.at("load_average");
  if (load.at("start").is_null() || load.at("end").is_null()) return "unknown";
  return fmt::format("{:.2f} at the start, {:.2f} at the end", number(load.at("start").at(0)),
                     number(load.at("end").at(0)));
}

// Of a test's last pass.
std::string kernel_lines(const Json& test) {
  const Json& kernels = test.at("kernels");
  const auto us = [](const Json& seconds) { return figure(1e6 * number(seconds)); };
  std::string out = fmt::format(
      "\nkernels of the last pass of {} at depth {}, batch {}: {} launches, {} us one by one, {} us as it "
      "is\n\n",
      test_name(test), whole(test.at("depth")), whole(test.at("batch")), whole(kernels.at("launches")),
      us(kernels.at("seconds")), us(kernels.at("pass_seconds")));
  std::vector<Row> rows = {
      {"kernel", "blocks", "threads", "launches", "us each", "us", "share", "MB", "TB/s"}};
  for (const Json& k : kernels.at("rows")) {
    const auto unless_null = [&](const char* key, double unit) {
      return k.at(key).is_null() ? "–" : figure(number(k.at(key)) / unit);
    };
    rows.push_back(
        {text(k.at("kernel")), fmt::format("{}", fmt::join(k.at("grid").get<std::vector<int>>(), "x")),
         whole(k.at("threads")), whole(k.at("launches")), us(k.at("seconds_each")), us(k.at("seconds")),
         share(k.at("share")), unless_null("bytes", 1e6), unless_null("bytes_per_second", 1e12)});
  }
  return out + table(rows);
}

std::string model_lines(const Json& model) {
  const Json& load = model.at("load");
  std::string out = fmt::format("\n{}: {}, {}, {} in {} parameters\n", text(model.at("path")),
                                text(model.at("architecture")), text(model.at("quant")),
                                human_bytes(model.at("bytes")), human_count(model.at("parameters")));
  out += fmt::format("sha256 {} of {}\n", text(model.at("sha256")), text(model.at("sha256_of")));
  out += fmt::format("opened in {} s, first token after {} s, at most {} in memory since {}\n\n",
                     spread(load.at("open_seconds")), spread(load.at("first_token_seconds")),
                     human_bytes(model.at("peak_memory").at("bytes")),
                     text(model.at("peak_memory").at("since")));
  std::vector<Row> rows = {
      {"test", "depth", "batch", "tokens/s (least–most)", "weights GB/s", "of memory", "of multiply-adds"}};
  for (const Json& t : model.at("tests"))
    rows.push_back({test_name(t), whole(t.at("depth")), whole(t.at("batch")),
                    spread(t.at("tokens_per_second")), figure(number(t.at("weight_bytes_per_second")) / 1e9),
                    share(t.at("bandwidth_share")), share(t.at("multiply_add_share"))});
  if (rows.size() > 1) out += table(rows);
  for (const Json& t : model.at("tests"))
    if (t.contains("kernels")) out += kernel_lines(t);
  for (const Json& s : model.at("skipped"))
    out += fmt::format("skipped: {} at depth {}, batch {}: {}\n", text(s.at("test")), whole(s.at("depth")),
                       whole(s.at("batch")), text(s.at("why")));
  return out;
}

std::string against_lines(const Json& report) {
  const Json& against = report.at("against");
  std::string out = fmt::format("\nAgainst {} of {}; above 1 is faster now\n", text(against.at("name")),
                                text(against.at("date")));
  for (const Json& d : against.at("differences"))
    out += fmt::format("note: {} was {}, is {}\n", text(d.at("what")), printable(d.at("then").dump()),
                       printable(d.at("now").dump()));
  for (const Json& u : against.at("unmatched"))
    out += fmt::format("not in it: {} of {} at depth {}, batch {}\n", test_name(u), text(u.at("path")),
                       whole(u.at("depth")), whole(u.at("batch")));
  std::vector<Row> rows = {
      {"model", "test", "depth", "batch", "ratio", "now", "then", "spreads", "tokens sampled"}};
  for (const Json& model : report.at("models")) {
    for (const Json& t : model.at("tests")) {
      if (!t.contains("against")) continue;
      const Json& a = t.at("against");
      rows.push_back({text(model.at("path")), test_name(t), whole(t.at("depth")), whole(t.at("batch")),
                      fmt::format("{:.3f}", number(a.at("ratio"))), spread(t.at("tokens_per_second")),
                      spread(a.at("tokens_per_second")), a.at("apart").get<bool>() ? "apart" : "overlap",
                      a.at("same_tokens").get<bool>() ? "the same" : "OTHERS"});
    }
  }
  return rows.size() > 1 ? out + "\n" + table(rows) : out;
}

// A cell as RFC 4180 quotes it.
std::string quoted(std::string cell) {
  if (cell.find_first_of(",\"\n\r") == std::string::npos) return cell;
  for (size_t at = 0; (at = cell.find('"', at)) != std::string::npos; at += 2) cell.insert(at, 1, '"');
  return '"' + cell + '"';
}

std::string csv_cell(const Json& value) {
  return quoted(value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump());
}

}  // namespace

std::string bench_markdown(const Json& report) {
  const Json &machine = report.at("machine"), &limits = machine.at("limits");
  const Json device = machine.value("device", Json());
  const std::string where = device.is_null()
                                ? fmt::format("{}, {}, {} threads", text(machine.at("cpu")),
                                              text(machine.at("isa")), whole(machine.at("threads")))
                                : fmt::format("{} ({}) in {}", text(device.at("name")),
                                              text(machine.at("isa")), text(machine.at("cpu")));
  std::string out =
      fmt::format("juno {}, numerics {}, {}, activations {}\n{}\n", text(report.at("versions").at("juno")),
                  report.at("versions").at("numerics").get<int>(), text(report.at("date")),
                  text(report.at("settings").at("activations")), where);
  out += fmt::format("limits: memory {} GB/s, 8-bit multiply-adds {} G/s; load average {}\n",
                     figure(number(limits.at("read_bytes_per_second")) / 1e9),
                     figure(number(limits.at("multiply_adds_per_second")) / 1e9), load_averages(machine));
  for (const Json& model : report.at("models")) out += model_lines(model);
  return report.contains("against") ? out + against_lines(report) : out;
}

std::string bench_csv(const Json& report) {
  static constexpr const char* kOfModel[] = {"/path", "/sha256", "/load/open_seconds/median",
                                             "/load/first_token_seconds/median", "/peak_memory/bytes"};
  static constexpr const char* kOfTest[] = {"/test",
                                            "/tokens",
                                            "/depth",
                                            "/batch",
                                            "/tokens_per_second/median",
                                            "/tokens_per_second/min",
                                            "/tokens_per_second/max",
                                            "/weight_bytes_per_second",
                                            "/bandwidth_share",
                                            "/multiply_add_share",
                                            "/against/ratio",
                                            "/against/tokens_per_second/median",
                                            "/against/tokens_per_second/min",
                                            "/against/tokens_per_second/max"};
  Row names;
  for (const char* key : kOfModel) names.push_back(key + 1);
  for (const char* key : kOfTest) names.push_back(key + 1);
  std::string out = fmt::format("{}\n", fmt::join(names, ","));
  for (const Json& model : report.at("models")) {
    for (const Json& test : model.at("tests")) {
      Row row;
      for (const char* key : kOfModel) row.push_back(csv_cell(model.at(Json::json_pointer(key))));
      for (const char* key : kOfTest) row.push_back(csv_cell(test.value(Json::json_pointer(key), Json())));
      out += fmt::format("{}\n", fmt::join(row, ","));
    }
  }
  return out;
}

}  // namespace juno::cli
