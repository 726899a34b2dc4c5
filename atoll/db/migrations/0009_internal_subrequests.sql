-- Fetches and calls of bindings have limits of their own. What a version was allowed of both together, it keeps for each.
UPDATE versions SET limits = json_set(limits, '$.internal_subrequests', json_extract(limits, '$.subrequests'));
