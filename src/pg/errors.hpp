// errors.hpp: every error a user can see, on one screen.
//
// Purpose: one [[noreturn]] function per message, so that SQLSTATE, DETAIL and HINT are decided once. What the client
// sent wrong is data (outcome 'rejected'); what the programmer wrote wrong raises here. SQLSTATE class ID is ours, in
// the range that the standard leaves to implementations; clients branch on it and never on text. Privacy: no function
// takes a payload, a body or a whole key. Operation ids identify what the message is about.
#pragma once

#include "core/json_text.hpp"
#include "core/paths.hpp"
#include "core/policy.hpp"
#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::pg {

// The conditions of class ID that clients branch on.
inline constexpr int ERRCODE_ID_STALE_TOKEN = MAKE_SQLSTATE('I', 'D', '0', '0', '1');
inline constexpr int ERRCODE_ID_OTHER_RESPONSE = MAKE_SQLSTATE('I', 'D', '0', '0', '2');
inline constexpr int ERRCODE_ID_NOT_COMMITTED = MAKE_SQLSTATE('I', 'D', '0', '0', '3');
inline constexpr int ERRCODE_ID_LEFT_OPEN = MAKE_SQLSTATE('I', 'D', '0', '0', '4');
inline constexpr int ERRCODE_ID_TOO_LARGE = MAKE_SQLSTATE('I', 'D', '0', '0', '5');
inline constexpr int ERRCODE_ID_VERSION = MAKE_SQLSTATE('I', 'D', '0', '0', '6');
inline constexpr int ERRCODE_ID_NO_OPERATION = MAKE_SQLSTATE('I', 'D', '0', '0', '7');

// Arguments.
[[noreturn]] void error_null_argument(const char* argument);
[[noreturn]] void error_empty_argument(const char* argument);
[[noreturn]] void error_argument_too_long(const char* argument, std::size_t limit_bytes);
[[noreturn]] void error_control_character(const char* argument);
[[noreturn]] void error_duration_range(const char* argument, const char* minimum, const char* maximum);
[[noreturn]] void error_two_payloads();
[[noreturn]] void error_two_bodies();
[[noreturn]] void error_body_sha256_size();
[[noreturn]] void error_status_range(int status);
[[noreturn]] void error_unknown_state(const char* function, const char* allowed);
[[noreturn]] void error_evidence_required();
[[noreturn]] void error_array_lengths(const char* first, int first_length, const char* second, int second_length);
[[noreturn]] void error_array_shape(const char* argument);
[[noreturn]] void error_too_large(const char* what, std::size_t size, std::size_t limit);

// The state of an operation.
[[noreturn]] void error_stale_token(const core::OperationId& id);
[[noreturn]] void error_other_response(const core::OperationId& id);
[[noreturn]] void error_not_committed(const core::OperationId& id);
[[noreturn]] void error_left_open(const core::OperationId& id);
[[noreturn]] void error_no_operation(const core::OperationId& id);
[[noreturn]] void error_not_running(const core::OperationId& id, const char* state);
[[noreturn]] void error_not_resolvable(const core::OperationId& id, const char* state, bool running);
[[noreturn]] void error_not_reopenable(const core::OperationId& id, const char* state);
[[noreturn]] void error_claimed_twice_in_statement(const core::OperationId& id);
[[noreturn]] void error_serialization();
[[noreturn]] void error_deadlock();

// The outbox.
[[noreturn]] void error_lease_lapsed(const core::OperationId& message);
[[noreturn]] void error_no_message(const core::OperationId& message);
[[noreturn]] void error_number_range(const char* argument, int minimum, int maximum);
[[noreturn]] void error_reserved_header(const char* name);
[[noreturn]] void error_event_headers();
[[noreturn]] void error_on_dead_letter();

// Inboxes and resource versions.
[[noreturn]] void error_seq_without_entity();
[[noreturn]] void error_negative_argument(const char* argument);
[[noreturn]] void error_version_in_lease_mode();

// The installation.
[[noreturn]] void error_version(const char* installed, const char* library);
[[noreturn]] void error_not_installed(const char* relation);
[[noreturn]] void error_table_shape(const char* relation, const char* problem);
[[noreturn]] void error_row_skipped(const char* relation);
[[noreturn]] void error_unique_violation(const char* index);
[[noreturn]] void error_null_column(Relation relation, const char* column);
[[noreturn]] void error_check_violation(Relation relation, const char* constraint);
[[noreturn]] void error_retries_exhausted();
[[noreturn]] void error_identity_mismatch(const core::OperationId& id);
[[noreturn]] void error_profile_missing(std::int32_t version);
[[noreturn]] void error_secret_missing(std::int32_t version);
[[noreturn]] void error_answer_missing(const core::OperationId& id);

// Handlers of idem_execute.
[[noreturn]] void error_no_handler();
[[noreturn]] void error_handler_not_found(const char* handler);
[[noreturn]] void error_handler_kind(const char* handler);
[[noreturn]] void error_handler_strict(const char* handler);
[[noreturn]] void error_handler_result(const char* handler);
[[noreturn]] void error_execute_in_lease_mode();

// The sweep.
[[noreturn]] void error_sweep_in_transaction();
[[noreturn]] void error_not_preloaded(const char* function);

// Headers and HTTP responses. Positions count from 1; header text is never shown.
[[noreturn]] void error_malformed_headers();
[[noreturn]] void error_header_name(int position);
[[noreturn]] void error_header_value(int position);
[[noreturn]] void error_headers_number(int limit);
[[noreturn]] void error_headers_size(std::size_t limit_bytes);
[[noreturn]] void error_type_shape(const char* type);
[[noreturn]] void error_no_response();

// Payload hashes. An algorithm's name is shown up to 64 bytes.
[[noreturn]] void error_unknown_hash_algorithm(const char* name, int size);
[[noreturn]] void error_canonical_not_utf8();
[[noreturn]] void error_canonical_too_long();

// Policies. What a user wrote is shown up to 64 bytes.
[[noreturn]] void error_unknown_preset(std::string_view preset);
[[noreturn]] void error_policy_options_not_object();
[[noreturn]] void error_unknown_policy_option(std::string_view name);
[[noreturn]] void error_policy_option_type(const core::Option& option);
[[noreturn]] void error_policy_option_value(const core::Option& option, core::OptionFault fault, std::string_view text);
[[noreturn]] void error_policy_key_lengths(int key_min, int key_max);

// Payload options. Options, paths and words are shown up to 64 bytes, payloads never.
[[noreturn]] void error_profile_not_object();
[[noreturn]] void error_unknown_profile_option(std::string_view name);
[[noreturn]] void error_profile_option_type(const char* option, const char* form);
[[noreturn]] void error_unknown_numbers(std::string_view word);
[[noreturn]] void error_path(const char* option, std::string_view path, core::PathFault fault, std::size_t position);
[[noreturn]] void error_scale(std::string_view path);
[[noreturn]] void error_beyond_double();

// JSON text. Positions count characters from 1.
[[noreturn]] void error_json_text(core::JsonFault fault, std::size_t position);
[[noreturn]] void error_json_member_twice(std::size_t position);
[[noreturn]] void error_json_noncharacter(std::size_t position);

} // namespace idem::pg
