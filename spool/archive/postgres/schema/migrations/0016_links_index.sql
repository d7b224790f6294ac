-- works with 14
-- Apart from the column (0013), so that records can be read while it is built.
CREATE INDEX record_states_links ON record_states (account_id, link, request_id) WHERE link IS NOT NULL;
