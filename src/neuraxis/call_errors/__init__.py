"""Every error message for a model, in one reviewed place.

Each function returns a `CallError`: where, what was expected, what was given, what to
do. No message contains a traceback, a secret or a path outside the workspace; third
parties' texts are quoted briefly, as data and never as instructions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from neuraxis.call_errors.asking import NOBODY as NOBODY
from neuraxis.call_errors.asking import SAID_NO as SAID_NO
from neuraxis.call_errors.asking import also_own as also_own
from neuraxis.call_errors.asking import asks_code as asks_code
from neuraxis.call_errors.asking import asks_deed as asks_deed
from neuraxis.call_errors.asking import asks_guarded as asks_guarded
from neuraxis.call_errors.asking import asks_out as asks_out
from neuraxis.call_errors.asking import asks_path as asks_path
from neuraxis.call_errors.asking import asks_repeated as asks_repeated
from neuraxis.call_errors.asking import deed_way_out as deed_way_out
from neuraxis.call_errors.asking import held_back as held_back
from neuraxis.call_errors.asking import no_from as no_from
from neuraxis.call_errors.asking import offer_calls as offer_calls
from neuraxis.call_errors.asking import offer_changes as offer_changes
from neuraxis.call_errors.asking import offer_every_change as offer_every_change
from neuraxis.call_errors.asking import offer_host as offer_host
from neuraxis.call_errors.asking import only_reads as only_reads
from neuraxis.call_errors.asking import out_way_out as out_way_out
from neuraxis.call_errors.asking import plan_way_out as plan_way_out
from neuraxis.call_errors.asking import refused as refused
from neuraxis.call_errors.asking import said_no_often as said_no_often
from neuraxis.call_errors.asking import summary as summary
from neuraxis.call_errors.asking import too_long_to_ask as too_long_to_ask
from neuraxis.call_errors.asking import undeclared_way_out as undeclared_way_out
from neuraxis.call_errors.asking import unknown_way_out as unknown_way_out
from neuraxis.call_errors.asking import yes_way_out as yes_way_out
from neuraxis.call_errors.checking import asset_lost as asset_lost
from neuraxis.call_errors.checking import asset_not_found as asset_not_found
from neuraxis.call_errors.checking import asset_path_not_found as asset_path_not_found
from neuraxis.call_errors.checking import (
    asset_ref_not_acceptable as asset_ref_not_acceptable,
)
from neuraxis.call_errors.checking import asset_unknown as asset_unknown
from neuraxis.call_errors.checking import braces_are_text as braces_are_text
from neuraxis.call_errors.checking import invalid_asset_type as invalid_asset_type
from neuraxis.call_errors.checking import invalid_param as invalid_param
from neuraxis.call_errors.checking import not_shown as not_shown
from neuraxis.call_errors.checking import problem_text as problem_text
from neuraxis.call_errors.checking import reference_not_found as reference_not_found
from neuraxis.call_errors.checking import too_many_steps as too_many_steps
from neuraxis.call_errors.checking import unfolding_asset as unfolding_asset
from neuraxis.call_errors.checking import unfolding_problem as unfolding_problem
from neuraxis.call_errors.checking import unknown_command as unknown_command
from neuraxis.call_errors.checking import unknown_plugin as unknown_plugin
from neuraxis.call_errors.files import can_be_undone as can_be_undone
from neuraxis.call_errors.files import file_of_the_user as file_of_the_user
from neuraxis.call_errors.files import file_was_made as file_was_made
from neuraxis.call_errors.files import file_way_out as file_way_out
from neuraxis.call_errors.files import files_undone as files_undone
from neuraxis.call_errors.files import lines_not_shown as lines_not_shown
from neuraxis.call_errors.files import lost_of as lost_of
from neuraxis.call_errors.files import more_files as more_files
from neuraxis.call_errors.files import more_lines as more_lines
from neuraxis.call_errors.files import new_in as new_in
from neuraxis.call_errors.files import replaced_by as replaced_by
from neuraxis.call_errors.files import (
    script_changes_not_kept as script_changes_not_kept,
)
from neuraxis.call_errors.files import (
    script_changes_outdated as script_changes_outdated,
)
from neuraxis.call_errors.files import script_changes_refused as script_changes_refused
from neuraxis.call_errors.files import skill_copy_blocked as skill_copy_blocked
from neuraxis.call_errors.files import skill_file_changed as skill_file_changed
from neuraxis.call_errors.files import version_stored as version_stored
from neuraxis.call_errors.reading import calls_left as calls_left
from neuraxis.call_errors.reading import duplicate_key as duplicate_key
from neuraxis.call_errors.reading import empty_reply as empty_reply
from neuraxis.call_errors.reading import malformed_reply as malformed_reply
from neuraxis.call_errors.reading import no_output as no_output
from neuraxis.call_errors.reading import only_words as only_words
from neuraxis.call_errors.reading import (
    receiver_id_not_allowed as receiver_id_not_allowed,
)
from neuraxis.call_errors.reading import shown_here as shown_here
from neuraxis.call_errors.reading import truncated_reply as truncated_reply
from neuraxis.call_errors.reading import wrong_output as wrong_output
from neuraxis.call_errors.running import budget_exhausted as budget_exhausted
from neuraxis.call_errors.running import budget_left as budget_left
from neuraxis.call_errors.running import cancelled as cancelled
from neuraxis.call_errors.running import changed_by_person as changed_by_person
from neuraxis.call_errors.running import crashed as crashed
from neuraxis.call_errors.running import definition_changed as definition_changed
from neuraxis.call_errors.running import definitions_unread as definitions_unread
from neuraxis.call_errors.running import denied as denied
from neuraxis.call_errors.running import failed as failed
from neuraxis.call_errors.running import had_its_effect as had_its_effect
from neuraxis.call_errors.running import had_no_effect as had_no_effect
from neuraxis.call_errors.running import items_failed as items_failed
from neuraxis.call_errors.running import left_out as left_out
from neuraxis.call_errors.running import loop_beyond_limit as loop_beyond_limit
from neuraxis.call_errors.running import loop_cut_off as loop_cut_off
from neuraxis.call_errors.running import no_thread_free as no_thread_free
from neuraxis.call_errors.running import not_begun as not_begun
from neuraxis.call_errors.running import one_at_a_time as one_at_a_time
from neuraxis.call_errors.running import outcome_unknown as outcome_unknown
from neuraxis.call_errors.running import plan_not_run as plan_not_run
from neuraxis.call_errors.running import plugin_contract_error as plugin_contract_error
from neuraxis.call_errors.running import repeated_call as repeated_call
from neuraxis.call_errors.running import run_too_long as run_too_long
from neuraxis.call_errors.running import skipped as skipped
from neuraxis.call_errors.running import still_busy as still_busy
from neuraxis.call_errors.running import still_running as still_running
from neuraxis.call_errors.running import summary_wanted as summary_wanted
from neuraxis.call_errors.running import summed_up as summed_up
from neuraxis.call_errors.running import timed_out as timed_out
from neuraxis.call_errors.running import unknown_before as unknown_before
from neuraxis.formatting import QUOTED as QUOTED
from neuraxis.formatting import nearest as nearest
from neuraxis.formatting import path_text as path_text
from neuraxis.formatting import quote as quote
from neuraxis.formatting import type_name as type_name
from neuraxis.messages import CallError
from neuraxis.specs import Json

SAID_NOTHING = "(I said nothing.)"  # Some servers do not accept an empty reply.
RESULTS_SEEN = "I see the results."  # Some servers require an assistant turn there.


def asset_list(meta: Sequence[Json]) -> str:
    """Return the assets as the model sees them each turn (B55)."""
    rows = "\n".join([json.dumps(item, ensure_ascii=False) for item in meta])
    # A plugin's column names must not end the block.
    rows = rows.replace("```", "`\u200b``").replace("<!--", "<\\u0021--")
    return (
        "Current AssetMeta list (stored objects; refer to one by its path, "
        "e.g. asset://ID/content/response):\n```json\n" + rows + "\n```"
    )


def to_json(error: CallError) -> dict[str, Json]:
    """Return the error as JSON, equivalent to its text (rule D7)."""
    written: dict[str, Json] = {"code": error.code, "message": error.message}
    if error.where:
        written["where"] = error.where
    if error.problems:
        written["problems"] = [
            {
                "path": list(problem.path),
                "expected": problem.expected,
                "got": problem.got,
                **(
                    {"candidates": list(problem.candidates)}
                    if problem.candidates
                    else {}
                ),
            }
            for problem in error.problems
        ]
    if error.candidates:
        written["candidates"] = list(error.candidates)
    if error.fixable_by != "model":
        written["fixable_by"] = error.fixable_by
    return written
