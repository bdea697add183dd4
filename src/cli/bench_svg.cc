// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/format.h"

namespace juno::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kWidth = 860, kLeft = 64, kRight = 24, kTop = 56, kPlot = 330, kLine = 19, kBottom = 56;
constexpr int kColours = 6;

constexpr const char* kStyle = R"(<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.small { font-size: 11px; fill: #57606a }
.ground { fill: #ffffff } .grid { stroke: #d8dee4 } .roof { stroke: #24292f; stroke-width: 2; fill: none }
.c0 { fill: #0969da } .c1 { fill: #bc4c00 } .c2 { fill: #1a7f37 } .c3 { fill: #8250df } .c4 { fill: #bf3989 } .c5 { fill: #6e7781 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .small { fill: #9198a1 }
.ground { fill: #0d1117 } .grid { stroke: #30363d } .roof { stroke: #e6edf3 }
.c0 { fill: #4493f8 } .c1 { fill: #f0883e } .c2 { fill: #3fb950 } .c3 { fill: #ab7df8 } .c4 { fill: #db61a2 } .c5 { fill: #9198a1 }
}
</style>
)";

struct Point {
  double intensity, rate;  // multiply-adds a byte of weights, and a second
  double roof;             // the most that a second could have at this intensity
  size_t model;
  std::string words;
};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '<') out += "&lt;";
    else if (c == '&') out += "&amp;";
    else out += c;
  }
  return out;
}

double as_number(const Json& value) { return value.get<double>(); }

std::string name_of(const Json& model) {
  return escaped(std::filesystem::path(model.at("path").get<std::string>()).filename().string());
}

std::string words_of(const Json& model, const Json& test) {
  std::string out = fmt::format("{}: {} {}", name_of(model), escaped(test.at("test").get<std::string>()),
                                as_number(test.at("tokens")));
  if (test.at("depth") != 0) out += fmt::format(" behind {}", as_number(test.at("depth")));
  if (test.at("batch") != 1) out += fmt::format(", {} sequences", as_number(test.at("batch")));
  return out;
}

std::vector<Point> points_of(const Json& report, double read, double peak) {
  std::vector<Point> points;
  const Json& models = report.at("models");
  for (size_t m = 0; m < models.size(); ++m) {
    for (const Json& test : models[m].at("tests")) {
      const double rate = as_number(test.at("multiply_adds_per_second"));
      const double bytes = as_number(test.at("weight_bytes_per_second"));
      if (rate <= 0 || bytes <= 0) continue;
      points.push_back(
          {rate / bytes, rate, std::min(peak, rate / bytes * read), m, words_of(models[m], test)});
    }
  }
  return points;
}

// A logarithmic axis of whole powers of ten.
struct Axis {
  double low, high;    // powers
  double from, until;  // where they are drawn

  Axis(double least, double most, double from, double until)
      : low(std::floor(std::log10(least))), high(std::ceil(std::log10(most))), from(from), until(until) {}
  double at(double value) const { return from + (std::log10(value) - low) / (high - low) * (until - from); }
};

struct Axes {
  Axis x, y;
};

Axes axes_of(const std::vector<Point>& points, double read, double peak) {
  double left = peak / read, right = left * 4, low = peak, high = peak * 1.5;
  for (const Point& p : points) {
    left = std::min(left, p.intensity / 1.5);
    right = std::max(right, p.intensity * 1.5);
    low = std::min(low, p.rate / 1.5);
    high = std::max(high, p.rate * 1.2);
  }
  return {{left, right, kLeft, kWidth - kRight}, {low, high, kTop + kPlot, kTop}};
}

std::string grid(const Axes& a) {
  std::string out;
  for (double power = a.x.low; power <= a.x.high; ++power) {
    const double x = a.x.at(std::pow(10, power));
    out += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)"
                       R"(<text class="small" x="{0:.1f}" y="{3}" text-anchor="middle">{4:g}</text>)"
                       "\n",
                       x, kTop, kTop + kPlot, kTop + kPlot + 16, std::pow(10, power));
  }
  for (double power = a.y.low; power <= a.y.high; ++power) {
    const double y = a.y.at(std::pow(10, power));
    out += fmt::format(R"(<line class="grid" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/>)"
                       R"(<text class="small" x="{3}" y="{4:.1f}" text-anchor="end">{5:g}</text>)"
                       "\n",
                       kLeft, kWidth - kRight, y, kLeft - 6, y + 4, std::pow(10, power - 9));
  }
  out += fmt::format(
      R"(<text class="small" x="{}" y="{}" text-anchor="end">multiply-adds a byte of weights</text>)"
      "\n",
      kWidth - kRight, kTop + kPlot + 34);
  return out + fmt::format(R"(<text class="small" x="{}" y="{}">10⁹ multiply-adds a second</text>)"
                           "\n",
                           kLeft, kTop - 8);
}

