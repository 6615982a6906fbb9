// profile_options.hpp: from options in SQL to a core::Profile.
//
// Purpose: check and compile payload options, be they arguments of a function or members of a policy's jsonb; a wrong
// one raises 22023 and is named. Lifetime: the compiled paths are palloc'd in the current memory context; the profile
// is a view on them and may be kept as long as that context.
#pragma once

#include "core/profile.hpp"

#include <string_view>

#include "pg/server.hpp"

namespace idem::pg {

// ProfileBuilder collects options, then compiles them. All it has are views; compile() ends it.
class ProfileBuilder {
public:
    // set_numbers takes 'exact' or 'double'.
    void set_numbers(std::string_view word);

    // add_paths takes a text[] of one dimension (or none), add_scales an object of scales by path.
    void add_paths(const char* option, core::PathUse use, ArrayType* paths);
    void add_scales(JsonbContainer* scales);

    // add_path takes one path in the server's encoding; scale is for ROUND.
    void add_path(const char* option, core::PathUse use, std::string_view path, std::int32_t scale);

    // compile returns the profile.
    core::Profile compile();

    bool trim_strings = false;
    bool nfc_strings = false;
    bool strip_nulls = false;

private:
    struct Path {
        const char* option;
        core::PathUse use;
        core::Bytes text; // UTF-8
        std::int32_t scale;
    };

    core::Numbers numbers_ = core::Numbers::EXACT;
    Path* paths_ = nullptr;
    std::size_t count_ = 0;
    std::size_t capacity_ = 0;
    std::size_t size_ = 0; // bytes of all paths
};

// compile_profile compiles an object with any of the members trim_strings, nfc_strings, ignore_paths, intent_paths,
// strip_nulls, numbers, decimal_paths, round_paths, unordered_paths into *out. A member that is null is not given.
// Raises 22023, which names what is unknown, of another type, or not a path.
void compile_profile(Jsonb* options, core::Profile* out);

} // namespace idem::pg
