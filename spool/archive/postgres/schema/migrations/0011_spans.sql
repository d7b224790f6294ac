-- works with 11
-- Spans of traces. A server of a version before would lose them from the state of a record that it changes.
-- trace is that of the record's span. span_at is the order time (nanoseconds since 1970) of a record that is only a span,
-- which has no header.
ALTER TABLE record_states ADD COLUMN trace uuid;
ALTER TABLE record_states ADD COLUMN span_at bigint;
CREATE INDEX record_states_traces ON record_states (account_id, trace, request_id) WHERE trace IS NOT NULL;
CREATE INDEX record_states_spans ON record_states (account_id, span_at, request_id) WHERE span_at IS NOT NULL;

-- Records that are only a span; newest and oldest include them.
ALTER TABLE account_weeks ADD COLUMN spans bigint NOT NULL DEFAULT 0;
