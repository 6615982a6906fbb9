// text_json.hpp: raw JSON text, before jsonb has decided what to lose.
//
// Purpose: jsonb keeps the last of two members of one name without a word, and takes noncharacters; other parsers do
// not. Whoever hashes what came over the wire can have both refused. Syntax is checked here too, so that an error names
// a position and never shows a part of the payload, as the server's own JSON errors do. Cost: linear, but for ordering
// the names of each object; iterative. jsonb's own parser, which comes after, has the depth limit of the server.
#pragma once

#include "pg/server.hpp"

namespace idem::pg {

// read_json_text returns text (detoasted, not NULL) as jsonb. Raises 22P02 where it is not JSON (lone surrogates too),
// 22P05 for U+0000 and for an escape that the server's encoding has no character for, 22021 where the text has no UTF-8
// form; when is_strict also 22030 for a member name that occurs twice in an object, 22023 for a noncharacter. When not
// strict the last of two members of one name wins. Raises 22003 and 54000, 54001 where jsonb has its limits.
Jsonb* read_json_text(const text* value, bool is_strict);

} // namespace idem::pg
