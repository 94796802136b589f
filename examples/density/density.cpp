// Read a log-density and its gradient from a file, and climb to a mode.
#include <onnxruntime_cxx_api.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

using Vector = std::vector<double>;

struct Values {
  double logp;
  Vector gradient;
  double mu;
  double tau;
};

class Density {
 public:
  // `kernels` is the path of a library of kernels, or null.
  Density(const char* path, const char* kernels)
      : session_(environment_, path, options_with(kernels)) {}

  Values at(Vector& point) {
    const std::array<Ort::Value, 3> inputs{tensor(point), tensor(effects_), tensor(errors_)};
    auto results = session_.Run(Ort::RunOptions{}, kInputs.data(), inputs.data(), inputs.size(),
                                kOutputs.data(), kOutputs.size());
    const auto* gradient = results[1].GetTensorData<double>();
    const auto size = results[1].GetTensorTypeAndShapeInfo().GetElementCount();
    return {number(results[0]), Vector(gradient, gradient + size), number(results[2]),
            number(results[3])};
  }

 private:
  static constexpr std::array kInputs{"point", "effects", "errors"};
  static constexpr std::array kOutputs{"logp", "dlogp", "mu", "tau"};

  static Ort::SessionOptions options_with(const char* kernels) {
    Ort::SessionOptions options;
    if (kernels) options.RegisterCustomOpsLibrary(kernels);
    return options;
  }

  // The tensor is a view of the vector.
  Ort::Value tensor(Vector& values) {
    const std::array<std::int64_t, 1> shape{static_cast<std::int64_t>(values.size())};
    return Ort::Value::CreateTensor<double>(memory_, values.data(), values.size(), shape.data(),
                                            shape.size());
  }

  static double number(const Ort::Value& value) { return *value.GetTensorData<double>(); }

  Ort::Env environment_;
  Ort::MemoryInfo memory_ = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  Ort::Session session_;
  Vector effects_{28, 8, -3, 7, -1, 1, 18, 12};
  Vector errors_{15, 10, 16, 11, 9, 11, 10, 18};
};

int main(int count, char** arguments) {
  Density density("eight_schools.onnx", count > 1 ? arguments[1] : nullptr);
  // mu, the logarithm of tau, and z of each school.
  Vector point(10, 0.5);
  const auto first = density.at(point);
  std::printf("{\"logp\": %.17g, \"gradient\": [", first.logp);
  for (std::size_t i = 0; i < first.gradient.size(); ++i) {
    std::printf("%s%.17g", i ? ", " : "", first.gradient[i]);
  }
  std::printf("]}\n");
  for (int step = 0; step < 2000; ++step) {
    const auto gradient = density.at(point).gradient;
    for (std::size_t i = 0; i < point.size(); ++i) point[i] += 0.1 * gradient[i];
  }
  const auto last = density.at(point);
  std::printf("{\"logp\": %.17g, \"mu\": %.17g, \"tau\": %.17g}\n", last.logp, last.mu, last.tau);
}
