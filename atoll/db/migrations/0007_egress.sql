-- Where workers may connect to: a JSON object with the lists `allow` and `deny`.
ALTER TABLE versions ADD COLUMN egress TEXT NOT NULL DEFAULT '{}';
ALTER TABLE tenants ADD COLUMN egress TEXT NOT NULL DEFAULT '{}';
