// headers.hpp: stored response headers, a jsonb array of [name, value] pairs.
//
// Purpose: one shape in storage and in every answer: [["Content-Type", "application/json"], ["Link", "a"], ["Link",
// "b"]], order, repeats and the case of names kept. What callers hand in is looser; it is checked and filtered once,
// when stored. Safety: a name is an HTTP token and a value holds no CR, LF or NUL, so a replay can never be split into
// two responses; Set-Cookie and WWW-Authenticate belong to one client's session and are dropped whatever a policy
// allows. Lifetime: results are palloc'd in the current memory context. Strings given to headers_add are not copied
// before headers_end and must live until then.
#pragma once

#include <string_view>

#include "pg/server.hpp"

namespace idem::pg {

inline constexpr int HEADER_PAIRS_MAX = 64;
inline constexpr std::size_t HEADER_BYTES_MAX = 16 * 1024;

// HeaderList is an array of pairs under construction.
struct HeaderList {
    JsonbParseState* state;
    int pairs;
};

// headers_begin starts an empty list.
HeaderList headers_begin();

// headers_add appends one pair; name and value are trusted, in the server's encoding, and unchecked.
void headers_add(HeaderList* list, std::string_view name, std::string_view value);

// headers_add_stored appends stored headers (NULL: none) but those named in `except`, lower-case names separated by
// commas. It checks them as normalise_headers does, because a composite value can be made by anybody.
void headers_add_stored(HeaderList* list, Jsonb* stored, std::string_view except);

// headers_end closes the list and returns it, `[]` when it is empty. The list must not be used again.
Jsonb* headers_end(HeaderList* list);

// normalise_headers returns what is to be stored of the given headers: an array of [name, value] pairs, or an object
// {name: value | [values]}; numbers and booleans become text, JSON nulls are dropped. Only names in allow_list
// (lower-case, separated by commas, compared without case) are kept. NULL for NULL or when nothing remains. Raises
// 22023 for another shape, a name that is no HTTP token or a value with CR, LF or NUL; ID005 when more than
// HEADER_PAIRS_MAX pairs or HEADER_BYTES_MAX bytes of names and values are given, whether or not they would be kept.
Jsonb* normalise_headers(Jsonb* given, std::string_view allow_list);

// headers_have tells whether normalised headers (or NULL) hold a name, compared without case.
bool headers_have(Jsonb* headers, std::string_view name);

// header_names returns the names of a stored list as normalise_headers takes them, palloc'd.
const char* header_names(Jsonb* headers);

// headers_append returns a copy of normalised headers (NULL: none) with one trusted pair at the end.
Jsonb* headers_append(Jsonb* headers, std::string_view name, std::string_view value);

} // namespace idem::pg
