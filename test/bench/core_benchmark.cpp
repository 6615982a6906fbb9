// core_benchmark: the parts of the canonical form by themselves, so that a developer sees a change without a server.
//
//   cmake -S . -B build -DBENCHMARK=ON && cmake --build build --target core_benchmark && build/core_benchmark
//
// Every benchmark reports bytes of text per second, or keys per second where it orders keys.
#include "core/canonical.hpp"
#include "core/fingerprint.hpp"
#include "core/key_order.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace {

using idem::core::CanonicalWriter;

// run_tokens writes the same tokens again and again, as one array.
template <class Tokens>
void run_tokens(benchmark::State& state, Tokens tokens) {
    std::vector<char> buffer(8192);
    std::size_t size = 0;
    const auto count = [](void* context, const char*, std::size_t bytes) {
        *static_cast<std::size_t*>(context) += bytes;
    };
    for (auto _ : state) {
        size = 0;
        CanonicalWriter writer(buffer.data(), buffer.size(), count, &size);
        writer.begin_array();
        tokens(writer);
        writer.end_array();
        size += writer.pending().size();
    }
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(size));
}

std::string prose(std::mt19937& random, std::size_t size) {
    std::string text;
    while (text.size() < size) {
        text += random() % 6 == 0 ? ' ' : static_cast<char>('a' + random() % 26);
    }
    return text;
}

void strings(benchmark::State& state) {
    std::mt19937 random(1);
    std::vector<std::string> texts;
    for (int i = 0; i < 500; ++i) {
        texts.push_back(prose(random, static_cast<std::size_t>(state.range(0) / 2) +
                                          random() % static_cast<unsigned>(state.range(0))));
    }
    run_tokens(state, [&](CanonicalWriter& writer) {
        for (const std::string& text : texts) {
            writer.string(text);
        }
    });
}
BENCHMARK(strings)->Arg(8)->Arg(24)->Arg(100)->Arg(4000);

// escapes has one byte in range(0) that needs an escape, on average.
void escapes(benchmark::State& state) {
    std::mt19937 random(2);
    std::string text;
    while (text.size() < 65536) {
        text += random() % static_cast<unsigned>(state.range(0)) == 0
                    ? "\"\\\n\t\x01"[random() % 40 == 0 ? 4 : random() % 4]
                    : 'x';
    }
    run_tokens(state, [&](CanonicalWriter& writer) { writer.string(text); });
}
BENCHMARK(escapes)->Arg(2)->Arg(5)->Arg(20)->Arg(60)->Arg(300);

// numbers has numbers of range(0) base-10000 digits, range(1) of them after the point.
void numbers(benchmark::State& state) {
    std::mt19937 random(3);
    const auto count = static_cast<std::size_t>(state.range(0));
    std::vector<std::int16_t> digits(1000 * count);
    for (std::int16_t& digit : digits) {
        digit = static_cast<std::int16_t>(1 + random() % 9999);
    }
    run_tokens(state, [&](CanonicalWriter& writer) {
        for (std::size_t i = 0; i < digits.size(); i += count) {
            writer.number({digits.data() + i, static_cast<std::uint32_t>(count),
                           static_cast<std::int32_t>(state.range(0) - state.range(1) - 1), i % 8 == 0});
        }
    });
}
BENCHMARK(numbers)->Args({1, 0})->Args({2, 0})->Args({2, 1})->Args({5, 4})->Args({12, 6});

// key_order orders objects of range(0) keys, stored as jsonb stores them; range(1) bytes are common to all.
void key_order(benchmark::State& state) {
    std::mt19937 random(4);
    constexpr std::size_t objects = 64;
    const auto count = static_cast<std::size_t>(state.range(0));
    std::string data;
    std::vector<std::uint32_t> starts;
    for (std::size_t object = 0; object < objects; ++object) {
        std::vector<std::string> keys;
        for (std::size_t i = 0; i < count; ++i) {
            keys.push_back(std::string(static_cast<std::size_t>(state.range(1)), 'k') +
                           prose(random, 3 + random() % 16));
        }
        std::sort(keys.begin(), keys.end(), [](const std::string& a, const std::string& b) {
            return a.size() != b.size() ? a.size() < b.size() : a < b;
        });
        for (const std::string& key : keys) {
            starts.push_back(static_cast<std::uint32_t>(data.size()));
            data += key;
        }
        starts.push_back(static_cast<std::uint32_t>(data.size()));
    }
    std::vector<std::uint32_t> order(count);
    std::vector<idem::core::SortKey> scratch(2 * count);
    std::size_t object = 0;
    for (auto _ : state) {
        idem::core::order_keys({data.data(), starts.data() + object * (count + 1), static_cast<std::uint32_t>(count),
                                data.data() + data.size()},
                               order.data(), scratch.data(), [] {});
        benchmark::DoNotOptimize(order.data());
        object = (object + 1) % objects;
    }
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(key_order)->Args({3, 0})->Args({8, 0})->Args({16, 0})->Args({30, 0})->Args({30, 12})->Args({200, 0})->Args(
    {5000, 0});

void xxh3(benchmark::State& state) {
    const std::string text(static_cast<std::size_t>(state.range(0)), 'x');
    for (auto _ : state) {
        benchmark::DoNotOptimize(idem::core::xxh3_128(text));
    }
    state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(xxh3)->Arg(100)->Arg(1000)->Arg(8000)->Arg(64000);

} // namespace

BENCHMARK_MAIN();
