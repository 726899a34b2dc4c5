-- Recipients of the email that a tenant has sent in a day.
CREATE TABLE email_sent (
    tenant     text NOT NULL,
    day        int NOT NULL,  -- since 1970, UTC
    recipients bigint NOT NULL,
    PRIMARY KEY (tenant, day)
);
