-- What starts a version besides requests: one JSON object, the entries by field of the deploy, without empty ones.
-- A binding that delivers events needs no column of its own.
ALTER TABLE versions ADD COLUMN triggers TEXT NOT NULL DEFAULT '{}';
UPDATE versions SET triggers = json_patch(
    json_patch(
        iif(crons = '[]', '{}', json_object('crons', json(crons))),
        iif(queue_consumers = '[]', '{}', json_object('queue_consumers', json(queue_consumers)))
    ),
    iif(tail_consumers = '[]', '{}', json_object('tail_consumers', json(tail_consumers)))
) WHERE crons != '[]' OR queue_consumers != '[]' OR tail_consumers != '[]';
ALTER TABLE versions DROP COLUMN crons;
ALTER TABLE versions DROP COLUMN queue_consumers;
ALTER TABLE versions DROP COLUMN tail_consumers;
