// SPDX-License-Identifier: Apache-2.0
// Options that several commands share, and what they open.
#pragma once
#include <memory>
#include <string>

#include "api/session.h"
#include "api/text.h"
#include "cli/command.h"

namespace CLI {
class Validator;
}  // namespace CLI

namespace juno::cli {

// Where the model comes from and how it is run.
struct ModelOptions {
  std::string model_path;  // "": the demo model inside this program
  api::SessionOptions session;
  bool cpu = false, gpu = false;
  std::string gpu_split;

  // All of it, the demo model where no file is named.
  api::SessionOptions opened(const Log& log) const;
};
// The backend that --cpu and --gpu stand for; without either, "auto".
std::string backend_of(const ModelOptions& options);

void add_model_options(CLI::App& app, ModelOptions& options);
std::unique_ptr<api::Session> open_session(const ModelOptions& options, const Log& log);

void add_sampling_options(CLI::App& app, api::Generation& generation);

// The whole of a file, or of stdin for "-".
std::string read_text(const std::string& path);

// The text side of a model; "" is the demo model.
api::Text open_text(const std::string& path);

// "0,31,64" as numbers; an error names `what`.
std::vector<int64_t> parse_numbers(const std::string& list, const char* what, Code code = Code::kUsage);

// A number in [least, most], for transform() of an option. T: int64_t, uint64_t or double.
template <class T>
CLI::Validator in_range(T least, T most);

}  // namespace juno::cli