std::string roof(const Axes& a, double read, double peak) {
  const double ridge = peak / read, left = std::pow(10, a.x.low), right = std::pow(10, a.x.high);
  // Where memory's line enters the picture: at its left edge, or at its lower one.
  const double enters = std::max(left, std::pow(10, a.y.low) / read);
  std::string out = fmt::format(R"(<path class="roof" d="M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}"/>)"
                                "\n",
                                a.x.at(enters), a.y.at(enters * read), a.x.at(ridge), a.y.at(peak),
                                a.x.at(right), a.y.at(peak));
  out += fmt::format(R"(<text x="{}" y="{:.1f}" text-anchor="end">at most {:.0f}</text>)"
                     "\n",
                     kWidth - kRight - 4, a.y.at(peak) - 6, peak / 1e9);
  const double middle = std::sqrt(enters * ridge);
  return out + fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end">memory: {:.1f} GB/s</text>)"
                           "\n",
                           a.x.at(middle) - 8, a.y.at(middle * read) - 4, read / 1e9);
}

// Numbers stand beside their points, one below the other where points are close.
std::string dots(const Axes& a, const std::vector<Point>& points) {
  struct Place {
    double x, y;
  };
  std::vector<Place> taken;
  std::string out;
  for (size_t i = 0; i < points.size(); ++i) {
    const Point& p = points[i];
    const double x = a.x.at(p.intensity), y = a.y.at(p.rate);
    Place label{x + 8, y + 4};
    const auto free = [&] {
      return std::none_of(taken.begin(), taken.end(), [&](const Place& t) {
        return std::abs(t.x - label.x) < 18 && std::abs(t.y - label.y) < 12;
      });
    };
    while (!free()) label.y += 12;
    taken.push_back(label);
    out += fmt::format(R"(<circle class="c{}" cx="{:.1f}" cy="{:.1f}" r="5"><title>{}</title></circle>)"
                       R"(<text class="small" x="{:.1f}" y="{:.1f}">{}</text>)"
                       "\n",
                       p.model % kColours, x, y, p.words, label.x, label.y, i + 1);
  }
  return out;
}

std::string legend(const std::vector<Point>& points) {
  std::string out;
  double y = kTop + kPlot + kBottom;
  for (size_t i = 0; i < points.size(); ++i, y += kLine) {
    const Point& p = points[i];
    out += fmt::format(
        R"(<circle class="c{}" cx="{}" cy="{}" r="5"/><text x="{}" y="{}">{}  {}: {:.1f}, {:.0f} % of its limit</text>)"
        "\n",
        p.model % kColours, kLeft, y - 4, kLeft + 12, y, i + 1, p.words, p.rate / 1e9, 100 * p.rate / p.roof);
  }
  return out;
}

}  // namespace

std::string bench_svg(const Json& report) {
  const Json& machine = report.at("machine");
  const double read = as_number(machine.at("limits").at("read_bytes_per_second"));
  const double peak = as_number(machine.at("limits").at("multiply_adds_per_second"));
  const std::vector<Point> points = points_of(report, read, peak);
  const Axes axes = axes_of(points, read, peak);
  const double height = kTop + kPlot + kBottom + kLine * static_cast<double>(points.size());
  const std::string title =
      fmt::format("{}, {}, {} threads, juno {}, {}", escaped(machine.at("cpu").get<std::string>()),
                  escaped(machine.at("isa").get<std::string>()), as_number(machine.at("threads")),
                  escaped(report.at("versions").at("juno").get<std::string>()),
                  escaped(report.at("date").get<std::string>()));
  std::string out =
      fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}">)"
                  "\n"
                  "<title>Roofline: {2}</title>\n{3}"
                  R"(<rect class="ground" width="{0}" height="{1}" rx="8"/><text x="{4}" y="24">{2}</text>)"
                  "\n",
                  kWidth, height, title, kStyle, kLeft);
  return out + grid(axes) + roof(axes, read, peak) + dots(axes, points) + legend(points) + "</svg>\n";
}

}  // namespace juno::cli
