-- The rollback rule of a deployment with its state, as JSON; '' for none. Only the newest deployment of a worker can have
-- a rule in the state "watching".
ALTER TABLE deployments ADD COLUMN rule TEXT NOT NULL DEFAULT '';

-- A node that starts looks for rules in force, and most deployments have none.
CREATE INDEX deployments_with_rule ON deployments (worker_id, number) WHERE rule <> '';
